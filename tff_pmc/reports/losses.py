"""Runs without classes, whose record has the test loss in the place of accuracy.

A table and a plot show it, of one seed or of several. All else that is made of records
needs accuracy and refuses such a run by name (`read.read_run`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from leaf_data.formats import places
from tff_pmc.record import read, run_json
from tff_pmc.record.measures import LOSS, PERCENTILES, client_means, percentile
from tff_pmc.record.plain_files import MOST_OF_RUN
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import Report, escape, figures, styles, summary
from tff_pmc.reports.paired import BySeed, every
from tff_pmc.reports.plots import title_of

_OVER_SEEDS = {"last_loss": "last loss", "best_loss": "best loss"}


@dataclasses.dataclass(frozen=True)
class LossRun(read.Run):
    """A run whose `correct` is empty.

    Attributes:
        losses: the sum of the losses of each client's test examples, float
            [rounds, clients].
    """

    losses: npt.NDArray[np.float64] = dataclasses.field(
        default_factory=lambda: np.zeros((0, 0))
    )

    @property
    def means(self) -> npt.NDArray[np.float64]:
        """The mean loss over all clients' test examples, [rounds]."""
        means: npt.NDArray[np.float64] = self.losses.sum(axis=1) / self.examples.sum()
        return means


def measures_loss(path: str) -> bool:
    """Returns whether the record in a folder has losses in the place of accuracy."""
    return LOSS.mean in read.read_table(path, "rounds.csv")


@places.budget(MOST_OF_RUN)
def read_loss_run(path: str) -> LossRun:
    """Reads a run folder whose record has losses."""
    info = run_json.read(path)
    run_json.require(path, info, "label")
    clients = read.read_table(path, "clients.csv")
    if LOSS.total not in clients:
        raise RecordError(f"{path} has accuracies and no losses")
    rounds = read.read_table(path, "rounds.csv")
    of_run = path, info, clients, len(rounds)
    losses, examples = read.of_every_round(*of_run, LOSS.total)
    return LossRun(
        label=info["label"],
        info=info,
        rounds=rounds,
        weights=read.read_table(path, "weights.csv"),
        correct=np.zeros((len(losses), 0), np.int64),
        examples=examples,
        path=path,
        losses=losses,
    )


def of_runs(
    runs: Sequence[LossRun], what: str = "priority", others: Sequence[str] = ()
) -> Report:
    """Returns `losses.csv` and `loss.png`.

    `what` is the word for what the labels name; the `others` are the reports that need
    accuracy, which the text names.
    """
    table = pd.DataFrame([_row(run) for run in runs])
    title = "Loss on the clients' test examples; p10 to p90: of clients, last round"
    shown = table.rename(columns={"best_round": "in round", "run": what})
    shown[what] = [escape.printable(label) for label in shown[what]]
    text = f"{title}\n{shown.to_string(index=False, float_format='{:.4g}'.format)}"
    text += summary.left_out(runs)
    if others:
        names = ", ".join(others)
        text += f"\n\nWithout classes there is no accuracy, and no report {names}."
    return Report(
        text,
        {"losses": read.with_caveat(table, runs)},
        figures={"loss": loss_plot(runs, title_of(runs), what)},
    )


def of_seeds(by_seed: BySeed, what: str = "priority") -> Report:
    """Returns `loss.png`, and `seeds.csv` of the last and the best losses."""
    runs = [run for run in every(by_seed) if isinstance(run, LossRun)]
    rows = [
        (run.label, quantity, _row(run)[quantity.partition("_")[0]])
        for run in runs
        for quantity in _OVER_SEEDS
    ]
    table = pd.DataFrame(rows, columns=["experiment", "quantity", "value"])
    found = summary.over_seeds(by_seed, table, _OVER_SEEDS)
    note = "Without classes there is no accuracy to compare over seeds."
    plot = loss_plot(runs, title_of(runs), what)
    text = f"{found.text}\n\n{note}"
    return dataclasses.replace(found, text=text, figures={"loss": plot})


@figures.styled
def loss_plot(runs: Sequence[LossRun], title: str, what: str = "priority") -> Figure:
    """Draws the mean test loss of each run; several of one label are its seeds."""
    figure, axes = figures.single()
    by_label: dict[str, list[LossRun]] = {}
    for run in runs:
        by_label.setdefault(run.label, []).append(run)
    for own in by_label.values():
        curves = [pd.Series(r.means, np.arange(1, len(r.means) + 1)) for r in own]
        style = styles.style_of(styles.group_of(own[0])[0])
        figures.curve(axes, curves, style, label=styles.label_of(own[0]))
    axes.set_ylim(bottom=0)
    figures.round_axis(axes, max(len(run.means) for run in runs))
    band = figures.band_words(max(map(len, by_label.values())))
    up, lines = "local test loss, all clients", axes.get_lines()
    figures.finish(axes, title, up, lines, what, band)
    return figure


def _row(run: LossRun) -> dict[str, Any]:
    """Returns the line of `losses.csv`; its percentiles are of the clients' means."""
    means = run.means
    # Losses that are not finite are no best ones.
    best = int(np.argmin(np.where(np.isfinite(means), means, np.inf)))
    row = {"run": run.label, "last": means[-1], "best": means[best]}
    of_clients = client_means(run.losses[-1], run.examples)
    percentiles = {f"p{n}": percentile(of_clients, n) for n in PERCENTILES}
    return {**row, "best_round": best + 1, **percentiles}
