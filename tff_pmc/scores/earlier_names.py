"""Earlier names of fields, which work for one more release."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable, TypeVar

Class = TypeVar("Class", bound=type)


def keep_earlier_names(**new_by_old: str) -> Callable[[Class], Class]:
    """Lets a class be built and read with the earlier names of its fields, too.

    Each use warns with a `DeprecationWarning`. A subclass that is a dataclass has a
    constructor of its own and needs this decorator again.
    """

    def warn_of(cls: type, old: str) -> str:
        new = new_by_old[old]
        warnings.warn(
            f"{cls.__name__}.{old} is called {new} now",
            DeprecationWarning,
            stacklevel=3,
        )
        return new

    def decorate(cls: Any) -> Any:
        build = cls.__init__

        @functools.wraps(build)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            for old in new_by_old.keys() & kwargs.keys():
                value = kwargs.pop(old)
                kwargs[warn_of(cls, old)] = value
            build(self, *args, **kwargs)

        cls.__init__ = __init__
        for old in new_by_old:
            setattr(cls, old, _reader(warn_of, old))
        return cls

    return decorate


def _reader(warn_of: Callable[[type, str], str], old: str) -> property:
    return property(lambda self: getattr(self, warn_of(type(self), old)))
