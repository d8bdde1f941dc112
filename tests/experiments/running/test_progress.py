"""The progress of a run: a bar in a terminal, a few lines in a log."""

import io
import sys

import pytest

from tff_pmc.record.measures import ACCURACY


@pytest.mark.parametrize("rounds, said", [(3, 3), (10, 10), (25, 9), (1000, 10)])
def test_a_log_has_some_ten_lines_a_run(monkeypatch, rounds, said):
    from tff_pmc.experiments.running import callbacks

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    bar = callbacks.ProgressBar("run 1 of 2: DS\x1b", ACCURACY, 0, rounds)
    for number in range(1, rounds + 1):
        row = {"accuracy": 0.5, "testing_rounds": 0, "p10": 0.1, "p50": 0.5, "p90": 0.9}
        tables, seconds = {"rounds": [row]}, {"train": 1.0}
        done = callbacks.RoundDone(number, tables, None, None, None, seconds)
        bar.after_round(done)
    bar.close()
    text = sys.stderr.getvalue()
    assert text.count("\n") == said and "\r" not in text and "\x1b" not in text
    last = text.splitlines()[-1]
    assert f"round {rounds} of {rounds}, accuracy 0.500, p10/50/90 0.10/0.50" in last
