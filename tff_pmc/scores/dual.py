"""Dual's score: a mean of quality and quantity, and the grid it is chosen from.

Dual is *Dual-Criterion Model Aggregation in Federated Learning* (2024).
"""

from __future__ import annotations

from collections.abc import Sequence

from tff_pmc.scores.polynomial import PolynomialScore, single

DUAL_CRITERIA = ("ACC", "DS")
"""Quality (accuracy of the client's model on the server's examples) and quantity."""


def dual(
    lambda_: float,
    quality: str = "ACC",
    quantity: str = "DS",
    criteria: Sequence[str] = DUAL_CRITERIA,
) -> PolynomialScore:
    """`lambda * c_quality + (1 - lambda) * c_quantity`, of normalized criteria.

    Every lambda needs the same two sums over the clients, so that one training serves
    a search over lambda.

    Args:
        lambda_: the part of the quality, in [0, 1]; at 0 it is federated averaging.
        quality: code of the criterion that stands for it.
        quantity: code of the other.
        criteria: the code of each column.

    Raises:
        ValueError: lambda is out of range, a criterion is not among `criteria`, or
            both are the same.

    Example:
        >>> dual(0.25)((0.4, 0.8))
        0.7000000000000001
    """
    if not 0 <= lambda_ <= 1:
        raise ValueError(f"lambda must be in [0, 1], got {lambda_}")
    if quality == quantity:
        raise ValueError(f"quality and quantity are both {quality}")
    columns = [single(code, criteria).columns for code in (quality, quantity)]
    terms = dict(zip(columns, (lambda_, 1 - lambda_)))
    label = f"lambda={lambda_:.2f}"
    return PolynomialScore(label, terms, tuple(sorted(sum(columns, ()))))


def dual_grid(
    steps: int = 11,
    quality: str = "ACC",
    quantity: str = "DS",
    criteria: Sequence[str] = DUAL_CRITERIA,
) -> list[PolynomialScore]:
    """`dual` for lambda 0, ..., 1, evenly spaced, for `candidates=` of a search.

    Args:
        steps: how many, from 2 to 101 (a label has two decimals).
        quality: see `dual`.
        quantity: see `dual`.
        criteria: see `dual`.

    Raises:
        ValueError: see `dual`; `steps` is out of range.
    """
    if not 2 <= steps <= 101:
        raise ValueError(f"steps must be from 2 to 101, got {steps}")
    return [
        dual(step / (steps - 1), quality, quantity, criteria) for step in range(steps)
    ]
