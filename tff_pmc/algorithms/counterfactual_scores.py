"""The scores of the weightings that `--counterfactuals` names."""

from __future__ import annotations

import itertools

from declared_settings import SettingError
from tff_pmc import scores
from tff_pmc.settings import flag_values
from tff_pmc.settings.run_settings import RunSettings

MAX_WEIGHTINGS = 200
"""The largest number of weightings whose models a round judges."""


def counterfactual_scores(
    settings: RunSettings, in_force: scores.Score
) -> list[scores.Score]:
    """Builds the scores of `--counterfactuals`, after the current score.

    Raises:
        SettingError: a weighting is unknown or invalid, or there are too many.
    """
    aggregation = settings.aggregation
    result = [in_force]
    for kind in settings.counterfactual.kinds:
        name, _, step = kind.partition(":")
        if kind == "orderings":
            if len(aggregation.criteria) > 4:
                raise _too_many_error(kind, "the orderings of more than four criteria")
            orders = flag_values.all_orderings(aggregation.criteria)
            result += [
                scores.prioritized(order, aggregation.criteria) for order in orders
            ]
        elif name == "averages":
            result += _averages(step, settings, kind)
        elif kind == "ranges":
            if aggregation.normalization != "range":
                raise SettingError(
                    "--counterfactuals=ranges needs --normalization=range"
                )
            result += [
                scores.owa(name, aggregation.criteria) for name in scores.QUANTIFIERS
            ]
        else:
            raise SettingError(
                f"--counterfactuals={kind}: must be orderings, averages:STEP or ranges"
            )
        if len(result) > MAX_WEIGHTINGS:
            raise _too_many_error(kind, f"more than {MAX_WEIGHTINGS} weightings")
    return list({score.label: score for score in result}.values())


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
    averages: list[scores.Score] = []
    # Stars and bars: the number of stars before each bar is a criterion's weight.
    size = count + len(criteria) - 1
    for bars in itertools.combinations(range(size), len(criteria) - 1):
        ends = (-1, *bars, size)
        weights = [(b - a - 1) / count for a, b in zip(ends, ends[1:])]
        alone = scores.single(criteria[weights.index(max(weights))], criteria)
        average = scores.weighted_average(weights, criteria)
        averages.append(alone if max(weights) == 1 else average)
        if len(averages) > MAX_WEIGHTINGS:
            raise _too_many_error(kind, f"more than {MAX_WEIGHTINGS} weightings")
    return averages


def _too_many_error(kind: str, what: str) -> SettingError:
    return SettingError(f"--counterfactuals={kind}: {what} cannot be judged")
