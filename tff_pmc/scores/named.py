"""A score from its name and parameters, as settings and records have them."""

from __future__ import annotations

from collections.abc import Sequence

from tff_pmc.scores.choquet import choquet, owa
from tff_pmc.scores.polynomial import prioritized, product, weighted_average
from tff_pmc.scores.score import DEFAULT_CRITERIA, Score

SCORES = ("prioritized", "weighted_average", "owa", "choquet", "product")
"""The names."""


def named(
    name: str,
    members: Sequence[str],
    criteria: Sequence[str] = DEFAULT_CRITERIA,
    *,
    score_weights: Sequence[float] = (),
    quantifier: str = "",
    capacity: Sequence[tuple[str, float]] = (),
) -> Score:
    """The score of a name.

    One criterion alone is the same under every name: the single-criterion baseline,
    whatever the parameters, so that one command can hold it beside the others.

    Args:
        name: one of `SCORES`.
        members: codes of the criteria that take part; of `prioritized`, their order.
        criteria: the code of each column.
        score_weights: of the weighted average, in the members' order; or OWA's.
        quantifier: OWA's, in the place of weights; see `owa_weights`.
        capacity: of the Choquet integral: (`DS+LD`, value) for each set of members;
            that of all may be left out.

    Raises:
        ValueError: there is no such name, a parameter is missing or another score's,
            or as the score's own function.
    """
    if name not in SCORES:
        raise ValueError(f"must be one of {', '.join(SCORES)}, got {name!r}")
    taken = {
        "weighted_average": ("score_weights",),
        "owa": ("score_weights", "quantifier"),
        "choquet": ("capacity",),
    }.get(name, ())
    given = {
        "score_weights": score_weights,
        "quantifier": quantifier,
        "capacity": capacity,
    }
    found = [parameter for parameter, value in given.items() if value]
    for parameter in found:
        if parameter not in taken:
            raise ValueError(f"it takes no {parameter}")
    if taken and len(found) != 1:
        raise ValueError(f"it takes {' or '.join(taken)}, one of them")
    if len(members) == 1 or name == "prioritized":
        return prioritized(members, criteria)
    if name == "weighted_average":
        return weighted_average(score_weights, criteria, members=members)
    if name == "owa":
        return owa(quantifier or score_weights, criteria, members=members)
    if name == "product":
        return product(criteria, members=members)
    value = {tuple(subset.split("+")): worth for subset, worth in capacity}
    if len(value) < len(capacity):
        raise ValueError("the capacity names a set twice")
    if {code for subset in value for code in subset} != set(members):
        raise ValueError(f"the capacity must be of the criteria {', '.join(members)}")
    return choquet(value, criteria)
