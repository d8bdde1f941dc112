"""Paired differences and the noise floor, on numbers worked by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import effect, read

EXAMPLES = np.array([10, 10])


def run(label, per_round):
    """Two devices with 10 test examples each, equally good."""
    weights = pd.DataFrame(
        {
            "round": [1, 1],
            "ordering": ["DS", "LD"],
            "coefficient_of_variation": [0.0, 0.2],
            "effective_clients": [10.0, 9.0],
            "total_variation": [0.0, 0.05],
        }
    )
    correct = np.repeat(np.array(per_round)[:, None], 2, axis=1)
    data = {"name": "toy", "clients": 2, "origin": {"source": "made up"}}
    info = {"data": data, "settings": {"experiment": "toy"}}
    return read.Run(label, info, pd.DataFrame(), weights, correct, EXAMPLES)


def five_seeds():
    """DS has 5, 6, 7, 8, 9 right in the second half; LD 1, 1, 1, 1, 2 more."""
    ds, more = [5, 6, 7, 8, 9], [1, 1, 1, 1, 0]
    return {
        seed: [run("DS", [0, 0, a, a]), run("LD", [0, 0, a + m, a + m])]
        for seed, (a, m) in enumerate(zip(ds, more))
    }


def test_differences_are_paired_by_seed():
    """Accuracy: .1 .1 .1 .1 0: mean .08, deviation sqrt(.002), t(4) = 2.776."""
    rows = effect.effect_rows(five_seeds(), [70]).set_index("measure")
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


def test_a_target_never_reached_counts_as_one_round_after_the_last():
    """70 %: DS never, never, 3, 3, 3; LD never, 3, 3, 3, 3."""
    rows = effect.effect_rows(five_seeds(), [70]).set_index("measure")
    row = rows.loc["rounds to 70 %"]
    assert row["mean"] == pytest.approx(-2 / 5)
    # Under the first seed neither arrives: their difference is not known to be 0.
    assert row["verdict"] == "undecided" and math.isnan(row["interval"])
    accuracy = effect.effect_rows(five_seeds(), []).iloc[0]
    assert accuracy["verdict"] == "more"


def test_under_five_seeds_nothing_is_claimed(tmp_path):
    few = dict(list(five_seeds().items())[:4])
    text = effect.write(few, [70], str(tmp_path))
    assert "Under 5 seeds nothing is claimed" in text
    rows = pd.read_csv(tmp_path / "effect.csv")
    assert set(rows["verdict"]) == {"undecided"} and rows["interval"].isna().all()
    assert "| LD | +0.1000 |" in (tmp_path / "effect.md").read_text()


def test_seeds_must_have_the_same_runs():
    runs = five_seeds()
    runs[3] = runs[3][:1]
    with pytest.raises(ValueError, match="seed 3 has the runs DS; each seed needs"):
        effect.effect_rows(runs, [70])
