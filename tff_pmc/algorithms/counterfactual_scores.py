"""The weightings that `--counterfactuals` names, as scores."""

from __future__ import annotations

import itertools

from declared_settings import SettingError
from tff_pmc import scores
from tff_pmc.settings import flag_values
from tff_pmc.settings.run_settings import RunSettings

MAX_WEIGHTINGS = 200
"""The most weightings that a round's models are judged of."""


def counterfactual_scores(
    settings: RunSettings, in_force: scores.Score
) -> list[scores.Score]:
    """Builds the scores, that in force first; a `SettingError` where one cannot be."""
    on = settings.aggregation
    found = [in_force]
    for kind in settings.counterfactual.kinds:
        name, _, step = kind.partition(":")
        if kind == "orderings":
            if len(on.criteria) > 4:
                raise _too_many_error(kind, "the orderings of more than four criteria")
            orders = flag_values.all_orderings(on.criteria)
            found += [scores.prioritized(order, on.criteria) for order in orders]
        elif name == "averages":
            found += _averages(step, settings, kind)
        elif kind == "ranges":
            if on.normalization != "range":
                raise _too_many_error(kind, "OWA without --normalization=range")
            found += [scores.owa(name, on.criteria) for name in scores.QUANTIFIERS]
        else:
            raise SettingError(
                f"--counterfactuals={kind}: must be orderings, averages:STEP or ranges"
            )
        if len(found) > MAX_WEIGHTINGS:
            raise _too_many_error(kind, f"more than {MAX_WEIGHTINGS} weightings")
    return list({score.label: score for score in found}.values())


def _averages(step: str, settings: RunSettings, kind: str) -> list[scores.Score]:
    """Builds the weighted averages whose weights are multiples of a step."""
    try:
        parts = 1 / flag_values.parse_number(step)
    except (ValueError, ZeroDivisionError):
        parts = 0.0
    if parts > MAX_WEIGHTINGS:
        raise _too_many_error(kind, f"more than {MAX_WEIGHTINGS} weightings")
    count = round(parts) if parts > 0 else 0
    if not count or abs(parts - count) > 1e-9 * count:
        raise SettingError(
            f"--counterfactuals={kind}: the step must divide 1, as 0.25 does"
        )
    criteria = settings.aggregation.criteria
    found: list[scores.Score] = []
    # Bars between stones: so many of them before each bar is a criterion's weight.
    size = count + len(criteria) - 1
    for bars in itertools.combinations(range(size), len(criteria) - 1):
        ends = (-1, *bars, size)
        weights = [(b - a - 1) / count for a, b in zip(ends, ends[1:])]
        alone = scores.single(criteria[weights.index(max(weights))], criteria)
        average = scores.weighted_average(weights, criteria)
        found.append(alone if max(weights) == 1 else average)
        if len(found) > MAX_WEIGHTINGS:
            raise _too_many_error(kind, f"more than {MAX_WEIGHTINGS} weightings")
    return found


def _too_many_error(kind: str, words: str) -> SettingError:
    return SettingError(f"--counterfactuals={kind}: {words} cannot be judged")
