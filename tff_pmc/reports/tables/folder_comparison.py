"""Two runs, or two folders of runs, compared row by row.

Each side is ours or the authors' published code's; the folder shows which. Runs
with several seeds are paired by seed, as in `effect`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import pandas as pd

from tff_pmc.record import reference_code
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results, read_results
from tff_pmc.reports import Report
from tff_pmc.reports.figures.comparison_plot import comparison_plot
from tff_pmc.reports.page_model import (
    MISSING,
    comparison_grid,
    format_number,
    grid_text,
)
from tff_pmc.reports.statistics import paired_effects
from tff_pmc.reports.statistics.joined_folders import join_folders
from tff_pmc.reports.statistics.rounds_to_target import (
    DEVICES,
    reach_sentence,
    rounds_to_target,
    targets_of,
)
from tff_pmc.reports.statistics.run_notes import caveat_notes
from tff_pmc.reports.tables import effect

_KEYS = ("experiment", "quantity", "target_accuracy_pct", "devices", "round")
_NAMES = {"a": "A", "b": "B", "difference": "B-A"}
Pair = tuple[Optional[Results], Optional[Results]]
"""The runs of one label on both sides, of each one or none."""


def compare(
    path_a: str,
    path_b: str,
    targets: Optional[Sequence[int]] = None,
    *,
    reach: str = "",
) -> pd.DataFrame:
    """Compares the runs of two folders, ordering by ordering.

    Two single runs are compared whatever their orderings are, as `DS / LD`. A folder
    without runs, or with two of one ordering, is a `RecordError`.

    The `targets`, percent, and the rule to `reach` one on both sides (`above`, as the
    published evaluation script has it, or `at_least`) are by default the runs', the
    targets those of either side, and where none has targets, those of the published
    tables on their data set.

    The columns are experiment, quantity, target_accuracy_pct, devices, round, a, b,
    difference (b minus a) and reach (of rounds). The quantity is `rounds` (until the
    share `devices` reached the target; empty: not reached) or `accuracy` (of each
    round, on all clients' test examples). A row is there if either side has it.
    """
    sides = [read_results(path) for path in (path_a, path_b)]
    targets, rule = _targets_and_rule(sides, targets, reach)
    published = any(map(_is_published, sides))
    a, b = (_by_label(side, published) for side in sides)
    if len(a) == len(b) == 1 and a.keys() != b.keys():
        label = " / ".join([*a, *b])
        a, b = ({label: run} for side in (a, b) for run in side.values())
    rows = [
        row
        for label in dict.fromkeys([*a, *b])
        for row in _rows(label, (a.get(label), b.get(label)), targets, rule)
    ]
    types = {"a": float, "b": float, "target_accuracy_pct": "Int64", "round": "Int64"}
    table: pd.DataFrame = pd.DataFrame(rows, columns=[*_KEYS, "a", "b"]).astype(types)
    table["difference"] = table["b"] - table["a"]
    table["reach"] = table["quantity"].map({"rounds": rule}).fillna("")
    notes = [*_data_note(sides), *(n for side in sides for n in caveat_notes(side))]
    table.attrs["notes"] = list(dict.fromkeys(notes))
    return table


def report(
    path_a: str,
    path_b: str,
    targets: Optional[Sequence[int]] = None,
    *,
    reach: str = "",
    baseline: str = "",
    names: Sequence[str] = ("A", "B"),
) -> Report:
    """Returns how the runs of two folders differ.

    For one seed the files are `comparison.csv` and `.png`, of what `compare` returns.
    For several seeds they are `effect.csv`, `.md` and `.png`, of the rows of both
    folders: a row that both have, as `LD [B]`, is compared with itself, `LD [A]`, and
    every other row with the baseline.

    Args:
        path_a: the folder A.
        path_b: the folder B.
        targets: see `compare`.
        reach: see `compare`.
        baseline: the label or name of a row of A, else of B, with which all rows are
            compared; by default FedAvg, or A's first row, with which the rows that
            one folder has are compared.
        names: the names of the folders in titles.

    Raises:
        RecordError: the baseline is in neither folder, or needs several seeds; or two
            rows have no seed in common; or what `compare` refuses.
    """
    sides = [read_results(path) for path in (path_a, path_b)]
    if all(len(side.seeds) == 1 for side in sides) or any(map(_is_published, sides)):
        if baseline:
            raise RecordError(
                f"--baseline={baseline} needs runs with several seeds in both folders"
            )
        table = compare(path_a, path_b, targets, reach=reach)
        figure = comparison_plot(table, *names)
        drawn = {"comparison": figure} if figure else {}
        return Report(comparison_text(table), {"comparison": table}, figures=drawn)
    joined, base_of = join_folders(dict(zip("AB", sides)), baseline)
    targets, rule = _targets_and_rule(sides, targets, reach)
    joined.runs["targets"] = [tuple(targets)] * len(joined.runs)
    joined.runs["reach"] = rule
    title = f"Effects: A is {names[0]}, B is {names[1]}"
    effects = effect.from_table(paired_effects.paired_effects(joined, base_of))
    return effect.effect_report(joined, effects, title)


def comparison_text(table: pd.DataFrame) -> str:
    """Returns the rows of `compare` as text; `+` is later, or more accurate."""
    rounds = table.query("quantity == 'rounds'")
    accuracy = table.query("quantity == 'accuracy'")
    rule = reach_sentence(next(iter(rounds["reach"]), "at_least"))
    missing = f"{MISSING}: not reached, or only the other side has the row."
    notes = "\n".join([rule, missing, *table.attrs.get("notes", ())])
    return f"{_rounds_text(rounds)}\n{notes}\n\n{_accuracy_text(accuracy)}"


def _is_published(results: Results) -> bool:
    """Returns whether the runs are the published code's, which has no settings."""
    return "experiment" not in results.runs


def _data_note(sides: Sequence[Results]) -> list[str]:
    """Returns that two sides are on different data, if they are."""
    texts = [
        dict.fromkeys(
            f"{run['data_name']}, {run['data_clients']} clients"
            + "".join(f", {key}={value}" for key, value in run["data_options"].items())
            for run in side.runs.to_dict("records")
        )
        for side in sides
    ]
    if any(map(_is_published, sides)) or texts[0].keys() & texts[1].keys():
        return []
    on_sides = (f"{name} has {'; '.join(t)}" for name, t in zip("AB", texts))
    return [f"A and B are on different data: {', '.join(on_sides)}."]


def _targets_and_rule(
    sides: Sequence[Results], targets: Optional[Sequence[int]], reach: str
) -> tuple[Sequence[int], str]:
    """Returns the targets of a comparison, percent, and the rule of reaching one."""
    rules = {side.path: side.setting("reach") for side in sides}
    recorded = {path: rule for path, rule in rules.items() if rule is not None}
    if not reach and len({*recorded.values()}) > 1:
        words = "; ".join(f"{path} has {rule}" for path, rule in recorded.items())
        raise RecordError(f"the folders differ in reach ({words}): choose with --reach")
    if targets is None:
        all_targets = {target for side in sides for target in targets_of(side)}
        targets = sorted(all_targets) or _published_targets(sides)
    return targets, reach or next(iter(recorded.values()), "at_least")


def _published_targets(sides: Sequence[Results]) -> Sequence[int]:
    """Returns the published tables' targets: MNIST's unless all runs are of CelebA."""
    names = {name for side in sides for name in side.runs["data_name"]}
    return reference_code.TARGETS["celeba" if names == {"celeba"} else "mnist"]


def _by_label(results: Results, published: bool) -> dict[str, Results]:
    """Returns the runs by their labels, or by the labels of the published code."""
    runs_by_label: dict[str, Results] = {}
    for seed, label in results.runs[["seed", "label"]].itertuples(index=False):
        name = reference_code.published_label(label) if published else label
        if name in runs_by_label:
            raise RecordError(
                f"{results.path} has two runs of {name}: name the folder of one seed"
            )
        runs_by_label[name] = results.only(seed=seed, label=label)
    return runs_by_label


def _rows(
    label: str, pair: Pair, targets: Sequence[int], reach: str
) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a label, without the difference."""
    cells = [(target, share) for target in targets for share in DEVICES]
    rounds = [
        [None] * len(cells)
        if run is None
        else rounds_to_target(run, targets, reach=reach)["rounds"]
        for run in pair
    ]
    for (target, share), *pair_rounds in zip(cells, *rounds):
        yield (label, "rounds", target, f"{share}%", None, *pair_rounds)
    lines = [[] if run is None else run.rounds["accuracy"].tolist() for run in pair]
    for place, values in enumerate(itertools.zip_longest(*lines), start=1):
        yield (label, "accuracy", None, None, place, *values)


def _rounds_text(rows: pd.DataFrame) -> str:
    texts = rows.assign(target=rows["target_accuracy_pct"].map("{} %".format))
    for name in _NAMES:
        form = "+.0f" if name == "difference" else ".0f"
        texts[name] = [format_number(rounds, form, MISSING) for rounds in rows[name]]
    keys = ["target", "experiment"]
    grid = comparison_grid(texts, ["target", "", ""], keys, "devices", _NAMES)
    title = "Rounds until a share of the devices reaches the target accuracy"
    return f"{title}\n{grid_text(grid, 3)}"


def _accuracy_text(rows: pd.DataFrame) -> str:
    grid = [["", "round", "A", "B", "B-A", "mean B-A", "largest |B-A|"]]
    for label, part in rows.groupby("experiment", sort=False):
        common = part.dropna(subset=["difference"])
        if common.empty:
            side = "A" if part["b"].isna().all() else "B"
            grid.append([str(label), *5 * [""], f"only in {side}"])
            continue
        last, differences = common.iloc[-1], common["difference"]
        largest = common.loc[differences.abs().idxmax()]
        cells = [f"{last['round']}", f"{last['a']:.3f}", f"{last['b']:.3f}"]
        cells += [f"{last['difference']:+.3f}", f"{differences.mean():+.3f}"]
        cells += [f"{abs(largest['difference']):.3f} in round {largest['round']}"]
        grid.append([str(label), *cells])
    title = "Accuracy on all clients' test examples, at the last round of both"
    return f"{title}\n{grid_text(grid)}"
