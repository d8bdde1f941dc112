"""What a program of TFF draws its clients from: which, again, and what is refused."""

import copy
import dataclasses

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff
from tff_pmc.selections import SELECTIONS, CohortSampler


@pytest.fixture
def client_data():
    """Five clients of 1 to 5 examples, as a `TestClientData`."""
    return tff.simulation.datasets.TestClientData(
        {f"c{k}": {"x": np.ones([k + 1, 3], np.float32)} for k in range(5)}
    )


def numbers_of(packs):
    return sorted(int(e["client"]) for pack in packs for e in pack)


def sizes_of(datasets):
    return [len(list(dataset)) for dataset in datasets]


def test_the_cohorts_are_those_of_the_command(toy_examples):
    """Cohorts of clients with examples; a pack has the requested number of clients."""
    nobody = np.insert(toy_examples.row_splits, 3, toy_examples.row_splits[3])
    examples = dataclasses.replace(
        toy_examples, row_splits=nobody, client_ids=(*toy_examples.client_ids, "last")
    )
    command = CohortSampler(examples.sizes, seed=5, selection=SELECTIONS["uniform"]())
    trainable = np.array([0, 1, 2, 4, 5, 6])
    drawn = tff_pmc.data_source(examples, seed=5, num_packs=3).iterator()
    for round_num in range(1, 6):
        packs = drawn.select(4)
        assert len(packs) == 3
        expected = np.random.default_rng([5, round_num]).choice(6, 4, replace=False)
        assert numbers_of(packs) == [*trainable[np.sort(expected)]]
        assert numbers_of(packs) == command.draw(round_num, 4).clients
    assert numbers_of(drawn.select()) == [*trainable]


def test_a_copy_and_a_saved_iterator_continue(client_data, toy_examples):
    """As a program copies and saves them, where TFF's own source fails."""
    batched = client_data.preprocess(lambda dataset: dataset.batch(9))
    for data, read in (
        (client_data, sizes_of),
        (
            batched,
            lambda datasets: [d.get_single_element()["x"].shape[0] for d in datasets],
        ),
        (toy_examples, numbers_of),
    ):
        first = tff_pmc.data_source(data, seed=1).iterator()
        begun = [read(first.select(2)) for _ in range(4)]
        again = tff_pmc.data_source(data, seed=1).iterator()
        saved = type(again).from_bytes(first.to_bytes())
        copied = copy.deepcopy(first)
        following = [
            [read(iterator.select(2)) for _ in range(3)] for iterator in (saved, copied)
        ]
        assert following[0] == following[1] == [read(first.select(2)) for _ in range(3)]
        assert [read(again.select(2)) for _ in range(4)] == begun
        assert len({*map(tuple, begun)}) > 1 and len(first.to_bytes()) < 200
    theirs = tff.program.DatasetDataSource(
        [client_data.create_tf_dataset_for_client(k) for k in client_data.client_ids]
    )
    with pytest.raises(TypeError, match="cannot pickle 'Graph' object"):
        copy.deepcopy(theirs.iterator())


def test_the_type_is_that_of_the_clients(client_data, toy_examples, toy_model):
    element = tff_pmc.data_source(client_data).federated_type.member.element
    assert element == tff.types.tensorflow_to_type(client_data.element_type_structure)
    sgd = tff.learning.optimizers.build_sgdm(0.1)
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model, client_optimizer_fn=sgd, local_epochs=1
    )
    packs_type = process.next.type_signature.parameter[1]
    source = tff_pmc.data_source(toy_examples)
    assert packs_type.is_assignable_from(source.federated_type)
    assert source.iterator().federated_type == source.federated_type


def test_invalid_sources_and_states_are_rejected(client_data, toy_examples):
    nobody = toy_examples.take(0)
    source = tff_pmc.data_source(client_data, seed=1).iterator()
    fewer = tff.simulation.datasets.TestClientData(
        {"c0": {"x": np.ones([1, 3], np.float32)}}
    )
    others = {
        "its seed was 2": tff_pmc.data_source(client_data, seed=2),
        "its clients was 1, and is 5": tff_pmc.data_source(fewer, seed=1),
    }
    cases = [
        (ValueError, "0 or more, got -1", lambda: data_source(client_data, seed=-1)),
        (ValueError, "no client has examples", lambda: data_source(nobody)),
        (TypeError, "got a list", lambda: data_source([tf.data.Dataset.range(3)])),
        (
            TypeError,
            "num_packs: .* not packed",
            lambda: data_source(client_data, num_packs=2),
        ),
        (ValueError, "1 to 5 clients.*got 6", lambda: source.select(6)),
        (ValueError, "1 to 5 clients.*got 0", lambda: source.select(0)),
        *(
            (
                ValueError,
                f"another data source: {says}",
                lambda other=other: type(source).from_bytes(
                    other.iterator().to_bytes()
                ),
            )
            for says, other in others.items()
        ),
    ]
    data_source = tff_pmc.data_source
    for error, says, call in cases:
        with pytest.raises(error, match=says):
            call()
