"""The claims of PMC's text on its results, in its order.

The numbers in the statements are the paper's. Where its text and its tables disagree,
each has a claim of its own. The paper's MW is MD everywhere else here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.papers import pmc_variance
from tff_pmc.reports.papers.claim_measures import (
    BEST_ROUND,
    EVERY_RUN,
    SECOND_HALF,
    Cells,
    columns,
    compare,
    gain_grows,
    mean_rounds,
    round_of_half,
    rounds_saved,
    same_seed_values,
    share_that_loses,
)
from tff_pmc.reports.papers.claim_registry import claim, headline
from tff_pmc.reports.papers.judging import Differences
from tff_pmc.reports.papers.paper_experiments import declare_experiment
from tff_pmc.reports.papers.paper_runs import Runs
from tff_pmc.reports.statistics import measures, published
from tff_pmc.reports.statistics.rounds_to_target import DEVICES

_TRAINING = {"clients_per_round": 0.1, "local_epochs": 5, "batch_size": 0}
_MNIST = {
    "dataset": "mnist",
    "client_sizes": "equal",
    "wrong_clients": 0.0,
    "model": "mnist_cnn",
    **_TRAINING,
}

# The hours are for nine rows, five seeds and the flag file's rounds, at 18 seconds per
# round.
declare_experiment(
    "mnist_iid", {**_MNIST, "partition": "iid"}, table="pmc_table2", hours=22
)
declare_experiment(
    "mnist_noniid", {**_MNIST, "partition": "noniid"}, table="pmc_table4", hours=56
)
declare_experiment(
    "celeba",
    {"dataset": "celeba", "model": "celeba_cnn", **_TRAINING},
    table="pmc_table6",
    needs="CelebA's photographs, which we could not obtain",
)

SIX = [*published.DA_STUDIES["MCA"]]
EIGHT = ["LD", "MD", *SIX]

# Columns of Tables 2, 4 and 6: the target accuracy, and the shares of the devices that
# have to reach it, all in percent.
AT_70 = columns("at 70 %", {70: DEVICES})
AT_80 = columns("at 80 %", {80: DEVICES})
AT_90 = columns("at 90 %", {90: DEVICES})
AT_95 = columns("at 95 %", {95: DEVICES})
LAST_OF_95 = columns("last three columns of 95 %", {95: [70, 80, 90]})
AT_70_TO_90 = columns("at 70 to 90 %", {70: DEVICES, 80: DEVICES, 90: DEVICES})
AT_70_AND_80 = columns("at 70 and 80 %", {70: DEVICES, 80: DEVICES})
AT_90_AND_95 = columns("at 90 and 95 %", {90: DEVICES, 95: DEVICES})
AT_ALL = columns(
    "at the four targets", {70: DEVICES, 80: DEVICES, 90: DEVICES, 95: DEVICES}
)
OVER_33 = columns(
    "over 33 columns", {70: DEVICES, 80: DEVICES, 90: DEVICES, 95: DEVICES[:6]}
)
# The columns of Table 6 (CelebA) that DS reaches.
CELEBA_70 = columns("at 70 % where DS arrives", {70: DEVICES[:8]})
CELEBA_80 = columns("at 80 % where DS arrives", {80: DEVICES[:6]})
CELEBA_85 = columns("at 85 % where DS arrives", {85: DEVICES[:5]})
CELEBA_ALL = columns(
    "where DS arrives", {70: DEVICES[:8], 80: DEVICES[:6], 85: DEVICES[:5]}
)
HALF_AT_85 = columns("at 85 % for half of the devices", {85: [50]})


def variance_and_gain(
    runs: Runs, least_rounds: int, criteria: Sequence[str] = ("DS", "LD", "MD")
) -> Differences:
    """Claims that criteria of higher variance give better models.

    It is measured by the rank correlation of `pmc_variance` over a seed's orderings.
    """

    def rank_correlation(results: Results) -> pd.Series[float]:
        by_seed = {}
        for seed in results.seeds:
            table = pmc_variance.orderings(results.only(seed=seed))
            by_seed[seed] = pmc_variance.correlations(table)[pmc_variance.BEST]
        return results.runs.set_index(RUN_KEY, drop=False)["seed"].map(by_seed)

    return compare(
        runs,
        EVERY_RUN,
        rank_correlation,
        0,
        needs=criteria,
        together="max",
        name="rank correlation with the best accuracy",
        digits=2,
        least_rounds=least_rounds,
    ).is_more()


@claim("PMC-1", "4.2", "mnist_iid", flags="--seeds=0,1,3,4,5")
def variance_helps_on_iid(runs: Runs) -> Differences:
    """Criteria whose scores vary more between clients give a better final model, on
    MNIST IID."""
    return variance_and_gain(runs, least_rounds=100)


@claim("PMC-2", "4.2", "mnist_noniid")
def variance_helps_on_noniid(runs: Runs) -> Differences:
    """Criteria whose scores vary more give a better final model on MNIST non-IID."""
    return variance_and_gain(runs, least_rounds=250)


@claim("PMC-3", "4.2", "celeba")
def variance_helps_on_celeba(runs: Runs) -> Differences:
    """Criteria whose scores vary more give a better final model on CelebA."""
    return variance_and_gain(runs, 50, ["DS", "CB", "IS"])


@claim("PMC-4", "6.1", "mnist_iid")
def ld_is_ds_on_iid(runs: Runs) -> Differences:
    """With IID data LD is, on average, the same for all clients, as DS is. (Here: the
    accuracy of LD minus that of DS, mean over the second half of the rounds.)"""
    return points(runs, "LD", SECOND_HALF).is_none()


points = functools.partial(compare, name="{run} points")


@claim("PMC-5", "6.1, Table 2", "mnist_iid")
def alone_gain_nothing_on_iid(runs: Runs) -> Differences:
    """LD and MW gain close to nothing on average at 70, 80 and 90 %. (Here: within one
    round.)"""
    return rounds_saved(runs, ["LD", "MD"], [AT_70, AT_80, AT_90]).is_none(1)


@claim("PMC-6", "6.1, Table 2", "mnist_iid")
def alone_are_slower_on_iid(runs: Runs) -> Differences:
    """LD and MW are slightly slower than DS at 95 %, above all for 70 to 90 % of the
    devices."""
    return saved_at_95(runs, ["LD", "MD"]).is_less()


saved_at_95 = functools.partial(rounds_saved, at=LAST_OF_95, name="{run} at 95 %")


@claim("PMC-7", "6.1, Table 4", "mnist_noniid")
def ds_is_the_best_at_the_end(runs: Runs) -> Differences:
    """DS is the best of the three to reach the best performance. (Here: sooner at 95 %
    for 70 to 90 % of the devices.)"""
    return rounds_saved(
        runs,
        "DS",
        LAST_OF_95,
        ["LD", "MD"],
        together="mean",
        name="{run} over the mean of LD and MD",
    ).is_more()


@claim("PMC-8", "6.1, Table 4", "mnist_noniid")
def ld_is_sooner(runs: Runs) -> Differences:
    """The text: LD reaches 70 and 80 % sooner than DS, by 1 to 2 rounds on average."""
    return rounds_saved(runs, "LD", AT_70_AND_80).is_more((1, 2))


@claim("PMC-9", "6.1, Table 4", "mnist_noniid")
def md_is_sooner(runs: Runs) -> Differences:
    """The text: MW reaches 70 and 80 % sooner than DS, by 1 to 2 rounds on average."""
    return rounds_saved(runs, "MD", AT_70_AND_80).is_more((1, 2))


@claim("PMC-10", "6.1, Table 4", "mnist_noniid")
def ld_is_sooner_by_the_table(runs: Runs) -> Differences:
    """The table: LD is sooner than DS at 70 and 80 %, MW at 70 % alone; at 80 % MW is
    later."""
    saved = functools.partial(rounds_saved, runs)
    sooner = saved("LD", [AT_70, AT_80]) + saved("MD", AT_70)
    return sooner.is_more() + saved("MD", AT_80).is_less()


@claim("PMC-11", "6.1, Table 4", "mnist_noniid")
def ds_is_sooner_at_90_and_95(runs: Runs) -> Differences:
    """The text: DS reaches 90 and 95 % sooner than LD and MW, by 5 to 12 rounds on
    average."""
    saved = rounds_saved(runs, ["LD", "MD"], AT_90_AND_95)
    return saved.is_less((-12, -5))


@claim("PMC-12", "6.1, Table 4", "mnist_noniid")
def ds_is_sooner_by_the_table(runs: Runs) -> Differences:
    """The table: DS is sooner than LD at 95 % and than MW at 90 and 95 %; at 90 % LD is
    sooner."""
    saved = functools.partial(rounds_saved, runs)
    later = saved("LD", AT_95) + saved("MD", [AT_90, AT_95])
    return saved("LD", AT_90).is_more() + later.is_less()


@claim("PMC-13", "6.1, Table 4", "mnist_noniid")
def ld_is_alike_over_33_columns(runs: Runs) -> Differences:
    """Without the last three columns of 95 %, DS and LD are approximately alike, LD .5
    rounds sooner on average over the other 33, and MW is 3.6 later. (Here: LD within
    one round.)"""
    over = functools.partial(rounds_saved, runs, at=OVER_33, name="{run}")
    return over("LD").is_none(1) + over("MD").is_less()


@claim("PMC-14", "6.1, Table 4", "mnist_noniid")
def ds_is_sooner_in_the_last_columns(runs: Runs) -> Differences:
    """In the last three columns of 95 %, DS is 12 rounds sooner than LD and 16 sooner
    than MW."""
    return saved_at_95(runs, ["LD", "MD"]).is_less()


@claim("PMC-15", "6.1, Table 6, CelebA", "celeba")
def cb_needs_less_than_half(runs: Runs) -> Differences:
    """CB reaches 85 % in less than half of the rounds that DS needs. (The text says for
    60 % of the devices; Table 6 ends at 50 %, where it has 24 for 50, and that is
    judged here.)"""

    def subtract_twice(results: Results, cells: Cells) -> pd.Series[float]:
        rounds = mean_rounds(results, cells)
        return same_seed_values(rounds, "DS") - 2 * rounds

    name = "rounds of DS minus twice those of CB"
    twice = compare(
        runs, "CB", subtract_twice, 0, at=HALF_AT_85, needs=["DS"], name=name
    )
    return twice.is_more()


@claim("PMC-16", "6.1, Table 6, CelebA", "celeba")
def cb_is_sooner_and_is_later(runs: Runs) -> Differences:
    """CB is 7.5 rounds sooner than DS on average and IS 7.6 later. (These are means of
    Table 6's averages, which divide by nine.)"""
    name = "{run} over 19 columns"
    over = functools.partial(rounds_saved, runs, at=CELEBA_ALL, name=name)
    return over("CB").is_more() + over("IS").is_less()


@claim("PMC-17", "6.1, Table 6, CelebA", "celeba")
def gain_of_cb_grows(runs: Runs) -> Differences:
    """What CB gains over DS grows with the target: 8.6 rounds at 70 %, 11.5 at 80 %, 13
    at 85 %. (These divide by the columns reached.)"""
    grows = functools.partial(gain_grows, runs, "CB")
    to_80 = grows(CELEBA_80, CELEBA_70, name="gain at 80 % minus at 70 %")
    return (
        to_80 + grows(CELEBA_85, CELEBA_80, name="gain at 85 % minus at 80 %")
    ).is_more()


@claim("PMC-18", "6, Table 7, CelebA", "celeba")
def cb_is_right_on_fewer(runs: Runs) -> Differences:
    """At the best rounds, CB is right on fewer test images (80.3 %) than DS (87.6
    %). (The text says the opposite of CB, from Table 6; see the label question in
    pmc.md.)"""
    return points(runs, "CB", BEST_ROUND).is_less()


@claim("PMC-19", "6, Table 7, CelebA", "celeba")
def is_is_right_on_as_many(runs: Runs) -> Differences:
    """At the best rounds, IS is right on as many test images as DS (87.6 %). (The text
    has IS behind DS, from Table 6. Here: within 0.5 points.)"""
    return points(runs, "IS", BEST_ROUND).is_none(0.5)


@claim("PMC-20", "6.2, Table 2", "mnist_iid")
def orderings_gain_nothing_on_iid(runs: Runs) -> Differences:
    """The six orderings gain close to nothing on average at 70, 80 and 90 %. (Here:
    within one round; Table 2 has up to 1.2.)"""
    return rounds_saved(runs, SIX, AT_70_TO_90).is_none(1)


@claim("PMC-21", "6.2, Table 2", "mnist_iid")
def ld_md_ds_is_sooner_then_later(runs: Runs) -> Differences:
    """LD≻MW≻DS is sooner than DS at 70, 80 and 90 %, and later at 95 % for 70 to 90 %
    of the devices, by 9 rounds on average."""
    sooner = rounds_saved(runs, "LD,MD,DS", AT_70_TO_90).is_more()
    return sooner + saved_at_95(runs, "LD,MD,DS").is_less()


@claim("PMC-22", "6.2, Figure 2a", "mnist_iid", flags="--seeds=0,1,3,4,5")
def curves_cannot_be_told_apart(runs: Runs) -> Differences:
    """The curves of test accuracy of all nine cannot be told apart. (Here: the mean
    over the second half of the rounds, within 0.5 points of DS.)"""
    return points(runs, EIGHT, SECOND_HALF, least_rounds=100).is_none(0.5)


@claim("PMC-23", "6.2, Table 4", "mnist_noniid")
def more_gains_are_negative_later(runs: Runs) -> Differences:
    """More gains of the six orderings are negative at 90 and 95 % than at 70 and 80 %.
    (Table 4 has 55 of 108 and 32 of 108. Here: the share of negative gains at 90 and
    95 %, minus that at 70 and 80 %.)"""
    share = share_that_loses(runs, SIX, AT_90_AND_95, AT_70_AND_80, name="percent")
    return share.is_more()


def to_the_last_column(*labels: str) -> Mapping[str, Any]:
    """Returns a claim's `flags` and `hours` for runs to Table 4's last column.

    They are runs of DS and of the labels, under five seeds, at 1.25 hours per run as in
    `mnist_table4_long`.
    """
    flags = f"--priority='{';'.join(['DS', *labels])}' --until=targets"
    return {"flags": flags, "hours": 5 * 1.25 * (1 + len(labels))}


@claim("PMC-24", "6.2, Table 4", "mnist_noniid", **to_the_last_column("DS,LD,MD"))
def orderings_are_later_at_the_end(runs: Runs) -> Differences:
    """At 95 % for 70 to 90 % of the devices orderings are later than DS, by up to 12
    rounds on average. (In Table 4 that is DS≻LD≻MW.)"""
    return saved_at_95(runs, "DS,LD,MD").is_less()


THREE = ["LD,DS,MD", "MD,DS,LD", "MD,LD,DS"]


@claim("PMC-25", "6.2, Table 4", "mnist_noniid", **to_the_last_column(*THREE))
def three_are_sooner_at_the_end(runs: Runs) -> Differences:
    """At 95 % for 70 to 90 % of the devices LD≻DS≻MW, MW≻DS≻LD and MW≻LD≻DS are sooner
    than DS."""
    return saved_at_95(runs, THREE).is_more()


@claim("PMC-26", "6.2, Table 4", "mnist_noniid")
def ld_ds_md_is_sooner(runs: Runs) -> Differences:
    """LD≻DS≻MW is sooner than DS by 2, 2, 0 and 1 rounds at 70, 80, 90 and 95 %. (Here:
    at 90 % within one round.)"""
    saved = functools.partial(rounds_saved, runs, "LD,DS,MD")
    return saved([AT_70, AT_80, AT_95]).is_more() + saved(AT_90).is_none(1)


gain_differs = functools.partial(gain_grows, name="gain {columns} minus {minus}")


@claim("PMC-27", "6.2, Table 4", "mnist_noniid")
def gain_of_ld_ds_md_falls(runs: Runs) -> Differences:
    """What LD≻DS≻MW gains over DS is higher at 70 and 80 % than at 90 and 95 %."""
    return gain_differs(runs, "LD,DS,MD", AT_70_AND_80, AT_90_AND_95).is_more()


@claim("PMC-28", "6.2, Table 4", "mnist_noniid", **to_the_last_column("MD,DS,LD"))
def gain_of_md_ds_ld_grows(runs: Runs) -> Differences:
    """What MW≻DS≻LD gains over DS grows with the target."""
    return gain_differs(runs, "MD,DS,LD", AT_90_AND_95, AT_70_AND_80).is_more()


@claim("PMC-29", "6.2, Table 4", "mnist_noniid", **to_the_last_column("MD,DS,LD"))
def md_ds_ld_gains_later(runs: Runs) -> Differences:
    """The text: MW≻DS≻LD gains -0.1, 0.2, 2.1 and 1.7 rounds over DS at 70, 80, 90 and
    95 %. (By its own table .56 at 90 %. Here: at the first two within one round.)"""
    saved = functools.partial(rounds_saved, runs, "MD,DS,LD")
    first = saved([AT_70, AT_80]).is_none(1)
    return first + saved(AT_90).is_more(2.1) + saved(AT_95).is_more(1.7)


@claim("PMC-30", "6.2, Table 4", "mnist_noniid", **to_the_last_column("MD,DS,LD"))
def md_ds_ld_gains_by_the_table(runs: Runs) -> Differences:
    """The table: MW≻DS≻LD gains .56 rounds over DS at 90 %."""
    return rounds_saved(runs, "MD,DS,LD", AT_90).is_more()


@claim("PMC-31", "6.2, Table 4", "mnist_noniid")
def md_ld_ds_gains_later(runs: Runs) -> Differences:
    """MW≻LD≻DS gains little at 70 and 80 % (0.2, -0.6 rounds) and is 3.1 and 4.7 rounds
    sooner than DS at 90 and 95 %. (Here: little is within one round.)"""
    saved = functools.partial(rounds_saved, runs, "MD,LD,DS")
    return saved([AT_70, AT_80]).is_none(1) + saved([AT_90, AT_95]).is_more()


@claim("PMC-32", "6.2, Table 6, CelebA", "celeba")
def four_orderings_are_later(runs: Runs) -> Differences:
    """The four orderings in which IS is not last are later than DS, by 2 to 13 rounds
    on average. (These divide by the columns reached.)"""
    four = ["DS,IS,CB", "IS,DS,CB", "IS,CB,DS", "CB,IS,DS"]
    return rounds_saved(runs, four, CELEBA_ALL, name="{run}").is_less()


@claim("PMC-33", "6.2, Table 6, CelebA", "celeba")
def is_last_is_sooner(runs: Runs) -> Differences:
    """The two orderings with IS last, DS≻CB≻IS and CB≻DS≻IS, are sooner than DS."""
    return rounds_saved(runs, IS_LAST, CELEBA_ALL, name="{run}").is_more()


IS_LAST = ["DS,CB,IS", "CB,DS,IS"]


@claim("PMC-34", "6.2, Table 6, CelebA", "celeba")
def is_last_is_sooner_than_cb(runs: Runs) -> Differences:
    """The two orderings with IS last are sooner than CB alone. (Table 6 has CB≻DS≻IS
    0.4 rounds later on average.)"""
    name = "{run} minus CB"
    return rounds_saved(runs, IS_LAST, CELEBA_ALL, "CB", name=name).is_more()


@claim("PMC-35", "6.2, Table 6, CelebA", "celeba")
def ds_cb_is_is_the_best(runs: Runs) -> Differences:
    """DS≻CB≻IS is the best for every target and share of the devices, up to 12 rounds
    sooner than DS. (Table 6 has up to 13.1, or 16.9 over the columns reached, and four
    cells in which CB≻DS≻IS gains more. Here: against DS.)"""
    saved = functools.partial(rounds_saved, runs, "DS,CB,IS")
    at_70 = saved(CELEBA_70, name="{run} at 70 %")
    at_80 = saved(CELEBA_80, name="{run} at 80 %")
    return (at_70 + at_80 + saved(CELEBA_85, name="{run} at 85 %")).is_more()


@claim("PMC-36", "6.2, Figure 3, CelebA", "celeba")
def curve_is_above_ds(runs: Runs) -> Differences:
    """The curve of test accuracy of DS≻CB≻IS is above that of DS. (Here: the mean over
    the second half of the rounds.)"""
    return points(runs, "DS,CB,IS", SECOND_HALF).is_more()


@claim("PMC-37", "6.2, Figure 3, CelebA", "celeba")
def curve_is_above_cb(runs: Runs) -> Differences:
    """The curve of test accuracy of DS≻CB≻IS is above that of CB alone. (Here: the mean
    over the second half of the rounds.)"""
    return points(runs, "DS,CB,IS", SECOND_HALF, "CB").is_more()


@claim("PMC-38", "6.3", "mnist_noniid")
def ld_brings_nothing(runs: Runs) -> Differences:
    """Label diversity brings nothing. (Section 6.1 has LD 1 to 2 rounds sooner at 70
    and 80 %. Here: within one round over all 36 columns.)"""
    return rounds_saved(runs, "LD", AT_ALL).is_none(1)


@claim("PMC-39", "6.3", "mnist_noniid")
def clients_have_two_digits(runs: Runs) -> Differences:
    """No client has samples of more than two digits."""

    def max_labels(results: Results) -> pd.Series[float]:
        return results.cohort.groupby(RUN_KEY)["LD"].max()

    name = "labels of some client, beyond two"
    return compare(runs, "DS", max_labels, 2, name=name).is_at_most(0)


@claim("PMC-40", "6.3", "mnist_noniid")
def md_gives_a_start(runs: Runs) -> Differences:
    """MW gives training a start and costs rounds at higher targets."""
    saved = functools.partial(rounds_saved, runs, "MD")
    return saved(AT_70).is_more() + saved(AT_95).is_less()


@claim("PMC-41", "7", "mnist_noniid")
def criteria_improve_on_mnist(runs: Runs) -> Differences:
    """A properly defined set of criteria substantially improves the standard approach,
    above all with non-IID data. (Here: on MNIST non-IID the best of eight, a choice
    that favours the claim, saves a round or more.)"""
    return rounds_saved(
        runs,
        EIGHT,
        AT_ALL,
        together="max",
        name="the best of the eight",
        digits=2,
    ).is_between(1, math.inf)


@claim("PMC-42", "7", "celeba")
def criteria_improve_on_celeba(runs: Runs) -> Differences:
    """A properly defined set of criteria substantially improves the standard approach
    on CelebA, where the paper's tables have their largest gains."""
    return rounds_saved(
        runs,
        ["CB", *IS_LAST],
        CELEBA_ALL,
        together="max",
        name="the best of three",
    ).is_between(1, math.inf)


@claim("PMC-43", "7", "mnist_noniid", "mnist_iid", flags="--seeds=0,1,3,4,5")
def gains_most_on_noniid(*runs: Runs) -> Differences:
    """The text: the approach gains most where the data is non-IID. (By its own tables
    the eight save .06 rounds on average at 70 to 90 % with IID data, and lose .07 with
    non-IID. Here: this mean, MNIST non-IID minus IID.)"""
    return gain_grows(
        runs,
        EIGHT,
        AT_70_TO_90,
        AT_70_TO_90,
        together="mean",
        name="mean gain, non-IID minus IID",
    ).is_more()


for _place, _experiment, _target, _printed in (
    ("Table 2", "mnist_iid", 90, {"DS": "7", "LD,DS,MD": "8"}),
    ("Table 2", "mnist_iid", 95, {"DS": "16", "LD,MD,DS": "17"}),
    ("Table 4", "mnist_noniid", 90, {"DS": "23", "LD,DS,MD": "29"}),
    ("Table 4", "mnist_noniid", 95, {"DS": "66", "LD": "63", "MD": "76"}),
    ("Table 6", "celeba", 85, {"DS": "50"}),
):
    for _label, _rounds in _printed.items():
        headline(
            paper="PMC",
            place=_place,
            says=f"{_label.replace(',', '≻').replace('MD', 'MW')}: round in which half "
            f"of the devices reach {_target} %",
            printed=_rounds,
            experiment=_experiment,
            own=_label,
            measure=round_of_half(_target),
            arrivals=True,
        )
for _label, _printed_share in (("DS", "0.876"), ("CB", "0.803")):
    headline(
        paper="PMC",
        place="Table 7",
        says=f"{_label}: share of the test images that are right at the best round",
        printed=_printed_share,
        experiment="celeba",
        own=_label,
        measure=measures.best_round,
        form="{:.3f}",
    )
