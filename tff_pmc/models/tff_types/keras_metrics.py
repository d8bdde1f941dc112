"""Names and constructors of the metrics of TFF's Keras models."""

from __future__ import annotations

import collections
import functools
import inspect
import re
from collections.abc import Iterable
from typing import Any, Callable

import tensorflow as tf

from leaf_data.errors import shorten
from tff_pmc.models.positions import select_counted

_TFF_METRICS = ("loss", "num_examples", "num_batches")
"""The metrics that TFF adds to those passed to `from_keras_model`."""


_METRIC_NAME = re.compile(r"(?=.{1,250}$)\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


def sees_counted(part: Any) -> bool:
    """Returns whether a loss or a metric receives only the positions that count.

    The classes of Keras and of TFF do: they average over all labels that they receive.
    A class of a user may need the order of the positions: it receives all, and calls
    `select_counted` itself.
    """
    return type(part).__module__.split(".")[0] in ("keras", "tensorflow_federated")


def update_metric(metric: Any, labels: Any, output: Any) -> None:
    """Adds a batch to a Keras metric; of positions, only those that count."""
    if sees_counted(metric) and metric.name != "num_examples":
        output, labels = select_counted(output, labels)
    metric.update_state(y_true=labels, y_pred=output)


def _on_counted(construct: Callable[[], Any]) -> Callable[[], Any]:
    """Returns a constructor of metrics that `update_metric` would update."""

    @tf.autograph.experimental.do_not_convert
    def construct_metric() -> Any:
        metric = construct()
        if not sees_counted(metric):
            return metric
        update = metric.update_state
        while hasattr(update, "__original_wrapped__"):  # TFF calls this one.
            update = update.__original_wrapped__

        def update_state(y_true: Any, y_pred: Any) -> Any:
            scores, labels = select_counted(y_pred, y_true)
            return update(y_true=labels, y_pred=scores)

        metric.update_state = update_state
        return metric

    return construct_metric


def check_metric_names(names: Iterable[Any]) -> None:
    """Raises a `ValueError` if a graph or a tracker cannot use a metric's name.

    TensorFlow names scopes after metrics, and MLflow files and rows, whose names some
    file systems and databases compare without case. Do not pass the numbers that name
    the members of tuples.

    Raises:
        ValueError: a name has other characters than those of a path, or two names
            differ only in case; the message suggests a name.
    """
    checked: dict[str, str] = {}
    for name in names:
        if not _METRIC_NAME.fullmatch(str(name)):
            letters = re.sub(r"[^\w.-]+", "_", str(name)[:40], flags=re.ASCII)
            raise ValueError(
                f"the model's metric {shorten(repr(name), 60)} must have a name of "
                "letters from a to z, digits, _, - and ., which may have parts, as "
                f"val/auc: name it {letters.strip('_.-') or 'my_metric'!r}, for example"
            )
        other = checked.setdefault(name.lower(), name)
        if other != name:
            raise ValueError(
                f"the model's metrics {other!r} and {name!r} differ only in case, "
                "which trackers may ignore: rename one"
            )


def check_keras_metrics(model: Any) -> None:
    """Raises a `ValueError` if metrics of a TFF model of Keras share a name.

    Raises:
        ValueError: two do, of which TFF would report only one; the message names it.
    """
    names = [metric.name for metric in getattr(model, "get_metrics", list)()]
    for name in names:
        if names.count(name) > 1:
            added = ", and TFF adds one of this name" if name in _TFF_METRICS else ""
            raise ValueError(
                f"the model has two metrics named {name!r}{added}: rename one"
            )


def metric_constructors(model: Any) -> Any:
    """Returns the constructors of the metrics of a TFF model of Keras, by name.

    Excludes the metrics that TFF adds; None if there are no others.
    """
    check_keras_metrics(model)
    known_constructors = model._metric_constructors
    constructors = collections.OrderedDict(
        (
            metric.name,
            _on_counted(
                known_constructors.get(metric.name) or _metric_constructor(metric)
            ),
        )
        for metric in model.get_metrics()
        if metric.name not in _TFF_METRICS
    )
    return constructors or None


def _metric_constructor(metric: Any) -> Callable[[], Any]:
    """Returns a constructor of a metric's copies, or raises a `ValueError`."""
    metric_class, config = type(metric), metric.get_config()
    parameters = inspect.signature(metric_class.__init__).parameters.values()
    # Keras omits some parameters that are None by default.
    needed = {
        parameter.name
        for parameter in parameters
        if parameter.default not in (None, parameter.empty)
    }
    if missing := needed - {*config}:
        raise ValueError(
            f"the metric {metric.name!r} cannot be copied, because its get_config "
            f"lacks {', '.join(sorted(missing))}: pass functions that create the "
            "metrics to from_keras_model, metrics=[lambda: ...]"
        )
    return functools.partial(metric_class.from_config, config)
