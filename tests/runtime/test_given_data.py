"""Data of another kind is refused by name, in one line, before a client trains."""

import collections

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff

ELEMENT = r"<x=uint8\[\?,4,4\],y=int32\[\?\],client=int32>"


@pytest.fixture(scope="module")
def running(worker):
    """TFF's worker, where the messages would be TFF's own."""
    return worker


@pytest.fixture(scope="module")
def packed(running, toy_model):
    return tff_pmc.build_prioritized_fed_avg(
        toy_model, client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1)
    )


@pytest.fixture(scope="module")
def of_batches(running, toy_model):
    return tff_pmc.build_prioritized_fed_avg(
        toy_model,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        packed=False,
    )


@pytest.fixture(scope="module")
def dataset(toy_examples):
    client = toy_examples.client(0)
    return tf.data.Dataset.from_tensor_slices((client["x"], client["y"]))


@pytest.fixture(scope="module")
def refused(assert_one_line):
    """Checks that a round is refused in one short line that matches."""

    def check(process, *arguments, match):
        from tff_pmc.runtime import WrongDataError

        with pytest.raises(WrongDataError, match=match) as error:
            process.next(*arguments)
        assert "\n" not in str(error.value) and len(str(error.value)) < 300

    return check


def test_arrays_are_no_packs(packed, refused, toy_examples):
    state = packed.initialize()
    refused(
        packed,
        state,
        [toy_examples.client(k)["x"] for k in range(2)],
        match=r"^client_data\[0\] must be a tf.data.Dataset .* is a ndarray; "
        "tff_pmc.pack ",
    )
    refused(
        packed,
        state,
        [toy_examples],
        match=r"^client_data\[0\] must be a tf.data.Dataset .* is a Examples",
    )


def test_a_batch_is_no_pack(packed, refused, dataset):
    refused(
        packed,
        packed.initialize(),
        [dataset.batch(2)],
        match=r"^client_data\[0\] is a dataset of <uint8\[\?,4,4\],int32\[\?\]>, and "
        rf"must be one of {ELEMENT}; tff_pmc.pack ",
    )


def test_a_pack_is_no_batch(of_batches, refused, toy_examples):
    refused(
        of_batches,
        of_batches.initialize(),
        tff_pmc.pack(toy_examples, [0, 1]),
        match=rf"^client_data\[0\] is a dataset of {ELEMENT}, and must be one of "
        r"<uint8\[\?,4,4\],int32\[\?\]>; packs are for .* a functional model",
    )


def test_the_last_clients_data_is_looked_at_first(of_batches, refused, dataset):
    """Before the first client trains: its data is never read."""
    read = []

    def watch(x, y):
        read.append(1)
        return x, y

    watched = dataset.batch(2).map(
        lambda x, y: tf.numpy_function(
            lambda a, b: (read.append(1), (a, b))[1], [x, y], [tf.uint8, tf.int32]
        )
    )
    watched = watched.map(lambda x, y: (tf.ensure_shape(x, [None, 4, 4]), y))
    watched = watched.map(lambda x, y: (x, tf.ensure_shape(y, [None])))
    refused(
        of_batches,
        of_batches.initialize(),
        [watched, dataset],
        match=r"^client_data\[1\] is a dataset of .*; is a .batch\(...\) missing\?$",
    )
    assert not read


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda x, y: (x / 255, y), r"of <float32\[\?,4,4\],int32\[\?\]>, and must"),
        (lambda x, y: (x[:, :2], y), r"of <uint8\[\?,2,4\],int32\[\?\]>, and must"),
        (lambda x, y: {"pixels": x}, r"of <pixels=uint8\[\?,4,4\]>, and must"),
    ],
)
def test_other_types_and_shapes(of_batches, refused, dataset, change, match):
    changed = dataset.batch(2).map(lambda x, y: change(tf.cast(x, tf.uint8), y))
    refused(of_batches, of_batches.initialize(), [changed], match=match)


def test_one_client_is_a_list_of_one(of_batches, refused, dataset):
    refused(
        of_batches,
        of_batches.initialize(),
        dataset.batch(2),
        match="^client_data must be a list .* put it into a list$",
    )
    refused(
        of_batches,
        of_batches.initialize(),
        {"toy_0": dataset.batch(2)},
        match="^client_data must be a list .* is a dict$",
    )


def test_what_a_round_gives_is_no_state(of_batches, refused, dataset):
    output = of_batches.next(of_batches.initialize(), [dataset.batch(2)])
    refused(
        of_batches,
        output,
        [dataset.batch(2)],
        match="^state must have the members global_model_weights, .*; it has 2; "
        "a round gives two values: state, metrics =",
    )


def test_what_fits_is_taken(packed, of_batches, dataset, toy_examples):
    packs = tff_pmc.pack(toy_examples, [0, 1])
    assert packed.next(packed.initialize(), packs) is not None
    called = of_batches.next(
        client_data=[dataset.batch(2)], state=of_batches.initialize()
    )
    train = called.metrics["client_work"]["train"]
    assert train["examples"] == len(toy_examples.client(0)["y"])


def test_values_at_clients_that_are_no_datasets(running, assert_one_line):
    pair = collections.OrderedDict(a=np.int32, b=np.int32)

    @tff.federated_computation(tff.FederatedType(pair, tff.CLIENTS))
    def add(values):
        return tff.federated_sum(values)

    assert add([{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {"a": 4, "b": 6}
    from tff_pmc.runtime import WrongDataError

    assert_one_line(
        WrongDataError,
        lambda: add([{"a": 1, "b": 2}, {"a": 1}]),
        "the argument[1] must have the members a, b; it has those of a",
    )


@pytest.mark.parametrize("kind", ["ragged", "variant", "quantized"])
def test_a_dataset_that_tffs_types_have_not_is_refused_in_tensorflows_words(kind):
    """TFF raises a TypeError, a KeyError and a NotImplementedError of these."""
    from tff_pmc.runtime import values

    elements = {
        "ragged": lambda: tf.ragged.constant([[1], [2, 3]]),
        "variant": lambda: tf.raw_ops.TensorListReserve(
            element_shape=tf.constant([], tf.int32),
            num_elements=1,
            element_dtype=tf.int32,
        ),
        "quantized": lambda: tf.cast(tf.constant([1]), tf.quint8),
    }
    element = elements[kind]()
    dataset = tf.data.Dataset.from_tensors(element)
    wanted = tff.SequenceType(tff.TensorType(np.int32, [2]))
    words = {"ragged": "RaggedTensorSpec", "variant": "variant", "quantized": "quint8"}
    with pytest.raises(TypeError, match=f"^it is a dataset of .*{words[kind]}"):
        values.check_dataset(dataset, wanted, "it")
