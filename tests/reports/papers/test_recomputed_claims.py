"""The numbers and verdicts of the table of claims, from the kept records by NumPy.

Nothing here uses the package. `CLAIMS` says which runs, rounds and columns decide each
claim, and where the paper puts the number.
"""

import itertools
import math
import re

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
FEMNIST_ALONE = runs("femnist_alone")
FEMNIST_ORDERINGS = runs("femnist_fixed_orderings", (0,))
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


def weigh_alike(of_runs, label, base):
    """Whether two weightings are the same in every round of all runs."""
    return all(
        runs_of(folder, "cohort")[seed, label][head]
        == runs_of(folder, "cohort")[seed, base][head]
        for folder, seed in of_runs
        for head in ("round", "client", "weight")
    )


def printed_gains(of_runs, label, columns):
    """What the paper's table has a weighting save over DS in columns; NaN: nothing."""
    tables = {"femnist": "da_table1", "mnist_table2": "pmc_table2"}
    tables["mnist_table4"] = "pmc_table4"
    folder, _ = of_runs[0]
    (table,) = [name for start, name in tables.items() if folder.startswith(start)]
    base, arrivals = (printed_rounds(table, name) for name in ("DS", label))
    return [base.get(x, math.nan) - arrivals.get(x, math.nan) for x in columns]


def saved(
    name,
    of_runs,
    labels,
    columns,
    relation=MORE,
    over=("DS",),
    in_words=(),
    pick=np.mean,
    digits=1,
):
    """The rounds that weightings save over others, mean over columns all runs reach.

    For several weightings it is their mean, or what `pick` returns. `in_words` is
    the size that the paper's words give, which is of all columns.
    """
    compared = [*labels, *over]
    there = reached(columns, of_runs, compared)
    count = count_of((len(there), len(columns))) if there else ""
    sides, printed = [(), ()], ()
    if there:
        sides = [
            pick([-mean_rounds(there, of_runs, label) for label in side], axis=0)
            for side in (labels, over)
        ]
        gain, base_gain = (
            pick([np.mean(printed_gains(of_runs, label, there)) for label in side])
            for side in (labels, over)
        )
        if in_words and not count:
            printed = in_words
        elif math.isfinite(gain - base_gain):
            printed = (gain - base_gain,) * 2
    return Part(
        name,
        [folder for folder, _ in of_runs],
        *sides,
        relation,
        printed,
        digits,
        count,
        alike=len(compared) == 2 and weigh_alike(of_runs, *compared),
    )


def saves(label, of_runs, *columns, over="DS", name="{label} {columns}", **options):
    """The rounds that a weighting saves over another in each of some columns."""
    return [
        saved(
            name.format(label=label, columns=words).strip(),
            *(of_runs, [label], those),
            over=[over],
            **options,
        )
        for words, those in columns
    ]


def gain_grows(name, labels, *sides, loses=False):
    """What weightings gain over DS, minus the same of other runs or columns.

    Each side has runs and columns. The gain is in rounds, or with `loses` it is the
    percentage of the columns in which DS is sooner.
    """
    means, sizes, counts = [], [], []
    for of_runs, columns in sides:
        there = reached(columns, of_runs, ["DS", *labels])
        counts.append((len(there), len(columns)))
        arrivals = {
            label: np.array([mean_rounds([cell], of_runs, label) for cell in there])
            for label in ["DS", *labels]
        }
        gains = np.array([arrivals["DS"] - arrivals[label] for label in labels])
        printed = np.array([printed_gains(of_runs, label, there) for label in labels])
        if loses:
            gains, printed = 100 * (gains < 0), 100 * (printed < 0)
        means.append(gains.mean(axis=(0, 1)))
        sizes.append(printed.mean())
    folders = [folder for of_runs, _ in sides for folder, _ in of_runs]
    printed = (sizes[0] - sizes[1],) * 2
    return Part(name, folders, *means, MORE, printed, columns=count_of(*counts))


