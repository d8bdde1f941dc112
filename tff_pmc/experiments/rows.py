"""From a round's raw outcome to the rows of its record (no TensorFlow)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tff_pmc import scores
from tff_pmc.experiments.choices import UNWEIGHTED
from tff_pmc.experiments.config import RunConfig
from tff_pmc.experiments.parsing import all_orderings

PERCENTILES = (10, 50, 90)


def round_row(
    round_num: int,
    correct: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    metrics: Mapping[str, Any],
) -> dict[str, Any]:
    """The row of `rounds.csv`.

    Args:
        round_num: from 1.
        correct: correctly classified test examples of each client, [K].
        sizes: test examples of each client, [K]; clients without any do not
            count in the percentiles.
        metrics: the process's metrics of this round.

    Returns:
        Accuracy weighted by local test size (PMC eq. 10), with its integers,
        percentiles over the clients' own accuracies, and the training side.
    """
    train, finalizer = metrics["client_work"]["train"], metrics["finalizer"]
    has_test = sizes > 0
    local = correct[has_test] / sizes[has_test]
    percentiles = np.percentile(local, PERCENTILES)
    examples = max(int(train["examples"]), 1)
    return {
        "round": round_num,
        "accuracy": round(int(correct.sum()) / int(sizes.sum()), 6),
        "correct": int(correct.sum()),
        "examples": int(sizes.sum()),
        **{f"p{p}": round(float(v), 4) for p, v in zip(PERCENTILES, percentiles)},
        "train_loss": round(float(train["loss_sum"]) / examples, 6),
        "clients": int(train["clients"]),
        "excluded": int(train["excluded"]),
        "update_rejected": int(finalizer["update_rejected"]),
    }


def client_rows(
    round_num: int,
    client_ids: Sequence[str],
    correct: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
) -> list[dict[str, Any]]:
    """The rows of `clients.csv`: each client's local test result, [K]."""
    return [
        {"round": round_num, "client": name, "correct": int(hits), "examples": int(n)}
        for name, hits, n in zip(client_ids, correct, sizes)
    ]


def cohort_rows(
    round_num: int,
    config: RunConfig,
    client_ids: Sequence[str],
    cohort: Sequence[int],
    raw: npt.NDArray[np.float64],
    excluded: npt.NDArray[np.bool_],
) -> list[dict[str, Any]]:
    """The rows of `cohort.csv`: raw criteria [clients, m], left out or not, weights."""
    weights = _in_force(config, without(raw, excluded))
    return [
        {
            "round": round_num,
            "client": client_ids[k],
            **{code: _digits(value) for code, value in zip(config.criteria, values)},
            "excluded": int(left_out),
            "weight": _digits(weight),
        }
        for k, values, left_out, weight in zip(cohort, raw, excluded, weights)
    ]


def without(
    raw: npt.NDArray[np.float64], excluded: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Criteria in which clients that were left out have no weight."""
    return np.where(excluded[:, np.newaxis], np.nan, raw)


def weight_rows(
    round_num: int,
    config: RunConfig,
    raw: npt.NDArray[np.float64],
    others: Sequence[scores.Score] = (),
) -> list[dict[str, Any]]:
    """The rows of `weights.csv`: could another ordering have mattered?

    One row for each single criterion and each ordering of the criteria, and for the
    score in force if it is none: how unequal its weights are, and the share of weight
    that it would move away from the score in force.
    """
    own = config.resolve_score()
    orders = recorded_orderings(config)
    compared = [scores.prioritized(order, config.criteria) for order in orders]
    by_label = {score.label: score for score in [*compared, own, *others]}
    in_force = _in_force(config, raw)
    rows = []
    for label, score in by_label.items():
        weights = _weights(config, score, raw)
        rows.append(
            {
                "round": round_num,
                "ordering": label,
                "in_force": int(label == own.label),
                "coefficient_of_variation": _digits(
                    scores.coefficient_of_variation(weights)
                ),
                "effective_clients": _digits(scores.effective_clients(weights)),
                "total_variation": _digits(scores.total_variation(weights, in_force)),
            }
        )
    return rows


def recorded_orderings(config: RunConfig) -> list[tuple[str, ...]]:
    """The orderings whose weights are recorded, an ordering in force among them.

    With more than four criteria their orderings are too many to write in every
    round: then the single ones, and the one in force.
    """
    few = len(config.criteria) <= 4
    orders = all_orderings(config.criteria)[: None if few else len(config.criteria)]
    if config.score != "prioritized" or config.priority in orders:
        return orders
    return [*orders, config.priority]


def candidate_rows(
    round_num: int,
    trials: Sequence[tuple[str, int, int]],
    kept: int,
) -> list[dict[str, Any]]:
    """The rows of `candidates.csv`: each ordering tested, in the order of testing.

    Args:
        round_num: from 1.
        trials: (name, correct, judged examples) of each.
        kept: the place in `trials` of the one whose model was kept.
    """
    return [
        {
            "round": round_num,
            "trial": number,
            "ordering": name,
            "correct": correct,
            "examples": examples,
            "accuracy": round(correct / examples, 6),
            "kept": int(number == kept + 1),
        }
        for number, (name, correct, examples) in enumerate(trials, 1)
    ]


def f1_rows(round_num: int, f1: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """The rows of `class_f1.csv`: what AdaFed's class weights follow from."""
    return [
        {"round": round_num, "class": label, "f1": _digits(value)}
        for label, value in enumerate(f1)
    ]


def group_rows(
    round_num: int,
    attributes: Mapping[str, npt.NDArray[np.float32]],
    correct: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
) -> list[dict[str, Any]]:
    """The rows of `groups.csv`: accuracy by group of clients.

    Weights made of attributes can favor one group and harm another (PMC's
    conclusion); this shows it. A boolean attribute makes the groups 0 and 1, any
    other the clients below the median of its values and those at or above it.

    Args:
        round_num: from 1.
        attributes: values by name, [K].
        correct: correctly classified test examples of each client, [K].
        sizes: test examples of each client, [K].
    """
    rows = []
    for name, values in attributes.items():
        if set(np.unique(values)) <= {0.0, 1.0}:
            groups = {"0": values == 0, "1": values == 1}
        else:
            low = values < np.median(values)
            groups = {"below median": low, "median or above": ~low}
        for group, members in groups.items():
            total = int(sizes[members].sum())
            hits = int(correct[members].sum())
            rows.append(
                {
                    "round": round_num,
                    "attribute": name,
                    "group": group,
                    "clients": int(members.sum()),
                    "correct": hits,
                    "examples": total,
                    "accuracy": round(hits / total, 6) if total else "",
                }
            )
    return rows


def _in_force(
    config: RunConfig, raw: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The weights of the clients in the run's own aggregation, [clients]."""
    if config.aggregator in UNWEIGHTED:
        included = np.isfinite(raw).all(axis=1)
        return included / max(int(included.sum()), 1)
    return _weights(config, config.resolve_score(), raw)


def _weights(
    config: RunConfig, score: scores.Score, raw: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    return scores.participant_weights(raw, score, config.scores_normalization)


def _digits(value: float) -> float:
    """Float32 carries seven digits; more in a file would be noise."""
    return float(f"{float(value):.7g}")
