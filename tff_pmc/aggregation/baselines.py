"""The baselines of Dual's Table I, by its formulas, as aggregation factories.

Dual is *Dual-Criterion Model Aggregation in Federated Learning* (2024). Each factory
takes the clients' updates `d_k = w - w_k` (received minus trained, TFF's sign) and
their numbers of examples `n_k`, a float32 scalar, and computes the update that the
server subtracts from its model. TFF's factories are used where they exist. `create`
returns a `tff.templates.AggregationProcess` whose `next` has the type

    (<state@SERVER, U@CLIENTS, float32@CLIENTS>
     -> <state@SERVER, result=U@SERVER, measurements=<excluded=int32, ...>@SERVER>)

Every baseline excludes a client whose update or weight is not finite, or whose weight
is 0, and counts it in `excluded` (and under the earlier name `left_out`, for one more
release). If all are excluded, the aggregate is 0. The paper prints no value of alpha,
beta, eta, epsilon or Q; the defaults are ours (`docs/dual_criterion.md`).

The seventh baseline, Quantization, rounds the clients' models, which no factory sees:
it is `simple_average` after the client step `quantize_parameters`. `quantized_updates`
is ours and not in the paper.

    >>> weight_type = baseline_factories.WEIGHT_TYPE
    >>> process = BASELINES["median"]().create(update_type, weight_type)
    >>> process.next(process.initialize(), updates, [600.0, 20.0])
"""

from __future__ import annotations

import math
from typing import Any, Callable

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.baseline_factories import (
    ExcludingFactory,
    MedianFactory,
    ServerStepFactory,
    laplace_noise_step,
    optimizer_step,
)

PERSONALIZED_FORMS = ("formula", "text")
"""The two readings of the personalized baseline; see `personalized`."""

_Factory = tff.aggregators.WeightedAggregationFactory


def simple_average() -> _Factory:
    """Builds `sum_k d_k / K`: the unweighted mean.

    It is TFF's `MeanFactory` with equal weights. TFF's `UnweightedMeanFactory` is equal
    if no client is excluded; it would count an excluded one as an update of 0.
    """
    return ExcludingFactory(_mean(), equal_weights=True)


def weighted_mean() -> _Factory:
    """Builds `sum_k n_k d_k / sum_k n_k`: federated averaging, TFF's `MeanFactory`."""
    return ExcludingFactory(_mean())


def median() -> _Factory:
    """Builds the median of each coordinate; for an even number the middle two's mean.

    It ignores the weights, except that a client of weight 0 is excluded. No sum
    determines a median: the server sees every client's update, and its memory holds one
    model per client of a round.
    """
    return ExcludingFactory(MedianFactory())


def momentum(beta: float = 0.9, eta: float = 1.0) -> _Factory:
    """Builds momentum on the weighted mean: `v <- beta v + mean`, update `eta v`.

    It applies TFF's `build_sgdm(eta, beta)`: `weighted_mean` with this server optimizer
    gives the same model. It acts on every tensor of the update; for models with batch
    normalization use the server optimizer, which does not step the statistics.

    Args:
        beta: the momentum, in [0, 1).
        eta: the server's learning rate.

    Raises:
        ValueError: a number is out of range.
    """
    if not 0 <= beta < 1:
        raise ValueError(f"beta must be in [0, 1), got {beta}")
    _check_above_0("eta", eta)
    optimizer = tff.learning.optimizers.build_sgdm(eta, beta or None)
    return ServerStepFactory(weighted_mean(), optimizer_step(optimizer))


def personalized(alpha: float = 0.5, form: str = "formula") -> _Factory:
    """Builds the personalized baseline, by the paper's formula or by its text.

    - `formula`: new global model = `alpha * global + (1 - alpha) * simple mean of the
      clients' models`. No client has a model of its own: this is the simple average
      with the server learning rate `1 - alpha`. The paper gives the global model the
      index k on both sides; we read the right-hand one as the model that the clients
      received.
    - `text` (local training after aggregation): the server's model is the simple
      average, and each client is tested with its model after one more local training
      (`processes.build_local_tuning_prediction`). `alpha` is not used.

    Args:
        alpha: the share of the previous global model, in [0, 1).
        form: one of `PERSONALIZED_FORMS`.

    Raises:
        ValueError: the form is unknown, or alpha is out of range.
    """
    if form not in PERSONALIZED_FORMS:
        raise ValueError(
            f"form must be one of {', '.join(PERSONALIZED_FORMS)}; got {form!r}"
        )
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must be in [0, 1), got {alpha}")
    if form == "text":
        return simple_average()
    optimizer = tff.learning.optimizers.build_sgdm(1 - alpha)
    return ServerStepFactory(simple_average(), optimizer_step(optimizer))


