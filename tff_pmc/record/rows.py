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
    f1: Sequence[float],
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a round by the table, in the order of writing.

    `more` are columns of `rounds.csv`, `f1` that of each class at the server.
    """
    settings, data = setup.settings, setup.data
    measure, measured = measure_of(data), tested.measured
    names, sizes = data.client_ids, np.asarray(tested.examples.sizes, np.int64)
    train = outcome.metrics["client_work"]["train"]
    raw = np.asarray(train["criteria_by_client"], float)
    excluded = np.asarray(train["excluded_by_client"]) > 0
    in_force, counted = outcome.in_force, without(raw, excluded)
    of_round = {
        **round_row(measured, sizes, outcome.metrics, measure),
        "ordering": in_force.label,
        "testing_rounds": len(outcome.tested),
        **more,
    }
    found: dict[str, list[dict[str, Any]]] = {
        "rounds": [of_round],
        "clients": [],
        "cohort": cohort_rows(settings, in_force, names, chosen, raw, excluded),
        "weights": weight_rows(settings, in_force, counted),
        "candidates": candidate_rows(outcome.tested),
        "weightings": counterfactual_rows(settings, outcome, counted),
        "groups": [],
        "class_f1": [row("class_f1", n, digits(one)) for n, one in enumerate(f1)],
    }
    if measured is not None:
        own = tested.examples.client_ids
        if settings.record.record_clients == "all":
            found["clients"] = client_rows(own, measured, sizes, measure)
        values = data.client_table.values.items()
        table = {name: column[tested.clients] for name, column in values}
        found["groups"] = group_rows(table, measured, sizes, measure)
    return {
        name: [{"round": round_num, **one} for one in every]
        for name, every in found.items()
    }


def round_row(
    measured: Optional[npt.NDArray[Any]],
    sizes: npt.NDArray[np.int64],
    metrics: Mapping[str, Any],
    measure: Measure = ACCURACY,
) -> dict[str, Any]:
    """The row of `rounds.csv`, in which a test weighs by its size (PMC eq. 10)."""
    train, finalizer = metrics["client_work"]["train"], metrics["finalizer"]
    examples = int(train["examples"])
    # Where no client counted, there is none.
    loss = round(float(train["loss_sum"]) / examples, 6) if examples else ""
    return {
        **({} if measured is None else measure.columns(measured, sizes)),
        "train_loss": loss,
        "clients": int(train["clients"]),
        "excluded": int(train["excluded"]),
        "update_rejected": int(finalizer["update_rejected"]),
    }


def client_rows(
    client_ids: Sequence[str],
    measured: npt.NDArray[Any],
    sizes: npt.NDArray[np.int64],
    measure: Measure = ACCURACY,
) -> list[dict[str, Any]]:
    """The rows of `clients.csv`: each client's local test result, [K]."""
    return [
        {
            "client": name,
            measure.total: measure.value(total),
            "examples": int(n),
        }
        for name, total, n in zip(client_ids, measured, sizes)
    ]


def candidate_rows(tested: Sequence[Tested]) -> list[dict[str, Any]]:
    """The rows of `candidates.csv`, in the order of testing; one's model is kept."""
    return [
        row(
            *("candidates", number, trial.label),
            *(trial.correct, trial.examples),
            *(round(trial.correct / trial.examples, 6), int(trial.chosen)),
        )
        for number, trial in enumerate(tested, 1)
    ]


def group_rows(
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
                    "attribute": name,
                    "group": group,
                    "clients": int(members.sum()),
                    **{key: found[key] for key in (measure.total, "examples")},
                    measure.mean: found[measure.mean],
                }
            )
    return rows