def lead(
    name,
    folder,
    label,
    base,
    of_rounds,
    relation=MORE,
    head="accuracy",
    base_folder="",
    seeds=SEEDS,
    digits=2,
    lacking=False,
):
    """How far a run is ahead of another in a column, mean over rounds, in hundredths.

    The other may be of another folder.
    """
    first, last = of_rounds
    base_folder = base_folder or folder
    sides = [
        [
            100 * column(place, seed, side, "rounds", head)[first - 1 : last].mean()
            for seed in seeds
        ]
        for place, side in ((folder, label), (base_folder, base))
    ]
    same_folder = folder == base_folder
    alike = same_folder and weigh_alike(runs(folder, seeds), label, base)
    folders = [folder, base_folder]
    return Part(
        name, folders, *sides, relation, digits=digits, alike=alike, lacking=lacking
    )


def best_epoch(
    name,
    folder,
    clients,
    algorithm,
    base,
    relation=MORE,
    metric="Accuracy",
    seeds=SEEDS,
):
    """Dual's lead over another algorithm at the best epoch of each, in points.

    Precision, F1 and MCC, of Dual-6 and Dual-7, are of the answers to each image, which
    are not kept: they are read from our kept table, and only what follows from them is
    recomputed. Nothing is said of weights: each is an algorithm of its own.
    """
    table = f"dual_table4{'_seeds' if len(seeds) > 1 else ''}.csv"
    sides, sizes = [], []
    for side in (algorithm, base):
        of_row = {
            "algorithm": ROWS_OF_TABLE_4.get(side, side.title()),
            "clients": "&".join(f"C{number + 1}" for number in range(clients)),
            "metric": metric,
        }.items()
        if metric == "Accuracy":
            label = f"{side}, {clients} clients"
            values = [best_accuracy(folder, seed, label, clients) for seed in seeds]
        else:
            values = [
                float(line["ours_best_epoch"])
                for line in read_csv(KEPT / folder / table)
                if of_row <= line.items() and int(line.get("seed", 0)) in seeds
            ]
        assert len(values) == len(seeds)
        sides.append(100 * np.array(values))
        (printed,) = [
            float(line["value"])
            for line in printed_table("dualcriterion_table4")
            if of_row <= line.items()
        ]
        sizes.append(100 * printed)
    printed = (sizes[0] - sizes[1],) * 2
    return Part(name, [folder], *sides, relation, printed, digits=2)


ROWS_OF_TABLE_4 = {
    "Dual-criterion": "Dual-Criterion Weighted",
    "Laplace": "Differential Privacy",
    "Quantized": "Quantization",
}


def best_accuracy(folder, seed, label, clients):
    right, examples = (
        column(folder, seed, label, "clients", head).reshape(-1, clients).sum(axis=1)
        for head in ("correct", "examples")
    )
    return (right / examples).max()


def epochs(folder, other_folder, seeds):
    """What DS needs in two folders, as less; what never arrives is cut."""

    def late(name, seed):
        length = len(runs_of(name, "rounds")[seed, "DS"]["round"])
        arrival = rounds(name, seed, "DS", LOW_75[1])
        return -np.mean([arrival.get(cell, length) for cell in LOW_75[1]])

    return [[late(name, seed) for seed in seeds] for name in (folder, other_folder)]


def before_85():
    return [-rounds(*run, "DS", [(85, 20)])[85, 20] for run in FEMNIST_ALONE]


def highest_of_all():
    return [
        max(100 * column(*run, label, "rounds", "accuracy").max() for label in ALONE)
        for run in FEMNIST_ALONE
    ]


def percent_later(label, words, columns):
    there = reached(columns, FEMNIST_ALONE, ["DS", label])
    later, base = (mean_rounds(there, FEMNIST_ALONE, x) for x in (label, "DS"))
    return Part(
        f"{label} {words}, percent later than DS",
        ["femnist_alone"],
        *(100 * (later / base - 1), 0, ("within", 21)),
        columns=count_of((len(there), len(columns))),
    )


