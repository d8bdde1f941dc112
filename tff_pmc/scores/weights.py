"""From raw criteria to the weight of each participant."""

from __future__ import annotations

from typing import Callable

import numpy as np
import numpy.typing as npt

from tff_pmc.scores.normalization import SUM, Normalization

FloatArray = npt.NDArray[np.float64]


def normalize(raw: npt.ArrayLike, normalization: Normalization = SUM) -> FloatArray:
    """Normalizes raw criteria, by default by their sums (DA section 3, PMC 4.1).

    Args:
        raw: raw criteria, float array [clients, m], none negative. A client
            with a value that is not finite contributes nothing: its row is 0.
        normalization: how; the papers divide by the sum over the cohort.

    Returns:
        Array [clients, m]. With the papers' normalization its columns sum to 1,
        or to 0 where the total is 0.

    Raises:
        ValueError: a value is negative, or the array is not two-dimensional.
    """
    values = np.array(raw, float)
    if values.ndim != 2:
        raise ValueError(f"raw criteria must be [clients, m], got {values.shape}")
    finite = np.isfinite(values).all(axis=1)
    values[~finite] = 0.0
    if (values < 0).any():
        client, column = np.argwhere(values < 0)[0]
        raise ValueError(
            f"criterion {column} of client {client} is negative: "
            f"{values[client, column]}"
        )
    return np.asarray(normalization.apply(values) * finite[:, np.newaxis])


def participant_weights(
    raw: npt.ArrayLike,
    score: Callable[[FloatArray], npt.ArrayLike],
    normalization: Normalization = SUM,
) -> FloatArray:
    """The weight of each client, `p_k = s_k / sum_k s_k` (DA eq. 3, PMC eq. 5).

    Args:
        raw: raw criteria, float array [clients, m]; see `normalize`.
        score: maps normalized criteria [clients, m] to scores [clients], for
            example `prioritized(("DS", "LD", "MD"))`.
        normalization: how the criteria are normalized.

    Returns:
        Weights [clients], not negative, summing to 1; all 0 when every score is
        0 (the round then leaves the model as it is).

    Raises:
        ValueError: `raw` is refused by `normalize`, or the score gives a value
            that is negative or of the wrong shape.
    """
    criteria = normalize(raw, normalization)
    scores = np.asarray(score(criteria), float)
    if scores.shape != (len(criteria),):
        raise ValueError(
            f"the score must give one value per client, [{len(criteria)}], "
            f"but gave the shape {scores.shape}"
        )
    if not np.isfinite(scores).all() or (scores < 0).any():
        raise ValueError("the score gave a value that is negative or not finite")
    total = scores.sum()
    return np.asarray(scores / total) if total > 0 else np.zeros_like(scores)


def coefficient_of_variation(weights: npt.ArrayLike) -> float:
    """Standard deviation of the weights over their mean; 0 when all are equal.

    Args:
        weights: participant weights [clients], summing to 1 (or all 0, which
            gives 0).
    """
    p = np.asarray(weights, float)
    return float(p.std() / p.mean()) if p.sum() > 0 else 0.0


def effective_clients(weights: npt.ArrayLike) -> float:
    """The number of equally weighted clients that are as unequal: `1/sum p^2`.

    Between 1 (one client decides) and the number of clients; 0 if no weight.
    """
    p = np.asarray(weights, float)
    return float(1.0 / np.square(p).sum()) if p.sum() > 0 else 0.0


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Half the sum of absolute differences: the share of weight that moves.

    Args:
        p: participant weights [clients].
        q: other weights of the same clients.
    """
    return float(0.5 * np.abs(np.asarray(p, float) - np.asarray(q, float)).sum())
