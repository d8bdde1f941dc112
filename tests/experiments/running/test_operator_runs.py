"""OWA, Choquet and the weighted average from the command line."""

import numpy as np
import pytest
from cli import QUICK, run, table

from tff_pmc.experiments.experiment import settings
from tff_pmc.record.results import read_results
from tff_pmc.reports.statistics.weight_statistics import weight_figures

CODES = ("DS", "LD", "MD")
CHOQUET = "--choquet_capacity=DS:0.4,LD:0.3,MD:0.2,DS+LD:0.8,DS+MD:0.5,LD+MD:0.4"


@pytest.mark.parametrize(
    "normalization", [pytest.param("sum", marks=pytest.mark.slow), "range"]
)
def test_a_run_records_the_scores_weights(
    tmp_path, normalization, capacity, choquet_by_sorting
):
    """Two stages, then one; with the baseline, and the weights by hand."""
    flags = []
    if normalization == "range":
        flags = ["--normalization=range", "--criteria_ranges=DS=0:80,LD=0:10,MD=0:1"]
    done = run(
        *QUICK,
        "--rounds=1",
        *("--algorithms=choquet", CHOQUET, "--priority=DS;MD,LD,DS", *flags),
        f"--output_dir={tmp_path / 'out'}",
    )
    assert ("aggregates twice per round" in done.stdout) == (normalization == "sum")
    label = "Choquet[0.4,0.3,0.2,0.8,0.5,0.4]:DS,LD,MD"
    assert label in done.stdout
    folder = tmp_path / "out" / "Choquet-0.4-0.3-0.2-0.8-0.5-0.4-DS-LD-MD"
    assert (tmp_path / "out" / "DS" / "rounds.csv").exists()
    assert table(folder / "rounds.csv")[0]["ordering"] == label
    cohort = table(folder / "cohort.csv")
    raw = np.array([[float(row[code]) for code in CODES] for row in cohort])
    scale = raw.sum(axis=0) if normalization == "sum" else np.array([80, 10, 1])
    worth = {frozenset(map(CODES.index, k)): v for k, v in capacity.items()}
    worth[frozenset(range(3))] = 1
    s = np.array([choquet_by_sorting(values, worth) for values in raw / scale])
    recorded = [float(row["weight"]) for row in cohort]
    np.testing.assert_allclose(recorded, s / s.sum(), rtol=1e-5)
    weights = weight_figures(read_results(str(folder)))
    assert weights["ordering"][weights["in_force"] == 1].tolist() == [label]
    assert len(weights) == 10


def test_settings_decide_form_label_and_folder():
    def settings_of(algorithm="owa", **overrides):
        quantifier = {"owa_quantifier": "most"} if algorithm == "owa" else {}
        changes = {"algorithm": algorithm, "priority": CODES, **quantifier, **overrides}
        return settings("quickstart", changes)

    assert settings_of().two_stage
    ranges = (("DS", 0.0, 50.0), ("LD", 0.0, 10.0), ("MD", 0.0, 1.0))
    assert not settings_of(normalization="range", criteria_ranges=ranges).two_stage
    assert not settings_of(priority=("LD",)).two_stage
    average = settings_of("weighted_average", average_weights=(0.5, 0.3, 0.2))
    assert not average.two_stage
    assert average.folder_name == "average-0.5-0.3-0.2-DS-LD-MD"
    assert settings_of().folder_name == "OWA-most-DS-LD-MD"
