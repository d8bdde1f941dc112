"""PMC's Tables 2, 4 and 6 from runs, ours with the published numbers.

They have the rounds DS needs until a share of the devices reaches a target accuracy,
and the rounds every other ordering gains over DS. Tables 3, 5 and 7 come from the same
runs, in `pmc_joint`. Two rules of the paper, recomputed from its cells:

* A target that a run does not reach counts as reached in its last round (Table 6:
  100), so its gain is a bound. If DS does not reach it either, the cell is a dash.
* "Avg." of the tables is the sum of the gains / 9, a dash counting as 0. The paper's
  text has means of these (7.5 and 7.6) and averages over the columns that have a gain
  (8.6, 11.5 and 13).

The paper has one run of each. With several seeds each cell is the median, with the
lowest and the highest: if the published number lies between these two, it differs from
ours by no more than another seed does. The rounds of DS are then counted by both rules
of reaching a target: the tables do not say whether they follow the paper's text or the
evaluation script of its published code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report, page_model, single_seed_only
from tff_pmc.reports.figures import devices_plot
from tff_pmc.reports.page_model import comparison_grid, rounds_text
from tff_pmc.reports.papers import pmc_paper
from tff_pmc.reports.papers.pmc_paper import KEYS, PAPER, TEXT_AVERAGE
from tff_pmc.reports.statistics import published
from tff_pmc.reports.statistics.rounds_table import (
    AT_LEAST,
    AT_MOST,
    AVERAGE,
    rounds_cells,
    seed_range,
)
from tff_pmc.reports.statistics.rounds_to_target import (
    DEVICES,
    REACH_RULES,
    reach_rule,
    reach_sentence,
)
from tff_pmc.reports.statistics.run_notes import (
    caveat_notes,
    condition_notes,
    data_caveat,
    mark_incomplete_data,
)

_AVERAGES = {
    AVERAGE: lambda gains: gains.sum(min_count=1) / len(DEVICES),
    TEXT_AVERAGE: pd.Series.mean,
}

_IMPOSSIBLE_MARK = "†"
_TEXT_TITLE = "Averages that the paper's text names"
_MARKS = {AT_MOST: "≤", AT_LEAST: "≥", "": ""}
_RULES = (
    "Gain: rounds of DS minus rounds of the ordering; more is better. Difference: ours "
    "minus the published.",
    "≤ and ≥: the ordering, or DS, did not arrive and counts as arriving in the last "
    f"round, as in the paper. {page_model.MISSING}: neither arrived.",
    f"{AVERAGE}: the sum of the gains / 9, a dash as 0 (the paper's tables). "
    f"{TEXT_AVERAGE}: divided by the columns that have a gain, as some averages of the "
    "paper's text are.",
)
_LINES = {
    "ours_text": "{quantity}, ours",
    "published_text": "published",
    "difference_text": "difference",
}
_SEEDS_NOTES = (
    "Ours: the median over the seeds, and in brackets the lowest and the highest.",
    "Gain: rounds of DS minus rounds of the ordering under the same seed; more is "
    f"better. {AVERAGE}: the sum of the gains / 9.",
    "The paper's text says that devices reach a target (at_least); the evaluation "
    "script of its published code counts the devices above it (above).",
    f"{page_model.MISSING}: not reached; of ours, the ordering or DS did not arrive "
    "under one seed at least. Of DS, a run that did not arrive is later than its last "
    "round, and a median or lowest after that round is not known.",
)


@single_seed_only
def report(results: Results, *, experiment: str) -> Report:
    """Returns `tableN.csv` and `tableN.md`: 2 (`mnist_iid`), 4 (`mnist_noniid`) or 6.

    Without a run of DS the table is omitted, and the text reports it. Rows without a
    run, and runs without a row, are named in the notes.

    Raises:
        RecordError: the runs have different rules of reaching a target.
    """
    paper = PAPER[experiment]
    rows, number = paper.rows(results), paper.rounds_table
    if BASELINE not in rows.labels:
        why = f"no run of {BASELINE}, its baseline"
        return Report(f"PMC Table {number} is omitted: {why}.")
    ours = rounds_and_gains(rows, paper.targets)
    theirs = pmc_paper.published_rows(number)
    notes = [
        *paper.notes(results),
        reach_sentence(reach_rule(rows)),
        *caveat_notes(rows),
        *_RULES,
    ]
    length, caveat = rows.length.max(), data_caveat(rows)
    other_length = paper.rounds is not None and length != paper.rounds
    if other_length:
        notes.append(
            f"Ours end in round {length}, the paper's in round {paper.rounds}: gains "
            "censored in ours (≤, ≥) are not comparable with gains censored there."
        )
    notes += paper.prose
    if paper.labels_in_doubt:
        comparable = not (caveat or other_length)
        notes += pmc_paper.exchanged_labels_note(ours, theirs, comparable=comparable)
    cells = published.join_published(ours, theirs, KEYS).fillna({"printed": ""})
    cells["bound"] = ours["bound"]
    keys = list(zip(*(cells[key] for key in KEYS)))
    cells["impossible"] = [int(key in pmc_paper.IMPOSSIBLE) for key in keys]
    cells["text"] = [paper.text_numbers.get(key, np.nan) for key in keys]
    # Targets that DS reaches in fewer columns here than in the paper.
    missing_here = cells["ours"].isna() & cells["published"].notna()
    of_ds = missing_here & (cells["quantity"] == "rounds")
    short = sorted(map(int, set(cells.loc[of_ds, KEYS[2]])))
    early = cells[KEYS[2]].isin(short) & cells["devices"].isin(_AVERAGES)
    cells.loc[early, "difference"] = np.nan
    if short:
        notes.append(
            f"At {', '.join(map(str, short))} % our run of DS is too short for columns "
            "that the paper has: our averages are of fewer columns there, and are not "
            "compared."
        )
    if cells["impossible"].any():
        notes.append(
            f"{_IMPOSSIBLE_MARK}: impossible as printed: more of the devices in an "
            "earlier round."
        )
    title = f"PMC Table {number}: {paper.title}, rounds of DS and gains over DS"
    texts = [*zip(*map(_cell_texts, cells.to_dict("records")))]
    parts = _grids(cells.assign(**dict(zip(_LINES, texts))), _LINES)
    if cells["text"].notna().any():
        parts[_TEXT_TITLE] = _text_grid(cells[cells["text"].notna()])
    table = mark_incomplete_data(cells, rows)
    return Report.from_grids(f"table{number}", title, notes, parts, table)


def rounds_and_gains(results: Results, targets: Sequence[int]) -> pd.DataFrame:
    """Returns the cells of equally long runs under one seed, that of DS among them.

    The columns are `KEYS` (experiment as the paper prints it; devices `10%` to `90%`,
    and of gains `Avg.` and `Avg. (text)`), `value` in rounds (NaN: not reached), and
    `bound`: `at most` where the run did not arrive, `at least` where DS did not.
    """
    baseline = {label: BASELINE for label in results.labels if label != BASELINE}
    cells = rounds_cells(
        results, targets, baseline=baseline, averages=_AVERAGES
    ).sort_values("target", kind="stable")
    cells = cells[(cells["label"] == BASELINE) | (cells["quantity"] == "gain")]
    cells["experiment"] = cells["label"].map(published.pmc_experiment)
    cells = cells.rename(columns={"target": KEYS[2], "column": KEYS[3]})
    return cells[[*KEYS, "value", "bound"]].reset_index(drop=True)


def _grids(cells: pd.DataFrame, lines: Mapping[str, str]) -> dict[str, page_model.Grid]:
    """Returns one grid per target, with the lines of each experiment."""
    head = ["experiment", ""]
    return {
        f"{target} %": comparison_grid(part, head, KEYS[:1], KEYS[3], lines)
        for target, part in cells.groupby(KEYS[2])
    }


def _text_grid(cells: pd.DataFrame) -> page_model.Grid:
    """Returns one line per number of the paper's text, with its cell and ours."""
    grid = [["experiment", "", "text", "published", "ours", "ours minus the text's"]]
    for cell in cells.to_dict("records"):
        where = f"{cell['target_accuracy_pct']} %, {cell['devices']}"
        is_known = not np.isnan(cell["difference"])
        beyond = _format_difference(cell["ours"] - cell["text"]) if is_known else ""
        ours, theirs, _ = _cell_texts(cell)
        texts = [f"{cell['text']:.1f}", theirs, ours, beyond]
        grid.append([str(cell["experiment"]), where, *texts])
    return grid