ADJUSTED = "MD,DS,LD (backtracking)"


def adjusted_saves(*columns, of_runs=FEMNIST, over="DS", **options):
    return saves(ADJUSTED, of_runs, *columns, over=over, name="{columns}", **options)


def over_the_others(labels, columns, others=SIX, name="{}", of_runs=FEMNIST_ORDERINGS):
    """What weightings save over the mean of the others, in each of some columns."""
    rest = [label for label in others if label not in labels]
    name += ", over the mean of the others"
    return [
        saved(name.format(words), of_runs, labels, those, over=rest)
        for words, those in columns
    ]


SCORES = {
    "weighted_average": "average[0.5,0.3,0.2]:MD,DS,LD",
    "owa": "OWA[most]:DS,LD,MD",
    "choquet": "Choquet[0.4,0.3,0.2,0.8,0.5,0.4]:DS,LD,MD",
}
OTHER_EPOCHS = {
    "E = 1, B = 10": ("femnist_table1_relu", "femnist_e1_b10_relu", [0]),
    "E = 5, B = 50": ("femnist_table1_relu", "femnist_e5_b50_relu", [0]),
    "E = 20, B = 10": ("femnist_online", "femnist_e20_b10", SEEDS),
}
ALONE = ["DS", "MD", "LD"]
PRINTED_MEANS = (2.5, 3.7, 3.4, 4.1, 64.2)
# The numbers of each claim; they are computed when it is tested.
DA = {
    "DA-1": lambda: [
        lead(
            f"MD,DS,LD minus {name}, points",
            *("femnist_scores_relu", "MD,DS,LD", label, (5, 8)),
            seeds=[0],
            digits=1,
        )
        for name, label in SCORES.items()
    ],
    "DA-2": lambda: [
        Part(f"Low at 75 %, over {name}", folders[:2], *epochs(*folders))
        for name, folders in OTHER_EPOCHS.items()
    ],
    "DA-3": lambda: [
        Part(
            "rounds before the thousandth",
            *(["femnist_alone"], before_85(), -1000, ("at most", 0)),
        )
    ],
    "DA-4": lambda: [  # They have a tenth of the paper's rounds.
        Part(
            "highest minus 80, points",
            *(["femnist_alone"], highest_of_all(), 80, LESS),
            lacking=True,
        )
    ],
    "DA-5": lambda: [
        percent_later(label, *columns)
        for label in ("MD", "LD")
        for columns in LOW_AND_MID
    ],
    "DA-6": lambda: [
        part for label in ("MD", "LD") for part in saves(label, FEMNIST_ALONE, HIGH_75)
    ],
    "DA-7": lambda: over_the_others(["DS,LD,MD", "DS,MD,LD"], LOW_AND_MID),
    "DA-8": lambda: [
        *over_the_others(["DS"], LOW_AND_MID, ALONE, "DS {}", FEMNIST_ALONE),
        *over_the_others(["LD"], [HIGH_75], ALONE, "LD {}", FEMNIST_ALONE),
    ],
    "DA-9": lambda: over_the_others(["MD,DS,LD"], [HIGH_75]),
    "DA-10": lambda: over_the_others(["DS,LD,MD", "DS,MD,LD", "MD,DS,LD"], LOW_TO_HIGH),
    "DA-11": lambda: over_the_others(
        [ADJUSTED], LOW_TO_HIGH, SIX_ADJUSTED, of_runs=FEMNIST_RELU
    ),
    "DA-12": lambda: [
        saved(
            f"{words}, mean of six",
            *(FEMNIST_RELU, SIX_ADJUSTED, columns, MORE, SIX, (size, size)),
        )
        for (words, columns), size in zip(LOW_TO_HIGH, PRINTED_MEANS)
    ],
    "DA-13": lambda: adjusted_saves(
        *LOW_TO_HIGH, of_runs=runs("femnist_fixed"), over="MD,DS,LD"
    ),
    "DA-14": lambda: adjusted_saves(LOW_75, MID_75),
    "DA-15": lambda: adjusted_saves(LOW_80, MID_80),
    "DA-16": lambda: adjusted_saves(HIGH_75),
    "DA-17": lambda: adjusted_saves(LOW_75, relation=("between", 1, math.inf)),
}


