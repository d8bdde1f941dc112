"""Who is told of rounds: a lost run ends, and progress is a bar or a few lines."""

import contextlib
import io
import os
import re
import shutil
import sys
import types

import numpy as np
import pytest
from cli import QUICK, run, table

import leaf_data
from tff_pmc.record.metrics import ACCURACY


@pytest.mark.parametrize(("most", "rounds"), [(3, 3), (2, 2), (0, 4)])
def test_a_rate_that_breaks_every_client(tmp_path, most, rounds):
    out = tmp_path / "out"
    done = run(
        *QUICK,
        "--priority=DS",
        "--rounds=4",
        "--clients_per_round=2",
        "--learning_rate=1e10",
        f"--most_lost_rounds={most}",
        f"--output_dir={out}",
        code=1 if most else 0,
    )
    found = table(out / "DS" / "rounds.csv")
    assert len(found) == rounds
    assert {row["train_loss"] for row in found} == {""}
    assert "round 1: all 2 clients were left out" in done.stderr
    assert re.search(r"--learning_rate may help \(client \S+ has DS \d+", done.stderr)
    assert "left the model as it was" not in done.stderr  # That is of Python users.
    last = done.stderr.strip().splitlines()[-1]
    if most:
        words = f"DS: in the rounds 1 to {most} all 2 clients were left out"
        assert words in last and f"what was recorded is in {out}" in last
    else:
        assert "DS: 8 of 8 trainings were left out" in done.stdout


def row(clients, excluded, rejected):
    return {"clients": clients, "excluded": excluded, "update_rejected": rejected}


GOOD, OUT, REJECTED = row(3, 1, 0), row(3, 3, 1), row(3, 0, 1)


@pytest.mark.parametrize(
    ("before", "then", "says"),
    [
        ([], [GOOD, OUT, OUT, GOOD, OUT, OUT, OUT], "in the rounds 5 to 7 all 3 clie"),
        ([], [REJECTED, OUT, REJECTED], "in the rounds 1 to 3 no client's score was"),
        # Those before a kill count, too.
        ([GOOD, OUT, OUT], [REJECTED], "in the rounds 2 to 4 no client's score was"),
        ([OUT, OUT, OUT], [], "in the rounds 1 to 3 all 3 clients were left out"),
    ],
)
def test_which_rounds_are_lost(before, then, says):
    from tff_pmc.experiments.running import callbacks

    lost = callbacks.LostRounds("DS", 3, before)
    done = [
        types.SimpleNamespace(round_num=number, row=one, cohort=())
        for number, one in enumerate(then, len(before) + 1)
    ]
    for one in done[:-1]:
        lost.after_round(one)
    with pytest.raises(callbacks.LostRunError, match=says):
        lost.after_round(done[-1]) if done else lost.check()


def test_a_run_that_never_moved_its_model_is_lost_however_short():
    from tff_pmc.experiments.running import callbacks

    for before, lost in (([OUT, REJECTED], True), ([GOOD, OUT], False), ([], False)):
        rounds = callbacks.LostRounds("DS", 3, before)
        says = pytest.raises(callbacks.LostRunError, match="in the rounds 1 to 2")
        with says if lost else contextlib.nullcontext():
            rounds.check_all()
    callbacks.LostRounds("DS", 0, [OUT]).check_all()  # 0: as long as one likes.


def test_the_others_are_made_and_a_lost_run_stays_lost(tmp_path):
    """The server's rate breaks one of two runs; the other has its tables."""
    out = tmp_path / "out"
    flags = [
        *QUICK,
        *("--priority=DS", "--clients_per_round=2"),
        *("--systems=momentum,prioritized", "--momentum_eta=1e10"),
        *("--most_lost_rounds=2", f"--output_dir={out}"),
    ]
    run(*flags, "--rounds=2")
    for rounds in (5, 6):
        done = run(*flags, f"--rounds={rounds}", "--resume", code=1)
        last = done.stderr.strip().splitlines()[-1]
        assert "Momentum: in the rounds 2 to 3 all 2 clients were left out" in last
        assert len(table(out / "momentum" / "rounds.csv")) == 3
        assert len(table(out / "DS" / "rounds.csv")) == rounds
        assert "Momentum" not in (out / "results.csv").read_text()


@pytest.mark.parametrize("rounds, said", [(3, 3), (10, 10), (25, 9), (1000, 10)])
def test_a_log_has_some_ten_lines_a_run(monkeypatch, rounds, said):
    from tff_pmc.experiments.running import callbacks

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    bar = callbacks.ProgressBar("run 1 of 2: DS\x1b", ACCURACY, 0, rounds)
    for number in range(1, rounds + 1):
        row = {"accuracy": 0.5, "testing_rounds": 0, "p10": 0.1, "p50": 0.5, "p90": 0.9}
        record = types.SimpleNamespace(seconds={"train": 1.0})
        done = types.SimpleNamespace(round_num=number, row=row, record=record)
        bar.after_round(done)
    bar.close()
    text = sys.stderr.getvalue()
    assert text.count("\n") == said and "\r" not in text and "\x1b" not in text
    last = text.splitlines()[-1]
    assert f"round {rounds} of {rounds}, accuracy 0.500, p10/50/90 0.10/0.50" in last


def test_predictions_are_written_with_their_labels(tmp_path):
    """The labels are written again where somebody has removed them."""
    from tff_pmc.experiments.running import callbacks

    data = leaf_data.load("digits5k").test_examples
    right = np.zeros(len(data.y), int)
    listener = callbacks.predictions(str(tmp_path), data)
    folder = tmp_path / "predictions"
    for number in (1, 2):
        done = callbacks.RoundDone(types.SimpleNamespace(round_num=number), None, right)
        listener(done)
        names = ["labels.npz", *(f"round_000{n}.npz" for n in range(1, number + 1))]
        assert sorted(os.listdir(folder)) == names
        (folder / "labels.npz").unlink()
    listener(callbacks.RoundDone(types.SimpleNamespace(round_num=3), None, None))
    assert not (folder / "round_0003.npz").exists()
    shutil.rmtree(tmp_path)
    with pytest.raises(FileNotFoundError, match="predictions"):
        listener(done)
