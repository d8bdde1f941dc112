"""A cluster that was started here ends with the process, however that ends."""

import os
import pathlib
import signal

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def begun_by(process):
    """The processes that a process has begun, with those that they have."""
    psutil = pytest.importorskip("psutil")
    return psutil.Process(process.pid).children(recursive=True)


def assert_gone(processes, seconds=20):
    import psutil

    _, left = psutil.wait_procs(processes, timeout=seconds)
    assert not left


@pytest.mark.parametrize(
    ("name", "spread"),
    [
        pytest.param("SIGINT", "clients", marks=pytest.mark.slow),
        ("SIGTERM", "runs"),
        pytest.param("SIGKILL", "clients", marks=pytest.mark.slow),
    ],
)
def test_a_signal_leaves_no_process(tmp_path, long_run, name, spread):
    """An interrupt goes to all processes of the terminal, as Ctrl-C does."""
    folder, number = tmp_path / "out", getattr(signal, name)
    process = long_run(folder, "--cluster=local", f"--spread={spread}")
    workers = begun_by(process)
    assert workers
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert_gone(workers)
    if number == signal.SIGKILL:
        return
    assert process.returncode == 128 + number
    assert "interrupted" in err.splitlines()[-1]
    assert f"--output_dir={folder} --resume" in err.splitlines()[-1]
    assert "Traceback" not in err and "distributed" not in err


def test_an_end_is_quiet_and_leaves_no_process(tmp_path, run_alone):
    done = run_alone(
        *("--experiment=quickstart", "--rounds=1", "--local_epochs=1"),
        *("--cluster=local", "--spread=clients", f"--output_dir={tmp_path / 'out'}"),
    )
    assert done.returncode == 0, done.stderr
    assert "distributed" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
