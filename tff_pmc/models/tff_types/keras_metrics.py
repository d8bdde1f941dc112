"""The metrics of TFF models of Keras: their names, and their constructors."""

from __future__ import annotations

import collections
import functools
import inspect
import re
from collections.abc import Iterable
from typing import Any, Callable

from leaf_data.errors import one_line

_TFF_METRICS = ("loss", "num_examples", "num_batches")
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
            added = ", and TFF adds one of this name" if name in _TFF_METRICS else ""
            raise ValueError(
                f"the model has two metrics named {name!r}{added}: rename one"
            )


def metric_constructors(model: Any) -> Any:
    """Returns the constructors of the metrics of a TFF model of Keras, by name.

    Those that TFF adds to what `from_keras_model` is given are not among them; None
    where there are no others.
    """
    check_keras_metrics(model)
    known = model._metric_constructors
    makers = collections.OrderedDict(
        (one.name, known.get(one.name) or _metric_constructor(one))
        for one in model.get_metrics()
        if one.name not in _TFF_METRICS
    )
    return makers or None


def _metric_constructor(metric: Any) -> Callable[[], Any]:
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
