"""From a round's raw outcome to the rows of its record (no TensorFlow)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

import leaf_data
from tff_pmc.record.columns import row
from tff_pmc.record.measures import ACCURACY, Measure, measure_of
from tff_pmc.record.weight_rows import (
    cohort_rows,
    counterfactual_rows,
    digits,
    weight_rows,
    without,
)

if TYPE_CHECKING:
    from tff_pmc.systems.rounds import Round, Tested
    from tff_pmc.systems.setup import Setup


class ClientTests(NamedTuple):
    """The clients that test a model, and what they found."""

    clients: npt.NDArray[np.int64]  # Their numbers, [E].
    examples: leaf_data.Examples  # Their test examples.
    measured: Optional[npt.NDArray[Any]]  # [E]; None where there was no test.


def tables_of(
    setup: Setup,
    round_num: int,
    chosen: Sequence[int],
    outcome: Round,
    tested: ClientTests,
    more: Mapping[str, float],
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a round by the table, in the order of writing."""
    settings, data = setup.settings, setup.data
    measure, measured = measure_of(data), tested.measured
    names, sizes = data.client_ids, np.asarray(tested.examples.sizes, np.int64)
    train = outcome.metrics["client_work"]["train"]
    raw = np.asarray(train["criteria_by_client"], float)
    excluded = np.asarray(train["excluded_by_client"]) > 0
    in_force = outcome.in_force
    of_round = {
        **round_row(round_num, measured, sizes, outcome.metrics, measure),
        "ordering": in_force.label,
        "testing_rounds": len(outcome.tested),
        **more,
    }
    found: dict[str, list[dict[str, Any]]] = {"clients": [], "groups": []}
    if measured is not None:
        own = tested.examples.client_ids
        if settings.record.record_clients == "all":
            found["clients"] = client_rows(round_num, own, measured, sizes, measure)
        values = data.client_table.values.items()
        table = {name: column[tested.clients] for name, column in values}
        found["groups"] = group_rows(round_num, table, measured, sizes, measure)
    return {
        "rounds": [of_round],
        "clients": found["clients"],
        "cohort": cohort_rows(
            round_num, settings, in_force, names, chosen, raw, excluded
        ),
        "weights": weight_rows(round_num, settings, in_force, without(raw, excluded)),
        "candidates": candidate_rows(round_num, outcome.tested),
        "weightings": counterfactual_rows(
            round_num, settings, outcome, without(raw, excluded)
        ),
        "groups": found["groups"],
    }


def round_row(
    round_num: int,
    measured: Optional[npt.NDArray[Any]],
    sizes: npt.NDArray[np.int64],
    metrics: Mapping[str, Any],
    measure: Measure = ACCURACY,
) -> dict[str, Any]:
    """The row of `rounds.csv`, whose columns of the test are empty without one.

    Accuracy weighted by local test size (PMC eq. 10), with its integers, percentiles
    over the clients' own accuracies, and the training side.
    """
    train, finalizer = metrics["client_work"]["train"], metrics["finalizer"]
    examples = int(train["examples"])
    # Where no client counted, there is none.
    loss = round(float(train["loss_sum"]) / examples, 6) if examples else ""
    return {
        "round": round_num,
        **({} if measured is None else measure.columns(measured, sizes)),
        "train_loss": loss,
        "clients": int(train["clients"]),
        "excluded": int(train["excluded"]),
        "update_rejected": int(finalizer["update_rejected"]),
    }


def client_rows(
    round_num: int,
    client_ids: Sequence[str],
    measured: npt.NDArray[Any],
    sizes: npt.NDArray[np.int64],
    measure: Measure = ACCURACY,
) -> list[dict[str, Any]]:
    """The rows of `clients.csv`: each client's local test result, [K]."""
    return [
        {
            "round": round_num,
            "client": name,
            measure.total: measure.value(total),
            "examples": int(n),
        }
        for name, total, n in zip(client_ids, measured, sizes)
    ]


def candidate_rows(round_num: int, tested: Sequence[Tested]) -> list[dict[str, Any]]:
    """The rows of `candidates.csv`: each candidate tested, in the order of testing.

    The column `kept` says whose model is the round's result.
    """
    return [
        row(
            *("candidates", round_num, number, trial.label),
            *(trial.correct, trial.examples),
            *(round(trial.correct / trial.examples, 6), int(trial.chosen)),
        )
        for number, trial in enumerate(tested, 1)
    ]


def f1_rows(round_num: int, f1: Sequence[float]) -> list[dict[str, Any]]:
    """The rows of `class_f1.csv`: F1 of each class, of the model after the round."""
    return [
        row("class_f1", round_num, label, digits(value))
        for label, value in enumerate(f1)
    ]


def group_rows(
    round_num: int,
    attributes: Mapping[str, npt.NDArray[np.float32]],
    measured: npt.NDArray[Any],
    sizes: npt.NDArray[np.int64],
    measure: Measure = ACCURACY,
) -> list[dict[str, Any]]:
    """The rows of `groups.csv`: accuracy, or the loss, by group of clients.

    Weights made of attributes can favor one group and harm another (PMC's
    conclusion); this shows it. A boolean attribute makes the groups 0 and 1, any
    other the clients below the median of its values and those at or above it.
    """
    rows = []
    for name, values in attributes.items():
        if set(np.unique(values)) <= {0.0, 1.0}:
            groups = {"0": values == 0, "1": values == 1}
        else:
            low = values < np.median(values)
            groups = {"below median": low, "median or above": ~low}
        for group, members in groups.items():
            found = measure.of_clients(measured[members], sizes[members])
            rows.append(
                {
                    "round": round_num,
                    "attribute": name,
                    "group": group,
                    "clients": int(members.sum()),
                    **{key: found[key] for key in (measure.total, "examples")},
                    measure.mean: found[measure.mean],
                }
            )
    return rows
