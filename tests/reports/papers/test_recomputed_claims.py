"""The numbers and verdicts of the table of claims, from the kept records by NumPy.

Nothing here uses the package. `CLAIMS` says which runs, rounds and columns decide each
claim, and where the paper puts the number.
"""

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from recomputing import (
    KEPT,
    LESS,
    MORE,
    SEEDS,
    WORST_FIRST,
    Part,
    claim_rows,
    column,
    printed_rounds,
    printed_table,
    read_csv,
    rounds,
    runs_of,
    text_of,
    verdict_on,
)
from scipy.stats import spearmanr

SIX = ["DS,LD,MD", "DS,MD,LD", "LD,DS,MD", "LD,MD,DS", "MD,DS,LD", "MD,LD,DS"]
SIX_ADJUSTED = [f"{ordering} (backtracking)" for ordering in SIX]
EIGHT = ["LD", "MD", *SIX]
NINE = ["DS", *EIGHT]


def runs(folder, seeds=SEEDS):
    """The runs of a folder under some seeds: (folder, seed) of each."""
    return [(folder, seed) for seed in seeds]


IID = runs("mnist_table2", (0, 1, 3, 4, 5))
IID_LONG = runs("mnist_table2_long", (0, 1, 3, 4, 5))
NONIID = runs("mnist_table4", range(6))
NONIID_LONG = runs("mnist_table4_long")
SIX_SEEDS = [*NONIID_LONG, ("mnist_table4", 5)]
NINE_SEEDS = [*SIX_SEEDS, *runs("mnist_table4_ld", (6, 7, 8))]
FEMNIST = runs("femnist_online")
FEMNIST_FIXED = runs("femnist_fixed")
FEMNIST_RELU = runs("femnist_table1_relu", (0,))


def cells(*targets, shares=range(10, 100, 10)):
    """Columns of a paper's table: (target accuracy, share of the devices), percent."""
    return [(target, share) for target in targets for share in shares]


AT = {target: (f"at {target} %", cells(target)) for target in (70, 80, 90, 95)}
AT_70_AND_80 = "at 70 and 80 %", cells(70, 80)
AT_90_AND_95 = "at 90 and 95 %", cells(90, 95)
AT_70_TO_90 = "at 70 to 90 %", cells(70, 80, 90)
AT_ALL = "at the four targets", cells(70, 80, 90, 95)
END_OF_95 = "at 95 %", cells(95, shares=(70, 80, 90))
OVER_33 = "", [cell for cell in AT_ALL[1] if cell not in END_OF_95[1]]
LOW_75 = "Low at 75 %", cells(75, shares=(20, 30))
MID_75 = "Mid at 75 %", cells(75, shares=(40, 50))
LOW_80 = "Low at 80 %", cells(80, shares=(20, 30))
MID_80 = "Mid at 80 %", cells(80, shares=(40, 50))
HIGH_75 = "High at 75 %", cells(75, shares=(70, 75))
LOW_AND_MID = [LOW_75, MID_75, LOW_80, MID_80]
LOW_TO_HIGH = [*LOW_AND_MID, HIGH_75]


def reached(columns, of_runs, labels):
    """The columns that all of these runs reach."""
    arrivals = [rounds(*run, label, columns) for run in of_runs for label in labels]
    return [cell for cell in columns if all(cell in each for each in arrivals)]


def mean_rounds(columns, of_runs, label):
    """The mean over columns of the rounds until they are reached, of each run."""
    arrivals = [rounds(*run, label, columns) for run in of_runs]
    return np.array([np.mean([each[cell] for cell in columns]) for each in arrivals])


def count_of(*counts):
    """How many of the columns are reached, where it is not all of them."""
    parts = [f"{count} of {whole} columns" for count, whole in counts if count < whole]
    return ", ".join(dict.fromkeys(parts))


def folders_of(of_runs):
    return [*dict.fromkeys(folder for folder, _ in of_runs)]


def has_relu(of_runs):
    """Whether runs have ReLU after the convolutions, as the papers' have not."""
    return any(folder.endswith("_relu") for folder, _ in of_runs)


def weigh_alike(of_runs, label, base):
    """Whether two weightings are the same in every round of all runs."""
    columns = [
        [
            runs_of(folder, "cohort")[seed, name][column]
            for column in ("round", "client", "weight")
            for folder, seed in of_runs
        ]
        for name in (label, base)
    ]
    return columns[0] == columns[1]


