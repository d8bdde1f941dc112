"""A functional model with the further functions that packed clients' training uses."""

from __future__ import annotations

import collections
import functools
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from leaf_data.errors import one_line

if TYPE_CHECKING:
    from tff_pmc.models.model_settings import ModelSettings


class PackedModel(tff.learning.models.FunctionalModel):
    """A functional model that defines its training beyond what TFF's class allows.

    TFF's algorithms take it as the `tff.learning.models.FunctionalModel` that it is.
    The training of packed clients uses the rest: the losses of single examples, a
    separate forward pass for training, and weights that never leave a client.
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
    ) -> None:
        """Makes the model.

        Args:
            initial_weights: as of TFF's class: (trainable, non_trainable), arrays.
            predict_on_batch_fn: as of TFF's class.
            loss_fn: as of TFF's class.
            input_spec: as of TFF's class.
            example_losses: `(output, y) -> float32[n]`, the loss of each example;
                it is needed where the loss is weighted by class.
            forward_in_training: `(trainable, non_trainable, x, seed) -> (output,
                non_trainable)`. It may drop units by the seed, int32 [2], and change
                the weights that are not trained. By default the forward pass of
                training is `predict_on_batch_fn`, which can do neither.
            local_weights: the initial values of trainable weights that begin anew in
                every client's training and are never sent. They follow the trainable
                weights in what `forward_in_training` is given.
            metrics_fns: as of TFF's class, for example
                `tff.learning.metrics.create_functional_metric_fns(...)`; by default
                the model has no metrics.
            weight_names: the names of the weights in files, trainable ones first; by
                default they are numbered.
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

    @classmethod
    def of(cls, model: tff.learning.models.FunctionalModel) -> PackedModel:
        """Returns the model if it is a `PackedModel`, or else wraps it as one."""
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

    # TFF has the next two convert their source (autograph) whenever a process is built.

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
            raise ValueError("this model does not give the losses of single examples")
        return self._example_losses(output, y)

    def weighted_loss(self, output: Any, y: Any, class_weights: tf.Tensor) -> tf.Tensor:
        """Returns the mean of the examples' losses, each times its class's weight."""
        return tf.reduce_mean(
            self.example_losses(output, y) * tf.gather(class_weights, y)
        )

    def forward_in_training(
        self, trainable: Any, non_trainable: Any, x: Any, seed: Any
    ) -> tuple[Any, Any]:
        """Runs the forward pass of a step of training.

        Args:
            trainable: the trainable weights, followed by the local ones.
            non_trainable: the other weights.
            x: the inputs of a batch.
            seed: int32 [2], of the units that are dropped in this step.

        Returns:
            The output, and the weights that are not trained, as they are afterwards.
        """
        if self._forward_in_training is not None:
            return self._forward_in_training(trainable, non_trainable, x, seed)
        output = self.predict_on_batch((trainable, non_trainable), x, True)
        return output, non_trainable


def built(settings: ModelSettings) -> tff.learning.models.FunctionalModel:
    """Returns the model of settings, with the same names whenever it is made.

    Keras would name the layers and metrics of a process's second model `dense_1` and
    `auc_1`.
    """
    tf.keras.backend.reset_uids()
    return as_functional(settings.build())


def as_functional(model: Any) -> tff.learning.models.FunctionalModel:
    """Returns a functional model, also of a `model_fn` of a Keras model.

    Raises:
        ValueError: it is neither, or TFF cannot make a functional model of it.
    """
    if callable(model) and not isinstance(model, tf.keras.Model):
        model = model()
    if isinstance(model, tff.learning.models.FunctionalModel):
        return model
    # As TFF's `from_keras_model` has them.
    inner, losses = (getattr(model, own, ()) for own in ("_keras_model", "_loss_fns"))
    if not inner or len(losses) != 1:
        raise ValueError(
            "build must return a FunctionalModel, or a function that returns one or "
            "what from_keras_model gives for one loss, and gives a "
            f"{type(model).__name__}"
        )
    spec = model.input_spec
    spec = (spec["x"], spec["y"]) if isinstance(spec, Mapping) else tuple(spec)
    try:
        made = tff.learning.models.functional_model_from_keras(
            inner, losses[0], spec, _metrics_of(model)
        )
    except Exception as error:  # TFF's exception for it is no ValueError.
        raise ValueError(one_line(error)) from error
    variables = [*inner.trainable_variables, *inner.non_trainable_variables]
    made.weight_names = tuple(one.name.partition(":")[0] for one in variables)
    return made


