"""AdaFed's six figures, and a page of numbers read off their curves.

The paper prints no numbers of its curves except those in its text, which are in
`claims/adafed_claims.py`; so each figure shows only ours, under the paper's number and
claims.
"""

from __future__ import annotations

import functools
import textwrap
from typing import Any, NamedTuple, Optional

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports import REPORTS, Report, page_model, single_seed_only
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.papers.claim_registry import claims, judge_claim
from tff_pmc.reports.papers.paper_runs import kept_runs
from tff_pmc.reports.statistics.run_notes import condition_notes, early_stop_notes

FEDAVG = "FedAvg"
ROUNDS = (1, 2, 3, 5, 10, 12, 15, 20)
TARGETS = (80, 90, 95)


class Published(NamedTuple):
    """A figure of the paper: its experiment, its curves' column and what it shows.

    The column of `Results.rounds` is empty for the curves of each class.
    """

    experiment: str
    column: str
    shows: str


FIGURES = {
    1: Published("adafed_1", "accuracy", "accuracy"),
    2: Published("adafed_2", "accuracy", "accuracy"),
    3: Published("adafed_2", "macro_f1", "macro F1"),
    4: Published("adafed_2", "", "F1 of each class"),
    5: Published("adafed_3", "accuracy", "accuracy"),
    6: Published("adafed_3", "macro_f1", "macro F1"),
}
"""AdaFed's figures by their numbers."""


def report(results: Results, *, number: int) -> Report:
    """Returns a figure as `figureN.png`, or a text if the F1 was not recorded.

    With several seeds it shows the mean, and the lowest and highest of each round as a
    band.
    """
    figure = draw(results, number)
    if figure is None:
        return Report(f"AdaFed's Figure {number} is not drawn: no F1 was recorded.")
    return Report(figures={f"figure{number}": figure})


@figure_layout.with_style
def draw(results: Results, number: int) -> Optional[Figure]:
    """Returns a figure, or None if the runs recorded no F1."""
    published = FIGURES[number]
    panels = _panels(results, published.column)
    if panels is None:
        return None
    of_classes = not published.column
    if of_classes:
        figure, grid = figure_layout.panels(len(panels), columns=5)
        figure_layout.label_axes(figure, grid, "F1")
    else:
        figure, axes = figure_layout.one_panel(height=3.1, width=5.2)
        grid = [axes]
        axes.set(xlabel=figure_layout.ROUNDS, ylabel=published.shows)
    for axes, (name, curves) in zip(grid, panels.items()):
        for label, seeds in curves.items():
            style = run_styles.style_of(label)
            look: dict[str, Any] = {"marker": "o", "markersize": 2.5}
            if of_classes and label in run_styles.BASELINES:
                look = dict(run_styles.BEHIND)  # Others lie on it in some panels.
            figure_layout.draw_curve(axes, seeds, style, **look)
        axes.set_title(name)
    all_curves = [c for p in panels.values() for seeds in p.values() for c in seeds]
    figure_layout.zoom_to_curves(grid[0], all_curves)
    count = max(len(seed_curves) for p in panels.values() for seed_curves in p.values())
    handles, labels = grid[0].get_legend_handles_labels()
    columns, letters = (len(labels), 125) if of_classes else (3, 92)
    place = {"loc": "outside lower center", "ncols": columns}
    band = figure_layout.band_words(count) or None
    figure.legend(handles, labels, title=band, **place)
    says = [
        claim.says.partition(" (Here")[0]
        for claim in claims("AdaFed")
        if str(number) in claim.place.split()
    ]
    words = textwrap.fill(" ".join(["The paper:", *says]), letters)
    figure.suptitle(f"{_title(results, number)}\n{words}", fontsize=7)
    return figure


def _title(results: Results, number: int) -> str:
    published, run = FIGURES[number], results.runs.iloc[0]
    return (
        f"AdaFed Figure {number}, simulation {published.experiment[-1]}: "
        f"{published.shows} of the server's model\n"
        f"{run['data_clients']} clients, {run['model']}, "
        f"{run['client_optimizer']} {run['learning_rate']:g}, "
        f"E = {run['local_epochs']}, B = {run['batch_size']}, "
        f"{run['rounds']} rounds"
    )


Curves = dict[str, list[pd.Series]]


