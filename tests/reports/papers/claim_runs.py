"""Kept runs that are made up: each is a dictionary of what it has."""

import functools
import math

import pandas as pd

from tff_pmc.record.results import Results
from tff_pmc.reports import claims_page
from tff_pmc.reports.papers import claim_measures
from tff_pmc.reports.papers.claim_registry import CLAIMS
from tff_pmc.reports.papers.judging import judge
from tff_pmc.reports.papers.paper_runs import Runs, kept_runs, read_kept


def run(label, seed=0, accuracy=(), length=60, reached=None, tables=(), **row):
    """A run: its accuracy in each round, or its `length` in rounds of 0.5.

    `reached` has the rounds until targets are reached, by (target, share). `tables` has
    the rows of other tables, by name.
    """
    accuracy = [*accuracy] or [0.5] * length
    defaults = {"data_name": "", "data_source": "", "data_clients": 7, "versions": {}}
    defaults.update(data_options={}, algorithm="prioritized", seed=seed, label=label)
    columns = {"round": [*range(1, len(accuracy) + 1)], "accuracy": accuracy}
    columns.update(row.pop("columns", {}))
    tables = {"rounds": columns, **dict(tables)}
    return {"row": {**defaults, **row}, "reached": reached or {}, "tables": tables}


def folder(*runs):
    """The runs of one folder."""
    tables = {}
    for each in runs:
        keys = {key: each["row"][key] for key in ("seed", "label")}
        for name, columns in each["tables"].items():
            tables.setdefault(name, []).append(pd.DataFrame(columns).assign(**keys))
    tables = {
        name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()
    }
    results = Results(pd.DataFrame([each["row"] for each in runs]), tables.get)
    results.reached = [(each["row"], each["reached"]) for each in runs]
    return results


def kept(*folders):
    """Kept runs of these folders, each a list of runs."""
    return kept_runs([folder(*runs) for runs in folders])


@functools.cache
def reproduced():
    """The repository's kept folders by name, and their runs; read once."""
    folders = read_kept(claims_page.RESULTS)
    return folders, kept_runs(folders.values(), "at_least")


def read_once(monkeypatch, module):
    """Lets a page use what `reproduced` has read."""
    folders, runs = reproduced()
    monkeypatch.setattr(module, "read_kept", lambda path: folders)
    monkeypatch.setattr(
        module,
        "kept_runs",
        lambda results, reach="": (
            runs
            if reach != "above" and [*results] == [*folders.values()]
            else kept_runs(results, reach)
        ),
    )


def use_declared_rounds(monkeypatch):
    """Lets claims use the rounds that made-up runs declare as `reached`."""

    def table(results, targets, shares):
        rows = [
            (row["seed"], row["label"], share, reached.get((target, share)) or math.nan)
            for row, reached in results.reached
            for target in targets
            for share in shares
        ]
        return pd.DataFrame(rows, columns=["seed", "label", "devices", "rounds"])

    monkeypatch.setattr(claim_measures, "rounds_to_target", table)


def judge_by_id(id, kept):
    """The verdict of runs on a claim by its id, whatever its experiments need."""
    claim = CLAIMS[id]
    runs = [Runs.from_kept(name, kept, claim.settings) for name in claim.experiments]
    return judge(claim.differences(*runs))
