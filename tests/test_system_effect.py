"""Systems against their baseline under several seeds, on numbers worked by hand."""

import dataclasses
import math

import pandas as pd
import pytest

from tff_pmc.experiments import systems
from tff_pmc.experiments.config import ConfigError
from tff_pmc.reports import read, system_effect


def run(system, accuracy, share=0.0):
    """What the page reads of a run."""
    settings = {"system": system, "mislabeled_fraction": share, "model": "cnn"}
    settings.update(client_optimizer="adam", learning_rate=0.001, local_epochs=5)
    settings.update(batch_size=100, rounds=len(accuracy), batch_seed=0)
    settings["experiment"] = "adafed_3"
    info = {"settings": settings, "data": {"name": "m", "clients": 8, "options": {}}}
    rounds = pd.DataFrame({"round": range(1, len(accuracy) + 1), "accuracy": accuracy})
    label = f"{system}, {share:.0%} mislabeled" if share else system
    return read.Run(label, info, rounds, rounds, None, None)


def five_seeds():
    """Over six rounds, AdaFed is .1 ahead in the first, under the last seed .2.

    With all labels wrong both are alike in the mean, and FedAvg is somewhere else.
    """
    found = {}
    for seed, lead in enumerate([0.1, 0.1, 0.1, 0.1, 0.2]):
        base = 0.1 * seed
        found[seed] = [
            run("FedAvg", [base, *[0.6] * 4, 0.9], 0.5),
            run("AdaFed", [base + lead, *[0.6] * 4, 0.9], 0.5),
            run("FedAvg", [0.3] * 6, 1.0),
            run("AdaFed", [0.3 + (-1) ** seed * 0.01 * (seed < 4)] * 6, 1.0),
        ]
    return found


def test_every_system_is_held_against_the_baseline_on_its_data():
    rows = system_effect.rows(five_seeds(), systems.BASELINES)
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


def test_as_many_clients_are_held_against_each_other():
    def dual(system, clients, accuracy):
        found = run(system, [accuracy] * 2)
        found.info["settings"]["num_clients"] = clients
        return dataclasses.replace(found, label=f"{system}, {clients} clients")

    accuracy = {"Median": (0.5, 0.8), "Weighted mean": (0.4, 0.6)}
    by_seed = {
        seed: [
            dual(system, clients, accuracy[system][clients - 3])
            for clients in (3, 4)
            for system in accuracy
        ]
        for seed in (0, 1)
    }
    rows = system_effect.rows(by_seed, systems.BASELINES)
    # Two rounds are no early part of themselves.
    assert set(rows["measure"]) == {"all rounds", "best round", "last round"}
    last = rows[rows["measure"] == "last round"].set_index("system")
    assert dict(last["baseline"]) == {
        "Median, 3 clients": "Weighted mean, 3 clients",
        "Median, 4 clients": "Weighted mean, 4 clients",
    }
    assert last["mean"].tolist() == pytest.approx([0.1, 0.2])


def test_the_page_and_the_figures(tmp_path):
    page = system_effect.write(five_seeds(), systems.BASELINES, str(tmp_path))
    assert (tmp_path / "effect.md").read_text() == page
    assert "| AdaFed, 50% mislabeled | +0.0240 ± 0.0111 | 0.0447 |" in page
    assert "| FedAvg, 50% mislabeled | 0.5200 | 0.5833 | 0.9000 | 0.9000 |" in page
    assert "2 of 8 comparisons lie outside their interval" in page
    assert {"figure_50.png", "figure_100.png", "effect.csv"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_runs_that_cannot_be_paired_are_refused():
    other = five_seeds()
    other[3] = other[3][:2]
    with pytest.raises(ValueError, match="seed 3 has other systems"):
        system_effect.rows(other, systems.BASELINES)
    alone = {seed: runs[1:] for seed, runs in five_seeds().items()}
    with pytest.raises(ValueError, match="AdaFed, 50% mislabeled: there is no run of"):
        system_effect.rows(alone, systems.BASELINES)


def test_a_baseline_has_to_run_too():
    from tff_pmc.experiments import named

    def check(*names):
        rows = systems.rows_of("dual_criterion", names)
        systems.check_baselines([named.settings("dual_criterion", r) for r in rows])

    check("median", "weighted_mean")
    with pytest.raises(ConfigError, match="name weighted_mean in --systems"):
        check("median")
    with pytest.raises(ConfigError, match="nothing but the baseline"):
        check("weighted_mean")
