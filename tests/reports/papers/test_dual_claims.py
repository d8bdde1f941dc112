"""Dual's claims, judged on made-up runs."""

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import paired
from tff_pmc.reports.papers import dual_differences, published
from tff_pmc.reports.papers.dual_cells import ALGORITHMS
from tff_pmc.reports.papers.dual_claims import CLAIMS
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import RecordError

EXAMPLES = 10_000


def make_run(system, accuracy, *, clients=3, seed=0, fraction=1.0, **settings):
    """A run of 20 epochs whose best is the third, of that accuracy."""
    correct = np.full(20, round(accuracy * EXAMPLES) - 5)
    correct[2] += 5
    flat = {"system": system, "batch_seed": seed, "judge_on": "test", **settings}
    return Run(
        label=system,
        info={
            "settings": {"training": flat},
            "data": {
                "name": "cifar10",
                "clients": clients,
                "options": {"image_fraction": fraction},
            },
        },
        rounds=pd.DataFrame({"round": range(1, 21), "correct": correct}),
        weights=pd.DataFrame(),
        correct=correct[:, np.newaxis],
        examples=np.array([EXAMPLES]),
    )


@pytest.fixture(autouse=True)
def one_seed_is_enough(monkeypatch):
    """The rules of single claims are tested with a seed or two."""
    monkeypatch.setattr(paired, "MIN_SEEDS", 1)


def table(clients, seed=0, fraction=1.0, **accuracies):
    """The runs of the eight algorithms: .8 but where it is said otherwise."""
    levels = {**dict.fromkeys(ALGORITHMS, 0.8), "laplace": 0.1, **accuracies}
    return [
        make_run(system, level, clients=clients, seed=seed, fraction=fraction)
        for system, level in levels.items()
    ]


def judged(runs, experiment="dual_criterion"):
    """Claims by their words -> (number, verdict, why), where the runs suffice."""
    found = {}
    for claim in CLAIMS:
        if experiment in claim.experiments:
            try:
                found[claim.says] = claim.judge({experiment: runs})
            except RecordError:
                found[claim.says] = ("", "no runs", "")
    return found


def verdict(found, words):
    (one,) = [value[1] for says, value in found.items() if words in says]
    return one


def test_a_table_as_claimed_is_reproduced():
    """Noise: 2 sqrt(2 .8 .2 / 10000) = .0113."""
    runs = [
        run for n in (3, 4) for run in table(n, dual=0.83, momentum=0.7, median=0.801)
    ]
    found = judged(runs)
    words = "the highest accuracy of the eight"
    (number,) = [value[0] for says, value in found.items() if words in says]
    assert number == "+2.90 points (1 seed, noise 1.13)"
    for words in (
        *("highest accuracy of the eight", "With four clients it has the highest"),
        *("clearly better than the simple", "clearly better than the weighted"),
        *("three clients momentum", "four clients momentum", "no better than chance"),
        *("With four clients, too, it is better than the simple", "Quantization keeps"),
        "With four clients, too, it is better than the weighted",
        "better than Personalized or comparable",
    ):
        assert verdict(found, words) == "reproduced", words


def test_differences_within_the_noise_decide_nothing_but_comparable():
    found = judged(table(3, dual=0.81, personalized=0.802, momentum=0.795))
    assert verdict(found, "highest accuracy of the eight") == "undecidable"
    assert verdict(found, "three clients momentum") == "undecidable"
    assert verdict(found, "better than Personalized or comparable") == "reproduced"
    assert verdict(found, "With four clients it has the highest") == "no runs"


def test_the_opposite_is_not_reproduced():
    found = judged(table(3, dual=0.77, laplace=0.4, momentum=0.83, quantized=0.7))
    for words in (
        *("highest accuracy of the eight", "clearly better than the weighted"),
        *("three clients momentum", "no better than chance", "Quantization keeps"),
        "better than Personalized or comparable",
    ):
        assert verdict(found, words) == "not reproduced", words


def test_the_two_rows_of_one_algorithm_say_what_is_noise():
    """Simple average and weighted mean .03 apart: a lead of .02 over both is none."""
    found = judged(table(3, dual=0.82, simple_average=0.77, median=0.7))
    assert verdict(found, "clearly better than the weighted") == "undecidable"
    assert verdict(found, "clearly better than the simple") == "reproduced"


