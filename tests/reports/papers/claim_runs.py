"""Kept runs that are made up: each is a dictionary of what it has."""

import functools
import math

import pandas as pd

from tff_pmc.record.results import Results
from tff_pmc.reports import claims_page
from tff_pmc.reports.papers import claim_measures
from tff_pmc.reports.papers.claim_registry import CLAIMS
from tff_pmc.reports.papers.judging import judged
from tff_pmc.reports.papers.paper_runs import Runs, kept_runs, read_kept


def run(label, seed=0, accuracy=(), length=60, reached=None, tables=(), **row):
    """A run: its accuracy in each round, or its `length` in rounds of 0.5.

    `reached` has the rounds until targets are reached, by (target, share), and `tables`
    the rows of other tables, by name.
    """
    accuracy = [*accuracy] or [0.5] * length
    own = {"data_name": "", "data_source": "", "data_clients": 7, "versions": {}}
    own.update(data_options={}, algorithm="prioritized", seed=seed, label=label)
    columns = {"round": [*range(1, len(accuracy) + 1)], "accuracy": accuracy}
    columns.update(row.pop("columns", {}))
    tables = {"rounds": columns, **dict(tables)}
    return {"row": {**own, **row}, "reached": reached or {}, "tables": tables}


def folder(*runs):
    """The runs of one folder."""
    tables = {}
    for one in runs:
        for name, columns in one["tables"].items():
            table = tables.setdefault(name, {})
            keys = {key: one["row"][key] for key in ("seed", "label")}
            length = len(next(iter(columns.values())))
            for column, values in columns.items():
                table.setdefault(column, []).extend(values)
            for column, value in keys.items():
                table.setdefault(column, []).extend([value] * length)
    frames = {name: pd.DataFrame(table) for name, table in tables.items()}
    found = Results(pd.DataFrame([one["row"] for one in runs]), frames.get)
    found.arrivals = [(one["row"], one["reached"]) for one in runs]
    return found


def kept(*folders):
    """Kept runs of these folders, each a list of runs."""
    return kept_runs([folder(*runs) for runs in folders])


@functools.cache
def reproduced():
    """What the repository keeps, by folder, and as the claims count it; read once."""
    found = read_kept(claims_page.RESULTS)
    return found, kept_runs(found.values(), "at_least")


def read_once(monkeypatch, module):
    """Has a page take what the repository keeps as it was read before."""
    monkeypatch.setattr(module, "read_kept", lambda path: reproduced()[0])
    own = reproduced()[0].values()
    monkeypatch.setattr(
        module,
        "kept_runs",
        lambda every, reach="": (
            reproduced()[1]
            if reach != "above" and [*every] == [*own]
            else kept_runs(every, reach)
        ),
    )


def given_arrivals(monkeypatch):
    """Has claims take the rounds that made-up runs are given to have reached."""

    def table(results, targets, shares):
        rows = [
            (row["seed"], row["label"], share, reached.get((target, share)) or math.nan)
            for row, reached in results.arrivals
            for target in targets
            for share in shares
        ]
        return pd.DataFrame(rows, columns=["seed", "label", "devices", "rounds"])

    monkeypatch.setattr(claim_measures, "rounds_to_target", table)


def answer(claim, runs):
    """The answer of runs to a claim by its id, whatever its experiments need."""
    of_claim = CLAIMS[claim]
    of_experiments = [Runs.of(x, runs, of_claim.settings) for x in of_claim.experiments]
    return judged(of_claim.differences(*of_experiments))
