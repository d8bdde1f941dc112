"""The claims of the papers: their order, and what only made-up runs can show of them.

What the kept runs say of each claim is recomputed in `test_recomputed_claims.py`.
"""

import itertools
import math

import numpy as np
import pytest
from claim_runs import answer, given_arrivals, kept, run
from recomputing import printed_rounds

from tff_pmc.experiments.experiment import EXPERIMENTS, values_of
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.paper import PAPERS
from tff_pmc.reports.papers.claim_measures import rounds_saved
from tff_pmc.reports.papers.claim_registry import claims, headlines
from tff_pmc.reports.papers.claims.da_claims import soonest_epochs
from tff_pmc.reports.papers.claims.pmc_claims import AT_70, EIGHT
from tff_pmc.reports.papers.judging import judged
from tff_pmc.reports.papers.paper_experiments import declared
from tff_pmc.reports.papers.paper_runs import Runs
from tff_pmc.reports.statistics import published
from tff_pmc.settings import RunSettings


def test_the_claims_of_all_papers_are_in_their_order_and_of_experiments():
    found = claims()
    assert list(dict.fromkeys(one.paper for one in found)) == list(PAPERS)
    assert [len(claims(paper)) for paper in PAPERS] == [17, 43, 17, 16]
    for one in found:
        assert one.place and one.says.endswith((".", ".)"))
        assert {*one.experiments} <= {*EXPERIMENTS}
        for name in one.experiments:  # What makes a run the paper's is its experiment.
            for changes in [row.values for row in EXPERIMENTS[name].rows] or [{}]:
                own = {**values_of(name), **changes}
                own = RunSettings.of({}, inherited=own).by_flag()
                assert declared(name).settings.items() <= own.items(), name
    figures = {word for one in claims("AdaFed") for word in one.place.split()}
    assert {word for word in figures if word.isdigit()} == set("123456")
    with pytest.raises(RecordError, match="no experiment 'mnist': there are adafed"):
        Runs.of("mnist", kept())


def test_the_headline_numbers_are_as_printed():
    halves = [("femnist", "DS", 75), ("femnist", "MD,DS,LD (backtracking)", 75)]
    halves += [("mnist_iid", x, 90) for x in ("DS", "LD,DS,MD")]
    halves += [("mnist_iid", x, 95) for x in ("DS", "LD,MD,DS")]
    halves += [("mnist_noniid", x, 90) for x in ("DS", "LD,DS,MD")]
    halves += [("mnist_noniid", x, 95) for x in ("DS", "LD", "MD")]
    halves.append(("celeba", "DS", 85))
    found = [one for one in headlines() if "half of the devices" in one.says]
    for one, (experiment, label, target) in zip(found, halves):
        assert f"{target} %" in one.says
        half = published.rounds_of_half(experiment, label)[target]
        assert one.printed == f"{half:.0f}"
    assert len(found) == len(halves) and len(headlines()) == 21


TABLES = {"mnist_iid": "pmc_table2", "mnist_noniid": "pmc_table4"}
TABLES.update(celeba="pmc_table6", femnist="da_table1")
NOT_OF_ROUNDS = (
    "DA-1 DA-2 DA-4 PMC-1 PMC-2 PMC-3 PMC-4 PMC-18 PMC-19 PMC-22 PMC-36 PMC-37 PMC-39"
)


