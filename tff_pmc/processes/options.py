"""What `build_prioritized_fed_avg` is given, checked before anything is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import GaussianSums
from tff_pmc.clients import contribution
from tff_pmc.clients.datasets import split_batch
from tff_pmc.scores import PolynomialScore, prioritized

_PROBE_EXAMPLES = 3


def resolve_score(
    priority: Optional[Sequence[str]],
    score: Optional[PolynomialScore],
    codes: Sequence[str],
) -> PolynomialScore:
    """The score that `priority` or `score` names.

    Raises:
        ValueError: both are given, or the ordering does not fit the criteria.
    """
    if score is not None:
        if priority is not None:
            raise ValueError("give either priority or score, not both")
        return score
    order = codes if priority is None else priority
    return prioritized([criteria_lib.ALIASES.get(c, c) for c in order], codes)


def check_optimizer(name: str, optimizer: Any) -> None:
    """Raises a `TypeError` for what is no TFF optimizer, by the argument's name."""
    if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
        raise TypeError(
            f"{name} must be a tff.learning.optimizers.Optimizer, "
            f"got {type(optimizer).__name__}"
        )


def check_range(local_epochs: int, batch_size: int, clip_norm: Optional[float]) -> None:
    """Raises a `ValueError` for a number out of range, by the argument's name."""
    if local_epochs < 1:
        raise ValueError(f"local_epochs must be at least 1, got {local_epochs}")
    if batch_size < 0:
        raise ValueError(f"batch_size must be 0 (all) or more, got {batch_size}")
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm must be above 0, got {clip_norm}")


def check_form(
    is_functional: bool,
    packed: bool,
    batch_size: int,
    seed: int,
    report_num_clients: Optional[int],
) -> None:
    """Refuses options that do not belong to the form of the data.

    Raises:
        ValueError: packed data without a functional model, or an option of the
            packed form with datasets of batches.
    """
    if packed and not is_functional:
        raise ValueError(
            "packed clients need a tff.learning.models.FunctionalModel; with a "
            "model_fn, pass each client's dataset of batches (packed=False)"
        )
    if packed:
        return
    for name, value in (
        ("batch_size", batch_size),
        ("seed", seed),
        ("report_num_clients", report_num_clients),
    ):
        if value:
            raise ValueError(
                f"{name} is of packed clients only: a dataset of batches has its own "
                "batches and order, and no client number"
            )


def initial_weights(model_fn: Any) -> tuple[tff.learning.models.ModelWeights, Any]:
    """A model's initial weights, as arrays, and its input spec."""
    if isinstance(model_fn, tff.learning.models.FunctionalModel):
        trainable, non_trainable = model_fn.initial_weights
        arrays = (tuple(map(np.asarray, part)) for part in (trainable, non_trainable))
        return tff.learning.models.ModelWeights(*arrays), model_fn.input_spec
    model = model_fn()
    variables = tff.learning.models.ModelWeights.from_model(model)
    return tf.nest.map_structure(lambda v: v.numpy(), variables), model.input_spec


def as_model_fn(model_fn: Any) -> Any:
    """What makes a `VariableModel`, from either kind of model."""
    if isinstance(model_fn, tff.learning.models.FunctionalModel):
        return lambda: tff.learning.models.model_from_functional(model_fn)
    return model_fn


def check_sums(
    privacy: Optional[GaussianSums],
    factories: Sequence[Any],
    report_num_clients: Optional[int],
) -> None:
    """Refuses sums that would promise privacy they do not give.

    Raises:
        ValueError: TFF's differentially private factory, which clips and counts
            what it is given as one client, where a placement holds sums over
            many and weights depend on the data; or `privacy` beside an option
            that would undo it.
    """
    for factory in factories:
        if isinstance(factory, tff.aggregators.DifferentiallyPrivateFactory):
            raise ValueError(
                "tff.aggregators.DifferentiallyPrivateFactory cannot be a sum factory "
                "here: its guarantee does not hold for updates weighted by data. Use "
                "privacy=GaussianSums(...) with declared ranges and clip_norm"
            )
        if privacy is not None and factory is not None:
            raise ValueError("privacy makes its own sums: give no sum factory with it")
    if privacy is not None and report_num_clients is not None:
        raise ValueError(
            "privacy and report_num_clients exclude each other: the report shows each "
            "client's criteria"
        )


def probe_criteria(
    found: Sequence[criteria_lib.Criterion],
    weights: tff.learning.models.ModelWeights,
    input_spec: Any,
    client_attributes: Sequence[str],
) -> None:
    """Tries each criterion on a made-up client, so that a wrong one is named here.

    The client has three examples of zeros and a model that did not move.

    Raises:
        ValueError: a criterion fails on it, is no scalar, or is negative.
    """
    specs = split_batch(input_spec)
    x, y = (tf.nest.map_structure(_zeros, spec) for spec in specs)
    attributes = {name: tf.constant(0.0) for name in client_attributes}
    client = criteria_lib.LocalClient(x, y, weights, weights, attributes)
    for criterion in found:
        try:
            contribution.raw_value(criterion, client)
        except tf.errors.InvalidArgumentError as error:
            reason = "gave a negative value"
            if reason not in error.message:
                reason = f"fails: {error.message}"
            raise ValueError(
                f"the criterion {criterion.code} {reason} for a made-up client"
            ) from error
        except KeyError as error:
            raise ValueError(
                f"the criterion {criterion.code} needs {error}; the client attributes "
                f"are: {', '.join(client_attributes) or 'none'}"
            ) from error


def _zeros(spec: tf.TensorSpec) -> tf.Tensor:
    shape = [_PROBE_EXAMPLES if size is None else size for size in spec.shape]
    return tf.constant(np.zeros(shape, spec.dtype.as_numpy_dtype))
