"""The base class of data sets, and the registry of data sets by name."""

from __future__ import annotations

import abc
import dataclasses
import re
from typing import Any, ClassVar, TypeVar

from declared_settings import (
    SEED,
    Range,
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
# Not `AT_LEAST_0`, so that hints for a wrong number of clients do not name it.
_NUM_EXAMPLES = Range(lambda n: n >= 0, "0 or more")


@dataclasses.dataclass(frozen=True)
class Dataset(Settings, abc.ABC):
    """Base class of data sets: the settings of one, and how it is loaded.

    A data set is a class derived from this one, in a separate module that registers
    it: `docs/extend.md` has an example. A module in the folder `leaf_data/datasets` is
    found automatically; any other module has to be imported before the data set is
    loaded. A setting is a field (`leaf_data.setting`), and is checked.

    Attributes:
        cached: whether it keeps a cache, so that a `cache_dir` may be given.
        reads_folder: whether it reads a folder, so that a `data_dir` may be given.
        seed: the seed of everything that it draws.
        max_client_examples: the maximum number of training examples of a client; 0, the
            default, keeps all.
    """

    cached: ClassVar[bool] = False
    reads_folder: ClassVar[bool] = True

    seed: int = setting(
        0,
        "The seed of the partition into clients, and of all other random draws when "
        "the data is loaded.",
        flag="partition_seed",
        within=SEED,
    )
    max_client_examples: int = setting(
        0,
        "The maximum number of training examples of a client; from a client with more, "
        "this number is drawn, once, by the partition's seed. 0 keeps all.",
        within=_NUM_EXAMPLES,
        omit_default=True,
    )

    @abc.abstractmethod
    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set, divided into clients.

        Args:
            data_dir: the folder that holds the files, itself or in a subfolder named
                like the data set; None if the user names none.
            cache_dir: the folder of the cache, if it keeps one; None for a folder that
                it chooses.

        Raises:
            DataError: files are missing or unusable, or the settings leave nothing.
        """

    def load_limited(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns what `load` does, with at most `max_client_examples` of each client.

        Only training examples are drawn; all test examples remain.
        """
        data = self.load(data_dir, cache_dir)
        examples, limit = data.train_examples, self.max_client_examples
        if not limit or examples.sizes.max() <= limit:
            return data
        return dataclasses.replace(
            data,
            train_examples=examples.limit(limit, self.seed),
            options={**data.options, "max_client_examples": limit},
        )

    def options(self) -> dict[str, Any]:
        """Returns the settings by name, the seed last, for `FederatedDataset.options`.

        Each value is of the declared type, so that it can be written as JSON.
        `load_limited` adds `max_client_examples`.
        """
        values = {s.name: s.kind(getattr(self, s.name)) for s in self.declared()}
        del values["max_client_examples"]
        values["seed"] = values.pop("seed")
        return values

    @classmethod
    def from_options(cls: type[Kind], **options: Any) -> Kind:
        """Builds the data set with these settings, by name, and defaults for others.

        Raises:
            DataError: a setting is unknown, or its value invalid. The message calls
                settings by their names, not by their flags.
        """
        names = {declared.flag: declared.name for declared in cls.declared()}
        for name in options:
            if name not in names.values():
                # Suggest only options with the same values: another data set's option
                # is not a typo.
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
    """Registers a data set by name, for `load` and for the command line.

    Args:
        name: the name that `load` takes.
        dataset: the class of the data set.

    Raises:
        ValueError: another data set has the name.
    """
    DATASETS.register(name, dataset)


def names() -> tuple[str, ...]:
    """Returns the names of the data sets, sorted.

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
    """Loads a data set, divided into clients.

    Args:
        name: one of `names()`.
        data_dir: the folder that holds the files, itself or in a subfolder named
            like the data set. Without it the folder named by the environment
            variable `TFF_PMC_DATA_DIR`, then the data set's fallback. `digits5k` and
            `store` read no folder.
        cache_dir: the folder of the converted data, for data sets that keep a cache; by
            default in the data's folder.
        **options: the data set's settings by name, and `seed`. They are the
            fields of its class, which documents them: for `mnist`, say, that is
            `leaf_data.datasets.mnist.Mnist`, with `partition` ("iid" or "noniid").

    Returns:
        The data set. The same arguments give the same bytes.

    Raises:
        DataError: the data set or an option is unknown, or its files are missing or
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
        raise DataError(f"{name}: keeps no cache: remove cache_dir")
    if data_dir is not None and not kind.reads_folder:
        raise DataError(f"{name}: reads no folder: remove data_dir")
    return dataset.load_limited(data_dir, cache_dir)
