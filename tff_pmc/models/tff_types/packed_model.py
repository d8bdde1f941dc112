"""A functional model with the additional hooks of packed clients' training."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.models.positions import has_positions, mean_counted, select_counted


class PackedModel(tff.learning.models.FunctionalModel):
    """A functional model with training hooks that TFF's class lacks.

    TFF's algorithms use it as a `tff.learning.models.FunctionalModel`. The training of
    packed clients also uses the losses of single examples, a separate forward pass for
    training, and weights that never leave a client.
    """

    def __init__(
        self,
        *,
        initial_weights: Any,
        predict_on_batch_fn: Callable[..., Any],
        loss_fn: Callable[..., Any],
        input_spec: Any,
        example_losses: Optional[Callable[[Any, Any], Any]] = None,
        forward_in_training: Optional[Callable[..., Any]] = None,
        local_weights: Sequence[Any] = (),
        metrics_fns: Optional[tuple[Any, Any, Any]] = None,
        weight_names: Sequence[str] = (),
        file_order: Sequence[int] = (),
    ) -> None:
        """Creates the model.

        Args:
            initial_weights: as in TFF's class: (trainable, non_trainable), arrays.
            predict_on_batch_fn: as in TFF's class.
            loss_fn: as in TFF's class.
            input_spec: as in TFF's class.
            example_losses: `(output, y) -> float32[n]`, the loss of each example, or of
                each position that counts (see `select_counted`), which a loss weighted
                by class needs; by default there is none.
            forward_in_training: `(trainable, non_trainable, x, seed) -> (output,
                non_trainable)`, the forward pass of training. It may drop units by the
                seed, int32 [2], and change the non-trainable weights. It may also
                return a third value, a scalar penalty (of a regularizer, for example),
                which is added to the loss of the batch. By default
                `predict_on_batch_fn`, which can do none of these.
            local_weights: the initial values of trainable weights that are reset at the
                start of each client's training and never sent. They follow the
                trainable weights in the first argument of `forward_in_training`. By
                default there are none.
            metrics_fns: as in TFF's class, for example
                `tff.learning.metrics.create_functional_metric_fns(...)`; by default
                the model has no metrics.
            weight_names: the names of the weights in files, trainable ones first; by
                default they are numbered.
            file_order: the order of the weights in files, as indices of the weights; by
                default trainable ones are first.
        """
        super().__init__(
            initial_weights=initial_weights,
            predict_on_batch_fn=predict_on_batch_fn,
            loss_fn=loss_fn,
            input_spec=input_spec,
            **({} if metrics_fns is None else {"metrics_fns": metrics_fns}),
        )
        self._has_metrics = metrics_fns is not None
        self._example_losses = example_losses
        self._forward_in_training = forward_in_training
        self.local_weights = tuple(local_weights)
        self.weight_names = tuple(weight_names)
        self.file_order = tuple(file_order)

    @classmethod
    def of(cls, model: tff.learning.models.FunctionalModel) -> PackedModel:
        """Returns the model if it is a `PackedModel`, otherwise wraps it as one."""
        if isinstance(model, cls):
            return model
        return cls(
            initial_weights=model.initial_weights,
            predict_on_batch_fn=model.predict_on_batch,
            loss_fn=model.loss,
            input_spec=model.input_spec,
            metrics_fns=(
                model.initialize_metrics_state,
                model.update_metrics_state,
                model.finalize_metrics,
            ),
            weight_names=getattr(model, "weight_names", ()),
        )

    # TFF converts the source of the next two (autograph) whenever a process is built.

    def predict_on_batch(
        self, model_weights: Any, x: Any, training: bool = True
    ) -> Any:
        """Returns the model's output on a batch of inputs, as TFF's class does."""
        return self._predict_on_batch_fn(model_weights, x, training)

    def initialize_metrics_state(self) -> Any:
        """Returns the state of the model's metrics before the first batch."""
        if not self._has_metrics:
            return collections.OrderedDict()
        return super().initialize_metrics_state()

    @property
    def has_example_losses(self) -> bool:
        """Whether the loss can be weighted by class."""
        return self._example_losses is not None

    @property
    def has_own_training(self) -> bool:
        """Whether training has a separate forward pass."""
        return self._forward_in_training is not None

    def example_losses(self, output: Any, y: Any) -> tf.Tensor:
        """Returns the loss of each example, float32 [n].

        Raises:
            ValueError: the model does not define them.
        """
        if self._example_losses is None:
            raise ValueError(
                "this model does not define the losses of single examples: build a "
                "PackedModel with example_losses"
            )
        return self._example_losses(output, y)

    def weighted_loss(self, output: Any, y: Any, class_weights: tf.Tensor) -> tf.Tensor:
        """Returns the mean of the examples' losses times their classes' weights.

        With a label per position it is the mean over the positions that count.
        """
        if has_positions(output, y):
            output, y = select_counted(output, y)
            losses = self.example_losses(output, y)
            return mean_counted(losses * tf.gather(class_weights, y))
        return tf.reduce_mean(
            self.example_losses(output, y) * tf.gather(class_weights, y)
        )

    def forward_in_training(
        self, trainable: Any, non_trainable: Any, x: Any, seed: Any
    ) -> tuple[Any, Any, Optional[tf.Tensor]]:
        """Runs the forward pass of a training step.

        Args:
            trainable: the trainable weights, followed by the local ones.
            non_trainable: the other weights.
            x: the inputs of a batch.
            seed: int32 [2], the seed of dropout in this step.

        Returns:
            The output; the non-trainable weights after the step; and a scalar to add to
            the loss, or None.
        """
        if self._forward_in_training is not None:
            result = self._forward_in_training(trainable, non_trainable, x, seed)
            return (*result, None)[:3]
        output = self.predict_on_batch((trainable, non_trainable), x, True)
        return output, non_trainable, None


