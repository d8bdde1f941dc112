"""Helpers for tests of the command line and of runs."""

import contextlib
import csv
import dataclasses
import io
import json
import logging
import pathlib
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest

from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.models.functional import classifier

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Flags of a run that takes seconds: QUICK in this process, which has the model below,
# ALONE in another process, which does not.
MODEL = "softmax"
QUICK = ["--experiment=quickstart", f"--model={MODEL}", "--local_epochs=1"]
SMALL = [*QUICK, "--rounds=2"]
SHORT = {"model": MODEL, "rounds": 3, "local_epochs": 1, "priority": ("DS",)}
ALONE = [QUICK[0], "--model=keras_simple_convnet", QUICK[2]]


@dataclasses.dataclass(frozen=True)
class Softmax(ModelSettings):
    """A linear model of images of digits: the fastest to build and train."""

    element_shape = (28, 28)
    num_classes = 10

    def build(self):
        import tensorflow as tf

        kernel = np.random.default_rng(self.seed).normal(0, 0.1, (784, 10))

        @tf.function(autograph=False)
        def predict(weights, x, training=True):
            (kernel, bias), _ = weights
            return tf.reshape(tf.cast(x, tf.float32) / 255, [-1, 784]) @ kernel + bias

        weights = [kernel.astype(np.float32), np.zeros(10, np.float32)]
        return classifier(weights, predict, self.element_shape)


@contextlib.contextmanager
def softmax():
    """Registers this model within the context."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MODELS._things, MODEL, Softmax)
        yield patch


@contextlib.contextmanager
def empty_figures():
    """Writes figures as empty files, which are most of a short run's time."""
    from tff_pmc.reports.figures import figure_layout, page_figure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure_layout, "png_bytes", lambda figure: b"\x89PNG")
        patch.setattr(page_figure, "page_svg", lambda *_: ("<svg></svg>", set()))
        yield


@contextlib.contextmanager
def quick_runs():
    """Registers this model, and writes empty figures."""
    with softmax(), empty_figures():
        yield


def command(*arguments, script=str(ROOT / "run_experiments.py")):
    """Returns a command of `run_experiments.py`, or of another script, as a list."""
    return [sys.executable, script, *map(str, arguments)]


def run_alone(*arguments, cwd=ROOT, timeout=600, **script):
    """Runs `run_experiments.py` in a new process, as a user does."""
    words = command(*arguments, **script)
    how = {"capture_output": True, "text": True, "cwd": cwd, "timeout": timeout}
    return subprocess.run(words, **how)


def run(*arguments, code=0):
    """Runs `run_experiments.py` in this process, where TensorFlow is already imported.

    Asserts the exit code; returns stdout and stderr."""
    import run_experiments

    out, err = io.StringIO(), io.StringIO()
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    words = ["run_experiments.py", *map(str, arguments)]
    # Outside of pytest the log is written to stderr.
    log = logging.StreamHandler(err)
    logging.getLogger().addHandler(log)
    try:
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with softmax(), streams[0], streams[1]:
            exit_code = run_experiments.main(words)
    finally:
        logging.getLogger().removeHandler(log)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert exit_code == code, err.getvalue()
    return types.SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())


def refusal(*arguments):
    """Runs a command that must be refused; returns the one line of its error."""
    done = run(*arguments, code=2)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def parse_settings(*arguments, attributes=()):
    """Returns the settings of the runs that flags request."""
    from tff_pmc.experiments.flags import command_line, flag_definitions

    values_by_flag = flag_definitions.parse([*map(str, arguments)])
    return command_line.build_run_settings(
        command_line.parse_command(values_by_flag), values_by_flag, attributes
    )


def labels(*arguments, **options):
    """Returns the labels of the runs that flags request."""
    return [settings.label for settings in parse_settings(*arguments, **options)]


def federation(name, examples, num_classes, **parts):
    """Returns a data set whose test examples are its training examples."""
    import leaf_data

    return leaf_data.FederatedDataset(
        name=name,
        train_examples=examples,
        test_examples=examples,
        num_classes=num_classes,
        origin=leaf_data.Origin("made up", (), ""),
        options={},
        **{"pixel_convention": leaf_data.pixels.WHITE_ON_BLACK, **parts},
    )


def table(path):
    """Reads a CSV as a list of rows by column."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def long_run(folder, *flags):
    """Starts a run of 1,000 rounds; returns its process once a round is recorded."""
    process = subprocess.Popen(
        command(
            *ALONE,
            *("--rounds=1000", "--priority=DS", f"--output_dir={folder}", *flags),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    rounds = folder / "DS" / "rounds.csv"
    deadline = time.monotonic() + 600  # Against a hang, not for slow machines.
    while not (rounds.exists() and len(rounds.read_text().splitlines()) > 1):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return process


def records(folder, states=False):
    """Returns the tables and settings of a folder that two equal runs have in common.

    With `states`, the bytes of the checkpoints, too.
    """
    contents = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        is_table = path.suffix == ".csv" and path.name != "timing.csv"
        if is_table or (states and path.name == "checkpoint.npz"):
            contents[name] = path.read_bytes()
        elif path.name == "run.json":
            contents[name] = json.loads(path.read_text())
            for key in ("started", "ended", "resumed", "versions", "command"):
                contents[name].pop(key, None)
    assert len(contents) > 2
    return contents


def mark_as_running(folder):
    """Marks a finished run as running, as if it had been killed."""
    info = folder / "run.json"
    info.write_text(info.read_text().replace('"finished"', '"running"'))
