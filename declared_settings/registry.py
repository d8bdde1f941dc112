"""Registries: objects by name, found by importing the modules of a package."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Collection, Iterator, Mapping
from typing import Generic, TypeVar

Thing = TypeVar("Thing")
Names = Collection[str]


def unknown_name_message(
    what: str, name: str, known: Names, candidates: Names | None = None
) -> str:
    """Returns the message for an unknown name, with all names and the nearest one.

    The nearest is searched among `candidates`, by default among all names.
    """
    closest = difflib.get_close_matches(
        str(name), known if candidates is None else candidates, 1
    )
    hint = f" (did you mean {closest[0]}?)" if closest else ""
    return f"unknown {what} {name!r}{hint}; known: {', '.join(known)}"


class UnknownNameError(ValueError):
    """Raised for an unknown name; the message has all names and the nearest one."""


class Registry(Mapping[str, Thing], Generic[Thing]):
    """A mapping from names to objects, found by importing the modules of packages.

    A module of a package calls `register` when it is imported, and so does a
    module from outside that a user imports. The package's modules are imported
    when the registry is first read.

        MODELS: Registry[Model] = Registry("model", "tff_pmc.models")
        MODELS.register("mnist_cnn", mnist_cnn)
        MODELS["mnist_cnn"]
    """

    def __init__(self, what: str, *packages: str) -> None:
        """Creates a registry of `what`, e.g. "model", for the modules of packages."""
        self._what, self._packages = what, packages
        self._things: dict[str, Thing] = {}
        self._searched = not packages

    def register(self, name: str, thing: Thing) -> Thing:
        """Registers an object; raises a `ValueError` if another has the name."""
        if self._things.get(name, thing) is not thing:
            raise ValueError(
                f"the {self._what} {name!r} already exists: choose another name"
            )
        self._things[name] = thing
        return thing

    def __getitem__(self, name: str) -> Thing:
        """Returns the object with a name, or raises an `UnknownNameError`."""
        self._search()
        if name in self._things:
            return self._things[name]
        raise UnknownNameError(unknown_name_message(self._what, name, self._things))

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
        """Imports the packages' modules, once."""
        if self._searched:
            return
        self._searched = True  # First: a module may read the registry.
        try:
            for name in self._packages:
                package = importlib.import_module(name)
                for module in pkgutil.iter_modules(package.__path__):  # By their names.
                    importlib.import_module(f"{name}.{module.name}")
        except BaseException:
            self._searched = False  # The next search raises the error again.
            raise
