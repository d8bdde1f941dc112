"""The claims of AdaFed's section 4 on its results, in its order.

What its figures show beyond these sentences are curves without numbers. "About" a
number is from its half to its double. "At the end" is the mean of the last five of the
twenty rounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.papers.claim_measures import (
    Labels,
    compare,
    in_points,
    same_seed_values,
)
from tff_pmc.reports.papers.claim_registry import claim, headline
from tff_pmc.reports.papers.judging import Differences
from tff_pmc.reports.papers.paper_experiments import declare_experiment
from tff_pmc.reports.papers.paper_runs import Runs
from tff_pmc.reports.statistics import measures

for _number, _hours in ((1, 50), (2, 0), (3, 0)):
    # The hours are for both algorithms, five seeds and twenty rounds.
    declare_experiment(
        f"adafed_{_number}",
        {
            "dataset": "mnist_adafed",
            "simulation": str(_number),
            "model": "keras_mnist_cnn",
            "local_epochs": 5,
            "batch_size": 100,
        },
        hours=_hours,
    )

FEDAVG, ADAFED, ONLY = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES_SAMPLES = f"{ONLY}, times samples"
END = 16, 20
EARLY = 2, 10
EVERY = 1, 20
F1 = "macro_f1"
FEW = 0, 1, 2


def lead(
    runs: Runs | Sequence[Runs],
    labels: Labels,
    rounds: tuple[int, int],
    base: str | None = FEDAVG,
    column: str = "accuracy",
    name: str = "{run} minus {base}, points",
) -> Differences:
    """Claims a lead in a column over a baseline: mean over rounds, in points."""
    mean = in_points(measures.mean_of_rounds, *rounds, column)
    options: dict[str, Any] = {"name": name, "digits": 2, "rounds": rounds[1]}
    return compare(runs, labels, mean, base, **options).is_more()


@claim("AdaFed-1", "4.0.1, Figure 1", "adafed_1")
def ahead_in_the_first_round(runs: Runs) -> Differences:
    """AdaFed is ahead of FedAvg in the very first round."""
    return lead(runs, TIMES_SAMPLES, (1, 1), name="points in round 1")


@claim("AdaFed-2", "4.0.1, Figure 1", "adafed_1")
def converges_faster(runs: Runs) -> Differences:
    """AdaFed converges faster, by its weights. (Here: its mean lead in rounds 2 to
    10.)"""
    return lead(runs, TIMES_SAMPLES, EARLY)


@claim("AdaFed-3", "4.0.1", "adafed_1")
def sixth_client_is_ahead(runs: Runs) -> Differences:
    """The sixth client, who has all digits, is more accurate than the others from the
    start and weighs far more. (Here: in round 1, than the highest of the others.)"""

    def over_the_others(column: str, name: str) -> Differences:
        def measure(results: Results) -> pd.Series[float]:
            first = results.cohort[results.cohort["round"] == 1]
            clients = first.pivot(index=RUN_KEY, columns="client", values=column)
            others = clients.drop(columns="client_6")
            return clients["client_6"] - others.max(axis=1)

        return compare(runs, TIMES_SAMPLES, measure, 0, name=name, digits=3).is_more()

    return over_the_others("ACC", "accuracy") + over_the_others("weight", "weight")


def round_of_the_second(results: Results) -> pd.Series[float]:
    """Measures the round that first has the accuracy of AdaFed's second round."""
    second = measures.mean_of_rounds(results, 2, 2)
    return measures.round_of(results, same_seed_values(second, TIMES_SAMPLES))


@claim("AdaFed-4", "4.0.1, Figure 1", "adafed_1")
def second_round_is_the_twelfth(runs: Runs) -> Differences:
    """AdaFed has in its second round the accuracy that FedAvg reaches only after
    twelve. (Here: by how many rounds fewer than twelve, with 5,500 images a client; the
    text allows 5,500 a class, too.)"""

    def sooner(results: Results) -> pd.Series[float]:
        # NaN for a run of fewer than twelve rounds that does not reach the accuracy.
        later = results.length[results.length >= 12] + 1
        return -round_of_the_second(results).fillna(later)

    options: dict[str, Any] = {"needs": [TIMES_SAMPLES], "rounds": 2, "digits": 2}
    name = "rounds that FedAvg needs less than twelve"
    less = compare(runs, FEDAVG, sooner, -12, name=name, **options)
    return less.is_at_most(0)


headline(
    paper="AdaFed",
    place="Figure 1",
    says="round in which FedAvg has the accuracy of AdaFed's second",
    printed="12",
    experiment="adafed_1",
    own=FEDAVG,
    measure=lambda results: round_of_the_second(results).fillna(math.inf),
    needs=[TIMES_SAMPLES],
    rounds=2,
)