def printed_gains(folder, label):
    """Column -> the rounds that the paper's table has a weighting save over DS."""
    tables = {"femnist": "da_table1", "mnist_table2": "pmc_table2"}
    tables["mnist_table4"] = "pmc_table4"
    (table,) = [name for start, name in tables.items() if folder.startswith(start)]
    base, arrivals = (printed_rounds(table, name) for name in ("DS", label))
    return {cell: base[cell] - arrivals[cell] for cell in arrivals if cell in base}


class RoundsSaved(NamedTuple):
    """The rounds that weightings save over others, mean over columns all runs reach.

    Of several weightings it is their mean, or what `pick` makes of them. `in_words` is
    the size that the paper's words give, which is of all columns.
    """

    name: str
    runs: Sequence
    labels: Sequence
    columns: Sequence
    relation: Sequence = MORE
    over: Sequence = ("DS",)
    in_words: Sequence = ()
    pick: Callable = np.mean
    digits: int = 1

    def side(self, labels, columns):
        """What these labels save in columns under each seed, and as printed."""
        saved = [-mean_rounds(columns, self.runs, label) for label in labels]
        gains = [printed_gains(self.runs[0][0], label) for label in labels]
        printed = [
            np.mean([each.get(cell, math.nan) for cell in columns]) for each in gains
        ]
        return self.pick(saved, axis=0), self.pick(printed)

    def part(self):
        columns = reached(self.columns, self.runs, [*self.labels, *self.over])
        count = count_of((len(columns), len(self.columns))) if columns else ""
        saved, base, printed = (), (), ()
        if columns:
            saved, size = self.side(self.labels, columns)
            base, size_of_base = self.side(self.over, columns)
            if math.isfinite(size - size_of_base):
                printed = (size - size_of_base,) * 2
            if self.in_words and not count:
                printed = self.in_words
        both = [*self.labels, *self.over]
        return Part(
            self.name,
            folders_of(self.runs),
            saved,
            base,
            self.relation,
            printed,
            self.digits,
            count,
            alike=len(both) == 2 and weigh_alike(self.runs, *both),
            lacking=has_relu(self.runs),
        )


def saves(label, of_runs, *columns, over="DS", name="{label} {columns}", **options):
    """The rounds that a weighting saves over another in each of some columns."""
    return [
        RoundsSaved(
            name.format(label=label, columns=words).strip(),
            of_runs,
            [label],
            those,
            over=[over],
            **options,
        )
        for words, those in columns
    ]


class GainGrows(NamedTuple):
    """What weightings gain over DS in columns, minus what they gain in others.

    That is rounds saved, or with `loses` the percentage of the columns in which DS is
    sooner. The others may be those of `other_runs`.
    """

    name: str
    runs: Sequence
    labels: Sequence
    columns: Sequence
    minus: Sequence
    other_runs: Sequence = ()
    loses: bool = False

    def side(self, of_runs, columns):
        gains = np.array(
            [
                [
                    mean_rounds([cell], of_runs, "DS")
                    - mean_rounds([cell], of_runs, label)
                    for cell in columns
                ]
                for label in self.labels
            ]
        )
        table = [printed_gains(of_runs[0][0], label) for label in self.labels]
        printed = np.array([[each[cell] for cell in columns] for each in table])
        if self.loses:
            gains, printed = 100 * (gains < 0), 100 * (printed < 0)
        return gains.mean(axis=(0, 1)), printed.mean()

    def part(self):
        sides, counts = [], []
        for of_runs, columns in (
            (self.runs, self.columns),
            (self.other_runs or self.runs, self.minus),
        ):
            there = reached(columns, of_runs, ["DS", *self.labels])
            counts.append((len(there), len(columns)))
            sides.append(self.side(of_runs, there))
        (gain, printed), (base, printed_base) = sides
        return Part(
            self.name,
            folders_of([*self.runs, *self.other_runs]),
            gain,
            base,
            MORE,
            (printed - printed_base,) * 2,
            columns=count_of(*counts),
        )


