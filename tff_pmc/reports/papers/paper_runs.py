"""Selects, among the kept runs, those on which a claim is judged.

kept = kept_runs(read_kept("results/reproduced").values())
Runs.of("mnist_noniid", kept).select_comparable(["LD", "DS"])
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import pandas as pd

from leaf_data.formats.data_files import expand_path
from tff_pmc.models import MODELS
from tff_pmc.record.kept_results import EXPERIMENT_JSON
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import RUN_KEY, Results, read_results
from tff_pmc.reports.papers.paper_experiments import declared_experiment
from tff_pmc.reports.statistics import paired_statistics
from tff_pmc.reports.statistics.run_notes import data_caveat

_UNTIL_TARGETS = "--until=targets"  # In what a run records of its early end.
_PAPER_PROTOCOL = {"protocol": "paper", "normalization": "sum"}


def read_kept(path: str) -> dict[str, Results]:
    """Returns the kept folders of results in a folder by name, or the folder itself."""
    path = expand_path(path)
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise RecordError(f"{path} is not a folder") from error
    kept = [n for n in names if os.path.exists(os.path.join(path, n, EXPERIMENT_JSON))]
    if kept and EXPERIMENT_JSON not in names:
        return {name: read_results(os.path.join(path, name)) for name in kept}
    return {os.path.basename(os.path.abspath(path)): read_results(path)}


def kept_runs(folders: Iterable[Results], reach: str = "") -> pd.DataFrame:
    """Returns one row per kept run: that of `Results.runs`, and what decides its use.

    Targets are reached by the rule `reach` in all runs, by default by each run's own.

    The added columns are `data_caveat` (the source of data that is a stand-in or
    incomplete), `image_fraction` (the part of the images that the run has),
    `other_reading` (what its network has and the network of the paper's text does not),
    `length` (its recorded rounds), `reached_targets` (whether it ended because it had
    reached all targets), `factors` (the type that factors of products were rounded to;
    empty for float32), `folder` (a number), `folder_name`, `results` (those of the
    folder) and `own_label` (the label in that folder).
    """
    parts = []
    for number, results in enumerate(folders):
        if not len(results.runs):
            continue
        rows = results.runs.to_dict("records")
        if reach:
            results = copy.copy(results)
            results.runs = results.runs.assign(reach=reach)
        runs = results.runs
        length = results.length.reindex(pd.MultiIndex.from_frame(runs[RUN_KEY]))
        columns = {
            "data_caveat": data_caveat(results),
            "image_fraction": [
                float(run.get("data_options", {}).get("image_fraction", 1))
                for run in rows
            ],
            "other_reading": [*map(_network_reading, rows)],
            "length": length.to_numpy(),
            "reached_targets": [_reached_targets(run, reach) for run in rows],
            "factors": [_factor_type(run.get("versions", {})) for run in rows],
            "folder": number,
            "folder_name": os.path.basename(os.path.abspath(results.path)),
            "results": [results] * len(runs),
            "own_label": runs["label"],
        }
        other_columns = runs.drop(columns=[*{*columns} & {*runs}])
        parts.append(pd.concat([pd.DataFrame(columns), other_columns], axis=1))
    if not parts:
        return pd.DataFrame(columns=[*RUN_KEY, "folder_name"])
    return pd.concat(parts, ignore_index=True)


def _reached_targets(run: Mapping[str, Any], reach: str) -> bool:
    """Returns whether a run ended because it had reached all targets, by a rule."""
    # A run above its targets has reached them; one that reached them may not be above.
    ended = _UNTIL_TARGETS in str(run.get("ended_early"))
    return ended and (reach != "above" or run.get("reach") == "above")


def _network_reading(run: Mapping[str, Any]) -> str:
    model = run.get("model", "mnist_cnn")  # The oldest records name no model.
    relu = model in MODELS and run.get("conv_activation") == "relu"
    paper_has = relu and MODELS[model]().conv_activation == "relu"
    return "ReLU after the convolutions" if relu and not paper_has else ""


def _factor_type(versions: Mapping[str, Any]) -> str:
    if "gpu" in versions:  # Training on a GPU does not use oneDNN.
        return "TF32" if versions.get("gpu_factors") == "tf32" else ""
    mode = versions.get("onednn_fpmath_mode") or ""
    return "bfloat16" if mode == "BF16" else str(mode)


class Runs(NamedTuple):
    """The kept runs of an experiment.

    Attributes:
        name: the experiment.
        table: the published table that the runs are compared with, if any.
        rows: one row per run, as in `kept_runs`; `label` is the run's name in a claim.
    """

    name: str
    table: str
    rows: pd.DataFrame

    @classmethod
    def from_kept(
        cls,
        experiment: str,
        kept: pd.DataFrame,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> Runs:
        """Selects the runs with the paper's settings, or with `settings` instead.

        Runs with another normalization, the published code's protocol or other settings
        are dropped, whatever their labels. A setting that was not recorded is accepted.
        """
        declared = declared_experiment(experiment)
        settings = declared.settings if settings is None else settings
        rows = kept[kept.reindex(columns=["experiment"])["experiment"] == experiment]
        for name, value in {**_PAPER_PROTOCOL, **settings}.items():
            if name in rows:
                rows = rows[rows[name].isna() | (rows[name] == value)]
        return cls(experiment, declared.table, rows)

    def setting(self, name: str, default: Any) -> pd.Series[Any]:
        """Returns a setting of each run, or the default where it is not recorded."""
        values = self.rows.reindex(columns=[name])[name]
        return values.where(values.notna(), default)

    def select_comparable(
        self,
        labels: Sequence[str],
        least: int = 0,
        *,
        allow_early_end: bool = False,
        is_complete: Callable[[pd.DataFrame], bool] = lambda rows: False,
    ) -> pd.DataFrame:
        """Returns all runs of one folder for each seed that has a run of every label.

        Only runs of one folder are compared: one command produced them. Runs of another
        reading than the paper's are used only if it has no others. If two folders
        have a seed, the folder is chosen by, in this order: more of the data set, at
        least `least` rounds, more seeds up to five, longer runs, more seeds, more runs.
        If a folder with five seeds is chosen, seeds with shorter runs are dropped.
        A run that ended early, for example because all of its clients diverged, is
        dropped: its seed shows nothing about rounds.

        Args:
            labels: the labels of the runs that are needed.
            least: the number of rounds that is needed.
            allow_early_end: whether only the rounds in which targets are reached are
                needed. Then a run that ended because it had reached all of them is
                included, and is longer than any other.
            is_complete: returns whether runs show everything that is compared; if they
                do, seeds with shorter runs are kept.

        Raises:
            RecordError: no seed has a run of every label.
        """
        key = ["folder", "seed"]
        if not len(self.rows):
            raise RecordError(f"not run: {_join_labels(labels)}")
        reached_targets = self.rows["reached_targets"].astype(bool) & allow_early_end
        known_rounds = self.rows["length"].astype(float).mask(reached_targets, math.inf)
        runs = self.rows.assign(known_rounds=known_rounds)
        runs = runs[runs["known_rounds"] >= self.setting("rounds", 0)]
        runs = runs.drop_duplicates([*key, "label"])
        for candidates in (runs[runs["other_reading"] == ""], runs):
            folder_rank = _rank_folders(candidates, labels, least)
            if folder_rank.empty:
                continue
            best = folder_rank.drop_duplicates("seed")
            length = best.groupby("folder")["length"]
            five_seeds = best[length.transform("size") >= paired_statistics.MIN_SEEDS]
            longest = best[~(best["length"] < five_seeds["length"].min())]
            index = pd.MultiIndex.from_frame(candidates[key])
            for seeds in (best, longest):
                rows = candidates[index.isin(pd.MultiIndex.from_frame(seeds[key]))]
                if len(seeds) == len(longest) or is_complete(rows):
                    break
            return rows.drop(columns="known_rounds").sort_values("seed", kind="stable")
        missing = [label for label in labels if label not in {*runs["label"]}]
        if missing:
            raise RecordError(f"not run: {_join_labels(missing)}")
        raise RecordError(f"no folder of runs has all of {_join_labels(labels)}")


def _rank_folders(
    runs: pd.DataFrame, labels: Sequence[str], least: int
) -> pd.DataFrame:
    """Returns one row per folder and seed that has all labels, the best first."""
    ranks = runs.groupby(["folder", "seed"], sort=False).agg(
        image_fraction=("image_fraction", "min"),
        length=("known_rounds", "min"),
        runs=("label", "size"),
        labels=("label", set),
    )
    ranks["enough_rounds"] = ranks["length"].clip(upper=least)
    ranks["seeds"] = ranks.groupby("folder")["runs"].transform("size")
    ranks["enough_seeds"] = ranks["seeds"].clip(upper=paired_statistics.MIN_SEEDS)
    ranks = ranks[ranks["labels"].map({*labels}.issubset).astype(bool)]
    order = ["image_fraction", "enough_rounds", "enough_seeds", "length", "seeds"]
    ranks = ranks.sort_values([*order, "runs"], ascending=False, kind="stable")
    return ranks.reset_index()


def _join_labels(labels: Sequence[str]) -> str:
    """Returns labels as words; semicolons, because orderings have commas."""
    *others, last = labels
    return f"{'; '.join(others)} and {last}" if others else last