@claim("AdaFed-5", "4.0.2, Figure 2", "adafed_2")
def about_three_points_ahead(runs: Runs) -> Differences:
    """Both AdaFeds are about 3 % of accuracy above FedAvg. (Here: at the end.)"""
    leads = lead(runs, [ONLY, ADAFED], END, name="{run}, points")
    return leads.is_between(1.5, 6)


@claim("AdaFed-6", "4.0.2, Figure 2", "adafed_2")
def its_loss_converges_faster(runs: Runs) -> Differences:
    """AdaFed with the adaptive loss converges faster than the weights alone. (Here: its
    mean lead in rounds 2 to 10.)"""
    return lead(runs, ADAFED, EARLY, ONLY, name="points")


def lead_in_f1(runs: Runs, rounds: tuple[int, int]) -> Differences:
    """Claims that the adaptive loss leads both other runs in macro F1."""
    name = "minus {base}, hundredths of F1"
    over = functools.partial(lead, runs, ADAFED, rounds, column=F1, name=name)
    return over(base=ONLY) + over(base=FEDAVG)


@claim("AdaFed-7", "4.0.2, Figure 3", "adafed_2")
def its_loss_has_the_highest_f1(runs: Runs) -> Differences:
    """With the adaptive loss the macro F1 is above that of the two others. (Here: the
    mean over the rounds.)"""
    return lead_in_f1(runs, EVERY)


def class_f1(
    runs: Runs,
    label: str,
    base: str,
    classes: Sequence[int] = FEW,
    name: str = "minus {base}",
) -> Differences:
    """Returns the lead in the mean F1 over classes and rounds."""

    def measure(results: Results) -> pd.Series[float]:
        f1 = class_f1_table(results)
        return f1[f1["class"].isin(classes)].groupby(RUN_KEY)["f1"].mean()

    return compare(runs, label, measure, base, name=name, digits=3, least_rounds=20)


def class_f1_table(results: Results) -> pd.DataFrame:
    """Returns the F1 of each class and round.

    Raises:
        RecordError: a run is older than the column `macro_f1`, and recorded the F1 of
            the model before the round.
    """
    if F1 not in results.rounds:
        raise RecordError("a run has not recorded the F1 of its classes")
    return results.class_f1


@claim("AdaFed-8", "4.0.2", "adafed_2")
def few_images_are_told_apart_better(runs: Runs) -> Differences:
    """With the adaptive loss the classes with few images (0, 1 and 2, with 20, 20 and
    130 of 10,110), taken together, are recognized better. (Here: their mean F1 over the
    rounds.)"""
    over_fedavg = class_f1(runs, ADAFED, FEDAVG)
    return (over_fedavg + class_f1(runs, ADAFED, ONLY)).is_more()


@claim("AdaFed-9", "4.0.2, Figure 4", "adafed_2")
def weights_alone_are_better_too(runs: Runs) -> Differences:
    """With the weights alone, too, the classes with few images, taken together, are
    recognized better than by FedAvg. (Here: their mean F1 over the rounds.)"""
    return class_f1(runs, ONLY, FEDAVG).is_more()


@claim("AdaFed-10", "4.0.2", "adafed_2")
def each_class_is_better(runs: Runs) -> Differences:
    """Each of the classes 0, 1 and 2, which have few images, is recognized better than
    by FedAvg. (Here: its mean F1 over the rounds.)"""
    over_fedavg = functools.partial(class_f1, runs, ADAFED, FEDAVG)
    leads = (over_fedavg([label], f"class {label}") for label in FEW)
    return sum(leads, Differences()).is_more()


@claim("AdaFed-11", "4.0.2, Figure 4", "adafed_2")
def f1_rises_sooner(runs: Runs) -> Differences:
    """With its loss the classes' F1 rise sooner. (Here: macro F1, mean over rounds 2 to
    10.)"""
    return lead_in_f1(runs, EARLY)


@claim("AdaFed-12", "4.0.2, Figure 4", "adafed_2")
def f1_rises_more_evenly(runs: Runs) -> Differences:
    """The classes' F1 rise more evenly with AdaFed, and most with its loss. (Here:
    their standard deviation, mean over the rounds.)"""

    def spread(results: Results) -> pd.Series[float]:
        f1 = class_f1_table(results).groupby([*RUN_KEY, "round"])["f1"]
        return f1.std(ddof=0).groupby(RUN_KEY).mean()

    name = "{run} minus {base}"
    lead = functools.partial(compare, runs, digits=4, least_rounds=20, name=name)
    return (lead(ADAFED, spread, ONLY) + lead(ONLY, spread, FEDAVG)).is_less()