def _cell_texts(cell: Mapping[Hashable, Any]) -> tuple[str, str, str]:
    """Returns ours, the published number with a decimal point, and the difference."""
    theirs = ""
    if cell["printed"] or not np.isnan(cell["published"]):
        wrong = _IMPOSSIBLE_MARK if cell["impossible"] else ""
        theirs = f"{rounds_text(cell['published'])}{wrong}"
    ours = f"{_MARKS[cell['bound']]}{rounds_text(cell['ours'])}"
    return ours, theirs, _format_difference(cell["difference"])


def _format_difference(difference: float) -> str:
    if np.isnan(difference):
        return ""
    return f"{'+' if difference > 0 else ''}{rounds_text(difference)}"


def seeds_report(results: Results, *, experiment: str) -> Report:
    """Returns `tableN_seeds.csv`, `.md` and `.png`, N as in `report`.

    The report is empty for one seed, and for runs without DS. The figure shows the rows
    of DS, by both rules of `--reach`, that of the runs first.
    """
    paper = PAPER[experiment]
    rows = results.only(label=paper.labels)
    if len(results.seeds) < 2 or BASELINE not in rows.labels:
        return Report()
    (other_rule,) = {*REACH_RULES} - {reach_rule(rows)}
    recounted = rows.only(label=BASELINE)
    recounted.runs = recounted.runs.assign(reach=other_rule)
    cells = pd.concat(
        [seed_ranges(counted, experiment) for counted in (rows, recounted)]
    )
    number, seeds = paper.rounds_table, ", ".join(map(str, results.seeds))
    title = f"PMC Table {number}: {paper.title}, rounds of DS and gains over DS"
    notes = [
        f"Seeds: {seeds}; under the first:",
        *condition_notes(rows.only(seed=results.seeds[0])),
        reach_sentence(reach_rule(rows)),
        *caveat_notes(rows),
        *_SEEDS_NOTES,
    ]
    notes += published.missing_row_notes(results, paper.labels)
    parts = _grids(*_seeds_lines(cells))
    name = f"table{number}_seeds"
    page = Report.from_grids(
        name, title, notes, parts, mark_incomplete_data(cells, rows)
    )
    head = f"PMC Table {number}, {paper.title}: rounds of {BASELINE}"
    if caveat := data_caveat(rows):
        head = f"{head}\n({caveat})"
    of_ds = cells[cells["quantity"] == "rounds"]
    figure = devices_plot.devices_plot(of_ds, head, len(results.seeds))
    # The table is too wide for a terminal: only the page has it.
    return dataclasses.replace(page, text="", figures={name: figure})


