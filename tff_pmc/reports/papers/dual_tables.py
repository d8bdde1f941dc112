"""Dual's Tables IV and V, ours beside the published numbers; see `dual_cells`.

Of several seeds ours are a mean and its spread, beside the one run that is published.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.read import Run, conditions_of
from tff_pmc.reports import REPORTS, SEED_REPORTS, Report, figures, pages
from tff_pmc.reports.paired import BySeed
from tff_pmc.reports.papers import published
from tff_pmc.reports.papers.dual_cells import (
    CHOICES,
    KEYS,
    METRICS,
    POSITIVE,
    chosen,
    clients_of,
    rows_of,
    searches,
    tidy_rows,
)
from tff_pmc.reports.papers.own_reading import image_fraction

TITLES = {4: "Dual Table IV (CIFAR-10)", 5: "Dual Table V (obstacles)"}
STAND_IN = "Stand-in data: a difference from the paper would mean nothing."
JUDGED_ON = {
    "test": "the reported examples, as printed (--judge_on=test). Its accuracy in an "
    "epoch is the highest of {count} models', and that of every other algorithm is one "
    "model's: it is {gain:.4f} above the mean of the lambdas, on the average over the "
    "epochs, for this choice alone. --judge_on=server chooses on the evaluation set, "
    "which otherwise gives the scores alone.",
    "server": "the evaluation set, which is not reported (--judge_on=server). The "
    "paper chooses it on the reported examples, --judge_on=test; so this row has less "
    "of an advantage than the printed one.",
    "local_validation": "a part of the clients' training examples "
    "(--judge_on=local_validation).",
}
"""Where lambda was chosen, by `--judge_on`, and what that means for a table."""

# With clients of one size, as Table IV has them, two rows are one algorithm, so that a
# difference between them is what chance alone does.
_NOISE: Mapping[int, Sequence[str]] = {
    4: [
        "Noise: with clients of one size Simple Average and Weighted Mean are the same "
        "algorithm; in the published table their accuracies differ by 0.0027 "
        "(C1&C2&C3) and 0.0002 (C1&C2&C3&C4), so differences of that size mean "
        "nothing. Our two share their seeds, and only the rounding of their sums "
        "differs: what training makes of that is the least noise of our rows. Other "
        "seeds add to it (--seeds)."
    ],
    5: [],
}
_LEFT_OUT = "{} is left out: no run of its algorithms."
_OF_LAMBDA = ("epoch", "lambda", "equally good", "chosen", "lambda 0", "mean", "lowest")
_STYLES = (("#332288", "o"), ("#dd6655", "s"), ("#117733", "^"))


def report(runs: Sequence[Run], *, table: int) -> Report:
    """Returns the table, and the lambda that the dual criterion's search chose.

    `dual_tableN.csv` and `dual_tableN.md`: a row for each algorithm, set of clients and
    metric. `dual_tableN_lambda.csv` and `.png`: the lambda of each epoch, where there
    was a search; see `chosen`. Table 5 has two classes, whose precision and F1 are
    those of `POSITIVE`. Where none of the runs is a row, the text says so.
    """
    members = rows_of(runs)
    if not members:
        return Report(_LEFT_OUT.format(TITLES[table]))
    caveats = _caveats(members)
    of_class = f"of the class {POSITIVE} (obstacles: blocked)."
    notes = [
        *caveats,
        *conditions_of(runs),
        "best epoch: chosen on the reported test set, as printed (Algorithm 2). last: "
        "the last. validated: the best one on the evaluation set, where a run recorded "
        "that. difference: best epoch minus published.",
        *_lambda_notes(members),
        f"Precision and F1 are {'macro averages.' if table == 4 else of_class}",
        *_NOISE[table],
        *published.rows_notes(runs, [run.label for run in members]),
    ]
    cells = _beside(runs, table)
    columns = [*(f"ours_{name}" for name in CHOICES), "published", "difference"]
    parts = _grids(cells, columns)
    name, searched = f"dual_table{table}", searches(members)
    if not searched:
        return pages.report(name, TITLES[table], notes, parts, cells)
    lambdas = pd.concat(map(chosen, searched))
    head = (
        "Lambda chosen in each epoch, {}; accuracies of the examples it was chosen on"
    )
    for clients, rows in lambdas.groupby("clients", sort=False):
        grid = parts[head.format(clients)] = [[*_OF_LAMBDA]]
        for _, epoch, value, equal, *accuracies in rows.itertuples(index=False):
            texts = [pages.number(one, ".4f") for one in accuracies]
            grid.append([str(epoch), f"{value:.2f}", str(equal), *texts])
    made = pages.report(name, TITLES[table], notes, parts, cells)
    numbers = lambdas.select_dtypes("float").columns
    shown = {n: [float(f"{value:.6g}") for value in lambdas[n]] for n in numbers}
    tables = {**made.tables, f"{name}_lambda": lambdas.assign(**shown)}
    less = [note.partition(":")[0] for note in caveats]
    title = "\n".join([f"{TITLES[table]}: lambda chosen in each epoch", *less])
    figure = {f"{name}_lambda": _plot(lambdas, title)}
    return dataclasses.replace(made, tables=tables, figures=figure)


def seeds_report(by_seed: BySeed, *, table: int, baseline: str) -> Report:
    """Returns `dual_tableN.csv` and `dual_tableN.md`.

    A row for each algorithm, set of clients and metric: `mean`, `deviation` (standard),
    `lowest` and `highest` of our best epochs, from 0 to 1, `published`, and
    `difference`, mean minus published; empty where there is none. `baseline` is not
    used: the published table is what the runs are held against.
    """
    first = next(iter(by_seed.values()))
    members = rows_of(first)
    if not members:
        return Report(_LEFT_OUT.format(TITLES[table]))
    cells = pd.concat(_beside(runs, table) for runs in by_seed.values())
    by_cell = cells.groupby(KEYS, sort=False)
    spread = {"deviation": "std", "lowest": "min", "highest": "max"}
    rows = by_cell["ours_best_epoch"].agg(mean="mean", **spread)
    # The published number is the same under every seed.
    rows = rows.join(by_cell[["published", "difference"]].mean()).reset_index()
    notes = [
        *conditions_of(first),
        "That was the first seed; the others differ from it in the seed alone.",
        f"Best epoch on the reported set, as printed; mean, standard deviation, lowest "
        f"and highest over the seeds {', '.join(map(str, by_seed))}. difference: mean "
        "minus published, which is one run. Each seed's own table is in its folder.",
        *_lambda_notes(members),
        *_NOISE[table],
        *_caveats(members),
    ]
    parts = _grids(rows, [name for name in rows if name not in KEYS])
    title = f"{TITLES[table]}, seeds"
    return pages.report(f"dual_table{table}", title, notes, parts, rows, digits=6)


def _beside(runs: Sequence[Run], table: int) -> pd.DataFrame:
    """Returns our cells with the published ones; no differences of stand-in data."""
    ours = tidy_rows(runs, table)
    theirs = published.table(f"dualcriterion_table{table}")
    compared = ours.assign(value=ours["ours_best_epoch"])
    columns = published.beside(compared, theirs, KEYS).drop(columns="ours")
    # Those of a CSV were computed before rounding.
    known = columns.drop(columns="difference") if "difference" in ours else columns
    cells = pd.merge(ours, known, on=KEYS)
    cells["difference"] = cells.pop("difference")
    comparable = not any(run.data_caveat for run in rows_of(runs))
    return cells if comparable else cells.assign(difference=float("nan"))


def _caveats(runs: Sequence[Run]) -> list[str]:
    """Returns the reasons why runs are no comparison with the paper."""
    notes = [STAND_IN] if any(run.data_caveat for run in runs) else []
    fraction = min(map(image_fraction, runs))
    if fraction < 1:
        epochs = max(len(run.rounds) for run in runs)
        notes.append(
            f"On {fraction:g} of the images, {epochs} epochs: the differences are no "
            "comparison with the paper, which had all of them."
        )
    return notes


def _grids(cells: pd.DataFrame, columns: Sequence[str]) -> dict[str, pages.Grid]:
    """Returns for each set of clients a line for each algorithm and metric."""
    head = [name.replace("ours_", "").replace("_", " ") for name in columns]
    parts: dict[str, pages.Grid] = {}
    for clients, part in cells.groupby("clients", sort=False):
        lines = [["algorithm", "metric", *head]]
        for cell in part.to_dict("records"):
            forms = ["+.4f" if n == "difference" else ".4f" for n in columns]
            texts = [pages.number(cell[n], form) for n, form in zip(columns, forms)]
            first = cell["algorithm"] if cell["metric"] == METRICS[0] else ""
            lines.append([first, cell["metric"], *texts])
        parts[str(clients)] = lines
    return parts


def _lambda_notes(runs: Sequence[Run]) -> list[str]:
    """Returns sentences on where lambda was chosen, and what that means for a table."""
    found = []
    for run in searches(runs):
        assert run.candidates is not None
        table, count = chosen(run), run.candidates["ordering"].nunique()
        gain = (table["chosen"] - table["mean"]).mean()
        where = JUDGED_ON[str(run.settings.get("judge_on", "test"))]
        found.append(
            f"Dual-Criterion Weighted, {clients_of(run)}: lambda was chosen in each "
            f"epoch on {where.format(count=count, gain=gain)}"
        )
    return found


@figures.styled
def _plot(table: pd.DataFrame, title: str) -> Figure:
    """Returns a plot of the lambda chosen in each epoch, a line a set of clients."""
    figure, axes = figures.single(height=2.4)
    look = {"markersize": 4, "linewidth": 1, "alpha": 0.8}
    groups = table.groupby("clients", sort=False)
    for (clients, rows), (color, marker) in zip(groups, _STYLES):
        own = {"color": color, "marker": marker, "label": str(clients)}
        axes.plot(rows["epoch"], rows["lambda"], **own, **look)
    axes.set_ylim(-0.05, 1.05)  # All of the range that is searched.
    axes.set_xlabel("epoch")
    axes.set_ylabel("lambda (1: quality alone)")
    figures.number_rounds(axes, int(table["epoch"].max()))
    figures.head(axes, title)
    figure.legend(loc="outside right center")
    return figure


for _table in TITLES:
    REPORTS.register(f"dual_table{_table}", functools.partial(report, table=_table))
    SEED_REPORTS.register(
        f"dual_table{_table}_seeds", functools.partial(seeds_report, table=_table)
    )
