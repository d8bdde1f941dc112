"""Federated evaluation: exact integer counts of correct examples, losses, metrics."""

from __future__ import annotations

import collections
import math
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from declared_settings import AT_LEAST_1, check_value
from tff_pmc import models
from tff_pmc.aggregation.contributions import check_client
from tff_pmc.aggregation.tff_utils import check_type, federated_struct
from tff_pmc.clients import model_metrics, packing
from tff_pmc.clients.model_metrics import MetricsAggregator
from tff_pmc.models.functional import (
    BATCH_SIZE,
    count_correct,
    predicted_labels,
    reduce_predictions,
)
from tff_pmc.models.positions import count_labels
from tff_pmc.models.tff_types.keras_checks import check_model
from tff_pmc.models.tff_types.packed_model import (
    evaluate_initial_model,
    predicts_positions,
    split_batch,
)
from tff_pmc.processes.dataset_evaluation import (
    build_dataset_evaluation,
    map_and_aggregate,
)
from tff_pmc.processes.round_components import Model

_COUNT_BITS = 31  # The bits of a client's count of correct examples, an int32.


def build_federated_evaluation(
    model: Model,
    num_clients: Optional[int] = None,
    *,
    packed: Optional[bool] = None,
    batch_size: int = BATCH_SIZE,
    metrics_aggregator: Optional[MetricsAggregator] = None,
) -> tff.Computation:
    """Builds the evaluation of one model on all clients' local examples.

    With *packed* data the examples of many clients are evaluated in common batches
    (`evaluation_packs`). The type is

        (<W@SERVER, <x=X[?, ...], y=int32[?], client=int32[?]>@CLIENTS>
         -> int32[K]@SERVER)

    The result is the number of correctly classified examples per client (PMC eq. 10
    divides their sum by the number of examples); integers make comparisons exact. With
    a label per position, y int32[?, T], it is the number of correct positions. For a
    model with metrics M it is `<correct=int32[K], metrics=M>`.

    With *datasets of batches* B, as in TFF's `build_fed_eval`, the type is

        (<W@SERVER, {B*}@CLIENTS>
         -> <examples=int32, loss_sum=float32, correct=int32, metrics=M>@SERVER)

    where M are the model's metrics (such as those of a Keras model) by name, and
    `loss_sum` is the sum of the losses of all examples. The result contains `correct`
    if the model outputs a score per class for each label. With a label per position all
    three are of the positions that count (see `models.select_counted`). With
    `num_clients` the data are `{<B, int32>*}@CLIENTS`, from `with_client_number`, and
    the first three results have a value per client, `[K]`, which the server then sees:
    this is for simulation only.

    Args:
        model: a functional model, or a function that returns a
            `tff.learning.models.VariableModel`. For packed data it must be a classifier
            that outputs a score per class.
        num_clients: the number of clients in the federation, K, to count per client;
            with None (the default) counts are totals, without an axis.
        packed: the form of the data; by default packed for a functional model and
            datasets of batches for a `model_fn`.
        batch_size: for packed data: the number of examples in a forward pass.
        metrics_aggregator: see `TrainingOptions`; by default
            `tff.learning.metrics.sum_then_finalize`.

    Raises:
        ValueError: `packed` is set for a `model_fn`; the model of packed data does not
            output a score per class; a number is out of range; or no process supports
            the model, such as one whose loss is a sum over the batch.

    Examples:
        >>> evaluate = build_federated_evaluation(model_fn)
        >>> result = evaluate(process.get_model_weights(state), datasets)
        >>> result["metrics"]["sparse_categorical_accuracy"]
    """
    if num_clients is not None:
        check_value("the argument num_clients", num_clients, int, AT_LEAST_1)
    check_value("batch_size", batch_size, int, AT_LEAST_1)
    is_functional = isinstance(model, tff.learning.models.FunctionalModel)
    if packed and not is_functional:
        raise ValueError(
            "packed examples need a tff.learning.models.FunctionalModel: with a "
            "model_fn, pass each client's dataset of batches and packed=False"
        )
    check_model(model if is_functional else model())
    metrics = model_metrics.build_aggregation(model, metrics_aggregator)
    if not is_functional or packed is False:
        model_fn = model_metrics.as_model_fn(model)
        return build_dataset_evaluation(model_fn, num_clients, metrics=metrics)
    return build_correct_counts(
        model, num_clients, batch_size=batch_size, metrics=metrics
    )


