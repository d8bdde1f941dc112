"""An aggregator of TFF's with a setting of its own."""

import dataclasses

from declared_settings import ABOVE_0, setting
from tff_pmc.algorithms import ALGORITHMS, FactoryAlgorithm


@dataclasses.dataclass(frozen=True)
class ClippedMean(FactoryAlgorithm):
    """The mean of updates that are clipped to a norm."""

    name = "Clipped mean"

    norm: float = setting(1.0, "The norm.", flag="clipped_mean_norm", within=ABOVE_0)

    def factory(self, settings):
        import tensorflow_federated as tff

        mean = tff.aggregators.MeanFactory(no_nan_division=True)
        return tff.aggregators.clipping_factory(self.norm, mean)


ALGORITHMS.register("clipped_mean", ClippedMean)
