"""Callbacks: when they are called, and the ones that every run has."""

import contextlib
import dataclasses
import importlib.util
import io
import os
import re
import shutil
import sys
import types

import numpy as np
import pandas as pd
import pytest
from cli import ALONE, QUICK, ROOT, SHORT, records, refusal, run, table

import leaf_data
from declared_settings import AT_LEAST_1, setting
from tff_pmc.experiments.callbacks import CALLBACKS, Callback, FinishedRound
from tff_pmc.experiments.callbacks.early_stopping import StopOnLostRounds
from tff_pmc.experiments.callbacks.progress import Progress
from tff_pmc.experiments.callbacks.recorders import PredictionRecorder
from tff_pmc.experiments.experiment import settings
from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.record_error import LostRunError

CALLS = []
EXAMPLE = ROOT / "docs" / "examples" / "extend" / "ends_when_flat.py"


@dataclasses.dataclass
class Listed(Callback):
    """Lists the calls, and ends the run after some rounds."""

    listed_rounds: int = setting(2, "After how many rounds.", within=AT_LEAST_1)

    def on_start(self, run):
        self._run = run
        CALLS.append(("start", run.rounds_before, len(run.weights.trainable)))

    def after_round(self, round):
        path = os.path.join(self._run.folder, "checkpoint.npz")
        with np.load(path) as checkpoint:
            saved = int(checkpoint["round"])
        rows = self._run.rounds
        assert rows["accuracy"].iloc[-1] == round.row["accuracy"]
        CALLS.append((round.round_num, len(rows), saved))
        return round.round_num >= self.listed_rounds

    def on_end(self, status):
        CALLS.append(("end", status))


@pytest.mark.parametrize(
    ("sizes", "record", "why"),
    [
        (
            [5, 5, 5, 0],
            {},
            "4 of 4 clients would have to reach each target, and 3 have",
        ),
        ([5] * 9 + [0], {}, ""),
        (
            [5] * 8 + [0] * 2,
            {},
            "9 of 10 clients would have to reach each target, and 8",
        ),
        ([5], {"targets": (90, 100), "reach": "above"}, "no client is above 100 %"),
        ([5], {"targets": (90, 100)}, ""),
    ],
)
def test_targets_that_cannot_be_reached_are_named_before_the_first_round(
    caplog, sizes, record, why
):
    tested = types.SimpleNamespace(label_counts=np.array(sizes), num_clients=len(sizes))
    changes = {**SHORT, "targets": (90,), **record}
    changes.pop("model")
    start = types.SimpleNamespace(
        settings=settings("quickstart", changes), test_examples=tested, rounds_before=0
    )
    for until, words in (("targets", why), ("", "")):
        caplog.clear()
        CALLBACKS["until"](until=until).on_start(start)
        assert (
            f"--until=targets will not end the run early: {words}" in caplog.text
        ) == bool(words)
        assert bool(caplog.records) == bool(words)


def test_a_callback_added_on_resume_is_told_that_it_lacks_rounds(tmp_path):
    folder = f"--output_dir={tmp_path / 'out'}"
    words = [*QUICK, "--priority=DS", "--clients_per_round=2", folder]
    said = "and was started without TensorBoard, which misses the rounds so far"
    assert "started without" not in run(*words, "--rounds=1", "--patience=9").stderr
    resume_flags = [*words, "--resume", "--tensorboard"]
    assert f"is finished, {said}" in run(*resume_flags, "--rounds=1").stderr
    assert (
        f"is resumed after round 1, {said}" in run(*resume_flags, "--rounds=2").stderr
    )
    for flags in (["--tensorboard"], ["--tensorboard", "--until=targets"]):
        done = run(*words, "--resume", *flags, "--rounds=3")
        assert "started without" not in done.stderr  # `until` reads the rounds before.


@pytest.fixture
def listed(monkeypatch):
    CALLS.clear()
    monkeypatch.setitem(CALLBACKS._things, "listed", Listed)
    return ["--callbacks=listed", *QUICK, "--rounds=3", "--clients_per_round=2"]


def test_a_named_callback_is_called_with_its_settings(listed, tmp_path):
    """Its round is on disk and not yet saved; it ends each run after two of three."""
    out = tmp_path / "out"
    run(*listed, "--priority=DS;LD", f"--output_dir={out}")
    start, ended = ("start", 0, len(CALLS[0:1]) and CALLS[0][2]), ("end", "finished")
    assert CALLS == 2 * [start, (1, 1, 0), (2, 2, 1), ended]
    assert '"callbacks": {\n    "Listed": {\n      "listed_rounds": 2' in (
        (out / "DS" / "run.json").read_text()
    )
    CALLS.clear()  # What a callback has ended is finished.
    run(*listed, "--priority=DS;LD", f"--output_dir={out}", "--resume")
    assert CALLS == []
    other = tmp_path / "other"
    run(*listed, "--priority=DS", "--listed_rounds=1", f"--output_dir={other}")
    assert len(table(other / "DS" / "rounds.csv")) == 1


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--callbacks=lsted"], "unknown callback 'lsted' (did you mean listed?)"),
        (["--callbacks=listed", "--listed_rounds=0"], "--listed_rounds must be at lea"),
    ],
)
def test_unknown_callbacks_are_rejected(listed, flags, says):
    assert says in refusal(*flags)