def points_over_ds(labels, tolerance, **options):
    """The lead in the second half of sixteen rounds."""
    return [
        lead(
            f"{label} points",
            *("mnist_table2", label, "DS", (9, 16), ("within", tolerance)),
            seeds=(0, 1, 3, 4, 5),
            digits=1,
            **options,
        )
        for label in labels
    ]


def variance_helps(of_runs):
    """Spearman's rank correlation of the first criterion's variation and the best.

    The claims take 100 and 250 rounds, which the runs have not.
    """

    def variations(cohort, name):
        number, values, excluded = (
            np.array(cohort[head], float) for head in ("round", name, "excluded")
        )
        for which in np.unique(number):
            there = values[(number == which) & (excluded == 0)]
            yield there.std() / there.mean()

    def correlation(folder, seed):
        cohorts = [runs_of(folder, "cohort")[seed, label] for label in NINE]
        variation = {
            name: np.mean([x for cohort in cohorts for x in variations(cohort, name)])
            for name in ("DS", "LD", "MD")
        }
        first = [variation[label.split(",")[0]] for label in NINE]
        best = [column(folder, seed, x, "rounds", "correct").max() for x in NINE]
        return spearmanr(first, best)[0]

    return Part(
        "rank correlation with the best accuracy",
        *([of_runs[0][0]], [correlation(*run) for run in of_runs], 0),
        digits=2,
        lacking=True,
    )


def most_labels():
    of_runs = [*NONIID, *runs("mnist_table4_ld", (6, 7, 8))]
    most = [column(*run, "DS", "cohort", "LD").max() for run in of_runs]
    folders = [folder for folder, _ in of_runs]
    return Part("labels of some client, beyond two", folders, most, 2, ("at most", 0))