class Lead(NamedTuple):
    """How far a run is ahead of another in a column, mean over rounds, in hundredths.

    The other may be of another folder.
    """

    name: str
    folder: str
    label: str
    base: str
    rounds: Sequence
    relation: Sequence = MORE
    column: str = "accuracy"
    base_folder: str = ""
    seeds: Sequence = SEEDS
    digits: int = 2
    lacking: bool = False

    def side(self, folder, label):
        first, last = self.rounds
        columns = [column(folder, k, label, "rounds", self.column) for k in self.seeds]
        return [100 * values[first - 1 : last].mean() for values in columns]

    def part(self):
        base_folder = self.base_folder or self.folder
        of_runs = runs(self.folder, self.seeds)
        same_folder = self.folder == base_folder
        return Part(
            self.name,
            [self.folder, base_folder],
            self.side(self.folder, self.label),
            self.side(base_folder, self.base),
            self.relation,
            digits=self.digits,
            alike=same_folder and weigh_alike(of_runs, self.label, self.base),
            lacking=self.lacking or has_relu(of_runs),
        )


class BestEpoch(NamedTuple):
    """Dual's lead over another algorithm at the best epoch of each, in points.

    Precision, F1 and MCC are of answers to each test image, which are not kept: only
    their differences can be recomputed, from the kept `dual_table4_seeds.csv`. Nothing
    is said of weights: each is an algorithm of its own.
    """

    name: str
    folder: str
    clients: int
    algorithm: str
    base: str
    relation: Sequence = MORE
    metric: str = "Accuracy"
    seeds: Sequence = SEEDS

    def value(self, algorithm, seed):
        if self.metric != "Accuracy":
            return self.kept_value(algorithm, seed)
        label = f"{algorithm}, {self.clients} clients"
        right, examples = (
            column(self.folder, seed, label, "clients", name)
            .reshape(-1, self.clients)
            .sum(axis=1)
            for name in ("correct", "examples")
        )
        return 100 * (right / examples).max()

    def kept_value(self, algorithm, seed):
        name = f"dual_table4{'_seeds' if len(self.seeds) > 1 else ''}.csv"
        (value,) = [
            float(line["ours_best_epoch"])
            for line in read_csv(KEPT / self.folder / name)
            if self.row(algorithm) == (line["algorithm"], line["clients"])
            and line["metric"] == self.metric
            and int(line.get("seed", seed)) == seed
        ]
        return 100 * value

    def row(self, algorithm):
        """The algorithm and the clients as the paper's Table IV names them."""
        names = {"Dual-criterion": "Dual-Criterion Weighted"}
        names.update(Laplace="Differential Privacy", Quantized="Quantization")
        clients = "&".join(f"C{number + 1}" for number in range(self.clients))
        return names.get(algorithm, algorithm.title()), clients

    def part(self):
        values, base = (
            [self.value(name, seed) for seed in self.seeds]
            for name in (self.algorithm, self.base)
        )
        printed, printed_base = (
            100 * float(line["value"])
            for name in (self.algorithm, self.base)
            for line in printed_table("dualcriterion_table4")
            if self.row(name) == (line["algorithm"], line["clients"])
            and line["metric"] == self.metric
        )
        size = (printed - printed_base,) * 2
        return Part(
            self.name, [self.folder], values, base, self.relation, size, digits=2
        )


class Computed(NamedTuple):
    """A number of which a function gives both sides."""

    name: str
    folders: Sequence
    sides: Callable
    relation: Sequence = MORE
    digits: int = 1
    lacking: bool = False

    def part(self):
        values, base = self.sides()
        return Part(
            self.name,
            self.folders,
            values,
            base,
            self.relation,
            digits=self.digits,
            lacking=self.lacking,
        )


def epochs(folder, other_folder, seeds):
    """Rounds that DS saves in one folder over another; what never arrives is cut."""

    def late(name):
        arrivals = []
        for seed in seeds:
            length = len(runs_of(name, "rounds")[seed, "DS"]["round"])
            arrival = rounds(name, seed, "DS", LOW_75[1])
            arrivals.append(-np.mean([arrival.get(x, length) for x in LOW_75[1]]))
        return arrivals

    return lambda: (late(folder), late(other_folder))


def before_the_thousandth():
    arrival = [rounds(*run, "DS", cells(85, shares=[20]))[85, 20] for run in FEMNIST]
    return [-each for each in arrival], [-1000] * 5


