"""The engine of a cluster: the bits of `local`, from workers that may die."""

import dataclasses
import functools
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest
from cli import SHORT, records, softmax

import tff_pmc
from tff_pmc._lazy import tf, tff

WORKERS = 2


@pytest.fixture(scope="module")
def evaluate():
    return tff_pmc.build_federated_evaluation(tff_pmc.models.mnist_cnn(seed=1))


@pytest.fixture(scope="module")
def process():
    """A process whose packs train long enough for a worker to die meanwhile."""
    return tff_pmc.build_prioritized_fed_avg(
        tff_pmc.models.mnist_cnn(seed=1),
        priority=("LD", "DS", "MD"),
        basis=tff_pmc.scores.Basis.all_subsets(3),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.05),
        batch_size=4,
        local_epochs=1,
    )


@pytest.fixture
def installed(cluster):
    """Runs a function with an engine as the context."""

    def run(engine, function):
        from tff_pmc.runtime import Runtime

        if engine != "cluster":
            with Runtime(engine):
                return function()
        before = tff.framework.get_context_stack().current
        cluster.install()
        try:
            return function()
        finally:
            tff.framework.set_default_context(before)

    return run


@pytest.fixture
def sent(cluster, monkeypatch):
    """The growing list of values that are sent to workers outside of tasks."""
    client, values_sent = cluster.engine.connection.client, []
    scatter = client.scatter

    def recorded(values, **options):
        values_sent.extend(values)
        return scatter(values, **options)

    monkeypatch.setattr(client, "scatter", recorded)
    return values_sent


def packs_of(sent):
    """The packs of it: models are arrays, and graphs are bytes."""
    lists = (value for value in sent if isinstance(value, list))
    return [value for value in lists if any(isinstance(part, bytes) for part in value)]


def test_a_pack_is_sent_once_with_the_bytes_of_its_types(
    installed, process, evaluate, digits, sent
):
    weights = installed(
        "local", lambda: process.get_model_weights(process.initialize())
    )
    model_bytes = sum(np.asarray(w).nbytes for w in weights.trainable)
    one_by_one = [tff_pmc.evaluation_packs(digits)[0]]
    for _ in range(2):
        sent.clear()
        installed("cluster", lambda: evaluate(weights, one_by_one))
    (model,) = sent
    assert sum(array.nbytes for array in model) == model_bytes


def test_equal_training_packs_are_not_sent_again(installed, process, digits, sent):
    """Equal packs are different objects."""
    from tff_pmc.cluster import pack_encoding

    examples = dataclasses.replace(digits, x=255 - digits.x)  # Sent by no test.

    def one_round():
        sent.clear()
        process.next(process.initialize(), tff_pmc.pack(examples, (0, 3)))
        return sum(
            pack_encoding.num_bytes(part) for pack in packs_of(sent) for part in pack
        )

    first = installed("cluster", one_round)
    inputs = sum(digits.client(k)["x"].nbytes for k in (0, 3))
    assert inputs <= first <= inputs + 2 * 20_000
    assert installed("cluster", one_round) == 0


@pytest.fixture
def store(digits, tmp_path):
    """The same clients as a store, and its path."""
    import leaf_data

    path = tmp_path / "store"
    clients = (
        (name, client["x"], client["y"], client["x"][:1], client["y"][:1])
        for name, client in ((name, digits.client(name)) for name in digits.client_ids)
    )
    leaf_data.write_store(clients, path)
    return leaf_data.open_store(path).train_examples, path


def test_workers_read_the_packs_of_a_store(
    installed, cluster, process, digits, store, assert_same_bits, sent
):
    """Results equal those of arrays to the bit; tasks contain only client numbers."""

    def rounds(examples):
        state, outputs = process.initialize(), []
        for clients in ((0, 1, 3), (1, 2, 3), (0, 1, 3)):
            packed = tff_pmc.pack(examples, clients, num_packs=3)
            state, metrics = process.next(state, packed)
            outputs.append((state, metrics))
        return outputs

    of_arrays = installed("local", lambda: rounds(digits))
    assert_same_bits(of_arrays, installed("local", lambda: rounds(store[0])))
    kept = len(cluster.engine.packs.placed)
    assert_same_bits(of_arrays, installed("cluster", lambda: rounds(store[0])))
    assert not packs_of(sent) and len(cluster.engine.packs.placed) == kept


