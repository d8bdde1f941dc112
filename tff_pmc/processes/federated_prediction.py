"""The predictions of a model for single examples, for simulation only."""

from __future__ import annotations

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from tff_pmc.aggregation.contributions import check_client, check_room
from tff_pmc.clients import packing
from tff_pmc.clients.pack_reader import PackedClients
from tff_pmc.clients.packed_training import train_locally
from tff_pmc.models import PackedModel, weights_type
from tff_pmc.models.functional import BATCH_SIZE, predicted_labels, reduce_predictions
from tff_pmc.models.tff_types.packed_model import predicts_positions, split_batch
from tff_pmc.processes.evaluation import (
    evaluation_packs,
    map_packs_and_aggregate,
    num_output_classes,
)
from tff_pmc.settings.training_settings import LocalTraining


def build_federated_prediction(
    model: tff.learning.models.FunctionalModel,
    num_examples: int,
    *,
    batch_size: int = BATCH_SIZE,
) -> tff.Computation:
    """Builds the computation of a model's prediction per example, for simulation only.

    The type is

        (<W@SERVER, <x=uint8[?, ...], row=int32[?]>@CLIENTS>
         -> int32[num_examples]@SERVER)

    Args:
        model: a classifier that outputs a score per class.
        num_examples: the number of examples of all clients together, N.
        batch_size: the number of examples in a forward pass.

    Returns:
        A computation of the predicted label of each example, at its row; -1 if a score
        is NaN. With a label per position it is int32[num_examples, T].

    Raises:
        ValueError: the model does not output a score per class.
    """
    num_output_classes(model)
    shape = [num_examples, *_label_shape(model)]
    x_spec, _ = split_batch(model.input_spec)
    examples_type = tff.types.tensorflow_to_type(
        collections.OrderedDict(x=x_spec, row=tf.TensorSpec([None], tf.int32))
    )

    @tf.function
    def predict(weights, examples):
        x, row = examples["x"], examples["row"]
        return _predict_rows(model, weights, x, row, shape, batch_size)

    # Each row is in one pack, so that a sum joins the packs.
    return map_packs_and_aggregate(model, examples_type, predict)


def _label_shape(model: tff.learning.models.FunctionalModel) -> list[int]:
    """Returns the shape of one example's predicted labels: [], or [T]."""
    if not predicts_positions(model):
        return []
    shape = split_batch(model.input_spec)[1].shape[1:].as_list()
    if None in shape:
        raise ValueError(
            f"the model's labels have the shape {shape}: predictions need a fixed "
            "number of positions, as in tf.TensorSpec([None, 10], tf.int32)"
        )
    return shape


def _predict_rows(model, weights, x, row, shape, batch_size):
    """Returns the predicted labels of each x at its row, int32 [N, ...]; 0 elsewhere.

    `shape` is that of all labels.
    """

    def add(predicted, rows, output):
        return tf.tensor_scatter_nd_update(
            predicted, row[rows][:, tf.newaxis], predicted_labels(output)
        )

    num_examples = shape[0]
    row = check_room(
        f"num_examples={num_examples}", row, num_examples, "the row of an example"
    )
    no_labels = tf.zeros(shape, tf.int32)
    return reduce_predictions(
        model, weights, x, tf.shape(row)[0], no_labels, add, batch_size=batch_size
    )


def prediction_packs(
    examples: leaf_data.Examples, **options: int
) -> list[collections.OrderedDict]:
    """Cuts all clients' examples into packs for `build_federated_prediction`.

    Args:
        examples: the examples of all clients; row r of the result is their row r.
        **options: the options of `evaluation_packs`.
    """
    start, packs = 0, []
    for pack in evaluation_packs(examples, **options):
        stop = start + len(pack["y"])
        rows = np.arange(start, stop, dtype=np.int32)
        packs.append(collections.OrderedDict(x=pack["x"], row=rows))
        start = stop
    return packs


def build_local_tuning_prediction(
    model: tff.learning.models.FunctionalModel,
    num_clients: int,
    num_examples: int,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    training: LocalTraining,
    prediction_batch_size: int = BATCH_SIZE,
) -> tff.Computation:
    """Builds the computation of the predictions of clients' locally tuned models.

    It is the personalized baseline by Dual's text (`aggregation.personalized` with
    `form="text"`), for simulation only. The type is

        (<W@SERVER, {D*}@CLIENTS, x=uint8[?, ...]@SERVER>
         -> int32[num_clients, num_examples]@SERVER)

    with the packed clients D of `build_prioritized_fed_avg`, many or one in a pack. The
    tuned models are not sent to the server.

    Args:
        model: a functional model that outputs a score per class.
        num_clients: the number of clients in the federation, K.
        num_examples: the number of inputs x, N.
        client_optimizer_fn: the clients' optimizer.
        training: the options of the local tuning.
        prediction_batch_size: the number of examples in a forward pass.

    Returns:
        A computation of the label that each client's tuned model predicts for each
        example, or int32[num_clients, num_examples, T] for each position; -1 for a
        client without data in the call.
    """
    model = PackedModel.of(model)
    shape = [num_examples, *_label_shape(model)]
    received_type = weights_type(model)
    spec, x_spec = (
        packing.element_spec(model.input_spec),
        split_batch(model.input_spec)[0],
    )
    data_type = tff.SequenceType(tff.types.tensorflow_to_type(spec))
    x_type = tff.types.tensorflow_to_type(x_spec)

    @tff.tensorflow.computation(received_type, data_type, x_type)
    @tf.function
    def tune_pack(received, pack, x):
        # Labels plus 1, so that 0 in the sum means no prediction.
        shifted_labels = tf.zeros([num_clients, *shape], tf.int32)
        rows = tf.range(num_examples)
        clients = PackedClients.read(pack)
        for index in tf.range(clients.count):
            element = clients[index]
            tuned, *_ = train_locally(
                model,
                client_optimizer_fn,
                received,
                element["x"],
                element["y"],
                training=training,
                seed=tf.stack([training.seed, element["client"]]),
            )
            predicted = _predict_rows(
                model, tuned, x, rows, shape, prediction_batch_size
            )
            number = check_client(num_clients, element["client"])
            shifted_labels = tf.tensor_scatter_nd_add(
                shifted_labels, [[number]], predicted[tf.newaxis] + 1
            )
        return shifted_labels

    @tff.tensorflow.computation(tff.TensorType(np.int32, [num_clients, *shape]))
    def labels(shifted_labels):
        return shifted_labels - 1

    @tff.federated_computation(
        tff.FederatedType(received_type, tff.SERVER),
        tff.FederatedType(data_type, tff.CLIENTS),
        tff.FederatedType(x_type, tff.SERVER),
    )
    def predict_all(weights, clients, x):
        arguments = (
            tff.federated_broadcast(weights),
            clients,
            tff.federated_broadcast(x),
        )
        shifted_labels = tff.federated_sum(tff.federated_map(tune_pack, arguments))
        return tff.federated_map(labels, shifted_labels)

    return predict_all
