"""Small `Results`, written by hand."""

import pandas as pd

from tff_pmc.record.results import Results, join_results, results_of_counts
from tff_pmc.reports import output

RECORDED = {
    **{"model": "cnn", "client_optimizer": "sgd", "learning_rate": 0.1},
    **{"local_epochs": 5, "batch_size": 0, "experiment": "toy"},
}
"""Settings that sentences on runs need."""


def results_of_seed(
    correct, examples, *, seed=0, runs=None, rounds=None, tables=None, **settings
):
    """Returns runs of one seed.

    `correct` is label -> [rounds, clients]; `runs` and `rounds` are more columns of
    these tables, and `tables` other tables, of the first run.
    """
    settings = {**RECORDED, "rounds": len(next(iter(correct.values()))), **settings}
    results = results_of_counts(correct, examples, settings=settings, seed=seed)
    columns = {"title": [*correct], "data_name": "m", "data_source": "a test"}
    columns["data_options"] = [{} for _ in correct]
    table = results.runs.assign(**{**columns, **(runs or {})})
    of_rounds = results.rounds.assign(**(rounds or {}))
    first = next(iter(correct))
    keyed = {
        name: other if "label" in other else other.assign(seed=seed, label=first)
        for name, other in (tables or {}).items()
    }
    read = {"rounds": of_rounds, "clients": results.clients, **keyed}.get
    return Results(table, read)


def of_seeds(by_seed, examples, *, baseline="", **options):
    """Returns runs of several seeds: seed -> label -> [rounds, clients]."""
    parts = [
        results_of_seed(correct, examples, seed=s, **options)
        for s, correct in by_seed.items()
    ]
    results = join_results(parts)
    results.about.update({"baseline": baseline} if baseline else {})
    return results


def with_losses(sums, examples, *, seed=0):
    """Returns runs of a regression: label -> [rounds, clients], sums of losses."""
    whole = {
        label: [[0] * len(examples) for _ in losses] for label, losses in sums.items()
    }
    results = results_of_seed(whole, examples, seed=seed)
    clients = results.clients.drop(columns="correct").assign(
        loss_sum=[float(x) for losses in sums.values() for row in losses for x in row]
    )
    totals = [float(sum(row)) for losses in sums.values() for row in losses]
    dropped = ["accuracy", "correct", *(f"p{p}" for p in (10, 50, 90))]
    rounds = results.rounds.drop(columns=dropped).assign(loss_sum=totals)
    rounds = rounds.assign(test_loss=rounds["loss_sum"] / rounds["examples"])
    return Results(results.runs, {"rounds": rounds, "clients": clients}.get)


def written(report, folder, name):
    """Writes a report; returns its text and one of its tables."""
    text = output.write(report, str(folder))
    return text, pd.read_csv(folder / f"{name}.csv")