def test_a_worker_without_the_drivers_store_is_named_before_the_round(
    installed, process, store, tmp_path, assert_one_line, sent
):
    from tff_pmc.cluster.options import ClusterSettingError

    examples, path = store
    state = installed("cluster", process.initialize)
    sent.clear()

    def one_round():
        packed = tff_pmc.pack(examples, [0, 1])
        return installed("cluster", lambda: process.next(state, packed))

    def refused(*says):
        says = (r"the worker tls://127.0.0.1:", "needs the driver's store", path, *says)
        assert_one_line(ClusterSettingError, one_round, *says)
        assert not sent

    path.rename(tmp_path / "away")
    refused("No such file")
    import leaf_data

    clients = [("a", *(examples.client(0)[name] for name in "xy"))]
    leaf_data.write_store(clients, path, test_fraction=0.5)
    refused("is another store")
    path.rename(tmp_path / "other")
    (tmp_path / "away").rename(path)
    assert one_round() is not None


def test_an_error_of_a_client_is_raised_unchanged(installed, summed):
    @tff.tensorflow.computation(np.int32)
    def fails(n):
        with tf.control_dependencies([tf.debugging.Assert(n < 2, ["my message"])]):
            return tf.identity(n)

    sums = summed(fails)

    assert installed("cluster", lambda: sums([0, 1])) == 1
    with pytest.raises(Exception, match="my message"):
        installed("cluster", lambda: sums([0, 2]))


def kill_working_worker(client, number, killed):
    """Sends a signal to a worker as soon as it sums a pack."""
    deadline = time.monotonic() + 600
    while not killed and time.monotonic() < deadline:
        for worker, keys in client.processing().items():
            if any("sum_pack" in str(key) for key in keys):
                # Asked now: one that was lost before has another process.
                for pid in client.run(os.getpid, workers=[worker]).values():
                    os.kill(pid, number)
                    killed.append(worker)
                return
        time.sleep(0.002)


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.slow)],
)
def test_a_worker_killed_or_stopped_during_a_round_changes_nothing(
    installed, cluster, process, evaluate, digits, caplog, assert_same_bits, number
):
    packs = tff_pmc.evaluation_packs(digits)

    def one_round():
        state = process.initialize()
        state, metrics = process.next(
            state, tff_pmc.pack(digits, range(4), num_packs=4)
        )
        return state, metrics, evaluate(process.get_model_weights(state), packs)

    undisturbed = installed("local", one_round)
    client, killed = cluster.engine.connection.client, []
    client.wait_for_workers(WORKERS)
    killer = threading.Thread(target=kill_working_worker, args=(client, number, killed))
    killer.start()
    with caplog.at_level(logging.WARNING):
        disturbed = installed("cluster", one_round)
    killer.join()
    assert killed
    assert_same_bits(undisturbed, disturbed)
    said = [r.message for r in caplog.records if "was lost" in r.message]
    assert said and "attempt 2 of 5" in said[0]
    client.wait_for_workers(WORKERS, timeout=600)
    assert_same_bits(undisturbed, installed("cluster", one_round))
    held = cluster.engine.packs.placed.values()
    assert len({pack.worker for pack in held}) == WORKERS  # The new one has its share.


def test_a_worker_that_ends_just_before_a_value_is_sent(
    installed, cluster, monkeypatch, caplog, add
):
    """Dask tries to reach it for half a minute: the scheduler knows at once."""
    client, killed = cluster.engine.connection.client, []
    client.wait_for_workers(WORKERS, timeout=600)
    scatter = client.scatter

    async def scatter_to_dead_worker(values, **options):
        if not killed:
            (worker,) = options["workers"]
            (pid,) = (await client.run(os.getpid, workers=[worker])).values()
            os.kill(pid, signal.SIGKILL)
            killed.append(worker)
        return await scatter(values, **options)

    monkeypatch.setattr(client, "scatter", scatter_to_dead_worker)
    with caplog.at_level(logging.WARNING):
        assert installed("cluster", lambda: add([5, 6])) == 11
    assert killed
    said = [r.message for r in caplog.records if "was lost" in r.message]
    assert len(said) == 1 and "Timeout" not in said[0]
    client.wait_for_workers(WORKERS, timeout=600)


def test_a_waiting_call_is_cancelled(cluster):
    import asyncio
    from concurrent.futures import CancelledError

    from tensorflow.python.eager import cancellation

    from tff_pmc.runtime.pack_sums import allow_cancellation

    manager = cancellation.CancellationManager()

    async def wait_for_ever():
        manager.start_cancel()
        await asyncio.Event().wait()

    with allow_cancellation(manager), pytest.raises(CancelledError):
        cluster.engine.connection.call(wait_for_ever)


def test_a_cluster_closes_while_a_worker_starts():
    """Dask would wait forever for a worker that is killed before it has started."""
    pytest.importorskip("distributed")
    from tff_pmc.cluster import local_cluster

    cluster = local_cluster.start(1)
    while not cluster.workers:  # Dask lists a worker a moment after it has come.
        time.sleep(0.01)
    (nanny,) = cluster.workers.values()
    first = nanny.pid
    os.kill(first, signal.SIGKILL)
    while not (nanny.pid and nanny.pid != first):
        time.sleep(0.01)
    local_cluster.close(cluster)
    assert cluster.status.name == "closed"
    assert nanny.pid is None


