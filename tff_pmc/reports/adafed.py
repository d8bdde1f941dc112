"""AdaFed's figures: its curves against FedAvg's, and what can be read off them.

Numbers of these figures are not at hand: so there are none to set beside ours, only
what the curves are said to show.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

import pandas as pd  # noqa: E402
from matplotlib import pyplot as plt  # noqa: E402

from tff_pmc.reports import grids  # noqa: E402
from tff_pmc.reports.read import Run, conditions  # noqa: E402

BASELINE = "FedAvg"
ROUNDS = (1, 2, 3, 5, 10, 15, 20)
TARGETS = (80, 90, 95)

CLAIMS = {
    "adafed_1": "Figure 1: AdaFed leads FedAvg in the early rounds.",
    "adafed_2": "Three curves: FedAvg, the weights alone, weights and loss.",
    "adafed_3": "Figures 5 and 6: AdaFed is robust against adversaries that mislabel "
    "50 % and 100 % of their images.",
}
"""What the paper's figures show, by experiment."""


def write(runs: Sequence[Run], output_dir: str, experiment: str) -> str:
    """Writes `adafed.csv`, `adafed.md` and a figure for each share of wrong labels.

    Args:
        runs: the curves; those of FedAvg are the baseline of the runs on its data.
        output_dir: the folder.
        experiment: a name in `CLAIMS`.

    Returns:
        The table, as text for the terminal.
    """
    figures(runs, output_dir, experiment)
    rows = [_rows(members, share) for share, members in _by_share(runs).items()]
    table = pd.DataFrame(itertools.chain.from_iterable(rows))
    table.to_csv(os.path.join(output_dir, "adafed.csv"), index=False)
    head = [str(name) for name in table]
    grid = [head, *([str(v) for v in row] for row in table.to_numpy())]
    notes = [
        f"The paper: {CLAIMS[experiment]} Its numbers are not at hand.",
        *dict.fromkeys(conditions(run.info) for run in runs),
        f"`lead`: the mean difference to {BASELINE} over rounds 1 to 5, and over all, "
        "in points of accuracy. One run each and no noise floor: a lead of a point or "
        "two shows nothing; --seeds shows what does.",
    ]
    path = os.path.join(output_dir, "adafed.md")
    title = f"{experiment}: accuracy on the reported images"
    return grids.write(path, title, notes, {"Round by round": grid})


def figures(runs: Sequence[Run], output_dir: str, experiment: str) -> None:
    """Draws `figure.png`, or `figure_50.png` and so on by the share of wrong labels.

    Args:
        runs: the curves; of several runs of one system (under several seeds) the mean
            is drawn, and the lowest and highest of each round as a band.
        output_dir: the folder.
        experiment: for the title.
    """
    groups = _by_share(runs)
    for share, members in groups.items():
        name = f"figure_{share * 100:.0f}.png" if len(groups) > 1 else "figure.png"
        title = _title(members[0], experiment, share)
        _figure(members, os.path.join(output_dir, name), title)


def _by_share(runs: Sequence[Run]) -> dict[float, list[Run]]:
    groups: dict[float, list[Run]] = {}
    for run in runs:
        share = float(run.info["settings"].get("mislabeled_fraction", 0.0))
        groups.setdefault(share, []).append(run)
    return groups


def _rows(runs: Sequence[Run], share: float) -> list[dict[str, Any]]:
    base = next((r.rounds["accuracy"] for r in runs if _name(r) == BASELINE), None)
    rows = []
    for run in runs:
        accuracy = run.rounds["accuracy"]
        row: dict[str, Any] = {"system": _name(run), "mislabeled": share}
        for number in ROUNDS:
            if number <= len(accuracy):
                row[f"round {number}"] = round(float(accuracy[number - 1]), 4)
        for target in TARGETS:
            reached = accuracy.index[accuracy >= target / 100]
            row[f"to {target} %"] = str(reached[0] + 1) if len(reached) else "-"
        if base is not None:
            common = min(len(base), len(accuracy))
            lead = 100 * (accuracy[:common] - base[:common])
            row["lead 1-5"] = round(float(lead[:5].mean()), 2)
            row["lead"] = round(float(lead.mean()), 2)
        rows.append(row)
    return rows


def _name(run: Run) -> str:
    return str(run.info["settings"]["system"])


def _title(run: Run, experiment: str, share: float) -> str:
    settings, data = run.info["settings"], run.info["data"]
    wrong = f", {share:.0%} of the adversaries' labels wrong" if share else ""
    return (
        f"{experiment}: {data['clients']} clients{wrong}, "
        f"E = {settings['local_epochs']}, B = {settings['batch_size']}"
    )


def _figure(runs: Sequence[Run], path: str, title: str) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 4.0), dpi=110, layout="constrained")
    curves: dict[str, list[Any]] = {}
    for run in runs:
        curve = run.rounds.set_index("round")["accuracy"]
        curves.setdefault(_name(run), []).append(curve)
    for name, seeds in curves.items():
        table = pd.concat(seeds, axis=1)
        (line,) = axes.plot(
            table.index,
            table.mean(axis=1),
            label=name if len(seeds) == 1 else f"{name}, mean of {len(seeds)} seeds",
            color="0.35" if name == BASELINE else None,
            linestyle="--" if name == BASELINE else "-",
            marker="o",
            markersize=3,
        )
        if len(seeds) > 1:
            low, high = table.min(axis=1), table.max(axis=1)
            color = line.get_color()
            axes.fill_between(table.index, low, high, color=color, alpha=0.15, lw=0)
    axes.set_xlabel("communication round")
    axes.set_ylabel("accuracy")
    axes.xaxis.get_major_locator().set_params(integer=True)
    lowest = min(run.rounds["accuracy"].min() for run in runs)
    axes.set_ylim(math.floor(10 * lowest) / 10, 1)
    axes.grid(alpha=0.3)
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=8)
    figure.savefig(path)
    plt.close(figure)
