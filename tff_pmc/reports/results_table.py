"""The rounds-to-target table, as text and as tidy rows, and the file `results.csv`."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd

from tff_pmc.record.metrics import ACCURACY
from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report, pages, summary
from tff_pmc.reports.conditions import conditions, with_caveat
from tff_pmc.reports.rounds_to_target import (
    DEVICES,
    average,
    caveats,
    gains_over,
    reach_of,
    reach_rule,
    recorded_targets,
    rounds_to_target,
)

AVERAGE = "Avg."
_TITLES = {
    "rounds": "Rounds until a share of the devices reaches the target accuracy",
    "gain": "Rounds gained over DS (DS minus this; Avg. = sum / 9, not reached as the "
    "last round)",
}


def report(results: Results) -> Report:
    """Returns `results.csv` and its page: `tidy_rows`, then `summary.tidy_rows`.

    It is of one seed. A regression has no targets, and the last and the best losses;
    runs that recorded no clients have the last and the best accuracies.
    """
    if len(results.seeds) > 1:
        return Report()
    of_classes = summary.measure_of(results) is ACCURACY
    tidy = tidy_rows(results)
    rule = [reach_rule(reach_of(results))] if results.has_clients else []
    notes = [*conditions(results), *rule, *caveats(results)]
    title = "Rounds to target" if results.has_clients else "Accuracies"
    table = pd.concat([tidy, summary.tidy_rows(results)])
    groups = tidy.groupby("quantity", sort=False)
    parts: dict[str, pages.Grid] = {_TITLES[str(q)]: _lines(of) for q, of in groups}
    made = pages.report(
        "results",
        title if of_classes else "Losses",
        notes if of_classes else conditions(results),
        parts,
        with_caveat(table, results),
        digits=0,
    )
    text = "\n".join(filter(None, [text_tables(tidy), *caveats(results)]))
    return dataclasses.replace(made, text=text if len(tidy) else "")


def tidy_rows(results: Results) -> pd.DataFrame:
    """Returns the rounds to target of the runs of one seed, and the gains over DS.

    The columns are those of the published tables' CSV: experiment, quantity
    (`rounds`, or `gain` = rounds of DS minus rounds of this), target_accuracy_pct,
    devices (`10%` to `90%`, and `Avg.` of the gains) and value (empty: not
    reached). The gains need a run whose ordering is DS alone: of `LD, drawn by size`
    that is `DS, drawn by size`.
    """
    targets, labels = recorded_targets(results), results.labels
    found = rounds_to_target(results, targets) if targets else pd.DataFrame()
    reached = {
        label: found[found["label"] == label].set_index(["target", "devices"])["rounds"]
        for label in (labels if targets else ())
    }
    length = results.length.droplevel("seed")
    parts = [(label, "rounds", rounds) for label, rounds in reached.items()]
    averages: dict[str, pd.Series[float]] = {}
    for label, own in reached.items():
        _, comma, words = label.partition(", ")
        alike = f"{BASELINE}{comma}{words}"
        base = alike if alike in reached and alike != label else BASELINE
        if base in reached and base != label:
            parts.append((label, "gain", reached[base] - own))
            averages[label] = _averages(reached[base], own, length[[base, label]])
    rows: list[tuple[Any, ...]] = []
    for label, quantity, values in parts:
        for target in targets:
            start, of_target = (label, quantity, target), values.loc[target]
            rows += [(*start, f"{share}%", of_target[share]) for share in DEVICES]
            if quantity == "gain":
                rows.append((*start, AVERAGE, round(averages[label][target], 2)))
    return summary.table_of(rows)


def _averages(
    base: pd.Series[float], own: pd.Series[float], length: pd.Series[int]
) -> pd.Series[float]:
    """Returns the average gain by target; NaN where the shorter run might have arrived.

    `base` and `own` are rounds by target and devices, and `length` those of the runs.
    """
    gains = gains_over(base, own, length.max())
    found = gains.groupby(level="target", sort=False).agg(average)
    one_sided = gains.notna() & (base.isna() | own.isna())
    unknown = one_sided.groupby(level="target", sort=False).any()
    return found.mask(unknown) if length.nunique() > 1 else found


def text_tables(tidy: pd.DataFrame) -> str:
    """Returns the tidy rows as a reader's tables: rounds first, then gains over DS.

    Where no run reached any target, a sentence reports it in the place of dashes.
    """
    if tidy[tidy["quantity"] == "rounds"]["value"].isna().all():
        targets = ", ".join(map(str, dict.fromkeys(tidy["target_accuracy_pct"])))
        return (
            f"{_TITLES['rounds']}:\n{DEVICES[0]} % of the devices reached none of "
            f"{targets} % in any run."
            if targets
            else ""
        )
    texts = []
    for name, part in tidy.groupby("quantity", sort=False):
        lines = _lines(part)
        order = list(dict.fromkeys(target for target, *_ in lines))
        lines.sort(key=lambda line: order.index(line[0]))
        texts.append(f"{_TITLES[str(name)]}\n{pages.grid_text(lines, 2)}")
    return "\n\n".join(texts)


def _lines(tidy: pd.DataFrame) -> list[list[str]]:
    """Returns a head, and for each target and run its cells."""
    columns = list(dict.fromkeys(tidy["devices"]))
    lines = [["target", "", *columns]]
    rows = tidy.groupby(["target_accuracy_pct", "experiment"], sort=False)
    for (target, name), row in rows:
        forms = [".2f" if column == AVERAGE else ".0f" for column in row["devices"]]
        values = zip(row["value"], forms)
        cells = [pages.number(v, form, pages.MISSING) for v, form in values]
        lines.append([f"{target} %", str(name), *cells])
    return lines