class Fails(Callback):
    """Fails after a round, or when the run ends."""

    def __init__(self, at):
        self._at = at

    def after_round(self, round):
        CALLS.append("after the round")
        if self._at == "round":
            raise KeyboardInterrupt

    def on_end(self, status):
        CALLS.append(status)
        if self._at == "end":
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def adjusted_run(runtime, tmp_path_factory):
    """An adjusted run without an error: its settings, its data and its folder."""
    from tff_pmc.experiments.running import loop

    adjusted = {"adjustment": "backtracking", "priority": ("LD", "DS")}
    run_settings = settings(
        "quickstart", {**SHORT, **adjusted, "clients_per_round": 5.0}
    )
    data, folder = leaf_data.load("digits5k"), str(tmp_path_factory.mktemp("whole"))
    loop.run(run_settings, data, f"{folder}/run", title=None)
    return run_settings, data, f"{folder}/run"


@pytest.mark.parametrize(
    ("at", "statuses"),
    [("round", ["interrupted"] * 2), ("end", ["finished", "interrupted"])],
)
def test_an_error_interrupts_the_run_and_reaches_all_callbacks(
    adjusted_run, tmp_path, at, statuses
):
    """In the reverse order; a run that is resumed is the one without the error."""
    from tff_pmc.experiments.running import loop

    CALLS.clear()
    run_settings, data, without = adjusted_run
    folder = str(tmp_path / "cut")
    with pytest.raises(KeyboardInterrupt):
        failing = [Fails("never"), Fails(at)]
        loop.run(run_settings, data, folder, title=None, callbacks=failing)
    assert CALLS[-2:] == statuses and len(CALLS) == 2 + (2 if at == "round" else 6)
    assert '"status": "interrupted"' in (tmp_path / "cut" / "run.json").read_text()
    loop.run(run_settings, data, folder, title=None, resume=True)
    resumed, expected = (records(f, states=True) for f in (folder, without))
    assert resumed.pop("run.json").pop("callbacks", None) is None
    expected.pop("run.json")
    assert resumed == expected


@pytest.mark.parametrize(("most", "rounds"), [(2, 2), (0, 4)])
def test_a_run_ends_after_too_many_lost_rounds(tmp_path, most, rounds):
    out = tmp_path / "out"
    done = run(
        *ALONE,  # A linear model takes any rate.
        "--priority=DS",
        "--rounds=4",
        "--clients_per_round=2",
        "--learning_rate=1e10",
        f"--most_lost_rounds={most}",
        f"--output_dir={out}",
        code=1 if most else 0,
    )
    rows = table(out / "DS" / "rounds.csv")
    assert len(rows) == rounds
    assert {row["train_loss"] for row in rows} == {""}
    assert "round 1: all 2 clients were excluded" in done.stderr
    assert re.search(r"--learning_rate may help \(client \S+ has DS \d+", done.stderr)
    assert "did not change the model" not in done.stderr  # That warning is for Python.
    last = done.stderr.strip().splitlines()[-1]
    if most:
        words = f"DS: the model did not change in rounds 1 to {most}: all 2 clients"
        assert words in last and f"what was recorded is in {out}" in last
    else:
        assert "DS: 8 of 8 trainings were excluded" in done.stdout


def row(clients, excluded, rejected):
    return {"clients": clients, "excluded": excluded, "update_rejected": rejected}


GOOD, OUT, REJECTED = row(3, 1, 0), row(3, 3, 1), row(3, 0, 1)


