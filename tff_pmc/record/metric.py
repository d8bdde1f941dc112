"""The metric of a run's models on the test examples: accuracy, or the loss.

Accuracy is defined where examples have classes. A regression's record has the model's
loss instead: `test_loss` is its mean over all test examples.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import leaf_data


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
