"""OWA, Choquet and the weighted average from the command line."""

import csv
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from test_operator_rounds import oracle
from test_operators import CAPACITY, RANGES

from tff_pmc import scores
from tff_pmc.experiments import named, rows
from tff_pmc.experiments.config import ConfigError

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHOQUET = "--capacity=DS:0.4,LD:0.3,MD:0.2,DS+LD:0.8,DS+MD:0.5,LD+MD:0.4"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "run_experiments.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=240,
    )


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--score=median"], "--score=median: value should be one of <prioritized|w"),
        (["--score=owa"], "--score=owa: it takes score_weights or quantifier"),
        (
            ["--score=owa", "--score_weights=0.5,0.5"],
            "--score=owa: the OWA of 3 criteria needs 3 weights, got 2",
        ),
        (["--score=weighted_average", "--score_weights=1,x"], "--score_weights=1,x"),
        (["--quantifier=most"], "--score=prioritized: it takes no quantifier"),
        (["--score=choquet", "--capacity=DS:x"], "'DS:x' is not CODE+CODE:VALUE"),
        (["--score=choquet", "--capacity=XX:0.1"], "unknown criterion 'XX'"),
        (
            ["--score=choquet", CHOQUET.replace("0.8", "0.35")],
            "--score=choquet: the capacity is not monotone: DS+LD has 0.35 and its",
        ),
        (
            ["--score=choquet", CHOQUET, "--priority=DS,LD"],
            "--score=choquet: the capacity must be of the criteria DS, LD",
        ),
        (
            ["--score=owa", "--quantifier=most", "--adjustment=backtracking"],
            "--adjustment=backtracking searches orderings, which --score=owa does",
        ),
        (
            ["--score=owa", "--quantifier=most", "--priority=LD"],
            "--score=owa has nothing to combine",
        ),
        (["--experiment=lr_search", "--score=product"], "--score does not go with"),
    ],
)
def test_a_bad_flag_is_one_line_and_exit_code_2(arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("normalization", ["sum", "range"])
def test_a_run_records_the_scores_weights(tmp_path, normalization):
    """Two stages, then one; the baseline beside it, and the weights by hand."""
    flags = []
    if normalization == "range":
        flags = ["--normalization=range", "--criteria_ranges=DS=0:80,LD=0:10,MD=0:1"]
    done = run(
        *("--experiment=quickstart", "--rounds=1", "--local_epochs=1"),
        *("--score=choquet", CHOQUET, "--priority=DS", "--priority=MD,LD,DS", *flags),
        f"--output_dir={tmp_path / 'out'}",
    )
    assert done.returncode == 0, done.stderr
    assert ("two aggregations a round" in done.stdout) == (normalization == "sum")
    label = "Choquet[0.4,0.3,0.2,0.8,0.5,0.4]:DS,LD,MD"
    assert label in done.stdout
    folder = tmp_path / "out" / "Choquet-0.4-0.3-0.2-0.8-0.5-0.4-DS-LD-MD"
    assert (tmp_path / "out" / "DS" / "rounds.csv").exists()
    assert table(folder / "rounds.csv")[0]["ordering"] == label
    cohort = table(folder / "cohort.csv")
    raw = np.array([[float(row[code]) for code in RANGES] for row in cohort])
    scale = raw.sum(axis=0) if normalization == "sum" else np.array([80, 10, 1])
    s = np.array(oracle(scores.choquet(CAPACITY), raw / scale))
    recorded = [float(row["weight"]) for row in cohort]
    np.testing.assert_allclose(recorded, s / s.sum(), rtol=1e-5)
    weights = table(folder / "weights.csv")
    assert [row["ordering"] for row in weights if row["in_force"] == "1"] == [label]
    assert len(weights) == 10


def test_settings_decide_form_label_and_folder():
    def config(**more):
        changes = {"priority": ("DS", "LD", "MD"), "quantifier": "most", **more}
        return named.settings("quickstart", {"score": "owa", **changes})

    assert config().two_stage
    ranges = ((0.0, 50.0), (0.0, 10.0), (0.0, 1.0))
    assert not config(normalization="range", criteria_ranges=ranges).two_stage
    assert not config(priority=("LD",)).two_stage
    average = config(
        score="weighted_average", quantifier="", score_weights=(0.5, 0.3, 0.2)
    )
    assert not average.two_stage
    assert average.folder == "average-0.5-0.3-0.2-DS-LD-MD"
    assert config().folder == "OWA-most-DS-LD-MD"
    with pytest.raises(ConfigError, match="--adjustment.*--score=owa"):
        config(adjustment="best_of_all")
    found = rows.weight_rows(1, config(), np.ones((3, 3)))
    assert [row["ordering"] for row in found if row["in_force"]] == [config().label]


def test_reports_tell_the_scores_apart():
    from tff_pmc.reports import read, reference_export

    settings = {"priority": ["LD", "DS"], "criteria": ["DS", "LD", "MD"]}
    assert read.score_label(settings) == "LD,DS"
    settings.update(score="owa", score_weights=[0.5, 0.5], quantifier="")
    assert read.score_label(settings) == "OWA[0.5,0.5]:DS,LD"
    settings.update(score="owa", priority=["DS", "LD", "MD"], score_weights=[1, 0, 0])
    with pytest.raises(reference_export.DataError, match="its score is owa"):
        reference_export.index_of(
            {"settings": settings, "data": {"name": "digits5k"}}, "out"
        )
