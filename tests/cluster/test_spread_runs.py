"""Runs that the workers of a cluster make: the records of serial runs."""

import dataclasses
import importlib
import json
import pathlib
import signal
import threading
import time

import pytest
from cli import ALONE, records, run
from open_files import open_targets

from leaf_data.dataset import DATASETS

psutil = pytest.importorskip("psutil")
RUNS = ("DS", "LD-MD-DS")
ROUNDS = 4
FLAGS = [
    *ALONE,
    f"--rounds={ROUNDS}",
    "--batch_size=10",
    "--priority=DS;LD,MD,DS",
]


@pytest.fixture(scope="module")
def flags_of_cluster(dask_cluster):
    return [
        f"--cluster={dask_cluster.address}",
        *(f"--{flag}={path}" for flag, path in dask_cluster.files.items()),
    ]


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serial") / "out"
    run(*FLAGS, f"--output_dir={folder}")
    return folder


@pytest.fixture
def client(dask_cluster):
    from tff_pmc.cluster.connection import ClusterConnection

    connection = ClusterConnection(dask_cluster)
    connection.client.wait_for_workers(2, timeout=600)
    yield connection.client
    connection.close()


def kill_worker_of_a_started_run(folder, number, killed, over):
    """Sends a signal to the worker of a run between its first and last round.

    Workers are looked up each time: one that was lost before has another process.
    """
    run = pathlib.Path(folder) / RUNS[0]
    while not killed and not over.is_set():
        path = run / "rounds.csv"
        if path.exists() and 1 < len(path.read_text().splitlines()) <= ROUNDS:
            for process in psutil.Process().children():
                if str(run / ".lock") in open_targets(process.pid):
                    process.send_signal(number)
                    killed.append(process.pid)
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_runs_of_workers_that_die_or_stop_equal_the_serial_runs(
    serial, flags_of_cluster, client, tmp_path, number
):
    folder, killed, over = tmp_path / "out", [], threading.Event()
    arguments = folder, number, killed, over
    killer = threading.Thread(target=kill_worker_of_a_started_run, args=arguments)
    killer.start()
    try:
        done = run(*FLAGS, *flags_of_cluster, f"--output_dir={folder}")
    finally:
        over.set()
        killer.join()
    assert killed
    assert records(folder) == records(serial)
    assert "runs: 100%" in done.stderr and "2/2" in done.stderr
    resumed = {}
    for name in RUNS:
        info = json.loads((folder / name / "run.json").read_text())
        assert info["versions"]["engine"] == "cluster"
        assert info["versions"]["spread"] == "runs"
        before = json.loads((serial / name / "run.json").read_text())["versions"]
        assert info["versions"]["threads"] == before["threads"]
        resumed[name] = len(info["resumed"])
    assert resumed[RUNS[0]] >= 1  # A slow worker may be taken for lost, too.
    assert not list(folder.glob("*.new"))
    client.wait_for_workers(2, timeout=600)  # One that is starting is not ended well.


def test_seeds_are_spread(flags_of_cluster, tmp_path):
    short = [*FLAGS[:-1], "--priority=DS", "--rounds=1", "--seeds=1,2"]
    for name, engine_flags in (("serial", []), ("spread", flags_of_cluster)):
        done = run(*short, *engine_flags, f"--output_dir={tmp_path / name}")
    assert "2/2" in done.stderr
    assert records(tmp_path / "serial") == records(tmp_path / "spread")


@pytest.mark.slow  # tests/runtime compares the bits.
def test_clients_of_rounds_give_the_same_records(serial, flags_of_cluster, tmp_path):
    folder = tmp_path / "out"
    arguments = [*flags_of_cluster, "--spread=clients", f"--output_dir={folder}"]
    run(*FLAGS, *arguments)
    assert records(folder) == records(serial)
    info = json.loads((folder / "DS" / "run.json").read_text())
    assert info["versions"]["spread"] == "clients"
    for name in RUNS:
        path = folder / name / "run.json"
        path.write_text(path.read_text().replace('"finished"', '"interrupted"'))
    resumed = run(*FLAGS, f"--output_dir={folder}", "--resume")
    said = [line for line in resumed.stderr.splitlines() if "other versions" in line]
    assert len(said) == len(RUNS) and "cluster there, local here" in said[0]


def test_folders_that_a_worker_does_not_share_raise(
    flags_of_cluster, client, tmp_path, monkeypatch
):
    """A folder without permission simulates a file system of the worker alone."""
    from tff_pmc.cluster import spread_runs

    folder = str(tmp_path)
    path, wrong = spread_runs.write_probe_file(folder, "")
    assert not wrong and spread_runs._wait_for_file(path, 0)
    assert not spread_runs._wait_for_file(f"{path}er", 0)
    assert (
        "--data_dir" in spread_runs.write_probe_file(folder, str(tmp_path / "none"))[1]
    )
    assert "cannot be written" in spread_runs.write_probe_file(f"{path}/no", "")[1]

    def hide(name):
        import tensorflow  # Whose import looks for folders.

        import tff_pmc.cluster.spread_runs as module

        assert tensorflow

        module.os.path.isdir = lambda _: False
        return name

    def show(name):
        import genericpath
        import os

        os.path.isdir = genericpath.isdir
        return name

    # The digits read none.
    monkeypatch.setattr(DATASETS["digits5k"], "reads_folder", True)
    (tmp_path / "data").mkdir()
    (worker, *_) = client.scheduler_info()["workers"]
    arguments = [f"--data_dir={tmp_path / 'data'}", f"--output_dir={tmp_path / 'out'}"]
    client.submit(hide, "x", workers=[worker], pure=False).result()
    try:
        done = run(*FLAGS, *flags_of_cluster, *arguments, code=2)
    finally:
        client.submit(show, "x", workers=[worker], pure=False).result()
    (line,) = [li for li in done.stderr.splitlines() if "run_experiments.py:" in li]
    assert f"the worker {worker} does not share" in line and "--data_dir" in line


