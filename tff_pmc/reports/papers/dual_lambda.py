"""The lambda that Dual's search chose in each epoch, from the record of its candidates.

An epoch (round) of the paper's tests the models of all lambdas and keeps the best
(III-B). `candidates.csv` has each model's right answers on the examples that it was
judged on.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.read import Run
from tff_pmc.reports import figures
from tff_pmc.reports.papers.dual_cells import clients_of

_LABEL = "lambda="
_STYLES = (("#332288", "o"), ("#dd6655", "s"), ("#117733", "^"))

JUDGED_ON = {
    "test": "the reported examples, as printed",
    "server": "the evaluation set, which is not reported",
    "local_validation": "a part of the clients' training examples",
}
"""`--judge_on` in words."""


def searches(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs whose lambda was searched."""
    return [
        run
        for run in runs
        if run.settings.get("system") == "dual" and run.candidates is not None
    ]


def chosen(run: Run) -> pd.DataFrame:
    """Returns a row for each epoch of a run whose lambda was searched.

    Returns:
        The columns `clients`, `epoch`, `lambda` (chosen), `equally_good` (how many
        lambdas had as many right answers), and accuracies on the judged examples, from
        0 to 1: `chosen`, `lambda_0` (the quantity alone; NaN where 0 was not tested),
        `mean` over all lambdas and `lowest`.
    """
    tested = run.candidates
    assert tested is not None
    tested = tested.assign(
        value=tested["ordering"].str.replace(_LABEL, "", regex=False).astype(float),
        accuracy=tested["correct"] / tested["examples"],
    )
    rows = []
    for epoch, trials in tested.groupby("round"):
        best = trials[trials["kept"] == 1].iloc[0]
        zero = trials.loc[trials["value"] == 0, "accuracy"]
        rows.append(
            {
                "clients": clients_of(run),
                "epoch": int(str(epoch)),
                "lambda": best["value"],
                "equally_good": int((trials["correct"] == best["correct"]).sum()),
                "chosen": best["accuracy"],
                "lambda_0": zero.iloc[0] if len(zero) else float("nan"),
                "mean": trials["accuracy"].mean(),
                "lowest": trials["accuracy"].min(),
            }
        )
    return pd.DataFrame(rows)


def notes(runs: Sequence[Run]) -> list[str]:
    """Returns sentences on where lambda was chosen, and what that means for a table."""
    found = []
    for run in searches(runs):
        table, judged = chosen(run), str(run.settings.get("judge_on", "test"))
        text = (
            f"Dual-Criterion Weighted, {clients_of(run)}: lambda was chosen in each "
            f"epoch on {JUDGED_ON[judged]} (--judge_on={judged})"
        )
        if judged == "test":
            gain = (table["chosen"] - table["mean"]).mean()
            text += (
                ". Its accuracy in an epoch is the highest of "
                f"{_candidates(run)} models', and that of every other algorithm is "
                f"one model's: it is {gain:.4f} above the mean of the lambdas, on the "
                "average over the epochs, for this choice alone. --judge_on=server "
                "chooses on the evaluation set, which otherwise gives the scores alone"
            )
        elif judged == "server":
            text += (
                ". The paper chooses it on the reported examples, --judge_on=test; so "
                "this row has less of an advantage than the printed one"
            )
        found.append(f"{text}.")
    return found


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Returns a table with six significant digits, as the CSV of `chosen` has them."""
    numbers = table.select_dtypes("float").columns
    shown = {n: [float(f"{value:.6g}") for value in table[n]] for n in numbers}
    return table.assign(**shown)


@figures.styled
def plot(table: pd.DataFrame, title: str) -> Figure:
    """Returns a plot of the lambda chosen in each epoch, a line a set of clients."""
    figure, axes = figures.single(height=2.4)
    for (clients, rows), style in zip(table.groupby("clients", sort=False), _STYLES):
        color, marker = style
        axes.plot(
            rows["epoch"],
            rows["lambda"],
            color=color,
            marker=marker,
            markersize=4,
            linewidth=1,
            alpha=0.8,
            label=str(clients),
        )
    axes.set_ylim(-0.05, 1.05)  # All of the range that is searched.
    axes.set_xlabel("epoch")
    axes.set_ylabel("lambda (1: quality alone)")
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    figures.head(axes, title)
    figure.legend(loc="outside right center")
    return figure


def grid(table: pd.DataFrame) -> list[list[str]]:
    """Returns a line for each epoch, rows of `chosen` of one run."""
    lines = [
        ["epoch", "lambda", "equally good", "chosen", "lambda 0", "mean", "lowest"],
    ]
    for row in table.to_dict("records"):
        accuracies = [row[name] for name in ("chosen", "lambda_0", "mean", "lowest")]
        texts = ["" if pd.isna(value) else f"{value:.4f}" for value in accuracies]
        first = [str(row["epoch"]), f"{row['lambda']:.2f}", str(row["equally_good"])]
        lines.append([*first, *texts])
    return lines


def _candidates(run: Run) -> int:
    assert run.candidates is not None
    return int(run.candidates["ordering"].nunique())