def num_output_classes(model: tff.learning.models.FunctionalModel) -> int:
    """Returns the number of classes for which a model outputs scores.

    Raises:
        ValueError: the model does not output one score per class, the highest of which
            is the prediction.
    """
    example = tf.nest.map_structure(
        lambda spec: np.zeros(
            [1, *(size or 1 for size in spec.shape[1:])], spec.dtype.as_numpy_dtype
        ),
        split_batch(model.input_spec)[0],
    )
    (output,) = evaluate_initial_model(model, example)
    predicted_labels(output)  # Raises for another form of output.
    return int(output.shape[-1])


def build_correct_counts(
    model: tff.learning.models.FunctionalModel,
    num_clients: Optional[int] = None,
    *,
    batch_size: int = BATCH_SIZE,
    metrics: Optional[tff.Computation] = None,
    secure: bool = False,
) -> tff.Computation:
    """Builds the packed `build_federated_evaluation`, by default of counts only.

    Args:
        model: a classifier that outputs one score per class.
        num_clients: the number of clients in the federation, K; None for one total
            over all clients.
        batch_size: the maximum number of examples in a forward pass.
        metrics: the aggregation of the model's metrics; None for counts only.
        secure: whether the counts are a secure sum, so that the server sees only the
            total.

    Raises:
        ValueError: the model does not output one score per class, or its examples have
            several labels.
    """
    num_output_classes(model)
    label = split_batch(model.input_spec)[1]
    is_single = isinstance(label, tf.TensorSpec) and label.shape.rank in (None, 1)
    if not is_single and not predicts_positions(model):
        raise ValueError(
            "packed examples must have one label each, or one for each position, and "
            f"the model's labels are {label}: use packed=False, and pass each client's "
            "dataset of batches"
        )

    @tf.function(autograph=False)
    def count(weights, examples):
        x, y, client = examples["x"], examples["y"], examples["client"]
        if num_clients is None:
            client = tf.zeros_like(client)
        else:
            client = check_client(num_clients, client)

        def add(totals, rows, output):
            correct, state = totals
            labels = y[rows]
            correct += tf.math.unsorted_segment_sum(
                count_correct(output, labels), client[rows], num_clients or 1
            )
            if metrics is not None:
                state = model_metrics.update_metrics(model, state, labels, output)
            return correct, state

        zero_counts = tf.zeros([num_clients or 1], tf.int32)
        initial_totals = (
            zero_counts,
            model.initialize_metrics_state() if metrics is not None else (),
        )
        correct, state = reduce_predictions(
            model,
            weights,
            x,
            tf.shape(y)[0],
            initial_totals,
            add,
            batch_size=batch_size,
        )
        return correct[0] if num_clients is None else correct, state

    def combine(outputs):
        correct = outputs[0]
        if secure:
            correct = tff.federated_secure_sum_bitwidth(correct, _COUNT_BITS)
        else:
            correct = tff.federated_sum(correct)
        if metrics is None:
            return correct
        return federated_struct(correct=correct, metrics=metrics(outputs[1]))

    return map_packs_and_aggregate(model, examples_type(model), count, combine)


def build_metrics(
    model: tff.learning.models.FunctionalModel,
    *,
    batch_size: int = BATCH_SIZE,
) -> Optional[tff.Computation]:
    """Builds the evaluation of only a model's metrics, on `evaluation_packs`.

    The type is

        (<W@SERVER, <x=X[?, ...], y=Y[?, ...], client=int32[?]>@CLIENTS> -> M@SERVER)

    with M as in `build_federated_evaluation`: the states of each metric (its sums) are
    added over all examples of all clients and then finalized once. Returns None for a
    model without metrics.
    """
    aggregate = model_metrics.build_aggregation(model)
    if aggregate is None:
        return None

    @tf.function(autograph=False)
    def measure(weights, examples):
        x, y = examples["x"], examples["y"]

        def add(state, rows, output):
            return model_metrics.update_metrics(model, state, y[rows], output)

        initial_state = model.initialize_metrics_state()
        size = tf.shape(y)[0]
        return reduce_predictions(
            model, weights, x, size, initial_state, add, batch_size=batch_size
        )

    return map_packs_and_aggregate(model, examples_type(model), measure, aggregate)