@pytest.mark.slow
def test_an_error_of_a_run_is_raised_unchanged(flags_of_cluster, tmp_path):
    """A folder contains another run, which only its worker sees."""
    folder = tmp_path / "out"
    arguments = [*FLAGS, "--rounds=1", f"--output_dir={folder}"]
    run(*arguments)
    path = folder / RUNS[1] / "run.json"
    path.write_text(path.read_text().replace('"cohort_seed": 0', '"cohort_seed": 5'))
    done = run(*arguments, *flags_of_cluster, "--resume", code=2)
    (line,) = [li for li in done.stderr.splitlines() if "run_experiments.py:" in li]
    assert "its settings differ (cohort_seed: 5 there, 0 here)" in line


def test_a_folder_held_by_a_stopped_worker_does_not_affect_other_runs():
    from tff_pmc.cluster import spread_runs
    from tff_pmc.record.record_error import FolderInUseError, LostRunError

    class Failed:
        status = "error"

        def exception(self):
            return FolderInUseError(
                "--output_dir=x is in use: another run writes into it"
            )

    lost_run_error = spread_runs._lost_run_error(None, Failed(), None)
    assert isinstance(lost_run_error, LostRunError)
    assert "x is in use" in str(lost_run_error) and str(lost_run_error).endswith(
        "resume with --resume"
    )


def test_a_late_worker_of_another_version_ends_the_command_in_one_line():
    from tff_pmc.cluster import spread_runs, tasks
    from tff_pmc.runtime import EngineError

    class Failed:
        status = "error"

        def exception(self):
            return tasks.EnvironmentMismatchError("it has tensorflow 1")

    with pytest.raises(EngineError, match="a worker cannot be used: it has tensorfl"):
        spread_runs._lost_run_error(None, Failed(), None)


def test_a_worker_trains_on_the_data_that_the_driver_read(tmp_path, monkeypatch):
    """The file is replaced between two drivers, and between a driver and its worker."""
    import leaf_data
    from leaf_data.errors import DataError
    from tff_pmc.cluster import spread_runs
    from tff_pmc.cluster.tasks import to_bytes
    from tff_pmc.experiments.running import execution, sweep

    path, digits = tmp_path / "file", leaf_data.load("digits5k")

    class Settings:
        @property
        def data(self):
            return self

        def load_limited(self, *_):
            files = (("file", path.read_text()),)
            return dataclasses.replace(
                digits, origin=leaf_data.Origin("one", files, str(tmp_path))
            )

    monkeypatch.setattr(Settings, "__repr__", lambda _: "the same")
    monkeypatch.setattr(spread_runs, "_data_by_job", {})
    for content in ("old", "new"):
        path.write_text(content)
        driver = execution.DatasetLoader("", "", leaf_data.ClientTable())
        read = driver(Settings())
        job = sweep.RunJob(Settings(), "out", files=read.origin.files)
        sent = to_bytes((content, driver))  # A call's own name, as `make_runs` has it.
        data = spread_runs._load_data(sent, job)
        assert data.origin.files == (("file", content),)
    assert spread_runs._load_data(sent, job) is data  # It is read once.
    path.write_text("newer")
    spread_runs._data_by_job.clear()
    with pytest.raises(DataError, match="a worker sees other files in"):
        spread_runs._load_data(sent, job)


def test_a_worker_imports_the_drivers_plugin_or_raises(tmp_path, monkeypatch):
    from tff_pmc.cluster import spread_runs
    from tff_pmc.cluster.options import ClusterSettingError
    from tff_pmc.record.plugin_files import plugin_sha256

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(spread_runs, "_sha256_by_plugin", {})
    package = tmp_path / "of_two_files"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name, path in (
        ("of_one_file", tmp_path / "of_one_file.py"),
        ("of_two_files", package / "second.py"),
    ):
        path.write_text("A = 1")
        importlib.import_module(name)  # The driver's.
        spread_runs._import_plugin(name, plugin_sha256(name))
        path.write_text("A = 2")
        with pytest.raises(ClusterSettingError, match="has imported another module"):
            spread_runs._import_plugin(name, plugin_sha256(name))
        path.write_text("A = 1")
        spread_runs._import_plugin(name, plugin_sha256(name))


@pytest.mark.parametrize("late", [False, True])
def test_a_worker_that_sees_another_store_raises(
    flags_of_cluster, tmp_path, monkeypatch, late
):
    """It is replaced after the driver opened it; `late`, after workers were checked."""
    import leaf_data
    from tff_pmc.cluster.connection import ClusterConnection

    path, real = tmp_path / "store", ClusterConnection.check_store
    digits = leaf_data.load("digits5k")
    leaf_data.write_store(digits, path)

    def check(self, *store):
        if late:
            real(self, *store)
        path.rename(tmp_path / "away")
        data = dataclasses.replace(digits, test_examples=digits.train_examples)
        leaf_data.write_store(data, path)
        if not late:
            real(self, *store)

    monkeypatch.setattr(ClusterConnection, "check_store", check)
    flags = ["--dataset=store", f"--store={path}", f"--output_dir={tmp_path / 'out'}"]
    done = run(*FLAGS, *flags, *flags_of_cluster, code=2)
    (line,) = [li for li in done.stderr.splitlines() if "run_experiments.py:" in li]
    says = "a worker sees another store" if late else "needs the driver's store"
    assert says in line and str(path) in line
    assert late or not (tmp_path / "out").exists()