ONE_ROUND = ("within", 1)
PMC = {
    "PMC-1": lambda: [variance_helps(IID)],
    "PMC-2": lambda: [variance_helps(NONIID)],
    "PMC-4": lambda: points_over_ds(["LD"], 0),
    "PMC-5": lambda: [
        *saves("LD", IID, AT[70], AT[80], AT[90], relation=ONE_ROUND),
        *saves("MD", IID, AT[70], AT[80], AT[90], relation=ONE_ROUND),
    ],
    "PMC-6": lambda: [
        *saves("LD", IID, END_OF_95, relation=LESS),
        *saves("MD", IID, END_OF_95, relation=LESS),
    ],
    "PMC-7": lambda: [
        saved(
            "DS over the mean of LD and MD",
            *(NONIID_LONG, ["DS"], END_OF_95[1], MORE, ["LD", "MD"]),
        )
    ],
    "PMC-8": lambda: saves("LD", NINE_SEEDS, AT_70_AND_80, in_words=(1, 2)),
    "PMC-9": lambda: saves("MD", SIX_SEEDS, AT_70_AND_80, in_words=(1, 2)),
    "PMC-10": lambda: [
        *saves("LD", NINE_SEEDS, AT[70], AT[80]),
        *saves("MD", SIX_SEEDS, AT[70]),
        *saves("MD", SIX_SEEDS, AT[80], relation=LESS),
    ],
    "PMC-11": lambda: [
        *saves("LD", NONIID_LONG, AT_90_AND_95, relation=LESS, in_words=(-12, -5)),
        *saves("MD", NONIID_LONG, AT_90_AND_95, relation=LESS, in_words=(-12, -5)),
    ],
    "PMC-12": lambda: [
        *saves("LD", NONIID_LONG, AT[90]),
        *saves("LD", NONIID_LONG, AT[95], relation=LESS),
        *saves("MD", NONIID_LONG, AT[90], AT[95], relation=LESS),
    ],
    "PMC-13": lambda: [
        *saves("LD", NONIID_LONG, OVER_33, relation=ONE_ROUND),
        *saves("MD", NONIID_LONG, OVER_33, relation=LESS),
    ],
    "PMC-14": lambda: [
        *saves("LD", NONIID_LONG, END_OF_95, relation=LESS),
        *saves("MD", NONIID_LONG, END_OF_95, relation=LESS),
    ],
    "PMC-20": lambda: [
        part
        for label in SIX
        for part in saves(label, IID, AT_70_TO_90, relation=ONE_ROUND)
    ],
    "PMC-21": lambda: [
        *saves("LD,MD,DS", IID_LONG, AT_70_TO_90),
        *saves("LD,MD,DS", IID_LONG, END_OF_95, relation=LESS),
    ],
    "PMC-22": lambda: points_over_ds(EIGHT, 0.5, lacking=True),  # It takes 100 rounds.
    "PMC-23": lambda: [
        gain_grows(
            "percent", SIX, (NONIID, cells(90, 95)), (NONIID, cells(70, 80)), loses=True
        )
    ],
    "PMC-26": lambda: [
        *saves("LD,DS,MD", NONIID, AT[70], AT[80], AT[95]),
        *saves("LD,DS,MD", NONIID, AT[90], relation=ONE_ROUND),
    ],
    "PMC-27": lambda: [
        gain_grows(
            "gain at 70 and 80 % minus at 90 and 95 %",
            *(["LD,DS,MD"], (NONIID, cells(70, 80)), (NONIID, cells(90, 95))),
        )
    ],
    "PMC-28": lambda: [
        gain_grows(
            "gain at 90 and 95 % minus at 70 and 80 %",
            ["MD,DS,LD"],
            *((NONIID_LONG, cells(90, 95)), (NONIID_LONG, cells(70, 80))),
        )
    ],
    "PMC-29": lambda: [
        *saves("MD,DS,LD", SIX_SEEDS, AT[70], AT[80], relation=ONE_ROUND),
        *saves("MD,DS,LD", NONIID_LONG, AT[90], in_words=(2.1, 2.1)),
        *saves("MD,DS,LD", NONIID_LONG, AT[95], in_words=(1.7, 1.7)),
    ],
    "PMC-30": lambda: saves("MD,DS,LD", NONIID_LONG, AT[90]),
    "PMC-31": lambda: [
        *saves("MD,LD,DS", SIX_SEEDS, AT[70], AT[80], relation=ONE_ROUND),
        *saves("MD,LD,DS", NONIID_LONG, AT[90], AT[95]),
    ],
    "PMC-38": lambda: saves("LD", NONIID_LONG, AT_ALL, relation=ONE_ROUND),
    "PMC-39": lambda: [most_labels()],
    "PMC-40": lambda: [
        *saves("MD", SIX_SEEDS, AT[70]),
        *saves("MD", NONIID_LONG, AT[95], relation=LESS),
    ],
    "PMC-41": lambda: [
        saved(
            "the best of the eight",
            *(NONIID, EIGHT, AT_ALL[1], ("between", 1, math.inf)),
            pick=np.max,
            digits=2,
        )
    ],
    "PMC-43": lambda: [
        gain_grows(
            "mean gain, non-IID minus IID",
            EIGHT,
            (runs("mnist_table4", (0, 1, 3, 4, 5)), cells(70, 80, 90)),
            (IID, cells(70, 80, 90)),
        )
    ],
}


