"""The effect: how rows differ from a baseline, seed by seed, and whether it is shown.

    effects = tff_pmc.effect(tff_pmc.read_results("runs/mine"))
    print(effects.sentences())
    effects.plot()

A run with one seed proves nothing: seeds alone move the rounds to a target by more than
orderings do. Here every run is compared with its baseline under the same seed
(partition, initial weights, cohorts, batches), seed by seed, and with the A/A control:
the baseline compared with itself under other seeds.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Union

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import RUN_KEY, Results, join_results
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.figures.forest_plot import forest_plot
from tff_pmc.reports.page_model import (
    MISSING,
    Block,
    Heading,
    Items,
    Page,
    Table,
    format_number,
)
from tff_pmc.reports.statistics import paired_effects, paired_statistics
from tff_pmc.reports.statistics.joined_folders import (
    Runs,
    as_results,
    join_folders,
    named_results,
)
from tff_pmc.reports.statistics.paired_effects import (
    NOT_FINITE,
    NOT_REACHED,
    ROUNDS_TO,
    SPREAD,
)
from tff_pmc.reports.statistics.paired_statistics import MIN_SEEDS
from tff_pmc.reports.statistics.rounds_to_target import (
    reach_rule,
    reach_sentence,
)
from tff_pmc.reports.statistics.row_titles import row_titles, with_short_labels
from tff_pmc.reports.statistics.run_notes import (
    caveat_notes,
    condition_notes,
    mark_incomplete_data,
)
from tff_pmc.reports.statistics.weight_statistics import (
    WEIGHT_COLUMNS,
    mean_weight_statistics,
)

FILE = "effect"
"""The name of the table, the page and the figure, without their endings."""

_NUMBERS = "no one two three four five six seven eight nine ten".split()
_IN_WORDS = {
    "not shown": "no difference shown",
    "censored": "the mean is not known",
    "more": "higher",
    "less": "lower",
    NOT_REACHED: "neither reached it",
    NOT_FINITE: "a value is not finite",
}
"""Verdict -> its words in a sentence, where they are other ones."""


class Effects(pd.DataFrame):  # type: ignore[misc]  # Pandas has no types.
    """The table of `effect`: a data frame that can be drawn and put into sentences."""

    @property
    def _constructor(self) -> Any:
        return Effects

    def plot(self, *, title: str = "") -> Figure:
        """Draws the forest plot: mean and interval of each row, a panel per measure.

            effects[effects["measure"].isin(["accuracy", "worst tenth"])].plot()

        Args:
            title: the title of the figure; by default none.

        Returns:
            A figure of Matplotlib, which a notebook shows; `savefig` writes it.
        """
        return forest_plot(self, title=title)

    def sentences(self) -> list[str]:
        """Returns one sentence per row on the metric, and one on the worst tenth.

        >>> effects.sentences()[0]
        'LD: accuracy +0.05 points (-0.9 to +1.0) against FedAvg (DS) over five seeds: \
no difference shown. Worst tenth -10.2 points (-16.6 to -3.8): worse.'
        """
        metric = str(self.attrs.get("metric") or self["measure"].iloc[0])
        titles = self.attrs.get("titles", {})
        conditions = self.attrs.get("conditions", {})
        lines = []
        for row, part in self.groupby("row", sort=False):
            by_measure = {str(cells["measure"]): cells for _, cells in part.iterrows()}
            if metric not in by_measure:
                continue
            first = by_measure[metric]
            base = first["baseline"]
            words = [_seeds_in_words(first["seeds"]), *conditions.get(row, ())]
            line = (
                f"{titles.get(row, row)}: {_size_in_words(first, metric)} against "
                f"{titles.get(base, base)} {', '.join(words)}: "
                f"{_verdict_in_words(first)}."
            )
            if SPREAD["worst_tenth"] in by_measure:
                worst = by_measure[SPREAD["worst_tenth"]]
                size = _size_in_words(worst, metric)
                has_verdict = worst["seeds"] >= MIN_SEEDS
                verdict = f": {_verdict_in_words(worst)}" if has_verdict else ""
                line += f" {size[:1].upper()}{size[1:]}{verdict}."
            lines.append(line)
        return lines


def effect(
    results: Union[Runs, Iterable[Runs], Mapping[str, Runs]],
    baseline: str = "",
) -> Effects:
    """Returns how each row differs from a baseline, with 95 % confidence intervals.

        effects = tff_pmc.effect(tff_pmc.read_results("runs/mine"), baseline="DS")

    Runs are paired by seed and compared over the rounds that both have. A difference
    has its interval (Student's t, `seeds - 1` degrees of freedom) from two seeds on,
    and a verdict from five.

    Args:
        results: what `read_results` returns, or the path of a folder; a data frame of
            any program's rounds, one row per `seed`, `label` and `round` (from 1), with
            a column `accuracy`, `test_loss` or other metrics; or several of these, to
            be joined, in a list or in a dict by name. Where each has one row, the names
            of the dict become the labels. Else a label that two of them have under one
            seed is two rows, such as `DS [old]` and `DS [new]`, and the later one is
            compared with the first.
        baseline: the label or name of the row that the others are compared with, on
            the same data; by default that of the results, else FedAvg (`DS`), else the
            first row. Labels are without the notes that all rows share.

    Returns:
        A data frame with a row per label and measure. Columns: `row`, `baseline`,
        `measure`, `seeds` (number), `rounds` (number of those compared), `mean` (of the
        differences: row minus baseline; accuracies are shares from 0 to 1), `low` and
        `high` (limits of the interval), `deviation` (over seeds), `interval` (half of
        its width), `noise_floor` (standard deviation of the baseline minus itself under
        another seed) and `noise_floor_of_mean`, `more_in` and `less_in` (numbers of
        seeds), and `verdict`: `better`, `worse`, `not shown`, `undecided` (below five
        seeds), `censored` (a run did not reach the target), `not reached` (none did),
        `not finite`, or `more` and `less` where it is not known which is better. The
        measures are the metric, such as `accuracy` or `test_loss` (its mean over the
        second half of the rounds, that of the last round and that of the best); of each
        round's clients, if they were recorded, the mean of the worst tenth, the
        standard deviation and Jain's index (means over the second half); `rounds to T
        %`, until half of the devices reach each target; and each metric that the model
        or a plugin adds to `rounds` (as the first).

    Raises:
        RecordError: the baseline is not among the rows, a row has no seed in common
            with it, or the data frame lacks a column.
    """
    if isinstance(results, (Results, pd.DataFrame, str, os.PathLike)):
        results = as_results(results)
    else:
        parts = named_results(results)
        runs = pd.concat([part.runs[RUN_KEY] for part in parts.values()])
        is_relabeled = isinstance(results, Mapping) and all(
            len(part.labels) == 1 for part in parts.values()
        )
        if runs.duplicated().any() and not is_relabeled:
            joined, base_of = join_folders(parts, baseline)
            return from_table(paired_effects.paired_effects(joined, base_of))
        results = join_results(parts if is_relabeled else parts.values())
    if baseline:
        results = results.only()
        results.about["baseline"] = baseline
    return from_table(paired_effects.effects(with_short_labels(results)))


def from_table(table: pd.DataFrame) -> Effects:
    """Returns a table of `paired_effects` that can be drawn and put into sentences."""
    effects = Effects(table)
    effects.attrs = table.attrs
    return effects


def report(results: Results) -> Report:
    """Returns `effect.csv`, `.md` and the forest plot; nothing without two to compare.

    The columns are those of `effect`, and for orderings, before the verdict,
    `WEIGHT_COLUMNS`: how unequal the weights are, and how far (total variation) from
    those of the baseline and, `from_first`, from those by the ordering's first
    criterion alone, each as the mean over the cohorts of the baseline's runs.

    Raises:
        RecordError: a row has no baseline, or the seeds do not have the same runs.
    """
    # One seed proves nothing, and the baseline alone has no effect.
    if len(results.seeds) < 2 or len(results.labels) < 2:
        return Report()
    paired_statistics.check_paired(results)
    effects = paired_effects.effects(results)
    # Rows that each have data of their own are compared with no other.
    return effect_report(results, from_table(effects)) if len(effects) else Report()


def effect_report(results: Results, effects: Effects, title: str = "") -> Report:
    """Returns the files of effects that were computed from results."""
    rows, bases = pd.DataFrame(effects), [*dict.fromkeys(effects["baseline"])]
    weights = mean_weight_statistics(results, bases[0])
    if len(bases) == 1 and len(weights):
        of_rows = weights.reindex(rows["row"].map(paired_statistics.ordering_of))
        for name in WEIGHT_COLUMNS:
            rows.insert(len(rows.columns) - 1, name, of_rows[name].to_numpy())
    sentences, closing = effects.sentences(), _closing(effects)
    blocks = [
        Items(sentences),
        *_intro(results, effects),
        *_weights_blocks(rows, row_titles(results)),
        *_differences(effects),
        *closing,
    ]
    title = title or f"Is there an effect? {_subject(results)}".rstrip()
    page = Page(title, blocks)
    text = "\n".join([f"# {page.title}", "", *sentences, "", *closing])
    return Report(
        f"{text}\nAll measures are in {FILE}.csv.",
        {FILE: mark_incomplete_data(rows, results)},
        {FILE: page},
        {FILE: effects.plot()},
        digits=6,
    )


def _subject(results: Results) -> str:
    """Returns the experiment that was named, or the data where none was."""
    first = results.runs.iloc[0]
    if first.get("is_default_experiment") in (True,):  # It may be missing.
        return str(first["data_name"])
    return str(results.setting("experiment", ""))


def _size_in_words(cells: Any, metric: str) -> str:
    """Returns a measure and its difference: `accuracy +0.05 points (-0.9 to +1.0)`."""
    measure = str(cells["measure"])
    words = measure.replace("_", " ")
    if math.isnan(cells["mean"]):
        return words
    factor, unit = paired_effects.scale_and_unit(measure, metric)
    scaled = {name: factor * cells[name] for name in ("mean", "low", "high")}
    digits = _common_digits(factor * cells["interval"], scaled["mean"])
    mean, low, high = (_format_signed(value, digits) for value in scaled.values())
    size = " ".join(filter(None, [words, mean, unit]))
    return f"{size} ({low} to {high})" if low else size


def _common_digits(interval: float, mean: float) -> int:
    """Returns the decimals of a mean and its limits: two figures of the interval.

    Without an interval they are those of the mean. At least one, at most six.
    """
    is_known = interval > 1e-9 * max(1, abs(mean))  # Not the noise of floats.
    size = abs(interval if is_known else mean)
    return min(max(1 - math.floor(math.log10(size)), 1), 6) if size > 0 else 1


def _format_signed(value: float, digits: int) -> str:
    """Returns a number with its sign; empty for NaN."""
    # Rounded first, because a mean of -0.001 would be printed as -0.00.
    return format_number(round(value, digits) + 0.0, f"+.{digits}f")


def _seeds_in_words(seeds: int) -> str:
    number = _NUMBERS[seeds] if seeds < len(_NUMBERS) else str(seeds)
    return "under one seed" if seeds == 1 else f"over {number} seeds"


def _verdict_in_words(cells: Any) -> str:
    verdict = str(cells["verdict"])
    if verdict in (NOT_REACHED, NOT_FINITE):
        return _IN_WORDS[verdict]
    if cells["seeds"] < MIN_SEEDS:
        return f"no verdict, which needs {_NUMBERS[MIN_SEEDS]} seeds"
    return _IN_WORDS.get(verdict, verdict)


REPORTS.register("ordering_effect", report)
REPORTS.register("algorithm_effect", report)
REPORTS.register("spread_effect", report)


def _base_word(effects: pd.DataFrame) -> str:
    """Returns the displayed name of the baseline, or a word for several."""
    bases = {*effects["baseline"]}
    titles: Mapping[str, str] = effects.attrs["titles"]
    return titles[bases.pop()] if len(bases) == 1 else "the baseline"


def _intro(results: Results, effects: Effects) -> list[Block]:
    """Returns what is compared and how the numbers are read, and the runs' means."""
    base, titles = _base_word(effects), effects.attrs["titles"]
    metric = effects.attrs["metric"].replace("_", " ")
    values = paired_effects.run_measures(results)
    means = values.groupby(level="label").mean().reindex(results.labels)
    lines = [
        [
            titles[label],
            *(
                format_number(value, f".{_digits(str(name))}f", MISSING)
                for name, value in row.items()
            ),
        ]
        for label, row in means.iterrows()
    ]
    data = " on the same data" if len({*effects["baseline"]}) > 1 else ""
    has_rounds = any(name.startswith(ROUNDS_TO) for name in values)
    rule = f" {reach_sentence(reach_rule(results))}" if has_rounds else ""
    notes = [
        f"Each row minus {base}{data} under the same seed: mean ± half of the 95 % "
        "confidence interval (Student's t over the seeds, from two seeds on). A "
        f"verdict needs {_NUMBERS[MIN_SEEDS]} seeds.",
        f"The noise floor is the standard deviation of {base} minus {base} under "
        "another seed: of one such difference, and of the mean over the seeds, to "
        "compare the means with.",
        "A seed decides the initial weights, the cohorts, the batches and what of the "
        "data is drawn at random.",
        f"Each measure is the mean over the second half of the rounds, except the last "
        f"{metric}, the best {metric}, whose round is chosen on the examples that are "
        f"reported, and rounds to a target.{rule}",
    ]
    return [
        Items(notes),
        f"Seeds: {', '.join(map(str, results.seeds))}; under the first:",
        Items(condition_notes(results.only(seed=results.seeds[0]))),
        "Means over the seeds:",
        Table([["", *(name.replace("_", " ") for name in means)], *lines]),
        *_condition_notes(results, effects),
        *caveat_notes(results),
    ]


def _condition_notes(results: Results, effects: Effects) -> list[str]:
    """Returns which rows differ from their baseline in the data or in the rounds."""
    conditions, titles = effects.attrs["conditions"], effects.attrs["titles"]
    pairs = effects[["row", "baseline"]].drop_duplicates()
    return [
        f"{titles[row]} against {titles[base]}: {', '.join(conditions[row])}."
        for row, base in pairs.itertuples(index=False)
        if row in conditions
    ]


def _digits(measure: str) -> int:
    if measure.startswith(ROUNDS_TO):
        return 1
    return 6 if measure == SPREAD["jain_index"] else 4


def _weights_blocks(rows: pd.DataFrame, titles: Mapping[str, str]) -> list[Block]:
    """Returns how unequal the weights of orderings are, and their distances."""
    if WEIGHT_COLUMNS[0] not in rows:
        return []
    base = titles[rows["baseline"].iloc[0]]
    head = ["row", "coefficient of variation", "effective clients"]
    head += [f"total variation from {base}", "from its own first criterion"]
    grid = [head]
    for row in rows.drop_duplicates("row").to_dict("records"):
        figures = zip(
            (row[name] for name in WEIGHT_COLUMNS), (".4f", ".2f", ".4f", ".4f")
        )
        cells = [format_number(value, form, MISSING) for value, form in figures]
        grid.append([titles[row["row"]], *cells])
    blocks: list[Block] = [
        f"How far apart the weights are, on the cohorts of the runs of {base} "
        f"(total variation: the share of weight that moves away from {base}, or "
        "from the ordering's own first criterion alone):",
        Table(grid),
    ]
    if rows["total_variation"].isna().any():
        blocks.append(f"{MISSING}: not an ordering of the criteria of {base}'s runs.")
    return blocks


def _differences(effects: Effects) -> list[Block]:
    """Returns a table for each measure."""
    base, titles = _base_word(effects), effects.attrs["titles"]
    has_one_base = effects["baseline"].nunique() == 1
    blocks: list[Block] = []
    for measure, part in effects.groupby("measure", sort=False):
        digits = _digits(str(measure))
        difference = f"minus {base}" if has_one_base else "difference"
        grid = [["row", difference, "noise floor", "of the mean", "effect"]]
        for row in part.to_dict("records"):
            names = ("noise_floor", "noise_floor_of_mean")
            floors = [format_number(row[name], f".{digits}f") for name in names]
            verdict = row["verdict"]
            if verdict in (NOT_REACHED, NOT_FINITE):
                verdict = _IN_WORDS[verdict]
            elif verdict == "censored":
                verdict = "one did not reach it"
            elif row["seeds"] < MIN_SEEDS:
                verdict = f"no verdict: {row['seeds']} of {MIN_SEEDS} seeds"
            name = titles[row["row"]]
            if not has_one_base:
                name += f" minus {titles[row['baseline']]}"
            grid.append([name, _mean(row, digits), *floors, verdict])
        blocks += [Heading(str(measure).replace("_", " ")), Table(grid)]
    return blocks


def _closing(effects: Effects) -> list[str]:
    """Returns how many differences are shown, and how many would be by chance."""
    # Equal under each seed, such as what does not depend on the row.
    is_same = (effects["mean"] == 0) & (effects["interval"] == 0)
    counts, lines = effects.loc[~is_same, "verdict"].value_counts(), []
    shown = int(counts.reindex(["better", "worse", "more", "less"]).sum())
    decided = shown + int(counts.get("not shown", 0))
    if decided:
        lines.append(
            f"In {shown} of {decided} comparisons the interval excludes 0; about "
            f"{decided / 20:.1f} would do so by chance."
        )
    if (effects["seeds"] < MIN_SEEDS).any():
        lines.append(f"With fewer than {MIN_SEEDS} seeds there is no verdict.")
    explained = effects["verdict"].isin([NOT_REACHED, NOT_FINITE])
    if (effects["mean"].isna() & ~explained).any():
        lines.append(
            "Where a run did not reach the target under some seed, no mean of its "
            "rounds is known. Only the seeds in which one run is known to be later are "
            "counted. There is no noise floor where a run of the baseline did not "
            "reach it."
        )
    return lines


def _mean(row: Mapping[Hashable, Any], digits: int) -> str:
    """Returns the mean and its interval; of censored rounds, the signs alone."""
    if row["verdict"] in (NOT_REACHED, NOT_FINITE):
        return MISSING
    if math.isnan(row["mean"]):
        return (
            f"later in {row['more_in']} and earlier in {row['less_in']} of "
            f"{row['seeds']} seeds"
        )
    interval = format_number(row["interval"], f".{digits}f")
    text = f"{row['mean']:+.{digits}f}{interval and f' ± {interval}'}"
    if interval and not float(interval) and row["seeds"] < MIN_SEEDS:
        text += f" (rests on {row['seeds']} seeds)"
    return text