@pytest.mark.parametrize(
    ("most", "before", "then", "says"),
    [
        (3, [], [GOOD, OUT, OUT, GOOD, OUT, OUT, OUT], "rounds 5 to 7: all 3 clients"),
        (
            3,
            [],
            [REJECTED, OUT, REJECTED],
            "did not change in rounds 1 to 3: no client's score",
        ),
        # Those before a kill count, too.
        (
            3,
            [GOOD, OUT, OUT],
            [REJECTED],
            "did not change in rounds 2 to 4: no client's score was",
        ),
        (
            3,
            [OUT, OUT, OUT],
            [],
            "did not change in rounds 1 to 3: all 3 clients were excluded",
        ),
        # A run that never moved its model is lost, however short it is.
        (3, [OUT], [REJECTED], "did not change in rounds 1 to 2"),
        (3, [GOOD], [OUT], ""),
        (3, [], [], ""),
        (0, [OUT], [OUT], ""),  # 0: as long as one likes.
    ],
)
def test_which_runs_are_lost(monkeypatch, most, before, then, says):
    lost, ends = StopOnLostRounds(), []
    rows = types.SimpleNamespace(to_dict=lambda _: before)
    of_run = {"label": "DS", "training": types.SimpleNamespace(most_lost_rounds=most)}
    started = types.SimpleNamespace(
        settings=types.SimpleNamespace(**of_run), rounds_before=len(before), rounds=rows
    )
    with pytest.raises(LostRunError, match=says) if says else contextlib.nullcontext():
        lost.on_start(started)
        for round_row in then:
            ends.append(
                lost.after_round(types.SimpleNamespace(row=round_row, cohort=()))
            )
        lost.on_end("interrupted")
        lost.on_end("finished")
    assert not any(ends[:-1])


def test_the_other_runs_are_made_and_a_lost_run_stays_lost(tmp_path):
    """The server's rate breaks one of two runs; the other has its tables."""
    out = tmp_path / "out"
    flags = [
        *ALONE,
        *("--priority=DS", "--clients_per_round=2"),
        *("--algorithms=momentum,prioritized", "--momentum_eta=1e10"),
        *("--most_lost_rounds=2", f"--output_dir={out}"),
    ]
    for rounds, extra_flags in ((3, []), (4, ["--resume"])):
        done = run(*flags, f"--rounds={rounds}", *extra_flags, code=1)
        last = done.stderr.strip().splitlines()[-1]
        assert (
            "Momentum: the model did not change in rounds 2 to 3: all 2 clients" in last
        )
        assert len(table(out / "momentum" / "rounds.csv")) == 3
        assert len(table(out / "DS" / "rounds.csv")) == rounds
        assert "Momentum" not in (out / "results.csv").read_text()


@pytest.mark.parametrize("rounds, lines", [(3, 3), (10, 10), (25, 9), (1000, 10)])
def test_a_log_has_about_ten_lines_per_run(monkeypatch, rounds, lines):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    bar = Progress("run 1 of 2: DS\x1b")
    training = types.SimpleNamespace(rounds=rounds)
    of_run = types.SimpleNamespace(training=training)
    bar.on_start(types.SimpleNamespace(settings=of_run, rounds_before=0))
    for number in range(1, rounds + 1):
        row = {"accuracy": 0.5, "testing_rounds": 0, "p10": 0.1, "p50": 0.5, "p90": 0.9}
        record = types.SimpleNamespace(seconds={"train": 1.0}, metric=ACCURACY)
        bar.after_round(types.SimpleNamespace(round_num=number, row=row, record=record))
    bar.on_end("finished")
    text = sys.stderr.getvalue()
    assert text.count("\n") == lines and "\r" not in text and "\x1b" not in text
    last = text.splitlines()[-1]
    assert f"round {rounds} of {rounds}, accuracy 0.500, p10/50/90 0.10/0.50" in last


def test_predictions_are_written_with_their_labels(tmp_path):
    """The labels are written again where somebody has removed them."""
    data = leaf_data.load("digits5k").test_examples
    right, folder = np.zeros(len(data.y), int), tmp_path / "predictions"
    callback = PredictionRecorder()
    callback.on_start(types.SimpleNamespace(folder=str(tmp_path), test_examples=data))

    def finished(number, predicted):
        record = types.SimpleNamespace(round_num=number)
        return FinishedRound(record, None, None, predicted)

    for number in (1, 2):
        callback.after_round(finished(number, right))
        names = ["labels.npz", *(f"round_000{n}.npz" for n in range(1, number + 1))]
        assert sorted(os.listdir(folder)) == names
        (folder / "labels.npz").unlink()
    callback.after_round(finished(3, None))
    assert not (folder / "round_0003.npz").exists()
    shutil.rmtree(tmp_path)
    with pytest.raises(FileNotFoundError, match="predictions"):
        callback.after_round(finished(4, right))


def test_the_callback_of_the_page_ends_a_run_whose_accuracy_is_flat():
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    registered = dict(CALLBACKS)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        CALLBACKS._things.clear()
        CALLBACKS._things.update(registered)
    callback, accuracies = module.EndsWhenFlat(flat_rounds=2), [0.1, 0.3, 0.2, 0.3, 0.4]
    ends = []
    for number in range(1, len(accuracies) + 1):
        rows = pd.DataFrame({"accuracy": accuracies[:number]})
        callback.on_start(types.SimpleNamespace(rounds=rows))
        ends.append(bool(callback.after_round(None)))
    assert ends == [False, False, False, True, False]