def highest_of_all():
    labels = ("DS", "MD,DS,LD (backtracking)")
    best = [
        max(100 * column(*run, label, "rounds", "accuracy").max() for label in labels)
        for run in FEMNIST
    ]
    return best, [80] * 5


def later_as_a_share(label, columns):
    def sides():
        there = reached(columns, FEMNIST_RELU, ["DS", label])
        own, base = (mean_rounds(there, FEMNIST_RELU, x) for x in (label, "DS"))
        return own / base - 1, [0]

    return sides


def rank_correlation(of_runs):
    """Spearman's, of the first criterion's variation in the cohorts and the best."""

    def correlation(folder, seed):
        variation = {}
        for name in ("DS", "LD", "MD"):
            each = []
            for label in NINE:
                cohort = runs_of(folder, "cohort")[seed, label]
                number, values, excluded = (
                    np.array(cohort[head], float)
                    for head in ("round", name, "excluded")
                )
                for one in np.unique(number):
                    kept = values[(number == one) & (excluded == 0)]
                    each.append(kept.std() / kept.mean())
            variation[name] = np.mean(each)
        first = [variation[label.split(",")[0]] for label in NINE]
        best = [column(folder, seed, x, "rounds", "correct").max() for x in NINE]
        return spearmanr(first, best)[0]

    return lambda: ([correlation(*run) for run in of_runs], [0] * len(of_runs))


def most_labels():
    of_runs = [*NONIID, *runs("mnist_table4_ld", (6, 7, 8))]
    most = [column(*run, "DS", "cohort", "LD").max() for run in of_runs]
    return most, [2] * len(most)


FEDAVG, ADAFED, ONLY = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = f"{ONLY}, times samples"


def of_the_sixth_client(head):
    """What the sixth client has in round 1, minus the most of the others."""

    def ahead(seed):
        cohort = runs_of("adafed_1", "cohort")[seed, TIMES]
        first = {
            client: float(number)
            for turn, client, number in zip(
                cohort["round"], cohort["client"], cohort[head]
            )
            if turn == "1"
        }
        return first.pop("client_6") - max(first.values())

    return lambda: ([ahead(seed) for seed in SEEDS], [0] * 5)


def less_than_twelve():
    needed = []
    for seed in SEEDS:
        second = column("adafed_1", seed, TIMES, "rounds", "correct")[1]
        right = column("adafed_1", seed, FEDAVG, "rounds", "correct")
        needed.append(1 + np.flatnonzero(right >= second)[0])
    return [-number for number in needed], [-12] * 5


def f1_by_class(seed, label):
    """The F1 of each round and class."""
    return column("adafed_2", seed, label, "class_f1", "f1").reshape(-1, 10)


def f1_of_classes(label, base, classes):
    return lambda: [
        [f1_by_class(seed, name)[:, classes].mean() for seed in SEEDS]
        for name in (label, base)
    ]


def spread_of_f1(label, base):
    return lambda: [
        [f1_by_class(seed, name).std(axis=1).mean() for seed in SEEDS]
        for name in (label, base)
    ]


def growth_of_the_lead(head):
    """AdaFed's lead at the end with adversaries, and without."""

    def lead(number, seed):
        ends = [
            100 * column(f"adafed_{number}", seed, label, "rounds", head)[15:20].mean()
            for label in (ADAFED, FEDAVG)
        ]
        return ends[0] - ends[1]

    return lambda: [[lead(number, seed) for seed in SEEDS] for number in (3, 2)]


def weight_over_the_others(client):
    def over(seed):
        cohort = runs_of("adafed_3", "cohort")[seed, ADAFED]
        weights = np.array(cohort["weight"], float)
        of_client = np.array(cohort["client"]) == client
        return weights[of_client].mean() - weights[~of_client].mean()

    return lambda: ([over(seed) for seed in SEEDS], [0] * 5)


def last_epoch_of_laplace():
    folder, label = "dual_table4_images", "Laplace, 3 clients"
    last = [100 * column(folder, k, label, "rounds", "accuracy")[-1] for k in SEEDS]
    return last, [10] * 5


ADJUSTED = "MD,DS,LD (backtracking)"


