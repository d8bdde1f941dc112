"""PMC's Figures 2a, 2b and 3 from runs.

By their captions, they have the accuracy of the global model on all clients' test
examples (section 5.3: the local accuracies, weighted by the size of the test sets),
over all rounds, of DS, the two other criteria and the six orderings. The paper has the
nine as lines of one plot; here each has a panel, with DS behind it in gray, because
overlapping lines cannot be read. No numbers of the figures are
published with their plots. Marks are the rounds in which half of the devices reach a
target, ours and those of the published table of the same runs. The divergence is MD in
all plots, as in the code; the paper writes MW.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report, single_seed_only
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.figures.target_marks import mark_handles, mark_rounds
from tff_pmc.reports.page_model import grid_text
from tff_pmc.reports.papers import pmc_paper
from tff_pmc.reports.papers.pmc_paper import PAPER
from tff_pmc.reports.statistics import run_summary
from tff_pmc.reports.statistics.run_notes import data_caveat

_SMOOTHING_ROUNDS = 5


@single_seed_only
def report(results: Results, *, experiment: str) -> Report:
    """Returns `figureN.png`, and the best rounds as text.

    N is 2a (`mnist_iid`), 2b (`mnist_noniid`) or 3 (`celeba`).
    """
    paper = PAPER[experiment]
    rows = paper.rows(results)
    if not rows.labels:
        text = f"PMC Figure {paper.figure} is omitted: no run of its orderings."
        return Report(text)
    curves = _curves(rows)
    grid = [["ordering", "best accuracy", "in round", "in the last round"]]
    for label, curve in curves.items():
        best = curve.idxmax()
        grid.append([label, f"{curve[best]:.4f}", f"{best}", f"{curve.iloc[-1]:.4f}"])
    title = f"PMC Figure {paper.figure}: {paper.title}, test accuracy in each round"
    notes = [
        *paper.notes(results),
        "The paper prints no numbers of this figure: its curves are ours alone, and "
        "its marks are of the table of rounds.",
    ]
    if paper.text_numbers:
        notes.append(
            "The numbers of the paper's text are compared with ours in "
            f"table{paper.rounds_table}.md."
        )
    if paper.labels_in_doubt:
        notes.append(
            "The paper's labels IS and CB are probably exchanged here, as in Table 6."
        )
    caveat = data_caveat(rows)
    caption = f"{title}\n({caveat})" if caveat else title
    text = "\n\n".join([caption, grid_text(grid), "\n".join(notes)])
    return Report(text, figures={f"figure{paper.figure}": draw(rows, caption)})


@figure_layout.with_style
def draw(results: Results, title: str) -> Figure:
    """Draws one panel per run; DS is behind each of the others.

    A thin line is the accuracy in each round. The thick line, its mean over five
    rounds, makes curves that jump from round to round comparable.
    """
    curves = _curves(results)
    smooth = {
        label: curve.rolling(_SMOOTHING_ROUNDS, center=True, min_periods=1).mean()
        for label, curve in curves.items()
    }
    labels = run_styles.sort_names(curves)
    shown = [label for label in labels if label != BASELINE] or labels
    behind = BASELINE if BASELINE in labels and BASELINE not in shown else ""
    base_color = run_styles.style_of(BASELINE).color
    figure, grid = figure_layout.panels(len(shown), columns=4)
    for axes, label in zip(grid, shown):
        style = run_styles.style_of(label)
        if behind:
            axes.plot(smooth[behind], color=base_color, **run_styles.BEHIND)
        axes.plot(curves[label], color=style.color, linewidth=0.5, alpha=0.6)
        axes.plot(smooth[label], color=style.color, linewidth=1.4)
        axes.set_title(style.label)
    figure_layout.zoom_to_curves(grid[0], [*curves.values()])
    marked: set[int] = set()
    for axes, label in zip(grid, shown):
        run, style = results.only(label=label), run_styles.style_of(label)
        marked |= mark_rounds(axes, run, style, smooth[label])
    handles = [
        figure_layout.legend_handle("each round", lw=0.5, alpha=0.6),
        figure_layout.legend_handle(f"mean of {_SMOOTHING_ROUNDS} rounds"),
    ]
    if behind:
        handles.append(
            figure_layout.legend_handle(BASELINE, base_color, **run_styles.BEHIND)
        )
    handles += mark_handles(marked)
    figure_layout.label_axes(figure, grid, figure_layout.ACCURACY, handles)
    figure_layout.set_figure_title(figure, title)
    return figure


def _curves(results: Results) -> dict[str, pd.Series[float]]:
    """Returns the accuracy by round of each run, by its label."""
    rounds = run_summary.with_exact_means(results).rounds.set_index(["label", "round"])[
        "accuracy"
    ]
    return {label: rounds[label] for label in results.labels}


pmc_paper.register("pmc_figure{figure}", report)
