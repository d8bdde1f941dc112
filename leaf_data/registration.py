"""Registries of objects that register themselves by name when imported."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class UnknownNameError(ValueError):
    """An error for an unknown name; the message gives the nearest and all names."""


class Registry(Mapping[str, Thing], Generic[Thing]):
    """A mapping from names to objects, found by importing the modules of a package.

    A module of the package calls `register` when it is imported, and so does a
    module from outside that a user imports. The package's own modules are imported
    when the registry is first looked into, not before.

        MODELS: Registry[Model] = Registry("model", "tff_pmc.models")
        MODELS.register("mnist_cnn", mnist_cnn)
        MODELS["mnist_cnn"]
    """

    def __init__(self, what: str, package: str = "") -> None:
        """Makes an empty registry of `what`, e.g. "model", for a package's modules."""
        self._what, self._package = what, package
        self._things: dict[str, Thing] = {}
        self._searched = not package

    def register(self, name: str, thing: Thing) -> Thing:
        """Registers an object; a `ValueError` says that another has the name."""
        if self._things.get(name, thing) is not thing:
            raise ValueError(f"there is a {self._what} {name!r} already")
        self._things[name] = thing
        return thing

    def __getitem__(self, name: str) -> Thing:
        """Returns the object of a name, or raises `UnknownNameError`."""
        self._search()
        if name in self._things:
            return self._things[name]
        near = difflib.get_close_matches(name, self._things, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UnknownNameError(
            f"no {self._what} {name!r}{hint}: there are {', '.join(self._things)}"
        )

    def __contains__(self, name: object) -> bool:
        self._search()
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        self._search()
        return iter(list(self._things))

    def __len__(self) -> int:
        self._search()
        return len(self._things)

    def _search(self) -> None:
        """Imports the package's modules, the first time."""
        if self._searched:
            return
        self._searched = True  # First: a module may look into the registry.
        try:
            package = importlib.import_module(self._package)
            for name in sorted(
                found.name for found in pkgutil.iter_modules(package.__path__)
            ):
                importlib.import_module(f"{self._package}.{name}")
        except BaseException:
            self._searched = False  # Who asks again is told of the error again.
            raise