def test_five_seeds_have_a_noise_of_their_own():
    """Leads .004 to .006 are within one run's noise, and beyond that of five."""
    leads = (0.004, 0.005, 0.006, 0.005, 0.005)
    runs = [
        run
        for seed, lead in enumerate(leads)
        for run in table(3, seed, dual=0.8 + lead)
    ]
    found = dual_differences.difference(runs, 3, lambda b: b["dual"] - b["median"])
    assert found.mean == pytest.approx(0.005)
    assert found.floor == pytest.approx(2 * np.std(leads, ddof=1) / np.sqrt(5))
    assert (found.seeds, found.sign) == (5, 1)
    few = runs[: 4 * len(ALGORITHMS)]
    found = dual_differences.difference(few, 3, lambda b: b["dual"] - b["median"])
    assert (found.seeds, found.sign) == (4, 0)


def test_a_small_run_only_points_to_a_verdict():
    found = judged(table(3, fraction=0.05, dual=0.9))
    (row,) = [v for says, v in found.items() if "highest accuracy of the eight" in says]
    assert row[1] == "undecidable"
    assert row[2].startswith("on 0.05 of the images, 20 epochs, which points to: repro")
    for _, given, why in judged(table(3, fraction=0.05)).values():
        assert given in ("undecidable", "no runs")
        assert given == "no runs" or "0.05 of" in why or "no run with" in why


def test_other_readings_are_passed_over():
    """A search on the evaluation set, tuned models, quantization of before."""
    runs = [
        make_run("dual", 0.99, judge_on="server"),
        make_run("personalized", 0.99, personalized_form="text"),
        make_run("quantized", 0.99, quantized_levels=256),
        make_run("trimmed", 0.99),
        *table(3, dual=0.85),
    ]
    found = dual_differences.best_epochs(runs, 3)
    assert set(found) == {0} and max(found[0].values()) == 0.85
    says = "train once more after the"
    assert verdict(judged(runs), says) == "reproduced"  # .99 against .80.
    assert verdict(judged(runs[3:]), says) == "undecidable"
    with pytest.raises(RecordError, match="simple average beside"):
        judge = [claim for claim in CLAIMS if says in claim.says][0].judge
        judge({"dual_criterion": runs[:2]})


def test_drawn_pictures_decide_nothing():
    runs = table(3, dual=0.9)
    for run in runs:
        run.info["data"].update(name="drawn_obstacles", origin={"source": "drawn"})
    found = judged(runs, "dual_criterion_obstacles")
    assert {value[1] for value in found.values()} == {"undecidable"}
    assert all("drawn pictures" in value[2] for value in found.values())


def test_the_printed_numbers_that_claims_quote_are_those_of_the_tables():
    """The paper's own tables as runs: its accuracies give the differences quoted."""
    quoted = {}
    for number, experiment in ((4, "dual_criterion"), (5, "dual_criterion_obstacles")):
        cells = published.table(f"dualcriterion_table{number}")
        cells = cells[cells["metric"] == "Accuracy"]
        systems = {name: system for system, name in ALGORITHMS.items()}
        runs = []
        for _, cell in cells.iterrows():
            clients = cell["clients"].count("C")
            runs.append(
                make_run(systems[cell["algorithm"]], cell["value"], clients=clients)
            )
        for claim in CLAIMS:
            if experiment in claim.experiments and "printed" in claim.says:
                text, *_ = claim.judge({experiment: runs})
                quoted[claim.says] = abs(float(text.split()[0])) / 100
    assert len(quoted) == len(CLAIMS) - 1
    for says, gap in quoted.items():
        if "chance" in says:
            gap += 0.1
        assert f"{gap:.4f}"[1:] in says, (says, gap)


def test_below_five_seeds_nothing_is_decided(monkeypatch):
    monkeypatch.undo()
    runs = [run for seed in range(5) for run in table(3, seed, laplace=0.4)]

    def of(runs):
        return [v for says, v in judged(runs).items() if v[1] == "reproduced"]

    assert of(runs)
    four = [run for run in runs if run.settings["batch_seed"] < 4]
    assert not of(four)
    assert any("below 5 seeds" in why for _, _, why in judged(four).values())


def test_the_claims_are_in_the_papers_order():
    """By section; what Table IV shows without words is before section V's text."""
    order = ["II-B", "Table IV", "V", "VI"]
    places = [order.index(claim.place.split(";")[0]) for claim in CLAIMS]
    assert places == sorted(places)
