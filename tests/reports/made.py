"""Small `Results`, written by hand."""

import pandas as pd

from tff_pmc.record.results import Results, join_results, results_of_counts
from tff_pmc.reports import output

RECORDED = {
    **{"model": "cnn", "client_optimizer": "sgd", "learning_rate": 0.1},
    **{"local_epochs": 5, "batch_size": 0, "experiment": "toy"},
}
"""Settings that sentences on runs need."""


def made(correct, examples, *, seed=0, runs=None, rounds=None, tables=None, **settings):
    """Returns runs of one seed.

    `correct` is label -> [rounds, clients]; `runs` and `rounds` are more columns of
    these tables, and `tables` other tables, of the first run.
    """
    settings = {**RECORDED, "rounds": len(next(iter(correct.values()))), **settings}
    found = results_of_counts(correct, examples, settings=settings, seed=seed)
    own = {"title": [*correct], "data_name": "m", "data_source": "a test"}
    own["data_options"] = [{} for _ in correct]
    table = found.runs.assign(**{**own, **(runs or {})})
    of_rounds = found.rounds.assign(**(rounds or {}))
    first = next(iter(correct))
    keyed = {
        name: other if "label" in other else other.assign(seed=seed, label=first)
        for name, other in (tables or {}).items()
    }
    read = {"rounds": of_rounds, "clients": found.clients, **keyed}.get
    return Results(table, read)


def of_seeds(by_seed, examples, *, baseline="", **options):
    """Returns runs of several seeds: seed -> label -> [rounds, clients]."""
    parts = [made(of, examples, seed=s, **options) for s, of in by_seed.items()]
    found = join_results(parts)
    found.about.update({"baseline": baseline} if baseline else {})
    return found


def with_losses(sums, examples, *, seed=0):
    """Returns runs of a regression: label -> [rounds, clients], sums of losses."""
    whole = {label: [[0] * len(examples) for _ in of] for label, of in sums.items()}
    found = made(whole, examples, seed=seed)
    clients = found.clients.drop(columns="correct").assign(
        loss_sum=[float(x) for of in sums.values() for row in of for x in row]
    )
    totals = [float(sum(row)) for of in sums.values() for row in of]
    dropped = ["accuracy", "correct", *(f"p{p}" for p in (10, 50, 90))]
    rounds = found.rounds.drop(columns=dropped).assign(loss_sum=totals)
    rounds = rounds.assign(test_loss=rounds["loss_sum"] / rounds["examples"])
    return Results(found.runs, {"rounds": rounds, "clients": clients}.get)


def written(report, folder, name):
    """Writes a report; returns its text and one of its tables."""
    text = output.write(report, str(folder))
    return text, pd.read_csv(folder / f"{name}.csv")
