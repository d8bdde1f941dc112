"""How a model's accuracy is spread over the clients.

That a model is good on average, and bad on some devices, is what the papers' tables of
rounds look at. These figures say it of one round in one number each. They are those of
the literature on fairness in federated learning: Li, Sanjabi, Beirami and Smith, "Fair
Resource Allocation in Federated Learning" (ICLR 2020), compare the accuracy of the
worst tenth of the devices and the variance over them; Jain's index is from Jain, Chiu
and Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation
in Shared Computer Systems" (DEC TR-301, 1984).

Every figure is of the clients that have test examples, each of which counts alike,
however many it has. Each function takes their accuracies, `[..., clients]` from 0 to 1,
and returns a figure for each of the leading places, `[...]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, NamedTuple

import numpy as np
import numpy.typing as npt

from tff_pmc.record.measures import (
    Floats,
    client_means,
    jain_index,
    percentile,
    worst_tenth,
)


def standard_deviation(accuracies: Floats) -> Floats:
    """The root of the variance of Li et al.: the clients are all, and no sample."""
    found: Floats = accuracies.std(axis=-1)
    return found


class Measure(NamedTuple):
    """A figure of how accuracy is spread over clients, and its name for a reader."""

    title: str
    of: Callable[[Floats], Floats]


MEASURES: Mapping[str, Measure] = {
    "p10": Measure("10th percentile", lambda found: percentile(found, 10)),
    "worst_tenth": Measure("mean of worst tenth", worst_tenth),
    "standard_deviation": Measure("standard deviation", standard_deviation),
    "jain_index": Measure("Jain's index", jain_index),
}
"""The figures by their names in files."""


def measured(
    correct: npt.NDArray[np.int64], examples: npt.NDArray[np.int64]
) -> dict[str, Floats]:
    """The figures of `MEASURES` by name, [...], of correct examples, int [..., K]."""
    found = client_means(correct, examples)
    return {name: measure.of(found) for name, measure in MEASURES.items()}