def test_a_cluster_selects_the_clients_that_this_process_selects(installed, tmp_path):
    """Workers compute the losses for `power_of_choice`."""
    import leaf_data
    from tff_pmc.experiments.experiment import settings
    from tff_pmc.experiments.running import loop

    chosen = {"selection": "power_of_choice", "choice_candidates": 25}
    with softmax():
        config, data = (
            settings("quickstart", {**SHORT, **chosen}),
            leaf_data.load("digits5k"),
        )
        for engine in ("local", "cluster"):
            folder = str(tmp_path / engine)
            installed(
                engine, functools.partial(loop.run, config, data, folder, title=None)
            )
    assert records(tmp_path / "cluster") == records(tmp_path / "local")


def test_a_cluster_that_has_ended_raises_one_line(certificates, assert_one_line, add):
    distributed = pytest.importorskip("distributed")
    from tff_pmc.cluster.connection import ClusterError
    from tff_pmc.cluster.options import ClusterOptions
    from tff_pmc.runtime import Runtime

    scheduler = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    )
    options = ClusterOptions(scheduler.scheduler_address, insecure=True)
    with Runtime("cluster", cluster=options) as running:
        running.engine.connection.wait_for_a_worker(1)
        assert add([1, 2]) == 3
        scheduler.close()
        assert_one_line(ClusterError, lambda: add([1, 2]), "--cluster=tcp://")


def test_a_worker_with_another_environment_is_named(
    installed, cluster, dask_cluster, monkeypatch, assert_one_line, add
):
    """Its versions differ, or its TensorFlow has started with other threads."""
    from tff_pmc.cluster import tasks
    from tff_pmc.cluster.connection import ClusterConnection
    from tff_pmc.cluster.options import ClusterSettingError

    assert installed("cluster", lambda: add([3, 4])) == 7  # TensorFlow has begun.
    other = dataclasses.replace(dask_cluster, threads=7)
    assert_one_line(
        ClusterSettingError,
        lambda: ClusterConnection(other),
        *("the worker tls://127.0.0.1:", "another number of threads than 7"),
    )
    local = tasks.local_environment(dask_cluster.threads)
    edited = f"{local.tff_pmc[:-2]}x)"  # The same version with other code.
    for name, version in (("tensorflow", "tensorflow 0.1"), ("tff_pmc", edited)):
        driver = local._replace(**{name: version})
        monkeypatch.setattr(tasks, "local_environment", lambda _, driver=driver: driver)
        assert_one_line(
            ClusterSettingError,
            lambda: ClusterConnection(dask_cluster),
            *("the worker tls://127.0.0.1:", f"runs {local.tensorflow}", version),
        )


def test_settings_that_change_numbers_are_recorded(installed, cluster, monkeypatch):
    """The engine, its threads, and products with less than float32."""
    from tff_pmc.runtime import engine_versions

    monkeypatch.delenv("TF_SET_ONEDNN_FPMATH_MODE", raising=False)
    threads = str(cluster.engine.connection.environment.threads)
    record = installed("cluster", engine_versions)
    assert record == {"engine": "cluster", "spread": "clients", "threads": threads}
    assert installed("local", engine_versions)["engine"] == "local"
    monkeypatch.setenv("TF_SET_ONEDNN_FPMATH_MODE", "BF16")
    assert installed("local", engine_versions)["onednn_fpmath_mode"] == "BF16"
    names = ("/physical_device:GPU:0", "/physical_device:GPU:1")
    gpus = [tf.config.PhysicalDevice(name, "GPU") for name in names]
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    visible = [*gpus]
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: visible)
    for override, capability, factors in (
        ("0", (9, 0), "float32"),
        ("", (9, 0), "tf32"),
        ("", (7, 5), "float32"),
    ):
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", override)
        each = {"compute_capability": capability}
        # Nothing is ever placed on the second, whatever it is.
        newer = {"device_name": "Other", "compute_capability": (9, 0)}
        details = {gpus[0]: {"device_name": "Big GPU", **each}, gpus[1]: newer}
        monkeypatch.setattr(tf.config.experimental, "get_device_details", details.get)
        record = installed("local", engine_versions)
        assert (record["gpu"], record["gpu_factors"]) == ("Big GPU", factors)
    details[gpus[0]] = {}
    record = installed("local", engine_versions)
    assert record["gpu"] == "/physical_device:GPU:0"
    visible.clear()  # As by `tf.config.set_visible_devices([], "GPU")`.
    assert "gpu" not in installed("local", engine_versions)
    visible += gpus
    assert "gpu" not in installed("worker", engine_versions)
