"""Systems against their baseline under several seeds, on numbers worked by hand."""

import pytest

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


def test_runs_that_cannot_be_paired_are_refused(five_seeds):
    other = {**five_seeds, 3: five_seeds[3][:2]}
    with pytest.raises(RecordError, match="seed 3 has the runs FedAvg, 50% misl.*need"):
        effect.system_rows(other, "FedAvg")
    alone = {seed: runs[1:] for seed, runs in five_seeds.items()}
    expected = "AdaFed, 50% mislabeled: there is no run of FedAvg on its data"
    with pytest.raises(RecordError, match=expected):
        effect.system_rows(alone, "FedAvg")
