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
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import EXPERIMENT_JSON, RUN_KEY, Results, read_results
from tff_pmc.reports.papers.paper_experiments import declared
from tff_pmc.reports.statistics import paired_statistics
from tff_pmc.reports.statistics.run_notes import data_caveat

_ARRIVED = "--until=targets"  # In what a run records of its early end.
_AS_PRINTED = {"protocol": "paper", "normalization": "sum"}


def read_kept(path: str) -> dict[str, Results]:
    """Returns the kept folders of results in a folder by name, or the folder itself."""
    path = expand_path(path)
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise RecordError(f"{path} is no folder") from error
    kept = [n for n in names if os.path.exists(os.path.join(path, n, EXPERIMENT_JSON))]
    if kept and EXPERIMENT_JSON not in names:
        return {name: read_results(os.path.join(path, name)) for name in kept}
    return {os.path.basename(os.path.abspath(path)): read_results(path)}


def kept_runs(every: Iterable[Results], reach: str = "") -> pd.DataFrame:
    """Returns a row a kept run: that of `Results.runs`, and what decides if it counts.

    Targets are reached by the rule `reach` in all runs, by default by each run's own.

    The columns are `data_caveat` (the source of data that is a stand-in or incomplete),
    `image_fraction` (the part of the images that it has), `other_reading` (what its
    network has and its paper's text has not), `length` (its recorded rounds), `arrived`
    (whether it ended because it had reached all targets), `factors` (what the factors
    of products were rounded to; empty for float32), `folder` (a number),
    `folder_name`, `results` (those of the folder) and `own_label` (the label there).
    """
    found = []
    for number, results in enumerate(every):
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
            "other_reading": [*map(_other_reading, rows)],
            "length": length.to_numpy(),
            "arrived": [_arrived(run, reach) for run in rows],
            "factors": [_factors(run.get("versions", {})) for run in rows],
            "folder": number,
            "folder_name": os.path.basename(os.path.abspath(results.path)),
            "results": [results] * len(runs),
            "own_label": runs["label"],
        }
        rest = runs.drop(columns=[*{*columns} & {*runs}])
        found.append(pd.concat([pd.DataFrame(columns), rest], axis=1))
    if not found:
        return pd.DataFrame(columns=[*RUN_KEY, "folder_name"])
    return pd.concat(found, ignore_index=True)


def _arrived(run: Mapping[str, Any], reach: str) -> bool:
    """Returns whether a run ended because it had reached all targets, by a rule."""
    # A run that is above its targets has reached them, but not the other way around.
    ended = _ARRIVED in str(run.get("ended_early"))
    return ended and (reach != "above" or run.get("reach") == "above")


def _other_reading(run: Mapping[str, Any]) -> str:
    model = run.get("model", "mnist_cnn")  # The oldest records name none.
    relu = model in MODELS and run.get("conv_activation") == "relu"
    paper_has = relu and MODELS[model]().conv_activation == "relu"
    return "ReLU after the convolutions" if relu and not paper_has else ""


def _factors(versions: Mapping[str, Any]) -> str:
    if "gpu" in versions:  # Where oneDNN has no part in the training.
        return "TF32" if versions.get("gpu_factors") == "tf32" else ""
    mode = versions.get("onednn_fpmath_mode") or ""
    return "bfloat16" if mode == "BF16" else str(mode)