_OF_TFF = ("loss", "num_examples", "num_batches")
"""The metrics that TFF adds to those that `from_keras_model` is given."""


_METRIC_NAME = re.compile(r"(?=.{1,250}$)\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


def check_metric_names(names: Iterable[Any]) -> None:
    """Refuses names of a model's metrics that a graph or a tracker cannot hold.

    TensorFlow names scopes after them, MLflow also files and rows, which some file
    systems and databases find whatever their case. The names of tuples' members, which
    are numbers, are not to be given.

    Raises:
        ValueError: a name has other characters than those of a path, or two are equal
            but for their case; the message names it, and one that it could have.
    """
    checked: dict[str, str] = {}
    for name in names:
        if not _METRIC_NAME.fullmatch(str(name)):
            letters = re.sub(r"[^\w.-]+", "_", str(name)[:40], flags=re.ASCII)
            raise ValueError(
                f"the model's metric {one_line(repr(name), 60)} must have a name of "
                "letters from a to z, digits, _, - and ., which may have parts, as "
                f"val/auc: name it {letters.strip('_.-') or 'my_metric'!r}, for example"
            )
        other = checked.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(
                f"the model's metrics {other!r} and {name!r} differ in the case of "
                "letters alone, which trackers may ignore: rename one"
            )


def check_keras_metrics(model: Any) -> None:
    """Refuses metrics of a Keras model of TFF's that have the same name.

    Raises:
        ValueError: TFF would report one of the two alone; the message has the name.
    """
    names = [metric.name for metric in getattr(model, "get_metrics", list)()]
    for name in names:
        if names.count(name) > 1:
            added = ", and TFF adds one of this name" if name in _OF_TFF else ""
            raise ValueError(
                f"the model has two metrics named {name!r}{added}: rename one"
            )


def _metrics_of(model: Any) -> Any:
    """Returns what makes the metrics given to `from_keras_model`, by name."""
    check_keras_metrics(model)
    known = model._metric_constructors
    makers = collections.OrderedDict(
        (one.name, known.get(one.name) or _maker_of(one))
        for one in model.get_metrics()
        if one.name not in _OF_TFF
    )
    return makers or None


def _maker_of(metric: Any) -> Callable[[], Any]:
    """Returns what makes a metric anew, or raises a `ValueError`."""
    kind, config = type(metric), metric.get_config()
    takes = inspect.signature(kind.__init__).parameters.values()
    # Keras leaves out some that are None by default.
    named = {one.name for one in takes if one.default not in (None, one.empty)}
    if lacking := named - {*config}:
        raise ValueError(
            f"the metric {metric.name!r} cannot be made again, as its get_config lacks "
            f"{', '.join(sorted(lacking))}: give from_keras_model functions that make "
            "its metrics, metrics=[lambda: ...]"
        )
    return functools.partial(kind.from_config, config)


def output_on(
    model: Any, x: Any, *y: Any, of: Optional[Callable[[Any, Any], Any]] = None
) -> list[Any]:
    """Returns the initial model's output on a batch, and its loss if y is given.

    With `of`, a function of output and labels, its result is the only one. It is run in
    a graph, because TFF's functional models of Keras run nowhere else.
    """
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        # Fed, and no constants, as a graph takes seconds to hold a large model's.
        arrays = tf.nest.map_structure(np.asarray, (model.initial_weights, x, y))
        fed = tf.nest.map_structure(
            lambda a: tf.compat.v1.placeholder(a.dtype, a.shape), arrays
        )
        output = model.predict_on_batch(*fed[:2], False)
        found = [output, *(model.loss(output, labels) for labels in fed[2])]
        if of is not None:
            found = [of(output, *fed[2])]
        feeds = zip(tf.nest.flatten(fed), tf.nest.flatten(arrays))
        return session.run(found, dict(feeds))
