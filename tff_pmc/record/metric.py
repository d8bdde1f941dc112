"""The metric of a run's models on the test examples: accuracy, or the loss.

Accuracy is defined where examples have classes. A regression's record has the loss in
its place, as the model defines it: `test_loss` is the mean over all test examples.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

import leaf_data
from tff_pmc.record.record_error import ClientsNotRecordedError

PERCENTILES = (10, 50, 90)

Floats = npt.NDArray[np.float64]


def client_means(sums: npt.NDArray[Any], examples: npt.NDArray[np.int64]) -> Floats:
    """Returns the means of sums [..., K] over the K clients' examples.

    Clients without examples are left out. Where no client is recorded this is a
    `ClientsNotRecordedError`.
    """
    if not examples.size:
        raise ClientsNotRecordedError
    tested = examples > 0
    means: Floats = sums[..., tested] / examples[tested]
    return means


def percentile(accuracies: Floats, percent: float) -> Floats:
    """Returns what `percent` % of the clients do not exceed, interpolated."""
    with np.errstate(invalid="ignore"):  # Between infinite losses there is none.
        value: Floats = np.percentile(accuracies, percent, axis=-1)
    return value


def worst_tenth(accuracies: Floats) -> Floats:
    """Returns the mean of the ceil(K / 10) lowest: the "worst 10 %" of Li et al."""
    count = -(-accuracies.shape[-1] // 10)
    mean: Floats = np.sort(accuracies, axis=-1)[..., :count].mean(axis=-1)
    return mean


def jain_index(accuracies: Floats) -> Floats:
    """Returns Jain's fairness index, `(sum x)^2 / (n sum x^2)`, from 1/n to 1.

    It is k/n where k of n share the accuracy and the others have none. Where all have 0
    they are alike, and the index is 1.
    """
    squares = accuracies.shape[-1] * np.square(accuracies).sum(axis=-1)
    total = np.square(accuracies.sum(axis=-1))
    index: Floats = np.divide(
        total, squares, out=np.ones_like(squares), where=squares > 0
    )
    return index


@dataclasses.dataclass(frozen=True)
class Metric:
    """What is summed over a client's test examples, and the names of its columns."""

    mean: str  # The column of the mean over examples.
    total: str  # The column of the sum over examples.
    prefix: str  # What the columns of the percentiles over clients begin with.
    is_count: bool  # Whether sums are whole numbers.

    def value(self, total: Any) -> int | float:
        """Returns a sum as it is written; a float32 carries seven digits."""
        return int(total) if self.is_count else float(f"{float(total):.7g}")


ACCURACY = Metric("accuracy", "correct", "", is_count=True)
LOSS = Metric("test_loss", "loss_sum", "loss_", is_count=False)


def metric_for(data: leaf_data.FederatedDataset) -> Metric:
    """Returns what models are measured by on a data set."""
    return ACCURACY if data.has_classes else LOSS


def float32_digits(values: Any) -> list[float]:
    """Returns numbers with the seven digits that a float32 carries."""
    return [float(f"{value:.7g}") for value in np.asarray(values, float)]
