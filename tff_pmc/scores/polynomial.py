"""Scores that are polynomials in the normalized criteria."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from declared_settings import require_sequence
from tff_pmc.scores.score import (
    DEFAULT_CRITERIA,
    Score,
    Subset,
    find_columns,
    format_numbers,
    make_label,
    member_codes,
    renamed_fields,
)

SUM_TOLERANCE = 1e-6
"""How far weights that should sum to one may be from it."""


@renamed_fields
@dataclasses.dataclass(frozen=True)
class PolynomialScore(Score):
    """A `Score` whose `terms` are `a_S >= 0` of products over sets S of criteria."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for subset, value in self.terms.items():
            if value < 0:
                raise ValueError(
                    f"the score {self.label!r} has the coefficient {value} for "
                    f"{subset}: coefficients must be finite and not negative"
                )


def prioritized(
    order: Sequence[int | str], criteria: Sequence[str] = DEFAULT_CRITERIA
) -> PolynomialScore:
    """Builds the prioritized score of DA (eq. 4) and PMC (eq. 6).

    `s = sum_j prod_{l <= j} c_{o(l)}`: the first criterion counts fully, each
    further one only as far as all earlier ones are satisfied. An ordering of one
    criterion is the single-criterion baseline; `("DS",)` is federated averaging.

    Args:
        order: the ordering o, most important first: column indices or codes.
        criteria: the code of each column, which codes in `order` refer to. A process
            with other criteria finds the score's criteria by their codes.

    Returns:
        A `PolynomialScore` whose monomials are the prefixes of the ordering.

    Raises:
        ValueError: the ordering is empty, names a criterion twice, names an unknown
            one, or has no order, as a set.

    Examples:
        >>> prioritized((1, 0))((0.5, 0.4))
        0.6000000000000001
    """
    order, criteria = (
        require_sequence("order", order),
        require_sequence("criteria", criteria),
    )
    columns = find_columns(order, criteria)
    prefixes = [tuple(sorted(columns[: j + 1])) for j in range(len(columns))]
    label = ",".join(str(item) for item in order)
    terms = dict.fromkeys(prefixes, 1.0)
    return PolynomialScore(
        label, terms, columns, criteria=member_codes(order, criteria)
    )


def single(
    criterion: int | str, criteria: Sequence[str] = DEFAULT_CRITERIA
) -> PolynomialScore:
    """Builds the score that is one criterion; `prioritized` of that one alone.

    Args:
        criterion: its code, or its column.
        criteria: the code of each column.

    Raises:
        ValueError: the criterion is unknown.

    Examples:
        >>> single("LD")((1.0, 0.5, 0.25))
        0.5
    """
    return prioritized((criterion,), criteria)


def weighted_average(
    weights: Sequence[float],
    criteria: Sequence[str] = DEFAULT_CRITERIA,
    *,
    members: Sequence[int | str] | None = None,
) -> PolynomialScore:
    """Builds the weighted average of the criteria, `s = sum_i a_i c_i`.

    Args:
        weights: `a_i` of each member, in the members' order; not negative, sum 1.
        criteria: the code of each column.
        members: the criteria that take part; by default all.

    Raises:
        ValueError: the weights are not one for each member, in [0, 1], with the sum 1;
            or a member is unknown.

    Examples:
        >>> weighted_average((0.5, 0.25, 0.25))((1.0, 0.0, 0.4))
        0.6
    """
    members = members if members is None else require_sequence("members", members)
    criteria = require_sequence("criteria", criteria)
    columns = find_columns(members, criteria)
    weights = check_weights(weights, len(columns), "weighted average")
    terms: dict[Subset, float] = {
        (i,): float(a) for i, a in sorted(zip(columns, weights)) if a > 0
    }
    label = make_label(f"average[{format_numbers(weights)}]", columns, criteria)
    codes = member_codes(members, criteria)
    return PolynomialScore(label, terms, tuple(sorted(columns)), criteria=codes)