class Runs(NamedTuple):
    """The kept runs of an experiment.

    Attributes:
        name: of the experiment.
        table: the published table that they are compared with, if any.
        rows: a row a run, as `kept_runs` has them; `label` is its name in a claim.
    """

    name: str
    table: str
    rows: pd.DataFrame

    @classmethod
    def of(
        cls,
        experiment: str,
        kept: pd.DataFrame,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> Runs:
        """Returns the runs that are the paper's; `settings` replace the paper's.

        Others are left out, whatever their labels: those that normalize otherwise,
        those by the published code's protocol, and those of other settings, where a
        record has them.
        """
        of_paper = declared(experiment)
        own = of_paper.settings if settings is None else settings
        rows = kept[kept.reindex(columns=["experiment"])["experiment"] == experiment]
        for name, value in {**_AS_PRINTED, **own}.items():
            if name in rows:
                rows = rows[rows[name].isna() | (rows[name] == value)]
        return cls(experiment, of_paper.table, rows)

    def setting(self, name: str, default: Any) -> pd.Series[Any]:
        """Returns a setting of each run, or the default where it is not recorded."""
        found = self.rows.reindex(columns=[name])[name]
        return found.where(found.notna(), default)

    def choose(
        self,
        labels: Sequence[str],
        least: int = 0,
        *,
        arrivals: bool = False,
        show_all: Callable[[pd.DataFrame], bool] = lambda of: False,
    ) -> pd.DataFrame:
        """Returns all runs of one folder for each seed that has a run of every label.

        Only runs of one folder are compared: they were made by one command. Runs of
        another reading than the paper's count where there are no others. Of two folders
        that have a seed the one with more of the data set counts, then that with
        `least` rounds or more of them, then that with more seeds up to five, then that
        with longer runs, then that with more seeds, then that with more of the runs.
        Where five seeds of a folder count, seeds of shorter runs do not. A run that
        ended early, as when all of its clients diverged, is left out: such a seed shows
        nothing of rounds. Where no seed has all labels, a `RecordError` names them.

        Args:
            labels: those of the runs that are needed.
            least: the rounds that are needed.
            arrivals: whether only the rounds are needed in which targets are reached: a
                run that ended because it had reached all of them counts then, as one
                that is longer than any other.
            show_all: returns whether runs show all that is asked of them; where they
                do, seeds of shorter runs count, too.
        """
        place = ["folder", "seed"]
        if not len(self.rows):
            raise RecordError(f"not run: {_listed(labels)}")
        arrived = self.rows["arrived"].astype(bool) & arrivals
        known = self.rows["length"].astype(float).mask(arrived, math.inf)
        runs = self.rows.assign(known=known)
        runs = runs[runs["known"] >= self.setting("rounds", 0)]
        runs = runs.drop_duplicates([*place, "label"])
        for some in (runs[runs["other_reading"] == ""], runs):
            worth = some.groupby(place, sort=False).agg(
                image_fraction=("image_fraction", "min"),
                length=("known", "min"),
                runs=("label", "size"),
                labels=("label", set),
            )
            worth["enough"] = worth["length"].clip(upper=least)
            worth["seeds"] = worth.groupby("folder")["runs"].transform("size")
            worth["decide"] = worth["seeds"].clip(upper=paired_statistics.MIN_SEEDS)
            worth = worth[[{*labels} <= of for of in worth["labels"]]]
            if len(worth):
                order = ["image_fraction", "enough", "decide", "length", "seeds"]
                best = worth.sort_values(
                    [*order, "runs"], ascending=False, kind="stable"
                )
                best = best.reset_index().drop_duplicates("seed")
                of_folder = best.groupby("folder")["length"]
                five = best[of_folder.transform("size") >= paired_statistics.MIN_SEEDS]
                longer = best[~(best["length"] < five["length"].min())]
                there = pd.MultiIndex.from_frame(some[place])
                for of in (best, longer):
                    chosen = some[there.isin(pd.MultiIndex.from_frame(of[place]))]
                    if len(of) == len(longer) or show_all(chosen):
                        break
                return chosen.drop(columns="known").sort_values("seed", kind="stable")
        missing = [label for label in labels if label not in {*runs["label"]}]
        none = f"no folder of runs has all of {_listed(labels)}"
        raise RecordError(f"not run: {_listed(missing)}" if missing else none)


def _listed(labels: Sequence[str]) -> str:
    """Returns labels as words; semicolons, because orderings have commas."""
    *others, last = labels
    return f"{'; '.join(others)} and {last}" if others else last
