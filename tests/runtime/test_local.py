"""The engine in this process: the worker's results without a worker."""

import collections
import logging

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff


@pytest.fixture(scope="module")
def process():
    """A process of three criteria and all orderings, with batches."""
    return tff_pmc.build_prioritized_fed_avg(
        tff_pmc.models.keras_simple_convnet(seed=1, dropout=0.0),
        priority=("LD", "DS", "MD"),
        basis=tff_pmc.scores.Basis.all_subsets(3),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.05),
        batch_size=4,
        local_epochs=1,
    )


@pytest.fixture
def local():
    """A local engine, installed for the test alone."""
    from tff_pmc.runtime import Runtime

    with Runtime("local") as running:
        yield running


def test_two_rounds_equal_those_of_the_worker(process, digits, pairs, assert_close):
    """Counts are equal, and every tensor to 2e-4 relative L2.

    The second begins from the worker's state: a rounding that turns a maximum would
    be amplified.
    """
    from tff_pmc.runtime import Runtime

    model = tff_pmc.models.keras_simple_convnet(seed=1)
    evaluate = tff_pmc.build_federated_evaluation(model)
    packs = tff_pmc.evaluation_packs(digits)

    def one_round(engine, state):
        with Runtime(engine):
            if state is None:
                state = process.initialize()
            output = process.next(state, tff_pmc.pack(digits, range(4)))
            return output, evaluate(process.get_model_weights(output.state), packs)

    state = None
    for _ in range(2):
        a, b = one_round("worker", state), one_round("local", state)
        state = a[0].state
        for theirs, ours in pairs(a, b):
            if ours.dtype.kind == "i":
                np.testing.assert_array_equal(ours, theirs)
            else:
                assert_close([ours], [theirs])


def test_a_state_that_is_passed_back_is_not_copied(local, process):
    """An array's tensor is used again; a part of the array is another array."""
    from tff_pmc.runtime import values

    kernel = process.initialize().global_model_weights.trainable[0]
    type_ = tff.TensorType(np.float32, kernel.shape)
    (first,), (again,) = (values.to_tensors(kernel, type_, "w") for _ in range(2))
    assert first is again and np.shares_memory(kernel, memoryview(first))
    assert not kernel.flags.writeable
    half = kernel[:2]
    (part,) = values.to_tensors(half, tff.TensorType(np.float32, half.shape), "w")
    np.testing.assert_array_equal(part, half)
    number = id(kernel)
    del kernel, half
    assert number not in values._tensors


def _sent_and_summed(x, n):
    """Two broadcasts, one of a constant, and two sums, of which one is a mean."""

    @tff.tensorflow.computation(np.float32, np.float32)
    def times(a, b):
        return a * b

    two = tff.federated_broadcast(tff.federated_value(2.0, tff.SERVER))
    total = tff.federated_sum(tff.federated_map(times, (x, two)))
    return tff.federated_zip((total, tff.federated_sum(n)))


# What a computation makes of x = 1, 2, 5 and n = 3, 4, 6, which are at the clients.
COMPUTATIONS = {
    "a sum": (lambda x, n: tff.federated_sum(x), 8.0),
    "a mean": (lambda x, n: tff.federated_mean(x), 8 / 3),
    "a weighted mean": (lambda x, n: tff.federated_mean(x, n), 41 / 13),
    "the least": (lambda x, n: tff.federated_min(n), 3),
    "the largest": (lambda x, n: tff.federated_max(x), 5.0),
    "a secure sum": (lambda x, n: tff.federated_secure_sum(n, 10), 13),
    "one of few bits": (lambda x, n: tff.federated_secure_sum_bitwidth(n, 4), 13),
    "a modular sum": (
        lambda x, n: tff.backends.mapreduce.federated_secure_modular_sum(n, 5),
        3,
    ),
    "two sums of what is sent": (_sent_and_summed, (16.0, 13)),
    "no sum": (lambda x, n: tff.federated_value(7, tff.SERVER), 7),
}


@pytest.mark.parametrize(("body", "expected"), COMPUTATIONS.values(), ids=COMPUTATIONS)
def test_tff_operations_do_not_start_a_worker(local, body, expected):
    at_clients = (tff.FederatedType(t, tff.CLIENTS) for t in (np.float32, np.int32))
    computation = tff.federated_computation(*at_clients)(body)
    np.testing.assert_allclose(computation([1.0, 2.0, 5.0], [3, 4, 6]), expected, 1e-6)
    assert local.engine.worker is None


def test_the_worker_runs_computations_without_a_map_reduce_form(local, caplog):
    """One aggregation depends on another; the worker is started once, and ended."""

    @tff.tensorflow.computation(np.float32, np.float32)
    def share(value, total):
        return tf.math.divide(value, total)

    @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
    def shares(values):
        total = tff.federated_broadcast(tff.federated_sum(values))
        return tff.federated_sum(tff.federated_map(share, (values, total)))

    with caplog.at_level(logging.INFO):
        assert shares([1.0, 3.0]) == pytest.approx(1)
        assert shares([2.0, 3.0]) == pytest.approx(1)
    said = [r.message for r in caplog.records if "TFF's worker runs" in r.message]
    assert len(said) == 1 and "no MapReduceForm" in said[0]
    assert local.engine.worker is not None


