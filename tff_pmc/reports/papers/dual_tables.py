"""Dual's Tables IV and V, ours with the published numbers; see `dual_cells`.

With several seeds our numbers are means with spreads, and the paper's a single run.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import Results
from tff_pmc.reports import REPORTS, Report, page_model
from tff_pmc.reports.figures import figure_layout
from tff_pmc.reports.papers.dual_cells import (
    ALGORITHMS,
    CHOICES,
    KEYS,
    METRICS,
    POSITIVE,
    chosen_lambdas,
    table_runs,
    tidy_rows,
)
from tff_pmc.reports.statistics import published
from tff_pmc.reports.statistics.run_notes import condition_notes, data_caveat

TITLES = {4: "Dual Table IV (CIFAR-10)", 5: "Dual Table V (obstacles)"}
INCOMPLETE = "Incomplete data: a difference from the paper would mean nothing."
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
"""`--judge_on` -> where lambda was chosen, and what that means for a table."""

# With clients of one size, as in Table IV, two rows are the same algorithm, so that the
# difference between them is noise.
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
_LAMBDA_TITLE = (
    "Lambda chosen in each epoch, {}; accuracies of the examples it was chosen on"
)
_LAMBDA_COLUMNS = (
    "epoch",
    "lambda",
    "equally good",
    "chosen",
    "lambda 0",
    "mean",
    "lowest",
)
_STYLES = (("#332288", "o"), ("#dd6655", "s"), ("#117733", "^"))


def report(results: Results, *, table: int) -> Report:
    """Returns `dual_tableN.csv` and `dual_tableN.md`, one row per cell of the paper.

    For one seed they have ours in the epochs of `CHOICES`. If lambda was searched,
    `dual_tableN_lambda.csv` and `.png` have the lambda of each epoch; see
    `chosen_lambdas`. For several seeds they have `mean`, `deviation` (standard),
    `lowest` and `highest` of our best epochs, from 0 to 1, `published`, and
    `difference`, mean minus published; `dual_tableN_seeds.csv` has the cells of each
    seed. Table 5 has two classes; its precision and F1 are those of `POSITIVE`. If no
    run is a row of the table, the text reports it.
    """
    rows = table_runs(results)
    if not len(rows.runs):
        return Report(f"{TITLES[table]} is omitted: no run of its algorithms.")
    cells = tidy_rows(results, table)
    if data_caveat(rows):
        cells["difference"] = float("nan")
    of_seeds = _single_seed_report if len(results.seeds) == 1 else _seeds_report
    return of_seeds(results, rows, cells, table)


def _single_seed_report(
    results: Results, rows: Results, cells: pd.DataFrame, table: int
) -> Report:
    caveats, lambdas = _caveats(rows), chosen_lambdas(rows)
    of_class = f"of the class {POSITIVE} (obstacles: blocked)."
    notes = [
        *caveats,
        *condition_notes(results),
        "best epoch: chosen on the reported test set, as printed (Algorithm 2). last: "
        "the last. validated: the best one on the evaluation set, where a run recorded "
        "that. difference: best epoch minus published.",
        *_lambda_notes(rows, lambdas),
        f"Precision and F1 are {'macro averages.' if table == 4 else of_class}",
        *_NOISE[table],
        *published.missing_row_notes(results, rows.labels),
    ]
    columns = [*(f"ours_{name}" for name in CHOICES), "published", "difference"]
    parts = _grids(cells, columns)
    name, shown = f"dual_table{table}", cells.drop(columns="seed")
    lambdas = lambdas.drop(columns="seed")
    for clients, epochs in lambdas.groupby("clients", sort=False):
        grid = parts[_LAMBDA_TITLE.format(clients)] = [[*_LAMBDA_COLUMNS]]
        for _, epoch, value, equal, *accuracies in epochs.itertuples(index=False):
            texts = [
                page_model.format_number(accuracy, ".4f") for accuracy in accuracies
            ]
            grid.append([str(epoch), f"{value:.2f}", str(equal), *texts])
    single_seed_report = Report.from_grids(name, TITLES[table], notes, parts, shown)
    if lambdas.empty:
        return single_seed_report
    tables = {
        **single_seed_report.tables,
        f"{name}_lambda": _round_to_six_digits(lambdas),
    }
    less = [note.partition(":")[0] for note in caveats]
    title = "\n".join([f"{TITLES[table]}: lambda chosen in each epoch", *less])
    figure = {f"{name}_lambda": _plot(lambdas, title)}
    return dataclasses.replace(single_seed_report, tables=tables, figures=figure)


def _seeds_report(
    results: Results, rows: Results, cells: pd.DataFrame, table: int
) -> Report:
    name, first = f"dual_table{table}", rows.only(seed=rows.seeds[0])
    by_cell = cells.groupby(KEYS, sort=False)
    spread = {"deviation": "std", "lowest": "min", "highest": "max"}
    lines = by_cell["ours_best_epoch"].agg(mean="mean", **spread)
    # The published number is the same under every seed.
    lines = lines.join(by_cell[["published", "difference"]].mean()).reset_index()
    notes = [
        *condition_notes(results.only(seed=rows.seeds[0])),
        "That was the first seed; the others differ from it in the seed alone.",
        f"Best epoch on the reported set, as printed; mean, standard deviation, lowest "
        f"and highest over the seeds {', '.join(map(str, results.seeds))}. difference: "
        "mean minus published, which is one run. The cells of each seed are in "
        f"{name}_seeds.csv.",
        *_lambda_notes(first, chosen_lambdas(first)),
        *_NOISE[table],
        *_caveats(first),
    ]
    parts = _grids(lines, [name for name in lines if name not in KEYS])
    title, lines = f"{TITLES[table]}, seeds", _round_to_six_digits(lines)
    seeds_report = Report.from_grids(name, title, notes, parts, lines)
    return dataclasses.replace(
        seeds_report, tables={**seeds_report.tables, f"{name}_seeds": cells}
    )


def _round_to_six_digits(table: pd.DataFrame) -> pd.DataFrame:
    numbers = table.select_dtypes("float").columns
    shown = {n: [float(f"{value:.6g}") for value in table[n]] for n in numbers}
    return table.assign(**shown)


def _caveats(rows: Results) -> list[str]:
    """Returns the reasons why the runs cannot be compared with the paper."""
    notes = [INCOMPLETE] if data_caveat(rows) else []
    options = rows.runs["data_options"]
    fraction = min(
        float(run_options.get("image_fraction", 1)) for run_options in options
    )
    if fraction < 1:
        notes.append(
            f"On {fraction:g} of the images, {rows.length.max()} epochs: the "
            "paper used all of them, so its numbers cannot be compared with these."
        )
    return notes


def _grids(cells: pd.DataFrame, columns: Sequence[str]) -> dict[str, page_model.Grid]:
    """Returns one grid per set of clients, with one line per algorithm and metric."""
    head = [name.replace("ours_", "").replace("_", " ") for name in columns]
    parts: dict[str, page_model.Grid] = {}
    for clients, part in cells.groupby("clients", sort=False):
        lines = [["algorithm", "metric", *head]]
        for cell in part.to_dict("records"):
            forms = ["+.4f" if n == "difference" else ".4f" for n in columns]
            texts = [
                page_model.format_number(cell[n], form)
                for n, form in zip(columns, forms)
            ]
            first = cell["algorithm"] if cell["metric"] == METRICS[0] else ""
            lines.append([first, cell["metric"], *texts])
        parts[str(clients)] = lines
    return parts


def _lambda_notes(rows: Results, lambdas: pd.DataFrame) -> list[str]:
    """Returns notes on where lambda was chosen, and what that means for a table."""
    notes = []
    for clients, epochs in lambdas.groupby("clients", sort=False):
        runs = rows.runs[(rows.runs["clients"] == clients)]
        run = runs[runs["algorithm"] == ALGORITHMS["dual"]].iloc[0]
        tried = rows.candidates[rows.candidates["label"] == run["label"]]
        gain = (epochs["chosen"] - epochs["mean"]).mean()
        where = JUDGED_ON[run["judge_on"]].format(
            count=tried["ordering"].nunique(), gain=gain
        )
        notes.append(
            f"Dual-Criterion Weighted, {clients}: lambda was chosen in each epoch on "
            f"{where}"
        )
    return notes


@figure_layout.with_style
def _plot(table: pd.DataFrame, title: str) -> Figure:
    """Plots the lambda chosen in each epoch, one line per set of clients."""
    figure, axes = figure_layout.one_panel(height=2.4)
    look = {"markersize": 4, "linewidth": 1, "alpha": 0.8}
    groups = table.groupby("clients", sort=False)
    for (clients, rows), (color, marker) in zip(groups, _STYLES):
        line_style = {"color": color, "marker": marker, "label": str(clients)}
        axes.plot(rows["epoch"], rows["lambda"], **line_style, **look)
    axes.set_ylim(-0.05, 1.05)  # All of the range that is searched.
    axes.set_xlabel("epoch")
    axes.set_ylabel("lambda (1: quality alone)")
    figure_layout.number_rounds(axes, int(table["epoch"].max()))
    figure_layout.set_panel_title(axes, title)
    figure.legend(loc="outside right center")
    return figure


for _table in TITLES:
    REPORTS.register(f"dual_table{_table}", functools.partial(report, table=_table))