def split_batch(batch: Any) -> tuple[Any, Any]:
    """Splits a batch, `(x, y)` or `{"x": ..., "y": ...}`, into inputs and labels."""
    if isinstance(batch, Mapping):
        return batch["x"], batch["y"]
    return batch[0], batch[1]


def predicts_positions(model: tff.learning.models.FunctionalModel) -> bool:
    """Returns whether a model has a label per position; see `has_positions`."""
    x, label = split_batch(model.input_spec)
    if not isinstance(label, tf.TensorSpec) or label.shape.rank in (None, 0, 1):
        return False
    (output,) = evaluate_initial_model(
        model, tf.nest.map_structure(make_probe_array, x)
    )
    return has_positions(output, label)


def evaluate_initial_model(
    model: Any, x: Any, *y: Any, output_fn: Optional[Callable[[Any, Any], Any]] = None
) -> list[Any]:
    """Returns the initial model's output on a batch, and its loss if y is given.

    With `output_fn(output, labels)`, only its result is returned. The model runs in a
    graph, because TFF's functional models of Keras need one.
    """
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        # Fed, because a graph needs seconds to store the constants of a large model.
        arrays = tf.nest.map_structure(np.asarray, (model.initial_weights, x, y))
        placeholders = tf.nest.map_structure(
            lambda a: tf.compat.v1.placeholder(a.dtype, a.shape), arrays
        )
        output = model.predict_on_batch(*placeholders[:2], False)
        results = [output, *(model.loss(output, labels) for labels in placeholders[2])]
        if output_fn is not None:
            results = [output_fn(output, *placeholders[2])]
        feeds = zip(tf.nest.flatten(placeholders), tf.nest.flatten(arrays))
        return session.run(results, dict(feeds))


PROBE_EXAMPLES = 3
"""The number of made-up examples in a trial of a model."""


def make_probe_array(spec: tf.TensorSpec) -> np.ndarray:
    """Returns alternating zeros and ones, valid for any type of input or label."""
    shape = [PROBE_EXAMPLES if size is None else size for size in spec.shape]
    values = (np.arange(int(np.prod(shape))) % 2).reshape(shape)
    return values.astype("S1" if spec.dtype == tf.string else spec.dtype.as_numpy_dtype)
