"""Functions that TensorFlow's autograph need not convert."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

import tensorflow as tf

_F = TypeVar("_F", bound=Callable[..., Any])
_OURS = ("tff_pmc", "tensorflow_federated")


def as_written(function: _F) -> _F:
    """The function, called as it is within one that autograph converts.

    Converting a function, so that its `if` and `for` may be over tensors, takes 0.1 to
    1 s: half of the time to build a process. Those that have none are spared it.
    """
    return tf.autograph.experimental.do_not_convert(function)


@tf.autograph.experimental.do_not_convert
def method_as_written(owner: Any, name: str) -> Callable[..., Any]:
    """A method of an object; as it is if its class is this package's or TFF's.

    The class may be a user's, who may rely on the conversion.
    """
    method = getattr(owner, name)
    return as_written(method) if type(owner).__module__.startswith(_OURS) else method
