"""A program of TFF's: `program.py FOLDER ROUNDS`. Run again with more, it goes on."""

import asyncio
import datetime
import pathlib
import sys

import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
import tff_pmc

folder, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
data = leaf_data.load("digits5k", partition="noniid")
batched = {
    part: clients.preprocess(lambda d: d.batch(10).map(lambda e: (e["x"], e["y"])))
    for part, clients in (("train", data.train), ("test", data.test))
}


def model_fn():
    layers = [
        tf.keras.layers.Rescaling(1 / 255, input_shape=(28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10, kernel_initializer="zeros"),
    ]
    return tff.learning.models.from_keras_model(
        tf.keras.Sequential(layers),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=batched["train"].element_type_structure,
        metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )


def states(name):
    return tff.program.FileProgramStateManager(folder / name)


def releases(name):  # A CSV, and the same for TensorBoard.
    return tff.program.GroupingReleaseManager(
        [
            tff.program.CSVFileReleaseManager(
                folder / f"{name}.csv", key_fieldname="round"
            ),
            tff.program.TensorBoardReleaseManager(folder / "tensorboard" / name),
        ]
    )


async def program():
    evaluation = tff.learning.programs.EvaluationManager(
        data_source=tff_pmc.data_source(batched["test"]),
        aggregated_metrics_manager=releases("evaluation"),
        create_state_manager_fn=states,
        create_process_fn=lambda _: (
            tff.learning.algorithms.build_fed_eval(model_fn),
            None,
        ),
        cohort_size=100,  # All clients, in one round of evaluation.
        duration=datetime.timedelta(0),
    )
    await tff.learning.programs.train_model(
        train_process=tff_pmc.build_prioritized_fed_avg(
            model_fn,
            priority=("LD", "DS", "MD"),
            client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
            local_epochs=1,
        ),
        train_data_source=tff_pmc.data_source(batched["train"], seed=1),
        train_per_round_clients=10,
        train_total_rounds=rounds,
        program_state_manager=states("program"),
        model_output_manager=tff.program.SavedModelFileReleaseManager(folder / "model"),
        train_metrics_manager=releases("training"),
        evaluation_manager=evaluation,
        evaluation_periodicity=2,
    )


with tff_pmc.Runtime():
    asyncio.run(program())  # In a notebook: await program()