def product(
    criteria: Sequence[str] = DEFAULT_CRITERIA,
    *,
    members: Sequence[int | str] | None = None,
) -> PolynomialScore:
    """Builds the product of the criteria, one monomial; AdaFed's accuracy x samples.

    Args:
        criteria: the code of each column.
        members: the criteria that take part; by default all.

    Raises:
        ValueError: a member is unknown.
    """
    members = members if members is None else require_sequence("members", members)
    criteria = require_sequence("criteria", criteria)
    columns = tuple(sorted(find_columns(members, criteria)))
    label = make_label("product", columns, criteria)
    codes = member_codes(members, criteria)
    return PolynomialScore(label, {columns: 1.0}, columns, criteria=codes)


def check_weights(weights: Sequence[float], size: int, what: str) -> tuple[float, ...]:
    """Returns weights; raises a `ValueError` if they are not `size` shares of 1."""
    weights = require_sequence(f"the weights of the {what}", weights)
    if len(weights) != size:
        raise ValueError(
            f"the {what} of {size} criteria needs {size} weights, got {len(weights)}"
        )
    if not all(0 <= weight <= 1 for weight in weights):
        raise ValueError(
            f"the weights of the {what} must be in [0, 1], got "
            f"{format_numbers(weights)}"
        )
    if abs(sum(weights) - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"the weights of the {what} must sum to 1, and {format_numbers(weights)} "
            f"sum to {sum(weights):g}"
        )
    return weights


DUAL_CRITERIA = ("ACC", "DS")
"""Quality (accuracy of the client's model on the server's examples) and quantity."""


def dual(
    lambda_: float,
    quality: str = "ACC",
    quantity: str = "DS",
    criteria: Sequence[str] = DUAL_CRITERIA,
) -> PolynomialScore:
    """Builds `lambda * c_quality + (1 - lambda) * c_quantity`, of normalized criteria.

    Every lambda needs the same two sums over the clients, so that one training serves
    a search over lambda.

    Args:
        lambda_: the weight of the quality, in [0, 1]; 0 is federated averaging.
        quality: the code of the criterion of quality.
        quantity: the code of the criterion of quantity.
        criteria: the code of each column.

    Raises:
        ValueError: lambda is out of range, a criterion is not among `criteria`, or
            both are the same.

    Examples:
        >>> dual(0.25)((0.4, 0.8))
        0.7000000000000001
    """
    if not 0 <= lambda_ <= 1:
        raise ValueError(f"lambda must be in [0, 1], got {lambda_}")
    if quality == quantity:
        raise ValueError(
            f"quality and quantity must be two criteria, got {quality} for both"
        )
    criteria = require_sequence("criteria", criteria)
    i, j = find_columns((quality, quantity), criteria)
    terms: dict[Subset, float] = {(i,): lambda_, (j,): 1 - lambda_}
    label = f"lambda={lambda_:.2f}"
    codes = member_codes((quality, quantity), criteria)
    return PolynomialScore(label, terms, (min(i, j), max(i, j)), criteria=codes)


def dual_grid(
    steps: int = 11,
    quality: str = "ACC",
    quantity: str = "DS",
    criteria: Sequence[str] = DUAL_CRITERIA,
) -> list[PolynomialScore]:
    """Builds `dual` for lambda 0, ..., 1, evenly spaced, for `candidates=` of a search.

    Args:
        steps: the number of lambdas, from 2 to 101 (a label has two decimals).
        quality: see `dual`.
        quantity: see `dual`.
        criteria: see `dual`.

    Raises:
        ValueError: see `dual`; `steps` is out of range.

    Examples:
        >>> [score.label for score in dual_grid(3)]
        ['lambda=0.00', 'lambda=0.50', 'lambda=1.00']
    """
    if not 2 <= steps <= 101:
        raise ValueError(f"steps must be from 2 to 101, got {steps}")
    return [
        dual(step / (steps - 1), quality, quantity, criteria) for step in range(steps)
    ]