def adjusted_saves(*columns, of_runs=FEMNIST, over="DS", **options):
    return saves(ADJUSTED, of_runs, *columns, over=over, name="{columns}", **options)


def over_the_others(labels, columns, others=SIX, name="{}"):
    """What weightings save over the mean of the others, in each of some columns."""
    rest = [label for label in others if label not in labels]
    name += ", over the mean of the others"
    return [
        RoundsSaved(name.format(words), FEMNIST_RELU, labels, those, over=rest)
        for words, those in columns
    ]


SCORES = {
    "weighted_average": "average[0.5,0.3,0.2]:MD,DS,LD",
    "owa": "OWA[most]:DS,LD,MD",
    "choquet": "Choquet[0.4,0.3,0.2,0.8,0.5,0.4]:DS,LD,MD",
}
ALONE = ["DS", "MD", "LD"]
PRINTED_MEANS = (2.5, 3.7, 3.4, 4.1, 64.2)
DA = {
    "DA-1": [
        Lead(
            f"MD,DS,LD minus {name}, points",
            *("femnist_scores_relu", "MD,DS,LD", label, (5, 8)),
            seeds=[0],
            digits=1,
        )
        for name, label in SCORES.items()
    ],
    "DA-2": [
        Computed(
            f"Low at 75 %, over {name}", [folder, other], epochs(folder, other, seeds)
        )
        for name, folder, other, seeds in (
            ("E = 1, B = 10", "femnist_table1_relu", "femnist_e1_b10_relu", [0]),
            ("E = 5, B = 50", "femnist_table1_relu", "femnist_e5_b50_relu", [0]),
            ("E = 20, B = 10", "femnist_online", "femnist_e20_b10", SEEDS),
        )
    ],
    "DA-3": [
        Computed(
            "rounds before the thousandth",
            ["femnist_online"],
            before_the_thousandth,
            ("at most", 0),
        )
    ],
    "DA-4": [  # They have a tenth of the paper's rounds.
        Computed(
            "highest minus 80, points",
            ["femnist_online"],
            highest_of_all,
            LESS,
            lacking=True,
        )
    ],
    "DA-5": [
        Computed(
            f"{label} {words}, over DS{', 1 of 2 columns' * (words == MID_80[0])}",
            ["femnist_table1_relu"],
            later_as_a_share(label, columns),
            ("within", 0.21),
            digits=2,
        )
        for label in ("MD", "LD")
        for words, columns in LOW_AND_MID
    ],
    "DA-7": over_the_others(["DS,LD,MD", "DS,MD,LD"], LOW_AND_MID),
    "DA-8": [
        *over_the_others(["DS"], LOW_AND_MID, ALONE, "DS {}"),
        *over_the_others(["LD"], [HIGH_75], ALONE, "LD {}"),
    ],
    "DA-10": over_the_others(["DS,LD,MD", "DS,MD,LD", "MD,DS,LD"], LOW_TO_HIGH),
    "DA-11": over_the_others([ADJUSTED], LOW_TO_HIGH, SIX_ADJUSTED),
    "DA-12": [
        RoundsSaved(
            f"{words}, mean of six",
            *(FEMNIST_RELU, SIX_ADJUSTED, columns),
            over=SIX,
            in_words=(size, size),
        )
        for (words, columns), size in zip(LOW_TO_HIGH, PRINTED_MEANS)
    ],
    "DA-13": adjusted_saves(*LOW_TO_HIGH, of_runs=FEMNIST_FIXED, over="MD,DS,LD"),
    "DA-14": adjusted_saves(LOW_75, MID_75),
    "DA-15": adjusted_saves(LOW_80, MID_80),
    "DA-16": adjusted_saves(HIGH_75),
    "DA-17": adjusted_saves(LOW_75, relation=("between", 1, math.inf)),
}


def points_over_ds(labels, tolerance, **options):
    """The lead in the second half of sixteen rounds."""
    return [
        Lead(
            f"{label} points",
            *("mnist_table2", label, "DS", (9, 16), ("within", tolerance)),
            seeds=(0, 1, 3, 4, 5),
            digits=1,
            **options,
        )
        for label in labels
    ]


def variance_helps(folder, of_runs):
    """It takes 100 or 250 rounds, which the runs have not."""
    name, sides = "rank correlation with the best accuracy", rank_correlation(of_runs)
    return [Computed(name, [folder], sides, digits=2, lacking=True)]


