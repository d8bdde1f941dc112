"""Data of the wrong kind raises one line that names it, before a client trains."""

import collections

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff

PACK = r"<x=uint8\[\?,4,4\],y=int32\[\?\],client=int32,place=int32>"
BATCH = r"<uint8\[\?,4,4\],int32\[\?\]>"
FIRST = r"^client_data\[0\] "


@pytest.fixture(scope="module")
def processes(worker, toy_model):
    """On TFF's worker, whose messages would otherwise be TFF's."""

    def build(packed):
        return tff_pmc.build_prioritized_fed_avg(
            toy_model,
            client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
            packed=packed,
            local_epochs=1,
        )

    return {"packs": build(True), "batches": build(False)}


@pytest.fixture(scope="module")
def dataset(toy_examples):
    client = toy_examples.client(0)
    return tf.data.Dataset.from_tensor_slices((client["x"], client["y"]))


@pytest.fixture(scope="module")
def refused(processes):
    """Checks that a round raises one short line that matches."""
    from tff_pmc.runtime import WrongDataError

    def check(form, data, match, state=None):
        process = processes[form]
        state = process.initialize() if state is None else state
        with pytest.raises(WrongDataError, match=match) as error:
            process.next(state, data)
        assert "\n" not in str(error.value) and len(str(error.value)) < 300

    return check


# The process's form; the data, of examples and a dataset of them; what is said.
REFUSED = {
    "arrays are not packs": (
        "packs",
        lambda examples, _: [examples.client(k)["x"] for k in range(2)],
        FIRST + r"must be a tf.data.Dataset .*; got ndarray; tff_pmc.pack ",
    ),
    "nor is a batch": (
        "packs",
        lambda _, dataset: [dataset.batch(2)],
        FIRST + f"is a dataset of {BATCH}; it must be one of {PACK}; tff_pmc.pack ",
    ),
    "a pack is not a batch": (
        "batches",
        lambda examples, _: tff_pmc.pack(examples, [0, 1]),
        FIRST + f"is a dataset of {PACK}; it must be one of {BATCH}; packs are for .* "
        "a functional model",
    ),
    "floats of another shape": (
        "batches",
        lambda _, dataset: [dataset.batch(2).map(lambda x, y: (x[:, :2] / 255, y))],
        r"of <float(32|64)\[\?,2,4\],int32\[\?\]>; it must",
    ),
    "another structure": (
        "batches",
        lambda _, dataset: [dataset.batch(2).map(lambda x, y: {"pixels": x})],
        r"of <pixels=uint8\[\?,4,4\]>; it must",
    ),
    "one client is a list of one": (
        "batches",
        lambda _, dataset: dataset.batch(2),
        "^client_data must be a list .* put it into a list$",
    ),
}


@pytest.mark.parametrize(("form", "data", "match"), REFUSED.values(), ids=REFUSED)
def test_data_of_the_wrong_kind_raises(
    refused, toy_examples, dataset, form, data, match
):
    refused(form, data(toy_examples, dataset), match)


def test_all_clients_data_is_checked_before_training(refused, dataset):
    """Before the first client trains: its data is never read."""
    read = []
    watched = dataset.batch(2).map(
        lambda x, y: tf.numpy_function(
            lambda a, b: (read.append(1), (a, b))[1], [x, y], [tf.uint8, tf.int32]
        )
    )
    watched = watched.map(
        lambda x, y: (tf.ensure_shape(x, [None, 4, 4]), tf.ensure_shape(y, [None]))
    )
    missing = r"^client_data\[1\] is a dataset of .*; is a .batch\(...\) missing\?$"
    refused("batches", [watched, dataset], missing)
    assert not read


def test_the_output_of_a_round_is_not_accepted_as_a_state(processes, refused, dataset):
    process, data = processes["batches"], [dataset.batch(2)]
    refused(
        "batches",
        data,
        "^state must have the members global_model_weights, .*; it has 2 members; "
        "a round returns two values: state, metrics =",
        state=process.next(process.initialize(), data),
    )


def test_matching_data_is_accepted(processes, dataset, toy_examples):
    packed, of_batches = processes.values()
    packs = tff_pmc.pack(toy_examples, [0, 1])
    assert packed.next(packed.initialize(), packs) is not None
    called = of_batches.next(
        client_data=[dataset.batch(2)], state=of_batches.initialize()
    )
    train = called.metrics["client_work"]["train"]
    assert train["examples"] == len(toy_examples.client(0)["y"])


def test_values_at_clients_may_be_other_than_datasets(worker, assert_one_line):
    from tff_pmc.runtime import WrongDataError

    pair = collections.OrderedDict(a=np.int32, b=np.int32)

    @tff.federated_computation(tff.FederatedType(pair, tff.CLIENTS))
    def add(values):
        return tff.federated_sum(values)

    assert add([{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {"a": 4, "b": 6}
    assert_one_line(
        WrongDataError,
        lambda: add([{"a": 1, "b": 2}, {"a": 1}]),
        "the argument[1] must have the members a, b; it has the members a",
    )


@pytest.mark.parametrize("kind", ["RaggedTensorSpec", "variant", "quint8"])
def test_a_dataset_without_a_tff_type_is_described_by_its_spec(kind):
    """TFF raises a TypeError, a KeyError and a NotImplementedError for these."""
    from tff_pmc.runtime import values

    element = tf.ragged.constant([[1], [2, 3]])
    if kind != "RaggedTensorSpec":
        element = tf.cast(tf.constant([1]), tf.quint8)
    if kind == "variant":
        empty = tf.constant([], tf.int32)
        element = tf.raw_ops.TensorListReserve(
            element_shape=empty, num_elements=1, element_dtype=tf.int32
        )
    dataset = tf.data.Dataset.from_tensors(element)
    expected_type = tff.SequenceType(tff.TensorType(np.int32, [2]))
    with pytest.raises(TypeError, match=f"^it is a dataset of .*{kind}"):
        values.check_dataset(dataset, expected_type, "it")
