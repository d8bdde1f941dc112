"""Distances of an ordering's weights from uniform and from its first criterion's.

With m clients a normalized criterion is about 1/m, so the second priority enters at
order 1/m of the first (PMC eq. 6): the larger the cohort, the nearer are all orderings
that share their first criterion. These are the figures of that argument.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc import scores
from tff_pmc.record.results import BASELINE, KEY, Results
from tff_pmc.reports.paired import ordering_of

FIGURES = ("coefficient_of_variation", "effective_clients", "total_variation")
"""How unequal weights are, and how far from those of the baseline."""

COLUMNS = ("from_uniform", "from_baseline", "from_first", "among_first")


def ordering_distances(
    cohorts: Iterable[npt.ArrayLike],
    criteria: Sequence[str],
    orderings: Sequence[tuple[str, ...]],
    normalization: scores.Normalization = scores.SUM,
    base: tuple[str, ...] = (BASELINE,),
) -> pd.DataFrame:
    """Returns the distances of orderings, each the mean over the cohorts.

    A distance of two sets of weights is their total variation, between 0 and 1: the
    share of weight that one moves away from the other. `cohorts` are the raw criteria
    of each cohort, [clients, m], whose columns `criteria` names; a client with a value
    that is not finite is not counted.

    A row is an ordering, by its label such as `LD,DS`. Its columns: the first two of
    `FIGURES`; `from_uniform`, from equal weights; `from_baseline`, from those by the
    ordering `base` (NaN where it is none of these criteria); `from_first`, from those
    by the ordering's own first criterion alone; `among_first`, the largest between two
    of the `orderings` that begin with it.
    """
    firsts = [order[:1] for order in orderings]
    bases = [base] * ({*base} <= {*criteria})
    every = [*orderings, *firsts, *bases]
    rows = []
    for found in _weights(cohorts, criteria, every, normalization):
        for order, own, first in zip(orderings, found, found[len(orderings) :]):
            alike = [p for other, p in zip(orderings, found) if other[0] == order[0]]
            pairs = itertools.combinations(alike, 2)
            row = (
                scores.coefficient_of_variation(own),
                scores.effective_clients(own),
                scores.total_variation(own, np.full(len(own), 1 / max(1, len(own)))),
                scores.total_variation(own, found[-1]) if bases else math.nan,
                scores.total_variation(own, first),
                max((scores.total_variation(*pair) for pair in pairs), default=0.0),
            )
            rows.append((",".join(order), *row))
    table = pd.DataFrame(rows, columns=["ordering", *FIGURES[:2], *COLUMNS])
    means: pd.DataFrame = table.groupby("ordering", sort=False).mean()
    return means


def pairwise_distances(
    cohorts: Iterable[npt.ArrayLike],
    criteria: Sequence[str],
    orderings: Sequence[tuple[str, ...]],
    normalization: scores.Normalization = scores.SUM,
) -> pd.DataFrame:
    """Returns the distance of every ordering from every other, a mean over cohorts.

    A row and a column an ordering, by their labels; see `ordering_distances`.
    """
    labels = [",".join(order) for order in orderings]
    found = [
        [[scores.total_variation(p, q) for q in weights] for p in weights]
        for weights in _weights(cohorts, criteria, orderings, normalization)
    ]
    some = found and labels
    mean = np.mean(found, axis=0) if some else np.full(2 * [len(labels)], math.nan)
    return pd.DataFrame(mean, pd.Index(labels, name="ordering"), labels)


def recorded(
    results: Results, labels: Iterable[str]
) -> tuple[
    list[npt.NDArray[np.float64]],
    list[str],
    list[tuple[str, ...]],
    scores.Normalization,
]:
    """Returns the arguments of the functions above, from the raw criteria of runs.

    Each round of each run is a cohort. A label that is no ordering (another score) is
    left out; of an adjusted ordering it is the initial one. There is no cohort and no
    ordering where the runs recorded no raw criteria.
    """
    criteria = list(results.setting("criteria", ()))
    if not criteria or not {*criteria} <= {*results.cohort}:
        return [], [], [], scores.SUM
    counted = results.cohort[results.cohort["excluded"] == 0]
    by_round = counted.groupby([*KEY, "round"], sort=False)[criteria]
    cohorts = [part.to_numpy(float) for _, part in by_round]
    orders = [tuple(ordering_of(label).split(",")) for label in labels]
    known = [order for order in dict.fromkeys(orders) if {*order} <= {*criteria}]
    return cohorts, criteria, known, normalization_of(results)


def normalization_of(results: Results) -> scores.Normalization:
    """Returns how the runs normalized their criteria."""
    bounds = {code: pair for code, *pair in results.setting("criteria_ranges", ())}
    criteria = results.setting("criteria", ())
    ranges = tuple((bounds[code][0], bounds[code][1]) for code in criteria if bounds)
    return scores.Normalization(results.setting("normalization", "sum"), ranges)


def score_of(label: str, criteria: Sequence[str]) -> Optional[scores.Score]:
    """Returns the score that a label names, such as `LD,DS` or `OWA[most]:DS,LD`.

    None for a label that does not determine it, as that of a Choquet integral, whose
    numbers are rounded.
    """
    name, _, members = label.rpartition(":")
    codes = members.split(",")
    if not {*codes} <= {*criteria}:
        return None
    kind, _, values = name.rstrip("]").partition("[")
    if kind == "":
        return scores.prioritized(codes, criteria)
    if kind == "product":
        return scores.product(criteria, members=codes)
    if kind == "OWA" and values in scores.QUANTIFIERS:
        return scores.owa(values, criteria, members=codes)
    if kind in ("OWA", "average") and re.fullmatch(r"[\d.,e-]+", values):
        weights = np.array(values.split(","), float)
        make = scores.owa if kind == "OWA" else scores.weighted_average
        # A label has four digits of each, whose sum may miss 1.
        return make(tuple(weights / weights.sum()), criteria, members=codes)
    return None


def _weights(
    cohorts: Iterable[npt.ArrayLike],
    criteria: Sequence[str],
    orderings: Sequence[tuple[str, ...]],
    normalization: scores.Normalization,
) -> Iterator[list[npt.NDArray[np.float64]]]:
    """Yields the weights of each cohort's clients that count, by each ordering."""
    every = [scores.prioritized(order, criteria) for order in orderings]
    for cohort in cohorts:
        raw = np.asarray(cohort, float)
        raw = raw[np.isfinite(raw).all(axis=1)]
        yield [scores.participant_weights(raw, one, normalization) for one in every]