FEDAVG, ADAFED, ONLY = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = f"{ONLY}, times samples"
EVERY_ROUND, EARLY, END = (1, 20), (2, 10), (16, 20)
F1 = "hundredths of macro F1"
HEADS = {"points of accuracy": "accuracy", F1: "macro_f1"}


def sixth_client(head):
    """What the sixth client has in round 1, minus the most of the others."""
    ahead = []
    for seed in SEEDS:
        cohort = runs_of("adafed_1", "cohort")[seed, TIMES]
        rows = zip(cohort["round"], cohort["client"], cohort[head])
        first = {client: float(value) for turn, client, value in rows if turn == "1"}
        ahead.append(first.pop("client_6") - max(first.values()))
    return ahead


def less_than_twelve():
    needed = []
    for seed in SEEDS:
        second = column("adafed_1", seed, TIMES, "rounds", "correct")[1]
        right = column("adafed_1", seed, FEDAVG, "rounds", "correct")
        needed.append(-(1 + np.flatnonzero(right >= second)[0]))
    name = "rounds that FedAvg needs less than twelve"
    return Part(name, ["adafed_1"], needed, -12, ("at most", 0), digits=2)


def lead_in_f1(of_rounds):
    return [
        lead(
            f"minus {base}, hundredths of F1",
            *("adafed_2", ADAFED, base, of_rounds, MORE, "macro_f1"),
        )
        for base in (ONLY, FEDAVG)
    ]


def class_f1(name, label, base, measure, relation=MORE, digits=3):
    """A measure of the F1 of all rounds and classes."""
    sides = [
        [
            measure(column("adafed_2", k, side, "class_f1", "f1").reshape(-1, 10))
            for k in SEEDS
        ]
        for side in (label, base)
    ]
    return Part(name, ["adafed_2"], *sides, relation, digits=digits)


def few(f1):
    return f1[:, :3].mean()


def spread(f1):
    return f1.std(axis=1).mean()


def lost_to_adversaries(label, *relations):
    return [
        lead(
            f"{words} lost",
            *("adafed_2", label, label, END, relation, head, "adafed_3"),
        )
        for (words, head), relation in zip(HEADS.items(), relations)
    ]


def growth_of_the_lead(words):
    """AdaFed's lead at the end with adversaries, and without."""
    folders = ["adafed_3", "adafed_2"]
    leads = [
        lead("", folder, ADAFED, FEDAVG, END, head=HEADS[words]) for folder in folders
    ]
    sides = [np.subtract(each.values, each.base) for each in leads]
    return Part(words, folders, *sides, digits=2)


def weight_over_the_others(client):
    over = []
    for seed in SEEDS:
        cohort = runs_of("adafed_3", "cohort")[seed, ADAFED]
        weights = np.array(cohort["weight"], float)
        of_client = np.array(cohort["client"]) == f"client_{client}"
        over.append(weights[of_client].mean() - weights[~of_client].mean())
    return Part(f"client {client}", ["adafed_3"], over, 0, LESS, digits=3)


