"""The report on single steps with other weightings (`--counterfactuals`)."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import Results
from tff_pmc.reports import REPORTS, Report, single_seed_only
from tff_pmc.reports.figures import run_labels
from tff_pmc.reports.figures.effects_plot import effects_plot
from tff_pmc.reports.page_model import (
    MISSING,
    Block,
    Heading,
    Items,
    Page,
    Table,
    format_number,
    grid_text,
)
from tff_pmc.reports.statistics.counterfactual_statistics import (
    ALPHA,
    COUNTERFACTUAL,
    MEASURES,
    MIN_ROUNDS,
    effects,
)
from tff_pmc.reports.statistics.run_notes import condition_notes, early_stop_notes

_MAX_SHOWN = 12  # Weightings in a terminal.
_LIMITS = (
    "Each row compares single rounds: the model that this weighting would have given, "
    "minus the baseline's, in points; the run then continued with its own. The weight "
    "moved is relative to the run's own weighting. Single steps do not predict whole "
    "runs: train with the weighting for that (`--seeds`, `effect.md`).",
    "± is half of the 95 % interval of the mean over the judged rounds, by moving "
    "blocks; of few rounds that follow closely on one another it covers somewhat less. "
    "It is of this run's rounds and not of other seeds. A weighting differs where p, "
    "corrected for the number of weightings (Holm), is below .05. The means of the "
    "early and the late rounds have no interval.",
)


@single_seed_only
def report(results: Results) -> Report:
    """Returns `counterfactuals.csv`, `.md` and a figure of each run that has any.

    An empty report for several seeds.
    """
    candidates = results.candidates
    labels = dict.fromkeys(candidates[candidates["kind"] == COUNTERFACTUAL]["label"])
    if not labels:
        return Report()
    judged = results.only(label=[*labels])
    blocks: list[Block] = [
        Items(
            [
                *_LIMITS,
                _judge_note(judged),
                *condition_notes(judged),
                *early_stop_notes(judged),
            ]
        )
    ]
    texts, tables = [], []
    drawn: dict[str, Figure] = {}
    for label in labels:
        run = judged.only(label=label)
        table = effects(run)
        tables.append(table.assign(run=label))
        sentence, grid = summary_sentence(table), _grid(table)
        blocks += [Heading(f"The run {label}"), sentence, Table(grid)]
        short = len(grid) <= _MAX_SHOWN  # For a terminal.
        grid_note = f"\n{grid_text(grid)}" if short else " See counterfactuals.md."
        texts.append(f"{label}: {sentence}{grid_note}")
        name = run_labels.label_of(run.runs.iloc[0])
        title = f"One step with another weighting, in the run {name}"
        drawn[f"counterfactuals{f'_{len(drawn) + 1}' if drawn else ''}"] = effects_plot(
            table, title=f"{title}\n{run_labels.title_of(run)}"
        )
    page = Page("Would another weighting have helped, for one step?", blocks)
    return Report(
        "\n\n".join(texts),
        {"counterfactuals": pd.concat(tables)},
        {"counterfactuals": page},
        drawn,
        digits=6,
    )


def _judge_note(results: Results) -> str:
    """Returns the sentence on the judges, their examples and rounds."""
    count = results.setting("counterfactual_clients", 0)
    interval = results.setting("counterfactual_every", 1)
    who = f"{count:.0f} clients" if count else "all clients"
    examples = {"test": "their test examples", "server": "the server's examples"}
    on = results.setting("judge_on", "test")
    what = examples.get(on, "training examples that were held out")
    when = f"every {interval:.0f} rounds" if interval > 1 else "every round"
    return f"Judged by {who} on {what}, after {when}."


def summary_sentence(table: pd.DataFrame) -> str:
    """Returns a sentence on which weightings differ from the baseline in accuracy."""
    if table.empty:
        return "Only one weighting was judged: there is nothing to compare."
    baseline, rounds = table["baseline"].iloc[0], table["rounds"].iloc[0]
    if table["accuracy_interval"].isna().any():
        return (
            f"{rounds} judged rounds are too few for an interval: {MIN_ROUNDS} or more."
        )
    differs = table[table["accuracy_p"] < ALPHA]
    if differs.empty:
        reach = table["accuracy_mean"].abs() + table["accuracy_interval"]
        return (
            f"No weighting differs from {baseline} by more than {reach.max():.2f} "
            "points of accuracy per step."
        )
    order = differs["accuracy_mean"].abs().sort_values(ascending=False).index
    words = [
        f"{row.weighting} ({row.accuracy_mean:+.2f} ± {row.accuracy_interval:.2f})"
        for row in differs.loc[order[:5]].itertuples()
    ]
    rest = f" and {len(differs) - 5} more" if len(differs) > 5 else ""
    return (
        f"{len(differs)} of {len(table)} differ from {baseline}, in points of accuracy "
        f"per step: {', '.join(words)}{rest}."
    )


def _grid(table: pd.DataFrame) -> list[list[str]]:
    head = ["weighting", "weight moved"]
    for words in MEASURES.values():
        head += [f"{words}, points", "p", "early", "late"]
    lines = [head]
    for row in table.to_dict("records"):
        cells = [str(row["weighting"]), f"{row['total_variation']:.4f}"]
        for measure in MEASURES:
            half = format_number(row[f"{measure}_interval"], ".2f")
            forms = {"mean": "+.2f", "p": ".3f", "early": "+.2f", "late": "+.2f"}
            mean, *others = (
                format_number(row[f"{measure}_{part}"], form, MISSING)
                for part, form in forms.items()
            )
            cells += [f"{mean} ± {half}" if half else mean, *others]
        lines.append(cells)
    return lines


REPORTS.register("counterfactuals", report)