ONE_ROUND = ("within", 1)
PMC = {
    "PMC-1": variance_helps("mnist_table2", IID),
    "PMC-2": variance_helps("mnist_table4", NONIID),
    "PMC-4": points_over_ds(["LD"], 0),
    "PMC-5": [
        *saves("LD", IID, AT[70], AT[80], AT[90], relation=ONE_ROUND),
        *saves("MD", IID, AT[70], AT[80], AT[90], relation=ONE_ROUND),
    ],
    "PMC-6": [
        *saves("LD", IID, END_OF_95, relation=LESS),
        *saves("MD", IID, END_OF_95, relation=LESS),
    ],
    "PMC-7": [
        RoundsSaved(
            "DS over the mean of LD and MD",
            *(NONIID_LONG, ["DS"], END_OF_95[1]),
            over=["LD", "MD"],
        )
    ],
    "PMC-8": saves("LD", NINE_SEEDS, AT_70_AND_80, in_words=(1, 2)),
    "PMC-9": saves("MD", SIX_SEEDS, AT_70_AND_80, in_words=(1, 2)),
    "PMC-10": [
        *saves("LD", NINE_SEEDS, AT[70], AT[80]),
        *saves("MD", SIX_SEEDS, AT[70]),
        *saves("MD", SIX_SEEDS, AT[80], relation=LESS),
    ],
    "PMC-11": [
        *saves("LD", NONIID_LONG, AT_90_AND_95, relation=LESS, in_words=(-12, -5)),
        *saves("MD", NONIID_LONG, AT_90_AND_95, relation=LESS, in_words=(-12, -5)),
    ],
    "PMC-12": [
        *saves("LD", NONIID_LONG, AT[90]),
        *saves("LD", NONIID_LONG, AT[95], relation=LESS),
        *saves("MD", NONIID_LONG, AT[90], AT[95], relation=LESS),
    ],
    "PMC-13": [
        *saves("LD", NONIID_LONG, OVER_33, relation=ONE_ROUND),
        *saves("MD", NONIID_LONG, OVER_33, relation=LESS),
    ],
    "PMC-14": [
        *saves("LD", NONIID_LONG, END_OF_95, relation=LESS),
        *saves("MD", NONIID_LONG, END_OF_95, relation=LESS),
    ],
    "PMC-20": [
        part
        for label in SIX
        for part in saves(label, IID, AT_70_TO_90, relation=ONE_ROUND)
    ],
    "PMC-21": [
        *saves("LD,MD,DS", IID_LONG, AT_70_TO_90),
        *saves("LD,MD,DS", IID_LONG, END_OF_95, relation=LESS),
    ],
    "PMC-22": points_over_ds(EIGHT, 0.5, lacking=True),  # It takes 100 rounds.
    "PMC-23": [
        GainGrows("percent", NONIID, SIX, cells(90, 95), cells(70, 80), loses=True)
    ],
    "PMC-26": [
        *saves("LD,DS,MD", NONIID, AT[70], AT[80], AT[95]),
        *saves("LD,DS,MD", NONIID, AT[90], relation=ONE_ROUND),
    ],
    "PMC-27": [
        GainGrows(
            "gain at 70 and 80 % minus at 90 and 95 %",
            *(NONIID, ["LD,DS,MD"], cells(70, 80), cells(90, 95)),
        )
    ],
    "PMC-28": [
        GainGrows(
            "gain at 90 and 95 % minus at 70 and 80 %",
            *(NONIID, ["MD,DS,LD"], cells(90, 95), cells(70, 80)),
        )
    ],
    "PMC-29": [
        *saves("MD,DS,LD", NONIID, AT[70], AT[80], relation=ONE_ROUND),
        *saves("MD,DS,LD", NONIID, AT[90], in_words=(2.1, 2.1)),
        *saves("MD,DS,LD", NONIID, AT[95], in_words=(1.7, 1.7)),
    ],
    "PMC-30": saves("MD,DS,LD", NONIID, AT[90]),
    "PMC-31": [
        *saves("MD,LD,DS", SIX_SEEDS, AT[70], AT[80], relation=ONE_ROUND),
        *saves("MD,LD,DS", NONIID_LONG, AT[90], AT[95]),
    ],
    "PMC-38": saves("LD", NONIID_LONG, AT_ALL, relation=ONE_ROUND),
    "PMC-39": [
        Computed(
            "labels of some client, beyond two",
            ["mnist_table4", "mnist_table4_ld"],
            most_labels,
            ("at most", 0),
        )
    ],
    "PMC-40": [
        *saves("MD", SIX_SEEDS, AT[70]),
        *saves("MD", NONIID_LONG, AT[95], relation=LESS),
    ],
    "PMC-41": [
        RoundsSaved(
            "the best of the eight",
            *(NONIID, EIGHT, AT_ALL[1], ("between", 1, math.inf)),
            pick=np.max,
            digits=2,
        )
    ],
    "PMC-43": [
        GainGrows(
            "mean gain, non-IID minus IID",
            runs("mnist_table4", (0, 1, 3, 4, 5)),
            *(EIGHT, AT_70_TO_90[1], AT_70_TO_90[1]),
            other_runs=IID,
        )
    ],
}

