"""Systems against their baseline under several seeds, on numbers worked by hand."""

import math

import pytest
from reported import write

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import effect


@pytest.fixture
def five_seeds(system_run):
    """Over six rounds, AdaFed is .1 ahead in the first, under the last seed .2.

    With all labels wrong both are alike in the mean, and FedAvg is somewhere else.
    """
    found = {}
    for seed, lead in enumerate([0.1, 0.1, 0.1, 0.1, 0.2]):
        base = 0.1 * seed
        found[seed] = [
            system_run("FedAvg", [base, *[0.6] * 4, 0.9], 0.5),
            system_run("AdaFed", [base + lead, *[0.6] * 4, 0.9], 0.5),
            system_run("FedAvg", [0.3] * 6, 1.0),
            system_run("AdaFed", [0.3 + (-1) ** seed * 0.01 * (seed < 4)] * 6, 1.0),
        ]
    return found


def test_every_system_is_held_against_the_baseline_on_its_data(five_seeds):
    rows = effect.system_rows(five_seeds, "FedAvg")
    rows = rows.set_index(["system", "measure"])
    half, whole = "AdaFed, 50% mislabeled", "AdaFed, 100% mislabeled"
    assert set(rows.index.get_level_values("system")) == {half, whole}
    row = rows.loc[half, "rounds 1 to 5"]
    # Leads of .02 four times and of .04: mean .024, deviation sqrt(.00032 / 4).
    assert row["baseline"] == "FedAvg, 50% mislabeled"
    assert row["mean"] == pytest.approx(0.024)
    interval = 2.776 * math.sqrt(0.00008 / 5)
    assert row["interval"] == pytest.approx(interval, rel=1e-3)
    assert (row["verdict"], row["more_in"]) == ("more", 5)
    # FedAvg's own means are .48, .50, .52, .54, .56.
    squares = 4 * 0.02**2 + 3 * 0.04**2 + 2 * 0.06**2 + 0.08**2
    assert row["noise_floor"] == pytest.approx(math.sqrt(squares / 10))
    assert rows.loc[half, "all rounds"]["mean"] == pytest.approx(0.02)
    assert rows.loc[half, "last round"]["mean"] == 0
    assert rows.loc[half, "best round"]["verdict"] == "not shown"
    assert rows.loc[whole, "all rounds"]["verdict"] == "not shown"


def test_as_many_clients_are_held_against_each_other(system_run):
    accuracy = {"Median": (0.5, 0.8), "Weighted mean": (0.4, 0.6)}
    by_seed = {
        seed: [
            system_run(
                system, [accuracy[system][clients - 3]] * 2, note=f"{clients} clients"
            )
            for clients in (3, 4)
            for system in accuracy
        ]
        for seed in (0, 1)
    }
    rows = effect.system_rows(by_seed, "Weighted mean")
    # Two rounds are no early part of themselves.
    assert set(rows["measure"]) == {"all rounds", "best round", "last round"}
    last = rows[rows["measure"] == "last round"].set_index("system")
    assert dict(last["baseline"]) == {
        "Median, 3 clients": "Weighted mean, 3 clients",
        "Median, 4 clients": "Weighted mean, 4 clients",
    }
    assert last["mean"].tolist() == pytest.approx([0.1, 0.2])


def test_the_page_and_the_figures(five_seeds, tmp_path):
    drawn, page = (
        write(name, five_seeds, tmp_path, baseline="FedAvg")
        for name in ("adafed_figures", "system_effect")
    )
    assert "Figure 6 is not drawn" in drawn  # These runs have no F1.
    assert (tmp_path / "effect.md").read_text() == page
    assert "| AdaFed, 50% mislabeled | +0.0240 ± 0.0111 | 0.0447 |" in page
    assert "| FedAvg, 50% mislabeled | 0.5200 | 0.5833 | 0.9000 | 0.9000 |" in page
    assert "2 of 8 comparisons lie outside their interval" in page
    assert {"figure5.png", "effect.csv"} <= {path.name for path in tmp_path.iterdir()}


def test_runs_that_cannot_be_paired_are_refused(five_seeds):
    other = {**five_seeds, 3: five_seeds[3][:2]}
    with pytest.raises(RecordError, match="seed 3 has the runs FedAvg, 50% misl.*need"):
        effect.system_rows(other, "FedAvg")
    alone = {seed: runs[1:] for seed, runs in five_seeds.items()}
    expected = "AdaFed, 50% mislabeled: there is no run of FedAvg on its data"
    with pytest.raises(RecordError, match=expected):
        effect.system_rows(alone, "FedAvg")
