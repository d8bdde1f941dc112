"""The rounds-to-target table, as text and as tidy rows, and the file `results.csv`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pandas as pd

from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import REPORTS, Report, page_model, single_seed_only
from tff_pmc.reports.page_model import comparison_grid
from tff_pmc.reports.statistics import run_summary
from tff_pmc.reports.statistics.rounds_table import AVERAGE, rounds_cells
from tff_pmc.reports.statistics.rounds_to_target import (
    DEVICES,
    pmc_average,
    reach_rule,
    reach_sentence,
    recorded_targets,
)
from tff_pmc.reports.statistics.row_titles import row_title
from tff_pmc.reports.statistics.run_notes import (
    caveat_notes,
    condition_notes,
    mark_incomplete_data,
)

_TITLES = {
    "rounds": "Rounds until a share of the devices reaches the target accuracy",
    "gain": "Rounds saved over FedAvg (rounds of DS minus those of the run; a target "
    "that was not reached counts as reached in the last round; Avg. = sum / 9)",
}


@single_seed_only
def report(results: Results) -> Report:
    """Returns `results.csv` and its page: `tidy_rows`, then `summary.tidy_rows`.

    It is of one seed. A regression has no targets, and the last and the best losses;
    runs that recorded no clients have the last and the best accuracies.
    """
    of_classes = run_summary.results_metric(results) is ACCURACY
    tidy = tidy_rows(results)
    rule = [reach_sentence(reach_rule(results))] if results.has_clients else []
    notes = [*condition_notes(results), *rule, *caveat_notes(results)]
    title = "Rounds to target" if results.has_clients else "Accuracies"
    table = pd.concat([tidy, run_summary.tidy_rows(results)])
    groups = tidy.groupby("quantity", sort=False)
    parts: dict[str, page_model.Grid] = {
        _TITLES[str(q)]: _lines(cells) for q, cells in groups
    }
    report_of_grids = Report.from_grids(
        "results",
        title if of_classes else "Losses",
        notes if of_classes else condition_notes(results),
        parts,
        mark_incomplete_data(table, results),
        digits=0,
    )
    text = "\n".join(filter(None, [text_tables(tidy), *caveat_notes(results)]))
    return dataclasses.replace(report_of_grids, text=text if len(tidy) else "")


def tidy_rows(results: Results) -> pd.DataFrame:
    """Returns the rounds to target of the runs of one seed, and the gains over DS.

    The columns are those of the published tables' CSV: experiment, quantity
    (`rounds`, or `gain` = rounds of DS minus rounds of this), target_accuracy_pct,
    devices (`10%` to `90%`, and `Avg.` of the gains) and value (empty: not
    reached). The gains need a run whose ordering is DS alone: of `LD, drawn by size`
    that is `DS, drawn by size`. An average is empty where the shorter of two runs might
    have arrived.
    """
    baseline = _baselines(results.labels)
    cells = rounds_cells(
        results,
        recorded_targets(results),
        baseline=baseline,
        averages={AVERAGE: _average},
    )
    length = results.length.droplevel("seed")
    of_other_length = {
        label for label, base in baseline.items() if length[label] != length[base]
    }
    is_bound, is_average = cells["bound"] != "", cells["column"] == AVERAGE
    has_bounds = is_bound.groupby([cells["label"], cells["target"]]).transform("any")
    unknown = has_bounds & cells["label"].isin(of_other_length)
    values = cells["value"].mask(is_bound | (is_average & unknown)).astype(float)
    cells["value"] = values.where(~is_average, values.round(2))
    names = ["label", "quantity", "target", "column", "value"]
    return run_summary.results_table(cells[names].to_numpy())


def _average(gains: pd.Series[float]) -> float:
    """Returns `pmc_average`; NaN where neither run reached a column."""
    return pmc_average(gains) if gains.notna().any() else math.nan


def _baselines(labels: Sequence[str]) -> dict[str, str]:
    """Returns label -> the label of DS with the same words, or of DS alone."""
    baselines = {}
    for label in labels:
        _, comma, words = label.partition(", ")
        alike = f"{BASELINE}{comma}{words}"
        base = alike if alike in labels and alike != label else BASELINE
        if base in labels and base != label:
            baselines[label] = base
    return baselines


def text_tables(tidy: pd.DataFrame) -> str:
    """Returns the tidy rows as a reader's tables: rounds first, then gains over DS.

    Where no run reached any target, a sentence reports it instead of dashes.
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
        head, *lines = _lines(part)
        order = list(dict.fromkeys(target for target, *_ in lines))
        lines.sort(key=lambda line: order.index(line[0]))
        texts.append(f"{_TITLES[str(name)]}\n{page_model.grid_text([head, *lines], 2)}")
    return "\n\n".join(texts)


def _lines(tidy: pd.DataFrame) -> page_model.Grid:
    """Returns a head, and for each target and run its cells."""
    tidy = tidy.assign(target=tidy["target_accuracy_pct"].map("{} %".format))
    form = tidy["devices"].eq(AVERAGE).map({True: ".2f", False: ".0f"})
    tidy["text"] = [
        page_model.format_number(value, of_cell, page_model.MISSING)
        for value, of_cell in zip(tidy["value"], form)
    ]
    tidy["experiment"] = tidy["experiment"].map(row_title)
    rows = ["target", "experiment"]
    return comparison_grid(tidy, ["target", ""], rows, "devices", {"text": ""})


REPORTS.register("rounds_to_target", report)
