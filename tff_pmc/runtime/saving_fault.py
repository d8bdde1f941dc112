"""A pair of packages that do not go together, noticed before TensorFlow fails on it.

TensorFlow 2.14 wraps tuples in proxies of wrapt, and asks of them whether they follow
a protocol. From 4.6 on typing_extensions looks for that in a way that wrapt's C code
refuses. `tff.program.FileProgramStateManager` and
`tff.learning.models.save_functional_model` then end in `TypeError: this __dict__
descriptor does not support '_TupleWrapper' objects`. Training does not come across it,
and neither do the records of experiments.
"""

from __future__ import annotations

from importlib import metadata
from typing import Optional

import typing_extensions
import wrapt


class _Base:
    """The proxies have a second base class, as TensorFlow's have."""


class _Wrapped(_Base, wrapt.ObjectProxy):
    pass


@typing_extensions.runtime_checkable
class _Asked(typing_extensions.Protocol):
    def method(self) -> None: ...


def saving_fault() -> Optional[str]:
    """Says in one line that TFF cannot save, and the cure; None if it can.

    It is tried: no release numbers are compared.
    """
    try:
        isinstance(_Wrapped(()), _Asked)
    except TypeError:
        found = " and ".join(
            f"{name} {metadata.version(name)}"
            for name in ("typing_extensions", "wrapt")
        )
        return (
            f"{found} do not go together: TFF cannot save functional models, nor the "
            "states of programs (runs and their records are not affected). `make venv` "
            "puts the versions right; or set WRAPT_DISABLE_EXTENSIONS=true before "
            "Python starts."
        )
    return None