EVERY_ROUND, EARLY, END = (1, 20), (2, 10), (16, 20)
ACCURACY_AND_F1 = {
    "points of accuracy": "accuracy",
    "hundredths of macro F1": "macro_f1",
}


def lead_in_f1(of_rounds):
    return [
        Lead(
            f"minus {base}, hundredths of F1",
            *("adafed_2", ADAFED, base, of_rounds),
            column="macro_f1",
        )
        for base in (ONLY, FEDAVG)
    ]


def lost_to_adversaries(label, *relations):
    return [
        Lead(
            f"{words} lost",
            *("adafed_2", label, label, END, relation, head),
            base_folder="adafed_3",
        )
        for (words, head), relation in zip(ACCURACY_AND_F1.items(), relations)
    ]


def better_f1(name, label, base, classes):
    sides = f1_of_classes(label, base, classes)
    return Computed(name, ["adafed_2"], sides, digits=3)


FEW = [0, 1, 2]
ADAFED_CLAIMS = {
    "AdaFed-1": [Lead("points in round 1", "adafed_1", TIMES, FEDAVG, (1, 1))],
    "AdaFed-2": [
        Lead(f"{TIMES} minus FedAvg, points", "adafed_1", TIMES, FEDAVG, EARLY)
    ],
    "AdaFed-3": [
        Computed("accuracy", ["adafed_1"], of_the_sixth_client("ACC"), digits=3),
        Computed("weight", ["adafed_1"], of_the_sixth_client("weight"), digits=3),
    ],
    "AdaFed-4": [
        Computed(
            "rounds that FedAvg needs less than twelve",
            ["adafed_1"],
            less_than_twelve,
            ("at most", 0),
            digits=2,
        )
    ],
    "AdaFed-5": [
        Lead(f"{label}, points", "adafed_2", label, FEDAVG, END, ("between", 1.5, 6))
        for label in (ONLY, ADAFED)
    ],
    "AdaFed-6": [Lead("points", "adafed_2", ADAFED, ONLY, EARLY)],
    "AdaFed-7": lead_in_f1(EVERY_ROUND),
    "AdaFed-8": [
        better_f1("minus FedAvg", ADAFED, FEDAVG, FEW),
        better_f1(f"minus {ONLY}", ADAFED, ONLY, FEW),
    ],
    "AdaFed-9": [better_f1("minus FedAvg", ONLY, FEDAVG, FEW)],
    "AdaFed-10": [
        better_f1(f"class {number}", ADAFED, FEDAVG, [number]) for number in FEW
    ],
    "AdaFed-11": lead_in_f1(EARLY),
    "AdaFed-12": [
        Computed(
            f"{label} minus {base}",
            ["adafed_2"],
            spread_of_f1(label, base),
            LESS,
            digits=4,
        )
        for label, base in ((ADAFED, ONLY), (ONLY, FEDAVG))
    ],
    "AdaFed-13": lost_to_adversaries(ADAFED, ("within", 2), ("within", 3)),
    "AdaFed-14": lost_to_adversaries(FEDAVG, MORE, MORE),
    "AdaFed-15": lost_to_adversaries(FEDAVG, ("between", 1, 4), ("between", 5, 20)),
    "AdaFed-16": [
        Computed(words, ["adafed_3", "adafed_2"], growth_of_the_lead(head), digits=2)
        for words, head in ACCURACY_AND_F1.items()
    ],
    "AdaFed-17": [
        Computed(
            f"client {number}",
            ["adafed_3"],
            weight_over_the_others(f"client_{number}"),
            LESS,
            digits=3,
        )
        for number in (7, 8)
    ],
}