def test_the_papers_tables_show_what_the_text_says_but_where_it_is_noted(monkeypatch):
    """A sign or a set of columns that is turned in a claim shows here.

    The runs arrive when the papers' tables say so, under all seeds.
    """
    given_arrivals(monkeypatch)
    folders = []
    for experiment, table in TABLES.items():
        criteria = ["DS", "IS", "CB"] if experiment == "celeba" else ["DS", "LD", "MD"]
        labels = criteria + [
            ",".join(order) for order in itertools.permutations(criteria)
        ]
        if experiment == "femnist":
            labels += [f"{label} (backtracking)" for label in labels[3:]]
        folders.append(
            [
                run(label, seed, experiment=experiment, reached=arrivals)
                for label in labels
                for arrivals in [printed_rounds(table, label)]
                for seed in range(5)
            ]
        )
    published_runs = kept(*folders)
    verdicts = {
        claim.id: answer(claim.id, published_runs).verdict
        for claim in [*claims("DA"), *claims("PMC")]
        if claim.id not in NOT_OF_ROUNDS.split()
    }
    assert len(verdicts) == 47
    assert {id: word for id, word in verdicts.items() if word != "reproduced"} == {
        "DA-3": "not run far enough",  # No column of 85 %: it was not reached.
        "DA-11": "not run far enough",  # Only one adjusted run is printed.
        "DA-12": "not run far enough",
        "PMC-20": "not reproduced",  # An ordering gains 1.2 rounds on IID data.
        "PMC-34": "not reproduced",  # CB≻DS≻IS is later than CB.
        "PMC-43": "not reproduced",  # Non-IID data gain no more than IID.
    }


@pytest.mark.parametrize(
    ("lead", "same", "algorithm", "words"),
    [
        (0, True, "prioritized", ["not reproduced", "reproduced"]),
        (4, True, "prioritized", ["not reproduced", "reproduced"]),
        (4, False, "prioritized", ["reproduced", "not reproduced"]),
        (4, True, "momentum", ["reproduced", "not reproduced"]),
    ],
)
def test_runs_of_equal_weights_in_every_round_are_one_algorithm(
    lead, same, algorithm, words, monkeypatch
):
    """Slower by `lead`, LD has the weights of DS but in one round of a seed."""
    given_arrivals(monkeypatch)
    every = [*itertools.product((70, 80, 90, 95), range(10, 100, 10))]
    runs = []
    for seed in range(5):
        lasts = {"DS": 0.5, "LD": 0.5 if same or seed else 0.4, "MD": 0.3}
        for label, last in lasts.items():
            weights = [0.5, 0.5, 1 - last, last]
            cohort = {"round": [1, 1, 2, 2], "client": [3, 4] * 2, "weight": weights}
            later = 9 + (label != "DS") * lead
            own = {"experiment": "mnist_iid", "tables": {"cohort": cohort}}
            own["algorithm"] = algorithm if label == "LD" else "prioritized"
            runs.append(run(label, seed, reached=dict.fromkeys(every, later), **own))
    found = rounds_saved(Runs.of("mnist_iid", kept(runs)), "LD", AT_70)
    assert [judged(of).verdict for of in (found.is_less(), found.is_none(1))] == words


@pytest.mark.parametrize(("late", "seeds"), [(90, 5), (9, 8)])
def test_seeds_of_shorter_runs_count_where_all_columns_are_reached(
    late, seeds, monkeypatch
):
    """Runs of five seeds have 90 rounds, and those of three others 30."""
    given_arrivals(monkeypatch)

    def runs(seeds, length):
        for seed, label in itertools.product(seeds, ("DS", "LD")):
            reached = {(70, k): 5 if label == "DS" else 4 for k in range(10, 90, 10)}
            if late <= length:
                reached[70, 90] = late
            own = {"length": length, "experiment": "mnist_noniid"}
            yield run(label, seed, reached=reached, **own)

    of = Runs.of("mnist_noniid", kept([*runs(range(5), 90)], [*runs((5, 6, 7), 30)]))
    (found,) = rounds_saved(of, "LD", AT_70)
    assert len(found.own) == seeds and not found.part