def _panels(results: Results, column: str) -> Optional[dict[str, Curves]]:
    """Returns the curves of each panel by label, one curve per seed."""
    # Records without `macro_f1` have the F1 of the model at the start of a round.
    needed = column or "macro_f1"
    if needed not in results.rounds or results.rounds[needed].isna().any():
        return None
    table = results.rounds.assign(panel="")
    if not column:
        panel = "class " + results.class_f1["class"].astype(str)
        table, column = results.class_f1.assign(panel=panel), "f1"
    panels: dict[str, Curves] = {}
    for (title, _, label), curve in table.groupby(["panel", *RUN_KEY], sort=False):
        by_round = curve.set_index("round")[column]
        panels.setdefault(title, {}).setdefault(label, []).append(by_round)
    return panels


@single_seed_only
def page(results: Results) -> Report:
    """Returns `adafed.csv` and `adafed.md`; FedAvg is the baseline of the others."""
    experiment = str(results.setting("experiment"))
    table = _run_rows(results)
    numbers = [[*table]]
    for row in table.astype(object).where(table.notna(), page_model.MISSING).to_numpy():
        numbers.append([*map(str, row)])
    drawn = [
        f"`figure{number}.png` is Figure {number}: {figure.shows} of the server's "
        "model after each round"
        for number, figure in FIGURES.items()
        if figure.experiment == experiment
    ]
    notes = [
        f"AdaFed's simulation {experiment[-1]}. {'; '.join(drawn)}. The paper's "
        "curves have no numbers except those in its claims.",
        *condition_notes(results),
        *early_stop_notes(results),
        f"`lead`: the mean difference to {FEDAVG} over rounds 1 to 5, and over all, "
        "in points of accuracy. One run each and no noise floor: a lead of a point or "
        "two shows nothing; --seeds shows what does.",
        "`macro F1`: the mean of the classes' F1 on the server's images, after the "
        "last round.",
    ]
    title = f"{experiment}: accuracy on the reported images"
    parts: dict[str, page_model.Grid] = {"Round by round": numbers}
    claim_lines = _claim_lines(results, experiment)
    if len(claim_lines) > 1:
        parts["What the paper claims of this simulation"] = claim_lines
    return Report.from_grids("adafed", title, notes, parts, table, digits=0)


def _claim_lines(results: Results, experiment: str) -> list[list[str]]:
    """Returns the claims that need only this experiment, and their verdicts."""
    lines = [["place", "claim", "here", "verdict", "why"]]
    kept = kept_runs([results])
    for claim in claims("AdaFed"):
        if claim.experiments == (experiment,):
            judgment = judge_claim(claim, kept)
            lines.append([claim.place, claim.says, *judgment[:3]])
    return lines


def _run_rows(results: Results) -> pd.DataFrame:
    """Returns one row per run under one seed: accuracies, rounds to targets, leads."""
    accuracy = results.rounds.pivot(index="label", columns="round", values="accuracy")
    baselines = results.only(title=FEDAVG).runs.set_index("note")["label"]
    macro_f1 = results.rounds.get("macro_f1")
    rows = []
    for _, run in results.runs.iterrows():
        run_accuracy = accuracy.loc[run["label"]].dropna()
        row: dict[str, Any] = {"algorithm": run["label"]}
        row |= {
            f"round {n}": round(run_accuracy[n], 4) for n in ROUNDS if n in run_accuracy
        }
        for target in TARGETS:
            reached = run_accuracy[run_accuracy >= target / 100]
            row[f"to {target} %"] = str(reached.index[0]) if len(reached) else None
        if run["note"] in baselines:
            lead = 100 * (run_accuracy - accuracy.loc[baselines[run["note"]]]).dropna()
            row["lead 1-5"] = round(float(lead[:5].mean()), 2)
            row["lead"] = round(float(lead.mean()), 2)
        if macro_f1 is not None:
            last = macro_f1[results.rounds["label"] == run["label"]].iloc[-1]
            row["macro F1"] = round(float(last), 4)
        rows.append(row)
    return pd.DataFrame(rows)


for _number in FIGURES:
    REPORTS.register(
        f"adafed_figure{_number}", functools.partial(report, number=_number)
    )
REPORTS.register("adafed_page", page)
