"""What the tests of the command line and of its runs share."""

import contextlib
import csv
import io
import json
import logging
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def command():
    """The words of a command of `run_experiments.py`."""

    def words(*arguments):
        script = str(ROOT / "run_experiments.py")
        return [sys.executable, script, *map(str, arguments)]

    return words


@pytest.fixture(scope="session")
def run_alone(command):
    """Runs `run_experiments.py` as a user does, in a process of its own."""

    def in_a_process(*arguments, cwd=ROOT, timeout=300):
        return subprocess.run(
            command(*arguments),
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=timeout,
        )

    return in_a_process


@pytest.fixture(scope="session")
def run():
    """Does the same in this process, to an exit code; which has TensorFlow already."""
    import run_experiments

    def in_this_process(*arguments, code=0):
        out, err = io.StringIO(), io.StringIO()
        handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
        words = ["run_experiments.py", *map(str, arguments)]
        # Outside of pytest the log goes to stderr.
        log = logging.StreamHandler(err)
        logging.getLogger().addHandler(log)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                found = run_experiments.main(words)
        finally:
            logging.getLogger().removeHandler(log)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        assert found == code, err.getvalue()
        return types.SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())

    return in_this_process


@pytest.fixture(scope="session")
def refused(run):
    """Does the same with what is refused; gives the one line that says why."""

    def line_of(*arguments):
        done = run(*arguments, code=2)
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    return line_of


@pytest.fixture
def labels():
    """The labels of the runs that flags ask for."""
    from tff_pmc.experiments.flags import command_line, flag_definitions

    def of(*arguments, attributes=()):
        given = flag_definitions.parse([*map(str, arguments)])
        command = command_line.command_of(given)
        runs = command_line.runs_of(command, given, attributes)
        return [settings.label for settings in runs]

    return of


@pytest.fixture(scope="session")
def table():
    """Reads a CSV as a list of rows by column."""

    def rows(path):
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    return rows


@pytest.fixture(scope="session")
def small():
    """The flags of a run of seconds."""
    return ["--experiment=quickstart", "--rounds=2", "--local_epochs=1"]


@pytest.fixture(scope="session")
def long_run(command):
    """Starts a run of very many rounds; returns it when one of them is recorded."""

    def start(folder, *more):
        process = subprocess.Popen(
            command(
                *("--experiment=quickstart", "--rounds=1000", "--priority=DS"),
                *("--local_epochs=1", f"--output_dir={folder}", *more),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        rounds = folder / "DS" / "rounds.csv"
        deadline = time.monotonic() + 120
        while not (rounds.exists() and len(rounds.read_text().splitlines()) > 1):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.2)
        return process

    return start


@pytest.fixture(scope="session")
def records():
    """All tables and settings of a folder, but for what two equal runs may differ in.

    With `states`, the bytes of the last checkpoints, too.
    """

    def of(folder, states=False):
        found = {}
        for path in sorted(pathlib.Path(folder).rglob("*")):
            name = str(path.relative_to(folder))
            if path.suffix == ".csv" and path.name != "timing.csv":
                found[name] = path.read_bytes()
            elif states and path.suffix == ".state":
                found[name] = path.read_bytes()
            elif path.name == "run.json":
                found[name] = json.loads(path.read_text())
                for key in ("started", "ended", "resumed", "versions"):
                    found[name].pop(key, None)
        assert len(found) > 4
        return found

    return of


@pytest.fixture(scope="session")
def restarted():
    """Makes a finished run look as if it had been killed."""

    def restart(folder):
        info = folder / "run.json"
        info.write_text(info.read_text().replace('"finished"', '"running"'))

    return restart