def lost(label: str, runs: Sequence[Runs], column: str = "accuracy") -> Differences:
    """Claims that two adversaries cost an algorithm accuracy or F1 at the end."""
    unit = "hundredths of macro F1" if column == F1 else "points of accuracy"
    return lead(runs, label, END, None, column, f"{unit} lost")


@claim("AdaFed-13", "4.0.3, Figures 5 and 6", "adafed_2", "adafed_3")
def adversaries_change_adafed_little(*runs: Runs) -> Differences:
    """Two adversaries change AdaFed by about 0.01 % of accuracy and 0.015 of macro F1
    only. (Here: at the end, at most two points, twice .01 as a fraction; .01 % is one
    image.)"""
    accuracy = lost(ADAFED, runs).is_between(-2, 2)
    return accuracy + lost(ADAFED, runs, F1).is_between(-3, 3)


@claim("AdaFed-14", "4.0.3, Figures 5 and 6", "adafed_2", "adafed_3")
def adversaries_cost_fedavg(*runs: Runs) -> Differences:
    """Two adversaries cost FedAvg accuracy and macro F1. (Here: at the end.)"""
    return lost(FEDAVG, runs) + lost(FEDAVG, runs, F1)


@claim("AdaFed-15", "4.0.3, Figures 5 and 6", "adafed_2", "adafed_3")
def adversaries_cost_two_points(*runs: Runs) -> Differences:
    """Two adversaries cost FedAvg about 2 % of accuracy and 0.1 of macro F1."""
    accuracy = lost(FEDAVG, runs).is_between(1, 4)
    return accuracy + lost(FEDAVG, runs, F1).is_between(5, 20)


@claim("AdaFed-16", "4.0.3, Figures 5 and 6", "adafed_3", "adafed_2")
def adversaries_cost_adafed_less(*runs: Runs) -> Differences:
    """Two adversaries cost AdaFed less than FedAvg. (Here: by how much its lead at the
    end grows with them.)"""

    def growth(column: str, name: str) -> Differences:
        def ahead(results: Results) -> pd.Series[float]:
            mean = 100 * measures.mean_of_rounds(results, *END, column)
            return mean - same_seed_values(mean, FEDAVG)

        options: dict[str, Any] = {"needs": [FEDAVG], "rounds": END[1], "digits": 2}
        return compare(runs, ADAFED, ahead, None, name=name, **options).is_more()

    accuracy = growth("accuracy", "points of accuracy")
    return accuracy + growth(F1, "hundredths of macro F1")


@claim("AdaFed-17", "4.0.3, and section 3", "adafed_3")
def adversaries_weigh_less(runs: Runs) -> Differences:
    """The adversaries weigh less than the others. (Here: than the mean of the others,
    over all rounds. Client 7 has half of its labels wrong, client 8 all.)"""

    def over_the_mean(client: int) -> Differences:
        def measure(results: Results) -> pd.Series[float]:
            cohort = results.cohort
            is_adversary = cohort["client"] == f"client_{client}"
            adversary = cohort[is_adversary].groupby(RUN_KEY)["weight"].mean()
            return adversary - cohort[~is_adversary].groupby(RUN_KEY)["weight"].mean()

        name = f"client {client}"
        return compare(runs, ADAFED, measure, 0, name=name, digits=3).is_less()

    return over_the_mean(7) + over_the_mean(8)


def lead_at_the_end(results: Results, column: str = "accuracy") -> pd.Series[float]:
    """Measures the lead over FedAvg, mean of the last five rounds that both have."""
    table = results.rounds.pivot(
        index=["seed", "round"], columns="label", values=column
    )
    leads = table.sub(table[FEDAVG], axis=0).groupby("seed")
    return pd.Series(leads.agg(lambda rounds: rounds.dropna().tail(5).mean()).stack())


for _place, _says, _printed, _simulation, _label, _column in (
    ("Figure 2", "weights only", "about .03", 2, ONLY, "accuracy"),
    ("Figure 2", "with the adaptive loss", "about .03", 2, ADAFED, "accuracy"),
    ("Figure 6", "two adversaries", "curves only", 3, ADAFED, F1),
):
    _noun = "macro F1" if _column == F1 else _column
    headline(
        paper="AdaFed",
        place=_place,
        says=f"{_says}: lead over FedAvg in {_noun}, last five rounds",
        printed=_printed,
        experiment=f"adafed_{_simulation}",
        own=_label,
        measure=functools.partial(lead_at_the_end, column=_column),
        needs=[FEDAVG],
        form="{:+.3f}",
    )