def test_other_epochs_are_compared_with_the_longest_run_of_a_seed(monkeypatch):
    """E = 1 arrives two rounds later; the other reading is not its pair."""
    given_arrivals(monkeypatch)

    def ds(epochs, arrives, length, seed, relu=False):
        reached = {(75, 20): arrives, (75, 30): arrives and arrives + 1}
        own = {"local_epochs": epochs, "batch_size": 10, "model": "mnist_cnn"}
        own["conv_activation"] = "relu" if relu else "none"
        own["experiment"] = "femnist"
        return run("DS", seed, length=length, reached=reached, **own)

    def pairs(seeds, length, relu=False):
        both = ((5, 2), (1, 4))
        return [ds(*own, length, seed, relu) for seed in seeds for own in both]

    def judge(runs):
        made = Runs.of("femnist", kept(*([one] for one in runs)), {})
        return judged(soonest_epochs(made, 5, 10).is_more())

    low = "Low at 75 %, over E = 1, B = 10"
    longer = [ds(5, 3, 30, seed) for seed in range(5)]
    sooner = [ds(20, 1, 14, seed) for seed in range(5)]
    relu = [ds(e, 7, 40, k, True) for k in range(5) for e in (5, 1)]
    for runs, ours, verdict in (
        ([*longer, *pairs(range(5), 20)], f"{low} +1.0 ± 0.0", "reproduced"),
        # One part in the paper's reading refutes, and the others need not be in it.
        (
            [*longer, *sooner, ds(1, 7, 40, 0, True), ds(5, 6, 40, 0, True)],
            f"{low} +1.0; Low at 75 %, over E = 20, B = 10 -2.0 ± 0.0",
            "not reproduced",
        ),
        ([*pairs(range(5), 20), *relu], f"{low} +2.0 ± 0.0", "reproduced"),
        # Two lengths under three seeds are three seeds.
        (
            [*pairs(range(3), 20), *pairs(range(3), 25)],
            f"{low} +2.0",
            "not run far enough",
        ),
    ):
        assert judge(runs)[:2] == (ours, verdict)
    for runs, message in (
        (longer, "^only E = 5 and B = 10 is kept"),
        ([*longer, ds(1, 3, 20, 7)], "has the seed of the one with E = 1"),
        ([*longer, ds(1, None, 20, 0)], "E = 1 and B = 10 ends in round 20, before"),
        ([ds(5, None, 20, 0), ds(1, 3, 20, 0)], "E = 5 and B = 10 ends in round 20"),
    ):
        with pytest.raises(RecordError, match=message):
            judge(runs)


FEDAVG, ADAFED, ONLY = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = f"{ONLY}, times samples"


@pytest.mark.parametrize(
    ("claim", "runs", "message"),
    [
        ("AdaFed-5", [(FEDAVG, 2), (ONLY, 2)], f"^not run: {ADAFED}$"),
        ("AdaFed-7", [(x, 2) for x in (FEDAVG, ONLY, ADAFED)],
         "^the run of AdaFed has not recorded what is compared$"),
        ("AdaFed-8", [(x, 2) for x in (FEDAVG, ONLY, ADAFED)],
         "^a run has no F1 of its classes on record$"),
        ("AdaFed-3", [(TIMES, 1)],
         f"^the run of {TIMES} has not recorded what is compared$"),
        ("AdaFed-14", [(FEDAVG, 2, 0), (FEDAVG, 3, 1)],
         "^the runs of adafed_2 and adafed_3 have no seed in common$"),
    ],
)  # fmt: skip
def test_what_a_record_lacks_is_reported(claim, runs, message):
    folders = {}
    for label, number, *seed in runs:
        own = run(label, *seed, length=20, experiment=f"adafed_{number}")
        folders.setdefault(number, []).append(own)
    with pytest.raises(RecordError, match=message):
        answer(claim, kept(*folders.values()))