def laplace(epsilon: float = 1.0, seed: int = 0) -> _Factory:
    """Builds the simple average plus Laplace noise of scale `1 / epsilon`.

    This is the paper's formula, although its scale is not tied to any sensitivity (no
    update is clipped): **epsilon is not a privacy guarantee**, and at epsilon = 1 the
    noise is far larger than the parameters of a network, which it destroys. The paper's
    accuracy of 0.11 with ten classes agrees with this. For differential privacy see
    `aggregation.GaussianSums`.

    Args:
        epsilon: the inverse of the noise's scale.
        seed: the seed of the noise, which differs in each round.

    Raises:
        ValueError: epsilon is not above 0.
    """
    _check_above_0("epsilon", epsilon)
    return ServerStepFactory(simple_average(), laplace_noise_step(1.0 / epsilon, seed))


def quantized_updates(levels: int = 256) -> _Factory:
    """Builds the weighted mean of updates that clients quantize; not in the paper.

    Each tensor of an update is rounded to the nearest of `levels` evenly spaced values
    between its minimum and its maximum (TFF's `EncodedSumFactory`, not stochastic). The
    weight does not change the rounding, because it scales the levels with the values.
    The paper's Quantization rounds models, on one grid for all of them.

    Args:
        levels: the number of levels, a power of two from 2 to 65536.

    Raises:
        ValueError: `levels` is not such a power.
    """
    bits = int(levels).bit_length() - 1
    if levels != 2**bits or not 1 <= bits <= 16:
        raise ValueError(f"levels must be a power of two from 2 to 65536, got {levels}")
    sums = tff.aggregators.EncodedSumFactory.quantize_above_threshold(
        bits, threshold=0, stochastic=False
    )
    return ExcludingFactory(_mean(sums))


BASELINES: dict[str, Callable[..., _Factory]] = {
    make.__name__: make
    for make in (
        *(simple_average, weighted_mean, median, momentum, personalized, laplace),
        quantized_updates,
    )
}
"""The factories' builders by name: six of Dual's Table I in its order, and ours."""


def _mean(value_sum_factory=None) -> _Factory:
    return tff.aggregators.MeanFactory(value_sum_factory, no_nan_division=True)


def _check_above_0(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be finite and above 0, got {value}")


ClientStep = Callable[[Any, Any], Any]
"""(received weights, update) -> update, all of one structure."""


def quantize_parameters(bits: int = 8) -> ClientStep:
    """Builds the client step that rounds the trained parameters to a grid.

    A parameter theta becomes `round(theta (2^Q - 1)) / (2^Q - 1)`: the first formula of
    Quantization in Dual's Table I. The second is the simple average of the rounded
    models (`aggregation.simple_average`). Q is a number of bits: the values are the
    multiples of `1 / (2^Q - 1)`, and a number half way between two is rounded to the
    even multiple, as in NumPy and PyTorch. No value is clipped, so Q bits suffice only
    for parameters in [0, 1].

    Args:
        bits: Q, from 1 to 16.

    Raises:
        ValueError: `bits` is out of range.
    """
    if not 1 <= bits <= 16:
        raise ValueError(f"bits must be from 1 to 16, got {bits}")
    num_intervals = float(2**bits - 1)

    def step(received: Any, update: Any) -> Any:
        flat = zip(tf.nest.flatten(received), tf.nest.flatten(update))
        quantized = [
            received_weight
            - tf.round((received_weight - difference) * num_intervals) / num_intervals
            for received_weight, difference in flat
        ]
        return tf.nest.pack_sequence_as(update, quantized)

    return step
