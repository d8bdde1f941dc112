"""What AdaFed's section 4 says of its results, in its order, and how runs judge it.

What its figures show beyond these sentences are curves without numbers. "About" a
number is from its half to its double. At the end are the last five of the twenty
rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.papers.catalog import (
    Numbers,
    claim,
    headline,
    number_of,
)
from tff_pmc.reports.papers.comparisons import (
    Cells,
    Labels,
    Number,
    compare,
    mean_of,
    of_cohort,
    round_of,
)
from tff_pmc.reports.papers.evidence import KeptResults, Run, Runs, declare
from tff_pmc.reports.papers.judging import Differences

for _number, _hours in ((1, 50), (2, 0), (3, 0)):
    # Hours for both systems, five seeds and twenty rounds.
    declare(
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


def lead(
    runs: Runs | Sequence[Runs],
    own: Labels,
    rounds: tuple[int, int],
    base: str | None = FEDAVG,
    column: str = "accuracy",
    name: str = "{run} minus {base}, points",
) -> Differences:
    """Returns the lead in a column, mean over rounds, in points; above 0."""
    number = mean_of(*rounds, column)
    return compare(runs, own, number, base, name=name, digits=2).is_more()


@claim("AdaFed", "4.0.1, Figure 1")
def ahead_in_the_first_round(results: KeptResults) -> Differences:
    """AdaFed is ahead of FedAvg in the very first round."""
    return lead(results.adafed_1, TIMES_SAMPLES, (1, 1), name="points in round 1")


@claim("AdaFed", "4.0.1, Figure 1")
def converges_faster(results: KeptResults) -> Differences:
    """AdaFed converges faster, by its weights. (Here: its mean lead in rounds 2 to
    10.)"""
    return lead(results.adafed_1, TIMES_SAMPLES, EARLY)


@claim("AdaFed", "4.0.1")
def sixth_client_is_ahead(results: KeptResults) -> Differences:
    """The sixth client, who has all digits, is more accurate than the others from the
    start and weighs far more. (Here: in round 1, than the highest of the others.)"""

    def over_the_others(column: str, name: str) -> Differences:
        def number(run: Run, _: Cells) -> float:
            cohort = of_cohort(run, column)
            first = cohort[cohort["round"] == 1].set_index("client")[column]
            return float(first["client_6"] - first.drop("client_6").max())

        of = Number(number)
        return compare(results.adafed_1, TIMES_SAMPLES, of, 0, name=name, digits=3)

    return (
        over_the_others("ACC", "accuracy") + over_the_others("weight", "weight")
    ).is_more()


@claim("AdaFed", "4.0.1, Figure 1")
def second_round_is_the_twelfth(results: KeptResults) -> Differences:
    """AdaFed has in its second round the accuracy that FedAvg reaches only after
    twelve. (Here: with 5,500 images a client; the text allows 5,500 a class, too.)"""
    second = mean_of(2, 2)

    def sooner(run: Run, _: Cells) -> float:
        found = round_of(run, second.of(run.other(TIMES_SAMPLES), ()))
        if found is None and run.length < 12:
            raise TooShortError(
                f"{run.label} ends in round {run.length}, without that accuracy and "
                "before round 12"
            )
        return -(found or run.length + 1)

    number = Number(sooner, rounds=2, also=[TIMES_SAMPLES])
    name = "rounds that FedAvg needs less than twelve"
    less = compare(results.adafed_1, FEDAVG, number, -12, name=name, digits=2)
    return less.is_at_most(0)


@claim("AdaFed", "4.0.2, Figure 2")
def about_three_points_ahead(results: KeptResults) -> Differences:
    """Both AdaFeds are about 3 % of accuracy above FedAvg. (Here: at the end.)"""
    both = lead(results.adafed_2, [ONLY, ADAFED], END, name="{run}, points")
    return both.is_between(1.5, 6)


@claim("AdaFed", "4.0.2, Figure 2")
def its_loss_converges_faster(results: KeptResults) -> Differences:
    """AdaFed with the adaptive loss converges faster than the weights alone. (Here: its
    mean lead in rounds 2 to 10.)"""
    return lead(results.adafed_2, ADAFED, EARLY, ONLY, name="points")


def lead_in_f1(results: KeptResults, rounds: tuple[int, int]) -> Differences:
    """Returns the lead in macro F1 with the adaptive loss over both others."""
    name = "minus {base}, hundredths of F1"
    of = results.adafed_2, ADAFED, rounds
    return lead(*of, ONLY, F1, name) + lead(*of, FEDAVG, F1, name)


@claim("AdaFed", "4.0.2, Figure 3")
def its_loss_has_the_highest_f1(results: KeptResults) -> Differences:
    """With the adaptive loss the macro F1 is above that of the two others. (Here: the
    mean over the rounds.)"""
    return lead_in_f1(results, EVERY)


def class_f1(
    runs: Runs, own: str, base: str, classes: Sequence[int], name: str = "minus {base}"
) -> Differences:
    """Returns the lead in the mean F1 of some classes over the rounds."""

    def number(run: Run, _: Cells) -> float:
        table = f1_of(run)
        return float(table[table["class"].isin(classes)]["f1"].mean())

    return compare(
        runs, own, Number(number), base, name=name, digits=3, least_rounds=20
    )


def f1_of(run: Run) -> pd.DataFrame:
    """Returns the F1 of each class and round of a run.

    Runs from before `macro_f1` have F1 before the round, and do not count.
    """
    rounds, table = run.table("rounds"), run.table("class_f1")
    if table.empty or F1 not in rounds or rounds[F1].isna().all():
        raise RecordError(f"the run of {run.label} has no F1 of its classes on record")
    return table


FEW = 0, 1, 2


@claim("AdaFed", "4.0.2")
def few_images_are_told_apart_better(results: KeptResults) -> Differences:
    """With the adaptive loss the classes with few images (0, 1 and 2, with 20, 20 and
    130 of 10,110) are told apart better, together. (Here: the mean of their F1 over the
    rounds.)"""
    own = results.adafed_2, ADAFED
    return (class_f1(*own, FEDAVG, FEW) + class_f1(*own, ONLY, FEW)).is_more()


@claim("AdaFed", "4.0.2, Figure 4")
def weights_alone_are_better_too(results: KeptResults) -> Differences:
    """The weights alone tell classes with few images apart better than FedAvg, too,
    together. (Here: the same mean.)"""
    return class_f1(results.adafed_2, ONLY, FEDAVG, FEW).is_more()


@claim("AdaFed", "4.0.2")
def each_class_is_better(results: KeptResults) -> Differences:
    """Each of the three is told apart better than by FedAvg. (Here: the same mean.)"""
    return Differences(
        one
        for label in FEW
        for one in class_f1(results.adafed_2, ADAFED, FEDAVG, [label], f"class {label}")
    ).is_more()


@claim("AdaFed", "4.0.2, Figure 4")
def f1_rises_sooner(results: KeptResults) -> Differences:
    """With its loss the classes' F1 rise sooner. (Here: macro F1, mean over rounds 2 to
    10.)"""
    return lead_in_f1(results, EARLY)


@claim("AdaFed", "4.0.2, Figure 4")
def f1_rises_more_evenly(results: KeptResults) -> Differences:
    """The classes' F1 rise more evenly with AdaFed, and most with its loss. (Here:
    their standard deviation, mean over the rounds.)"""

    def spread(run: Run, _: Cells) -> float:
        return float(f1_of(run).groupby("round")["f1"].std(ddof=0).mean())

    def lead_in_spread(own: str, base: str) -> Differences:
        return compare(
            results.adafed_2,
            own,
            Number(spread),
            base,
            name="{run} minus {base}",
            digits=4,
            least_rounds=20,
        )

    return (lead_in_spread(ADAFED, ONLY) + lead_in_spread(ONLY, FEDAVG)).is_less()


def lost(results: KeptResults, own: str, column: str = "accuracy") -> Differences:
    """Returns what two adversaries cost an algorithm at the end."""
    what = "hundredths of macro F1" if column == F1 else "points of accuracy"
    both = [results.adafed_2, results.adafed_3]
    return lead(both, own, END, None, column, f"{what} lost")


@claim("AdaFed", "4.0.3, Figures 5 and 6")
def adversaries_change_adafed_little(results: KeptResults) -> Differences:
    """Two adversaries change AdaFed by about 0.01 % of accuracy and 0.015 of macro F1
    only. (Here: at the end, at most two points, twice .01 as a fraction; .01 % is one
    image.)"""
    accuracy = lost(results, ADAFED).is_between(-2, 2)
    return accuracy + lost(results, ADAFED, F1).is_between(-3, 3)


@claim("AdaFed", "4.0.3, Figures 5 and 6")
def adversaries_cost_fedavg(results: KeptResults) -> Differences:
    """Two adversaries cost FedAvg accuracy and macro F1. (Here: at the end.)"""
    return lost(results, FEDAVG) + lost(results, FEDAVG, F1)


@claim("AdaFed", "4.0.3, Figures 5 and 6")
def adversaries_cost_two_points(results: KeptResults) -> Differences:
    """They cost FedAvg about 2 % of accuracy and 0.1 of macro F1."""
    accuracy = lost(results, FEDAVG).is_between(1, 4)
    return accuracy + lost(results, FEDAVG, F1).is_between(5, 20)


@claim("AdaFed", "4.0.3, Figures 5 and 6")
def adversaries_cost_adafed_less(results: KeptResults) -> Differences:
    """Two adversaries cost AdaFed less than FedAvg. (Here: by how much its lead at the
    end grows with them.)"""

    def growth(column: str, name: str) -> Differences:
        mean = mean_of(*END, column)

        def ahead(run: Run, _: Cells) -> float:
            return mean.of(run, ()) - mean.of(run.other(FEDAVG), ())

        number = Number(ahead, rounds=END[1], also=[FEDAVG])
        both = [results.adafed_3, results.adafed_2]
        return compare(both, ADAFED, number, None, name=name, digits=2).is_more()

    accuracy = growth("accuracy", "points of accuracy")
    return accuracy + growth(F1, "hundredths of macro F1")


@claim("AdaFed", "4.0.3, and section 3")
def adversaries_weigh_less(results: KeptResults) -> Differences:
    """The adversaries weigh less than the others. (Here: than the mean of the others,
    over all rounds. Client 7 has half of its labels wrong, client 8 all.)"""

    def over_the_mean(client: int) -> Differences:
        def number(run: Run, _: Cells) -> float:
            cohort = of_cohort(run, "weight")
            own = cohort["client"] == f"client_{client}"
            return float(cohort["weight"][own].mean() - cohort["weight"][~own].mean())

        of, name = Number(number), f"client {client}"
        return compare(results.adafed_3, ADAFED, of, 0, name=name, digits=3)

    return (over_the_mean(7) + over_the_mean(8)).is_less()


@headline("AdaFed", "Figure 1", printed="12")
def round_of_the_second(results: KeptResults) -> Numbers:
    """round in which FedAvg has the accuracy of AdaFed's second"""
    second = mean_of(2, 2)

    def number(run: Run, _: Cells) -> float:
        return round_of(run.other(FEDAVG), second.of(run, ())) or math.inf

    own = Number(number, rounds=2, also=[FEDAVG])
    return number_of(results.adafed_1, TIMES_SAMPLES, own)


