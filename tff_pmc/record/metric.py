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
    """A measure that is summed over test examples, and the names of its columns."""

    mean: str  # The column of the mean over examples.
    total: str  # The column of the sum over examples.
    prefix: str  # Of the columns of percentiles over clients.
    is_count: bool  # Whether sums are whole numbers.

    def value(self, total: Any) -> int | float:
        """Returns a sum as it is written: an integer, or a float32's seven digits."""
        return int(total) if self.is_count else float(f"{float(total):.7g}")


ACCURACY = Metric("accuracy", "correct", "", is_count=True)
LOSS = Metric("test_loss", "loss_sum", "loss_", is_count=False)


def metric_for(data: leaf_data.FederatedDataset) -> Metric:
    """Returns the metric of a data set: accuracy if it has classes, else the loss."""
    return ACCURACY if data.has_classes else LOSS


def float32_digits(values: Any) -> list[float]:
    """Rounds numbers to the seven digits of a float32."""
    return [float(f"{value:.7g}") for value in np.asarray(values, float)]
