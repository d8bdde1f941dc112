"""What a run's models are measured by on the test examples: accuracy, or the loss.

Accuracy is defined where examples have classes. A regression's record has the loss in
its place, as the model defines it: `test_loss` is the mean over all test examples.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

import leaf_data
from tff_pmc.reports import fairness

PERCENTILES = (10, 50, 90)


@dataclasses.dataclass(frozen=True)
class Measure:
    """A figure of each client, a sum over its test examples, and its mean.

    Attributes:
        mean: the column of the mean over examples.
        total: the column of the sum over examples.
        prefix: what the columns of the percentiles over clients begin with.
        counted: whether sums are whole numbers.
    """

    mean: str
    total: str
    prefix: str
    counted: bool

    def columns(
        self, measured: npt.NDArray[Any], sizes: npt.NDArray[np.int64]
    ) -> dict[str, Any]:
        """The columns of a round, of the sums of each client and its examples, [K].

        Clients without test examples do not count in the percentiles.
        """
        local = fairness.client_means(measured, sizes)
        return {
            **self.of_clients(measured, sizes),
            **{
                f"{self.prefix}p{percent}": round(
                    float(fairness.percentile(local, percent)), 4
                )
                for percent in PERCENTILES
            },
        }

    def of_clients(
        self, measured: npt.NDArray[Any], sizes: npt.NDArray[np.int64]
    ) -> dict[str, Any]:
        """The mean of some clients together, empty without examples, and its parts."""
        total, examples = self.value(measured.sum()), int(sizes.sum())
        mean = round(total / examples, 6) if examples else ""
        return {self.mean: mean, self.total: total, "examples": examples}

    def value(self, total: Any) -> int | float:
        """A sum as it is written; a float32 carries seven digits."""
        return int(total) if self.counted else float(f"{float(total):.7g}")


ACCURACY = Measure("accuracy", "correct", "", counted=True)
LOSS = Measure("test_loss", "loss_sum", "loss_", counted=False)


def measure_of(data: leaf_data.FederatedDataset) -> Measure:
    """What models are measured by on a data set."""
    return ACCURACY if data.has_classes else LOSS
