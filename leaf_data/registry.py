"""The data sets by name. To add one, write its module: see `dataset.Dataset`."""

from __future__ import annotations

from typing import Any

from leaf_data.dataset import Dataset
from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset
from leaf_data.formats.places import Folder
from leaf_data.registration import Registry, UnknownNameError

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
    """Returns the names that `load` knows, sorted."""
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
            `digits5k` and the drawn stand-ins need none.
        cache_dir: the folder in which to keep what is converted once, for data sets
            that keep a cache; by default it is beside the data.
        **options: the data set's own settings by name, and `seed`. They are the
            fields of its class, which documents them: for `mnist`, say, that is
            `leaf_data.datasets.mnist.Mnist`, with `partition` ("iid" or "noniid").

    Returns:
        The data set. The same arguments give the same one, to the byte.

    Raises:
        DataError: there is no such data set or option, or its files are missing or
            unusable.
    """
    try:
        kind = DATASETS[name]
    except UnknownNameError as error:
        raise DataError(str(error)) from error
    try:
        dataset = kind.of_options(**options)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    if cache_dir is not None and not kind.cached:
        raise DataError(f"{name}: keeps no cache, so it takes no cache_dir")
    return dataset.load(data_dir, cache_dir)