def seed_ranges(results: Results, experiment: str) -> pd.DataFrame:
    """Returns one row per cell: its median, lowest, highest and published number.

    The columns are `KEYS`, `reach` (the rule by which a target is reached), `median`,
    `lowest`, `highest` and `published`.
    A gain is known if both runs reach the target; if it is unknown under one seed, so
    is its row. A target that DS does not reach is reached after its last round, `inf`
    here: a median or lowest after that round is unknown (NaN).

    Raises:
        RecordError: the runs of a seed are neither equally long nor have reached all
            targets, or were tested on different clients.
    """
    paper = PAPER[experiment]
    of_seeds = {}
    for seed in results.seeds:
        rows = paper.rows(results.only(seed=seed))
        cells = rounds_and_gains(rows, paper.targets)
        cells = cells[cells["devices"] != TEXT_AVERAGE].set_index([*KEYS])
        of_seeds[seed] = cells["value"].where(cells["bound"] == "")
    wide = pd.DataFrame(of_seeds)
    averages = wide.index.get_level_values("devices") == AVERAGE
    rows_of_cells = wide.index.droplevel("devices")
    incomplete = wide.isna().any(axis=1).groupby(rows_of_cells).transform("any")
    wide[incomplete & averages] = np.nan
    is_rounds = pd.Series(
        wide.index.get_level_values("quantity") == "rounds", wide.index
    )
    lengths = results.only(label=BASELINE).length.droplevel("label")
    ranges = seed_range(wide, lengths, is_rounds)
    ranges.insert(0, "reach", reach_rule(results))
    theirs = pmc_paper.published_rows(paper.rounds_table).set_index([*KEYS])["value"]
    return ranges.assign(published=theirs.reindex(ranges.index)).reset_index()


def _seeds_lines(cells: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Returns the cells and the lines of the page: ours by each rule, and published."""
    own_rule, other_rule = dict.fromkeys(cells["reach"])
    texts = cells.assign(text=cells.apply(_range_text, axis=1))
    wide = texts.pivot(index=[*KEYS], columns="reach", values="text")
    lines = texts[texts["reach"] == own_rule].join(wide, on=[*KEYS])
    lines["published"] = lines["published"].map(rounds_text)
    ours = {
        own_rule: "{quantity}, ours",
        other_rule: f"{{quantity}}, ours ({other_rule})",
    }
    return lines, {**ours, "published": "published"}


def _range_text(row: pd.Series[float]) -> str:
    """Returns `18 (17 to 20)`, with one decimal unless it is a whole number."""
    median, *ends = (
        page_model.format_number(row[name], ".1f", page_model.MISSING).removesuffix(
            ".0"
        )
        for name in ("median", "lowest", "highest")
    )
    is_constant = len({median, *ends}) == 1
    return median if is_constant else f"{median} ({' to '.join(ends)})"


pmc_paper.register("pmc_table{rounds_table}", report)
pmc_paper.register("pmc_table{rounds_table}_seeds", seeds_report)