@pytest.mark.parametrize(
    ("reached", "rounds", "number", "verdict"),
    [
        (12, 20, "less than twelve +0.00", "reproduced"),
        (11, 20, "less than twelve +1.00", "not reproduced"),
        (30, 20, "less than twelve -9.00", "reproduced"),
        (3, 3, "less than twelve +9.00", "not reproduced"),
        (30, 3, "", "not run far enough"),
    ],
)
def test_the_second_round_and_the_twelfth(reached, rounds, number, verdict):
    runs = []
    for seed in range(5):
        line = [*[0.5] * (reached - 1), *[0.8] * rounds][:rounds]
        runs.append(run(FEDAVG, seed, line, experiment="adafed_1"))
        runs.append(run(TIMES, seed, [0.7, 0.8, 0.9], experiment="adafed_1"))
    found = answer("AdaFed-4", kept(runs))
    assert number in found.ours and found.verdict == verdict


def test_a_rank_correlation_is_of_the_first_criterion():
    """LD varies most between the clients, and MD least; an adjusted run is left out."""
    cohort = {"DS": [1.0, 2.0], "LD": [1.0, 9.0], "MD": [3.0, 3.0], "round": [1, 1]}
    cohort.update(excluded=[0, 0], client=[3, 4], weight=[0.5, 0.5])
    clients = {"round": [1], "client": [3], "correct": [1], "examples": [2]}
    best = {"DS": 0.6, "LD": 0.9, "MD": 0.5, "LD,DS,MD": 0.8, "LD (x)": 1.0}
    runs = [
        run(
            label,
            0,
            [0.1, top, 0.2],
            experiment="mnist_iid",
            criteria=("DS", "LD", "MD"),
            columns={"correct": [1, 10 * top, 2], "examples": [10] * 3},
            tables={"cohort": cohort, "clients": clients},
        )
        for label, top in best.items()
    ]
    found = answer("PMC-1", kept(runs))
    ranks = np.corrcoef([2, 3.5, 1, 3.5], [2, 4, 1, 3])[0, 1]
    assert found.ours == f"rank correlation with the best accuracy {ranks:+.2f}"
    assert found.why.startswith("the kept runs have 3 rounds, and the claim takes 100")


ABOVE, BELOW = (0, math.inf), (-math.inf, 0)
OBSTACLES = "dual_criterion_obstacles"
# Claims on points that no kept runs decide: the experiment, the runs, what they are
# compared with, and the least and the most.
POINTS = {
    "DA-1": ("femnist", ["MD,DS,LD"], ["weighted_average", "owa", "choquet"], ABOVE),
    "PMC-18": ("celeba", ["CB"], ["DS"], BELOW),
    "PMC-19": ("celeba", ["IS"], ["DS"], (-0.5, 0.5)),
    "PMC-22": ("mnist_iid", EIGHT, ["DS"], (-0.5, 0.5)),
    "PMC-36": ("celeba", ["DS,CB,IS"], ["DS"], ABOVE),
    "PMC-37": ("celeba", ["DS,CB,IS"], ["CB"], ABOVE),
    "Dual-12": (OBSTACLES, ["dual"], ["personalized"], (-1, math.inf)),
    "Dual-13": (OBSTACLES, ["dual"], ["simple_average"], ABOVE),
    "Dual-14": (OBSTACLES, ["dual"], ["weighted_mean"], ABOVE),
}


@pytest.mark.parametrize("claim", POINTS)
def test_points_are_reproduced_within_their_limits_alone(claim):
    """All runs of a side have one accuracy, in all rounds and under all seeds."""
    experiment, labels, bases, (low, high) = POINTS[claim]
    leads = {low - 0.1: False, low + 0.1: True, high - 0.1: True, high + 0.1: False}
    settings = {"experiment": experiment, "judge_on": "test", "data_clients": 3}
    for lead, holds in leads.items():
        if math.isfinite(lead):
            accuracies = dict.fromkeys(labels, 0.5 + lead / 100)
            accuracies.update(dict.fromkeys(bases, 0.5))
            runs = [
                run(label, seed, [accuracy] * 100, algorithm=label, **settings)
                for seed in range(5)
                for label, accuracy in accuracies.items()
            ]
            verdict = answer(claim, kept(runs)).verdict
            assert verdict == ("reproduced" if holds else "not reproduced"), lead
