"""Records of losses: read, shown, and refused where accuracy is needed."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from folders import TRAINED

from tff_pmc import project_files
from tff_pmc.record import read
from tff_pmc.reports import losses, output

KEPT = project_files.folder("results/reproduced") / "quickstart" / "DS"
SUMS = [[8.0, 3.0, 0.0], [2.0, 1.0, 0.0], [4.0, 2.0, 0.0]]  # Three rounds.
SIZES = [4, 1, 0]


@pytest.fixture
def folder(tmp_path):
    """A run folder whose record has losses; the last client has no examples."""
    settings = {**TRAINED, "priority": ["DS"]}
    data = {"name": "wells", "clients": 3, "origin": {"source": "a test"}}
    info = {"label": "DS", "settings": settings, "data": data}
    (tmp_path / "run.json").write_text(json.dumps(info))
    (tmp_path / "weights.csv").write_text("round,ordering\n")
    rounds, clients = "round,test_loss\n", "round,client,loss_sum,examples\n"
    for number, sums in enumerate(SUMS, 1):
        rounds += f"{number},{sum(sums) / 5}\n"
        for name, total, size in zip("abc", sums, SIZES):
            clients += f"{number},{name},{total},{size}\n"
    (tmp_path / "rounds.csv").write_text(rounds)
    (tmp_path / "clients.csv").write_text(clients)
    return tmp_path


def test_the_table_and_the_plot(folder):
    (folder / "out").mkdir()
    assert losses.measures_loss(str(folder))
    assert not losses.measures_loss(str(KEPT))
    runs = [losses.read_loss_run(str(folder))]
    text = output.write(losses.of_runs(runs, others=["one"]), str(folder / "out"))
    assert text.endswith("Without classes there is no accuracy, and no report one.")
    assert (folder / "out" / "loss.png").read_bytes().startswith(b"\x89PNG")
    (row,) = pd.read_csv(folder / "out" / "losses.csv").to_dict("records")
    assert (row["run"], row["last"], row["best"], row["best_round"]) == (
        *("DS", 6 / 5, 3 / 5, 2),
    )
    # The clients' own means are 1 and 2 in the end.
    assert [row["p10"], row["p50"], row["p90"]] == pytest.approx([1.1, 1.5, 1.9])


def test_a_loss_that_is_none_was_measured(folder):
    head = "round,test_loss,loss_p50,examples\n"
    rows = "1,inf,nan,5\n2,,,\n3,1.2,1.1,5\n"
    (folder / "rounds.csv").write_text(head + rows)
    (folder / "clients.csv").write_text(
        "round,client,loss_sum,examples\n1,a,inf,5\n2,a,inf,5\n3,a,6.0,5\n"
    )
    rounds = losses.read_loss_run(str(folder)).rounds
    assert rounds["test_loss"].tolist() == [np.inf, np.inf, 1.2]
    assert rounds["loss_p50"].isna().tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("column", "read_it", "words"),
    [
        ("loss_sum", read.read_run, "has no accuracy, which this needs"),
        ("something", losses.read_loss_run, "lacks the column 'correct'"),
        ("correct", losses.read_loss_run, "has accuracies and no losses"),
    ],
)
def test_a_record_of_something_else_is_refused(folder, fails, column, read_it, words):
    path = folder / "clients.csv"
    text = path.read_text().replace("loss_sum", column)
    counts = column == "correct"  # Whole numbers, and no more than there are.
    path.write_text(re.sub(r"\d+\.0,", "0,", text) if counts else text)
    fails(lambda: read_it(str(folder)), folder, words)