def lead_at_the_end(runs: Runs, own: str, column: str) -> Numbers:
    """Returns a lead over FedAvg, the mean of the last five rounds that both have."""

    def number(run: Run, _: Cells) -> float:
        other = run.other(FEDAVG)
        last = min(run.length, other.length)
        mean = mean_of(max(last - 4, 1), last, column)
        return (mean.of(run, ()) - mean.of(other, ())) / 100

    return number_of(runs, own, Number(number, also=[FEDAVG]))


@headline("AdaFed", "Figure 2", printed="about .03", form="{:+.3f}")
def lead_of_the_weights(results: KeptResults) -> Numbers:
    """lead over FedAvg in accuracy, last five rounds or all, weights only"""
    return lead_at_the_end(results.adafed_2, ONLY, "accuracy")


@headline("AdaFed", "Figure 2", printed="about .03", form="{:+.3f}")
def lead_with_the_loss(results: KeptResults) -> Numbers:
    """the same with the adaptive loss"""
    return lead_at_the_end(results.adafed_2, ADAFED, "accuracy")


@headline("AdaFed", "Figure 6", printed="", form="{:+.3f}")
def lead_with_adversaries(results: KeptResults) -> Numbers:
    """lead over FedAvg in macro F1, two adversaries, last five rounds or all"""
    return lead_at_the_end(results.adafed_3, ADAFED, F1)