def map_packs_and_aggregate(
    model: tff.learning.models.FunctionalModel,
    data_type: tff.Type,
    pack_fn: Callable[[Any, Any], Any],
    combine: Callable[[Any], Any] = tff.federated_sum,
) -> tff.Computation:
    """Applies `map_and_aggregate` to a function of model weights and a pack."""
    types = models.weights_type(model), data_type
    return map_and_aggregate(tff.tensorflow.computation(*types)(pack_fn), combine)


def examples_type(model: tff.learning.models.FunctionalModel) -> tff.Type:
    """Returns the type of an evaluation pack, <x=X[?, ...], y=Y[?, ...], client>."""
    x, y = split_batch(model.input_spec)
    client = tf.TensorSpec([None], tf.int32)
    return tff.types.tensorflow_to_type(
        collections.OrderedDict(x=x, y=y, client=client)
    )


def evaluation_packs(
    examples: leaf_data.Examples,
    *,
    num_packs: int = 2,
    max_bytes: int = packing.MAX_PACK_BYTES,
) -> list[collections.OrderedDict]:
    """Cuts all clients' examples into packs for `build_federated_evaluation`.

    Args:
        examples: the examples of all clients.
        num_packs: the number of packs, of about equal size; there are more if one would
            exceed `max_bytes`.
        max_bytes: the maximum bytes of inputs in a pack.

    Returns:
        A list of `OrderedDict(x, y, client)` of arrays; two packs may share a client.
    """
    check_type("examples", examples, leaf_data.Examples, packing.EXAMPLES)
    check_value("num_packs", num_packs, int, AT_LEAST_1)
    num_rows = len(examples.y)
    rows_per_pack = max(1, max_bytes // max(1, examples.x.nbytes // max(1, num_rows)))
    num_packs = max(min(num_packs, num_rows), math.ceil(num_rows / rows_per_pack), 1)
    client = np.repeat(
        np.arange(len(examples.row_splits) - 1, dtype=np.int32),
        np.diff(examples.row_splits),
    )
    packs = np.array_split(np.arange(len(client)), num_packs)
    return [
        collections.OrderedDict(
            x=examples.x[rows[0] : rows[-1] + 1],
            y=examples.y[rows[0] : rows[-1] + 1],
            client=client[rows[0] : rows[-1] + 1],
        )
        for rows in packs
        if len(rows)
    ]


def build_loss_sums(
    model: tff.learning.models.FunctionalModel,
    num_clients: int,
    *,
    batch_size: int = BATCH_SIZE,
) -> tff.Computation:
    """Builds the sum of the losses of each client's examples, for simulation only.

    The data are those of `evaluation_packs`; the type is

        (<W@SERVER, <x=X[?, ...], y=Y[?, ...], client=int32[?]>@CLIENTS>
         -> float32[num_clients]@SERVER)

    A model returns the mean loss of a batch and not that of each example, so no batch
    contains the examples of two clients.

    Args:
        model: a functional model, whose loss is a mean over the batch.
        num_clients: the number of clients in the federation, K.
        batch_size: the maximum number of examples in a forward pass.

    Raises:
        ValueError: the loss is not a mean over the batch.
    """
    check_model(model)

    @tf.function
    def add_up(weights, examples):
        x, y, client = examples["x"], examples["y"], examples["client"]
        parameters = (weights.trainable, weights.non_trainable)
        size, start = tf.shape(client)[0], tf.constant(0)
        losses = tf.zeros([num_clients])
        while start < size:
            owner = client[start]
            # The examples of a client are adjacent in a pack.
            same_client = tf.equal(client[start : start + batch_size], owner)
            owner = check_client(num_clients, owner)
            count = tf.math.count_nonzero(same_client, dtype=tf.int32)
            rows = slice(start, start + count)
            output = model.predict_on_batch(parameters, x[rows], False)
            mean = tf.cast(model.loss(output, y[rows]), tf.float32)
            total = mean * tf.cast(count_labels(output, y[rows]), tf.float32)
            losses = tf.tensor_scatter_nd_add(losses, [[owner]], [total])
            start += count
        return losses

    return map_packs_and_aggregate(model, examples_type(model), add_up)