ADAFED_CLAIMS = {
    "AdaFed-1": lambda: [lead("points in round 1", "adafed_1", TIMES, FEDAVG, (1, 1))],
    "AdaFed-2": lambda: [
        lead(f"{TIMES} minus FedAvg, points", "adafed_1", TIMES, FEDAVG, EARLY)
    ],
    "AdaFed-3": lambda: [
        Part("accuracy", ["adafed_1"], sixth_client("ACC"), 0, digits=3),
        Part("weight", ["adafed_1"], sixth_client("weight"), 0, digits=3),
    ],
    "AdaFed-4": lambda: [less_than_twelve()],
    "AdaFed-5": lambda: [
        lead(f"{label}, points", "adafed_2", label, FEDAVG, END, ("between", 1.5, 6))
        for label in (ONLY, ADAFED)
    ],
    "AdaFed-6": lambda: [lead("points", "adafed_2", ADAFED, ONLY, EARLY)],
    "AdaFed-7": lambda: lead_in_f1(EVERY_ROUND),
    "AdaFed-8": lambda: [
        class_f1("minus FedAvg", ADAFED, FEDAVG, few),
        class_f1(f"minus {ONLY}", ADAFED, ONLY, few),
    ],
    "AdaFed-9": lambda: [class_f1("minus FedAvg", ONLY, FEDAVG, few)],
    "AdaFed-10": lambda: [
        class_f1("class 0", ADAFED, FEDAVG, lambda f1: f1[:, 0].mean()),
        class_f1("class 1", ADAFED, FEDAVG, lambda f1: f1[:, 1].mean()),
        class_f1("class 2", ADAFED, FEDAVG, lambda f1: f1[:, 2].mean()),
    ],
    "AdaFed-11": lambda: lead_in_f1(EARLY),
    "AdaFed-12": lambda: [
        class_f1(f"AdaFed minus {ONLY}", ADAFED, ONLY, spread, LESS, 4),
        class_f1(f"{ONLY} minus FedAvg", ONLY, FEDAVG, spread, LESS, 4),
    ],
    "AdaFed-13": lambda: lost_to_adversaries(ADAFED, ("within", 2), ("within", 3)),
    "AdaFed-14": lambda: lost_to_adversaries(FEDAVG, MORE, MORE),
    "AdaFed-15": lambda: lost_to_adversaries(
        FEDAVG, ("between", 1, 4), ("between", 5, 20)
    ),
    "AdaFed-16": lambda: [growth_of_the_lead(words) for words in HEADS],
    "AdaFed-17": lambda: [weight_over_the_others(7), weight_over_the_others(8)],
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
        parts.append(best_epoch(name, *where, DUAL, base, metric=metric, seeds=seeds))
    return parts


def last_epoch_of_laplace():
    folder, label = "dual_table4_images", "Laplace, 3 clients"
    last = [100 * column(folder, k, label, "rounds", "accuracy")[-1] for k in SEEDS]
    return Part("points, last epoch", [folder], last, 10, ("at most", 1.5), digits=2)


AT_LEAST = ("at least", -1)
DUAL_CLAIMS = {
    "Dual-1": lambda: [best_epoch("points", *THREE, "Quantized", AVERAGE, ONE_ROUND)],
    "Dual-2": lambda: [best_epoch("points", *THREE, MOMENTUM, MEAN, LESS)],
    "Dual-3": lambda: [best_epoch("points", *FOUR, MOMENTUM, MEAN, LESS)],
    "Dual-4": lambda: [last_epoch_of_laplace()],
    "Dual-5": lambda: [best_epoch("points", *TUNED, PERSONALIZED, AVERAGE)],
    "Dual-6": lambda: over_the_seven(3, "Accuracy", "F1 Score", "MCC"),
    "Dual-7": lambda: over_the_seven(4, "Accuracy", "Precision", "MCC"),
    "Dual-8": lambda: [best_epoch("points", *THREE, DUAL, AVERAGE)],
    "Dual-9": lambda: [best_epoch("points", *THREE, DUAL, MEAN)],
    "Dual-10": lambda: [best_epoch("points", *FOUR, DUAL, AVERAGE)],
    "Dual-11": lambda: [best_epoch("points", *FOUR, DUAL, MEAN)],
    "Dual-15": lambda: [best_epoch("points", *THREE, DUAL, PERSONALIZED, AT_LEAST)],
    "Dual-16": lambda: [best_epoch("points", *FOUR, DUAL, PERSONALIZED, AT_LEAST)],
}

CLAIMS = {**DA, **PMC, **ADAFED_CLAIMS, **DUAL_CLAIMS}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claims_numbers_and_verdict_follow_from_the_kept_records(claim):
    row, parts = claim_rows()[claim], CLAIMS[claim]()
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
