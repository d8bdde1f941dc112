"""The rows of a round's record on weights: criteria, weightings, counterfactuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tff_pmc import scores
from tff_pmc.record.columns import row
from tff_pmc.record.measures import client_means, jain_index, worst_tenth
from tff_pmc.settings import RunSettings
from tff_pmc.settings.flag_values import all_orderings

if TYPE_CHECKING:
    from tff_pmc.systems.rounds import Round


def cohort_rows(
    settings: RunSettings,
    in_force: scores.Score,
    client_ids: Sequence[str],
    cohort: Sequence[int],
    raw: npt.NDArray[np.float64],
    excluded: npt.NDArray[np.bool_],
) -> list[dict[str, Any]]:
    """The rows of `cohort.csv`: raw criteria [clients, m], left out or not, weights.

    A weight is the factor of the client's update: see `System.has_step`.
    """
    counted = without(raw, excluded)
    weights = _weights_in_force(settings, in_force, counted)
    weights = weights * in_force.length(np.nansum(counted, axis=0))
    return [
        {
            "client": client_ids[k],
            **{code: digits(value) for code, value in zip(settings.columns, values)},
            "excluded": int(left_out),
            "weight": digits(weight),
        }
        for k, values, left_out, weight in zip(cohort, raw, excluded, weights)
    ]


def without(
    raw: npt.NDArray[np.float64], excluded: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """The criteria, NaN for the clients that were left out, who have no weight."""
    return np.where(excluded[:, np.newaxis], np.nan, raw)


def weight_rows(
    settings: RunSettings,
    in_force: scores.Score,
    raw: npt.NDArray[np.float64],
    others: Sequence[scores.Score] = (),
) -> list[dict[str, Any]]:
    """The rows of `weights.csv`: could another ordering have mattered?

    How unequal its weights are, and the share of weight that it would move.
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
        rows.append(row("weights", label, in_use, *map(digits, found)))
    return rows


def recorded_orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """The orderings whose weights are recorded beside those in force.

    With more than four criteria their orderings are too many to write in every
    round: then the single ones.
    """
    if len(criteria) > 4:
        return [(code,) for code in criteria]
    return all_orderings(criteria)


def counterfactual_rows(
    settings: RunSettings, outcome: Round, raw: npt.NDArray[np.float64]
) -> list[dict[str, Any]]:
    """The rows of `weightings.csv`: each weighting whose model was judged beside."""
    if outcome.judged is None or not outcome.counterfactuals:
        return []
    sizes = np.asarray(outcome.judged.sizes, np.int64)
    taken = _weights(settings, outcome.in_force, raw)
    rows = []
    for one in outcome.counterfactuals:
        weights = _weights(settings, one.score, raw)
        rate = settings.training.server_learning_rate if one.rate is None else one.rate
        spread: tuple[Any, ...] = ("", "")
        if one.correct.ndim:
            local = client_means(one.correct[: len(sizes)], sizes)
            spread = digits(float(worst_tenth(local))), digits(float(jain_index(local)))
        rows.append(
            row(
                *("weightings", one.score.label, rate),
                int(one.score == outcome.in_force and one.rate is None),
                *(int(one.correct.sum()), int(sizes.sum()), *spread),
                digits(scores.total_variation(weights, taken)),
            )
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


def digits(value: float) -> float:
    """Float32 carries seven digits; more in a file would be noise."""
    return float(f"{float(value):.7g}")
