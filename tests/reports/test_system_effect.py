"""Systems against their baseline under several seeds, on numbers worked by hand."""

import collections
import copy
import pathlib

import pandas as pd
import pytest

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import effect

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_as_many_clients_are_held_against_each_other(system_run):
    accuracy = {"Median": (0.5, 0.8), "Weighted mean": (0.4, 0.6)}
    runs = [
        system_run(system, [levels[place]] * 2, note=f"{3 + place} clients")
        for place in (0, 1)
        for system, levels in accuracy.items()
    ]
    later = copy.deepcopy(runs)
    for run in later:
        run.info["settings"]["batch_seed"] = 1
    by_seed = {0: runs, 1: later}
    rows = effect.system_rows(by_seed, "Weighted mean")
    # Two rounds are no early part of themselves.
    assert set(rows["measure"]) == {"all rounds", "best round", "last round"}
    last = rows[rows["measure"] == "last round"].set_index("system")
    assert dict(last["baseline"]) == {
        "Median, 3 clients": "Weighted mean, 3 clients",
        "Median, 4 clients": "Weighted mean, 4 clients",
    }
    assert last["mean"].tolist() == pytest.approx([0.1, 0.2])


def test_runs_that_cannot_be_paired_are_refused(system_run):
    runs = [system_run(one, [0.5], 0.5) for one in ("FedAvg", "AdaFed", "Median")]
    with pytest.raises(RecordError, match="seed 3 has the runs FedAvg, 50% misl.*need"):
        effect.system_rows({0: runs, 3: runs[:2]}, "FedAvg")
    with pytest.raises(RecordError, match="is of seed 0, and not of 3"):
        effect.system_rows({0: runs, 3: runs}, "FedAvg")
    later = copy.deepcopy(runs)
    for run in later:
        run.info["settings"].update(batch_seed=3, learning_rate=0.1)
    with pytest.raises(RecordError, match="differ in learning_rate: 0.001 and 0.1"):
        effect.system_rows({0: runs, 3: later}, "FedAvg")
    expected = "AdaFed, 50% mislabeled: there is no run of FedAvg on its data"
    with pytest.raises(RecordError, match=expected):
        effect.system_rows({0: runs[1:]}, "FedAvg")


@pytest.mark.parametrize("page, values", [("docs/operators.md", 23), ("README.md", 10)])
def test_the_pages_have_the_kept_effects_of_the_baselines(page, values):
    """In points, mean and half of the interval."""
    kept = pd.read_csv(ROOT / "results" / "reproduced" / "baselines" / "effect.csv")
    kept = kept[kept["measure"] == "accuracy"]
    pairs = zip(100 * kept["mean"], 100 * kept["interval"])
    own = collections.Counter(f"{mean:+.1f} ± {half:.1f}" for mean, half in pairs)
    text = (ROOT / page).read_text()
    assert sum(count for words, count in own.items() if words in text) >= values
