"""Paired differences and the noise floor, on numbers worked by hand."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from reported import write

from tff_pmc.record import read
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import Report, effect, effect_page, weight_distances


def run(label, per_round, targets=()):
    """Two devices with 10 test examples each, equally good."""
    names = ["ordering", *weight_distances.FIGURES]
    rows = [("DS", 0.0, 10.0, 0.0), ("LD", 0.2, 9.0, 0.05)]
    weights = pd.DataFrame(rows, columns=names)
    correct = np.repeat(np.array(per_round)[:, None], 2, axis=1)
    data = {"name": "toy", "clients": 2, "origin": {"source": "made up"}}
    info = {"data": data, "settings": {"experiment": "toy", "targets": list(targets)}}
    rounds = pd.DataFrame(index=range(len(per_round)))
    about = label, info, rounds, weights, correct, np.array([10, 10])
    return read.Run(*about, path=label)


def five_seeds(targets=()):
    """DS has 5, 6, 7, 8, 9 right in the second half; LD 1, 1, 1, 1, 2 more."""
    ds, more = [5, 6, 7, 8, 9], [1, 1, 1, 1, 0]
    both = [(("DS", a), ("LD", a + m)) for a, m in zip(ds, more)]
    return {
        seed: [run(label, [0, 0, right, right], targets) for label, right in of_seed]
        for seed, of_seed in enumerate(both)
    }


@pytest.mark.parametrize("end", ["", ", drawn by size"])
def test_differences_are_paired_by_seed(end):
    """Accuracy: .1 .1 .1 .1 0: mean .08, deviation sqrt(.002), t(4) = 2.776."""
    by_seed = {
        seed: [dataclasses.replace(one, label=one.label + end) for one in runs]
        for seed, runs in five_seeds().items()
    }
    rows = effect.effect_rows(by_seed, [70], baseline=f"DS{end}").set_index("measure")
    row = rows.loc["accuracy"]
    assert row["mean"] == pytest.approx(0.08)
    assert row["deviation"] == pytest.approx(math.sqrt(0.008 / 4))
    half = 2.776 * math.sqrt(0.002 / 5)
    assert row["interval"] == pytest.approx(half, rel=1e-3)
    assert row["verdict"] == "more"
    # All pairs of .5 .6 .7 .8 .9: four at .1, three at .2, two at .3, one at .4.
    squares = 4 * 0.01 + 3 * 0.04 + 2 * 0.09 + 0.16
    assert row["noise_floor"] == pytest.approx(math.sqrt(squares / 10))
    assert (row["total_variation"], row["effective_clients"]) == (0.05, 9.0)


def test_rounds_that_are_not_known_have_no_mean_and_no_interval(tmp_path):
    """70 %: DS never, never, 3, 3, 3; LD never, 3, 3, 3, 3."""
    rows = effect.effect_rows(five_seeds(), [70]).set_index("measure")
    row = rows.loc["rounds to 70 %"]
    numbers = ["mean", "deviation", "interval", "noise_floor", "noise_floor_of_mean"]
    assert row[numbers].isna().all()
    # Under the first seed neither arrives: who is later is not known.
    assert (row["verdict"], row["more_in"], row["less_in"]) == ("censored", 0, 1)
    accuracy = effect.effect_rows(five_seeds(), []).iloc[0]
    assert accuracy["verdict"] == "more"
    page = write("ordering_effect", five_seeds([70]), tmp_path, baseline="DS")
    assert "Censored: under some seed" in page
    assert "| LD | later in 0 and earlier in 1 of 5 seeds |  |  | censored |" in page
    assert "2 of 2 comparisons lie outside" in page  # Both accuracies.


def test_runs_of_other_lengths_are_refused():
    runs = five_seeds()
    runs[2] = [run("DS", [1, 2]), runs[2][1]]
    with pytest.raises(RecordError, match="DS has 2 rounds and DS 4: finish"):
        effect.effect_rows(runs, [70])
    every = {seed: [run("DS", [1, 2]), run("LD", [1])] for seed in range(5)}
    with pytest.raises(RecordError, match="LD has 1 rounds, DS 2"):
        effect.effect_rows(every, [70])


def test_of_four_seeds_nothing_is_claimed_and_another_may_be_the_baseline(tmp_path):
    """LD is .1 ahead of DS: so DS is .1 behind LD."""
    few = dict(list(five_seeds([70]).items())[:4])
    text = write("ordering_effect", few, tmp_path, baseline="LD")
    assert "| DS | -0.1000 |" in text and "Each ordering minus LD" in text
    assert "Under 5 seeds nothing is claimed" in text
    rows = pd.read_csv(tmp_path / "effect.csv")
    assert set(rows["verdict"]) == {"undecided"} and rows["interval"].isna().all()
    with pytest.raises(RecordError, match="no run is of MD: there are DS, LD"):
        write("ordering_effect", few, tmp_path, baseline="MD")


FOUR = ("DS", "DS,LD", "LD", "LD,DS")


def test_one_run_that_does_not_arrive_censors_its_first_criterion():
    """LD,DS never has 70 %, under four of five seeds."""
    by_seed = {
        seed: [run(label, [1, 7, 7], [70]) for label in FOUR[:3]]
        + [run("LD,DS", [1, 1, 7 * (seed == 4)], [70])]
        for seed in range(5)
    }
    _, row = effect.first_criterion_rows(by_seed, [70]).to_dict("records")
    assert (row["measure"], row["verdict"]) == ("rounds to 70 %", "censored")
    assert math.isnan(row["mean"]) and math.isnan(row["within"])


@pytest.mark.parametrize(
    "labels",
    [
        ["DS", "LD"],  # One ordering each.
        ["DS", "DS,LD", "LD"],  # Groups of two sizes.
        ["DS", "DS,LD"],  # One group.
        [*FOUR, "MD,DS (backtracking)", "MD,LD (backtracking)"],
    ],
)
def test_nothing_is_taken_together_that_is_not_alike(labels):
    assert effect.groups(labels) == {}
    by_seed = {seed: [run(one, [7, 7], [70]) for one in labels] for seed in range(5)}
    found = effect.first_criterion_rows(by_seed, [70])
    assert found.empty and effect_page.by_first_criterion(found, "DS") == []


def test_what_all_labels_end_in_sets_no_group_apart():
    labels = [f"{label}, server adam" for label in FOUR]
    assert [*effect.groups(labels)] == [*effect.groups(FOUR)] != []
    assert effect.groups([*FOUR[:3], labels[3]]) == {}


def test_an_ordering_of_some_of_the_criteria_has_figures_of_its_weights(tmp_path):
    """Such a one has no row in `weights.csv`: they follow from the raw criteria."""
    by_seed = five_seeds()
    columns = ["round", "client", "DS", "LD", "excluded"]
    rows = [(1, "a", 1.0, 1.0, 0), (1, "b", 3.0, 1.0, 0)]
    cohort = pd.DataFrame(rows, columns=columns)
    settings = {"experiment": "toy", "targets": [], "criteria": ["DS", "LD"]}
    for runs in by_seed.values():
        info = {**runs[0].info, "settings": settings}
        runs[0] = dataclasses.replace(runs[0], cohort=cohort, info=info)
        runs.append(dataclasses.replace(runs[1], label="LD,DS"))
        runs.append(dataclasses.replace(runs[1], label="weights of my own"))
    rows = effect.effect_rows(by_seed, []).groupby("ordering").first()
    # LD,DS: 1/2 + 1/2 * 1/4 and 1/2 + 1/2 * 3/4, over their sum 1.5: 5/12 and 7/12.
    found = rows.loc["LD,DS", list(weight_distances.FIGURES)].astype(float)
    np.testing.assert_allclose(found, [1 / 6, 144 / 74, 3 / 4 - 7 / 12])
    assert rows.loc["LD", "total_variation"] == 0.05  # As the file has it.
    page = write("ordering_effect", by_seed, tmp_path, baseline="DS")
    assert "nan" not in page and "| weights of my own | – | – | – |" in page
    assert "–: no ordering of the criteria of DS's runs." in page
    # Systems alone, of which none has an ordering.
    none = {
        seed: [dataclasses.replace(runs[0], label="FedAvg"), runs[3]]
        for seed, runs in by_seed.items()
    }
    page = write("ordering_effect", none, tmp_path / "none", baseline="FedAvg")
    assert "| weights of my own | " in page and "nan" not in page


@pytest.mark.parametrize("asked, held", [("", "LD"), ("MD", "MD")])
def test_orderings_without_ds_are_held_against_the_first_or_the_one_asked_for(
    tmp_path, monkeypatch, asked, held
):
    from tff_pmc.experiments import reporting
    from tff_pmc.experiments.experiment import Experiment

    by_seed = {
        seed: [dataclasses.replace(one, label=label) for one, label in zip(runs, names)]
        for names in [("LD", "MD")]
        for seed, runs in five_seeds().items()
    }
    monkeypatch.setattr(reporting, "FOR_ALL_SEEDS", ())
    monkeypatch.setattr(reporting.plots, "seeds_report", lambda *a, **b: Report())
    reporting.write_seeds(Experiment("t", {}), by_seed, str(tmp_path), asked)
    assert f"| ordering | minus {held} |" in (tmp_path / "effect.md").read_text()
