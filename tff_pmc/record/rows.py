"""From a round's raw outcome to the rows of its record (no TensorFlow)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

import leaf_data
from tff_pmc import scores
from tff_pmc.record.columns import row
from tff_pmc.record.measures import ACCURACY, Measure, measure_of
from tff_pmc.settings import RunSettings
from tff_pmc.settings.flag_values import all_orderings

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
    examples = max(int(train["examples"]), 1)
    return {
        "round": round_num,
        **({} if measured is None else measure.columns(measured, sizes)),
        "train_loss": round(float(train["loss_sum"]) / examples, 6),
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


def cohort_rows(
    round_num: int,
    settings: RunSettings,
    in_force: scores.Score,
    client_ids: Sequence[str],
    cohort: Sequence[int],
    raw: npt.NDArray[np.float64],
    excluded: npt.NDArray[np.bool_],
) -> list[dict[str, Any]]:
    """The rows of `cohort.csv`: raw criteria [clients, m], left out or not, weights."""
    weights = _weights_in_force(settings, in_force, without(raw, excluded))
    criteria = settings.aggregation.criteria
    return [
        {
            "round": round_num,
            "client": client_ids[k],
            **{code: _digits(value) for code, value in zip(criteria, values)},
            "excluded": int(left_out),
            "weight": _digits(weight),
        }
        for k, values, left_out, weight in zip(cohort, raw, excluded, weights)
    ]


def without(
    raw: npt.NDArray[np.float64], excluded: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """The criteria, NaN for the clients that were left out, who have no weight."""
    return np.where(excluded[:, np.newaxis], np.nan, raw)


def weight_rows(
    round_num: int,
    settings: RunSettings,
    in_force: scores.Score,
    raw: npt.NDArray[np.float64],
    others: Sequence[scores.Score] = (),
) -> list[dict[str, Any]]:
    """The rows of `weights.csv`: could another ordering have mattered?

    One row for each single criterion and each ordering of the criteria, and for the
    score in force if it is none: how unequal its weights are, and the share of weight
    that it would move away from the score in force.
    """
    criteria = settings.aggregation.criteria
    compared = [
        scores.prioritized(order, criteria) for order in recorded_orderings(criteria)
    ]
    by_label = {score.label: score for score in [*compared, in_force, *others]}
    taken = _weights_in_force(settings, in_force, raw)
    rows = []
    for label, score in by_label.items():
        weights = _weights(settings, score, raw)
        found = (
            scores.coefficient_of_variation(weights),
            scores.effective_clients(weights),
            scores.total_variation(weights, taken),
        )
        in_use = int(label == in_force.label)
        rows.append(row("weights", round_num, label, in_use, *map(_digits, found)))
    return rows


def recorded_orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """The orderings whose weights are recorded beside those in force.

    With more than four criteria their orderings are too many to write in every
    round: then the single ones.
    """
    few = len(criteria) <= 4
    return all_orderings(criteria)[: None if few else len(criteria)]


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
        row("class_f1", round_num, label, _digits(value))
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


def _weights_in_force(
    settings: RunSettings, in_force: scores.Score, raw: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The weights of the clients in the run's own aggregation, [clients]."""
    if settings.system.weighs_equally:
        included = np.isfinite(raw).all(axis=1)
        return np.asarray(included / max(int(included.sum()), 1))
    return _weights(settings, in_force, raw)


def _weights(
    settings: RunSettings, score: scores.Score, raw: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    normalization = settings.aggregation.scores_normalization
    return scores.participant_weights(raw, score, normalization)


def _digits(value: float) -> float:
    """Float32 carries seven digits; more in a file would be noise."""
    return float(f"{float(value):.7g}")