THREE, FOUR = ("dual_table4_images", 3), ("dual_table4_four", 4)
TUNED = ("dual_table4_text", 3)
DUAL, MEAN, AVERAGE = "Dual-criterion", "Weighted mean", "Simple average"
PERSONALIZED, MOMENTUM = "Personalized", "Momentum"
SEVEN = [AVERAGE, MEAN, "Median", MOMENTUM, PERSONALIZED, "Laplace", "Quantized"]
ONE_SEED = ("Median", "Laplace", "Quantized")
"""The algorithms that ran with four clients under one seed alone."""


def over_the_seven(clients, *metrics):
    parts = []
    for metric, base in itertools.product(metrics, SEVEN):
        where, seeds = (THREE if clients == 3 else FOUR), SEEDS
        if clients == 4 and base in ONE_SEED:
            where, seeds = ("dual_table4", 4), [0]
        name = f"{metric} over {base.lower().replace(' ', '_')}"
        name = name.removeprefix("Accuracy ")
        parts.append(BestEpoch(name, *where, DUAL, base, metric=metric, seeds=seeds))
    return parts


DUAL_CLAIMS = {
    "Dual-1": [BestEpoch("points", *THREE, "Quantized", AVERAGE, ("within", 1))],
    "Dual-2": [BestEpoch("points", *THREE, MOMENTUM, MEAN, LESS)],
    "Dual-3": [BestEpoch("points", *FOUR, MOMENTUM, MEAN, LESS)],
    "Dual-4": [
        Computed(
            "points, last epoch",
            ["dual_table4_images"],
            last_epoch_of_laplace,
            ("at most", 1.5),
            digits=2,
        )
    ],
    "Dual-5": [BestEpoch("points", *TUNED, PERSONALIZED, AVERAGE)],
    "Dual-6": over_the_seven(3, "Accuracy", "F1 Score", "MCC"),
    "Dual-7": over_the_seven(4, "Accuracy", "Precision", "MCC"),
    "Dual-8": [BestEpoch("points", *THREE, DUAL, AVERAGE)],
    "Dual-9": [BestEpoch("points", *THREE, DUAL, MEAN)],
    "Dual-10": [BestEpoch("points", *FOUR, DUAL, AVERAGE)],
    "Dual-11": [BestEpoch("points", *FOUR, DUAL, MEAN)],
    "Dual-15": [BestEpoch("points", *THREE, DUAL, PERSONALIZED, ("at least", -1))],
    "Dual-16": [BestEpoch("points", *FOUR, DUAL, PERSONALIZED, ("at least", -1))],
}

CLAIMS = {**DA, **PMC, **ADAFED_CLAIMS, **DUAL_CLAIMS}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claims_numbers_and_verdict_follow_from_the_kept_records(claim):
    row = claim_rows()[claim]
    parts = [case.part() for case in CLAIMS[claim]]
    numbers = "; ".join(filter(None, map(text_of, parts)))
    sizes = re.compile(r" \([\d or]+ (clients|epochs)\)$")
    assert sizes.sub("", row["ours"]) == numbers
    verdicts = [verdict_on(part) for part in parts]
    verdict = next(word for word in WORST_FIRST if word in verdicts)
    assert row["verdict"] == verdict
    deciding = [part.name for part in parts if verdict_on(part) == verdict]
    named = "" if len(deciding) == len(parts) else "; ".join(deciding)
    assert row["decided_by"] == named
    folders = {folder for part in parts for folder in part.folders}
    assert {*row["folders"].split("; ")} == folders


def test_every_claim_that_has_a_number_or_is_judged_is_recomputed():
    judged = {
        claim
        for claim, row in claim_rows().items()
        if row["ours"] or row["verdict"] in ("reproduced", "not reproduced", "open")
    }
    assert judged == {*CLAIMS}