def test_a_sequence_may_be_a_list(local):
    element = collections.OrderedDict(y=np.int32, x=tff.TensorType(np.float32, [2]))

    @tff.tensorflow.computation(tff.SequenceType(element))
    def total(data):
        return data.reduce(
            np.float32(0),
            lambda s, e: s + tf.reduce_sum(e["x"]) * tf.cast(e["y"], tf.float32),
        )

    rows = [{"y": 1, "x": [1.0, 2.0]}, {"x": [0.5, 0.0], "y": 2}]
    assert total(rows) == 4.0


def test_a_value_of_the_wrong_type_is_named(local, summed):
    @tff.tensorflow.computation(tff.SequenceType(np.int32))
    def total(data):
        return data.reduce(np.int32(0), lambda a, b: a + b)

    sums = summed(total)
    assert sums([[1, 2], [3]]) == 6
    for clients, message in (
        (3, r" must be a list .*; got int"),
        ([3], r"\[0\] must be a tf.data.Dataset or a list .*; got int"),
        ([[1, "a"]], r"\[0\]\[1\] is not of type int32"),
        ([[1, [2]]], r"\[0\]\[1\] is not of type int32: its shape is \(1,\)"),
        ([[1.5]], r"\[0\]\[0\] is not of type int32: 1.5"),
        ([[1, 2**40]], r"\[0\]\[1\] is not of type int32: 1099511627776"),
    ):
        with pytest.raises(TypeError, match=f"the argument{message}"):
            sums(clients)


@pytest.mark.parametrize(
    ("values", "lost"),
    [([1, 2.5], "2.5"), ([1, np.nan], "nan"), ([1, 256], "256"), ([-1, 2], "-1")],
)
def test_an_array_is_not_truncated_to_another_type(local, values, lost):
    """TensorFlow itself would cast 2.5 to 2, 256 to 0, and -1 to 255."""

    @tff.tensorflow.computation(tff.TensorType(np.uint8, [2]))
    def doubled(numbers):
        return 2 * numbers

    assert list(doubled([1.0, 2.0])) == list(doubled(np.array([1, 2]))) == [2, 4]
    with pytest.raises(
        TypeError, match=f"the argument is not of type uint8.*: {lost}$"
    ):
        doubled(np.array(values))


@pytest.mark.parametrize("number", [3, np.array([3])])
def test_a_number_is_not_accepted_as_text(local, number):
    @tff.tensorflow.computation(tff.TensorType(np.str_, np.shape(number)))
    def identity(text):
        return text

    with pytest.raises(TypeError, match="the argument is not of type str"):
        identity(number)


def test_only_datasets_with_labels_are_searched_for_a_label():
    """A mapping with a user's names has none: the error stays that of the label."""
    from tff_pmc.runtime import context

    dataset = tf.data.Dataset.from_tensors({"pixels": [0.0], "label": [7]})
    assert context._client_with_label(7, [dataset]) == "a client"


def test_each_call_initializes_the_variables_of_its_computation(local):
    """Two variables of the same name and different types are different."""

    def counting(start):
        @tff.tensorflow.computation(type(start))
        def count(step):
            variable = tf.Variable(start, name="same")
            with tf.control_dependencies([variable.assign_add(step)]):
                return variable.read_value()

        return count

    first, second = counting(np.int32(0)), counting(np.float32(0.5))
    assert [first(1), second(1), first(1), second(2)] == [1, 1.5, 1, 2.5]


def test_an_interrupt_ends_a_call_within_seconds(start):
    """In a process of its own: TensorFlow is told to stop, and nothing is left.

    Clients that are datasets without an end are trained several at once, so that the
    call is one of several threads.
    """
    process = start("""
        import threading
        import numpy as np
        import tff_pmc

        def after(seconds):
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

        fed_avg = tff_pmc.build_prioritized_fed_avg(
            tff_pmc.models.keras_simple_convnet(dropout=0.0),
            criteria=("DS",),
            packed=False,
            client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
            local_epochs=1,
        )
        batch = np.zeros((4, 28, 28), np.uint8), np.zeros(4, np.int32)
        ends = tf.data.Dataset.from_tensors(batch)
        with AnyRuntime("local"):
            assert slow(1) == 1
            after(1)
            try:
                slow(10**9)
            except KeyboardInterrupt:
                print("ended")
            assert slow(2) == 2
            state = fed_avg.next(fed_avg.initialize(), [ends] * 4).state
            after(2)
            try:
                fed_avg.next(state, [ends.repeat()] * 4)
            except KeyboardInterrupt:
                print("ended, too", flush=True)
            os._exit(0)
    """)
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0 and out == "ended\nended, too\n", err


def test_an_unknown_engine_is_named():
    from tff_pmc.runtime import Runtime

    with pytest.raises(
        ValueError, match="engine must be one of local, worker, cluster; got 'gpu'"
    ):
        Runtime("gpu")
    with pytest.raises(
        ValueError, match="cluster needs engine='cluster'; got engine='local'"
    ):
        Runtime(cluster="tls://here:1")


def test_datasets_are_read_without_autotuning():
    """The tuning thread is cancelled when the data end, and TensorFlow warns."""
    from tensorflow.core.framework import dataset_options_pb2

    from tff_pmc.runtime import values
    from tff_pmc.runtime.pack_sums import to_variant_tensor

    sequence = tff.SequenceType(np.int64)
    dataset = tf.data.Dataset.range(3).batch(2).unbatch()
    for value in (dataset, [1, 2]):
        (data,) = values.to_tensors(value, sequence, "the data")
        raw = tf.raw_ops.GetOptions(input_dataset=to_variant_tensor(data)).numpy()
        options = dataset_options_pb2.Options.FromString(raw)
        assert not options.autotune_options.enabled
        assert options.autotune_options.HasField("enabled")
