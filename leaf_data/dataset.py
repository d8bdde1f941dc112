"""The class of all data sets, and the data sets by name."""

from __future__ import annotations

import abc
import dataclasses
import re
from typing import Any, ClassVar, TypeVar

from declared_settings import (
    SEED,
    Registry,
    SettingError,
    Settings,
    setting,
    unknown_name_message,
)
from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset
from leaf_data.formats.data_files import Folder

Kind = TypeVar("Kind", bound="Dataset")


@dataclasses.dataclass(frozen=True)
class Dataset(Settings, abc.ABC):
    """A data set that can be loaded: its settings, and how it is read.

    A data set is a class derived from this one, in a separate module that registers
    it: `docs/extend.md` has a whole one. In the folder `leaf_data/datasets` it is found
    by itself; a module that is elsewhere has to be imported before the data set is
    asked for. A setting is a field (`leaf_data.setting`), and is checked.

    Attributes:
        cached: whether it keeps a cache, so that a `cache_dir` may be given.
        reads_folder: whether it reads a folder, so that a `data_dir` may be given.
        seed: the seed of all that it draws.
    """

    cached: ClassVar[bool] = False
    reads_folder: ClassVar[bool] = True

    seed: int = setting(
        0,
        "The seed of the partition into clients, and of all else that is drawn when "
        "the data is loaded.",
        flag="partition_seed",
        within=SEED,
    )

    @abc.abstractmethod
    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set, cut into clients.

        Args:
            data_dir: the folder that holds the files, itself or in a subfolder named
                like the data set; None where the user names none.
            cache_dir: the folder in which to keep the cache, if it keeps one; None
                for a place that it chooses.

        Raises:
            DataError: files are missing or unusable, or the settings leave nothing.
        """

    def options(self) -> dict[str, Any]:
        """Returns the settings by name, the seed last, for `FederatedDataset.options`.

        Each value is of the declared type, so that it can be written as JSON.
        """
        values = {s.name: s.kind(getattr(self, s.name)) for s in self.declared()}
        values["seed"] = values.pop("seed")
        return values

    @classmethod
    def from_options(cls: type[Kind], **options: Any) -> Kind:
        """Returns the data set with these settings, by name, and defaults elsewhere.

        Raises:
            DataError: there is no such setting, or its value cannot be. The message
                calls settings by their names, not by their flags.
        """
        names = {declared.flag: declared.name for declared in cls.declared()}
        for name in options:
            if name not in names.values():
                # An option of another data set is no slip of the pen for any other.
                declarations = (
                    declared
                    for kind in DATASETS.values()
                    for declared in kind.declared()
                )
                namesakes = [
                    declared for declared in declarations if declared.name == name
                ]
                similar = [
                    s.name
                    for s in cls.declared()
                    if all(map(s.accepts_same_values, namesakes))
                ]
                raise DataError(
                    unknown_name_message("option", name, names.values(), similar)
                )
        try:
            dataset = cls(**options)
            dataset.check_given([f for f, name in names.items() if name in options])
            return dataset
        except SettingError as error:
            words = re.sub(r"--(\w+)", lambda m: names.get(m[1], m[0]), str(error))
            raise DataError(words) from error


DATASETS: Registry[type[Dataset]] = Registry("data set", "leaf_data.datasets")
"""The classes of the data sets, found in the modules of `leaf_data/datasets`."""


def register(name: str, dataset: type[Dataset]) -> None:
    """Makes a data set known by a name, for `load` and for the command line.

    Args:
        name: the name that `load` is given.
        dataset: the class of the data set.

    Raises:
        ValueError: another data set has the name.
    """
    DATASETS.register(name, dataset)


def names() -> tuple[str, ...]:
    """Returns the names that `load` takes, sorted.

    Examples:
        >>> "mnist" in names()
        True
    """
    return tuple(sorted(DATASETS))


def load(
    name: str,
    data_dir: Folder | None = None,
    *,
    cache_dir: Folder | None = None,
    **options: Any,
) -> FederatedDataset:
    """Loads a data set, cut into clients.

    Args:
        name: one of `names()`.
        data_dir: the folder that holds the files, itself or in a subfolder named
            like the data set. Without it the folder named by the environment
            variable `TFF_PMC_DATA_DIR`, then what the data set falls back to.
            `digits5k` and `store` take none.
        cache_dir: the folder in which to keep what is converted once, for data sets
            that keep a cache; by default it is in the data's folder.
        **options: the data set's settings by name, and `seed`. They are the
            fields of its class, which documents them: for `mnist`, say, that is
            `leaf_data.datasets.mnist.Mnist`, with `partition` ("iid" or "noniid").

    Returns:
        The data set. The same arguments give the same one, to the byte.

    Raises:
        DataError: there is no such data set or option, or its files are missing or
            unusable.

    Examples:
        >>> data = load("digits5k", partition="noniid", seed=3)
        >>> len(data.client_ids), data.train_examples.x.shape[1:]
        (100, (28, 28))
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise DataError(unknown_name_message("data set", name, DATASETS))
    kind = DATASETS[name]
    try:
        dataset = kind.from_options(**options)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    if cache_dir is not None and not kind.cached:
        raise DataError(f"{name}: keeps no cache: leave cache_dir out")
    if data_dir is not None and not kind.reads_folder:
        raise DataError(f"{name}: reads no folder: leave data_dir out")
    return dataset.load(data_dir, cache_dir)
