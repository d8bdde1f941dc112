"""The data sets by name. To add one: write its module, add its line here.

A loader is a function `load(data_dir=None, *, option=default, ...)` that returns
a `FederatedDataset`; its keyword-only parameters are the data set's options. Its
module is imported only when the data set is asked for.
"""

from __future__ import annotations

import importlib
import inspect
import os
from typing import Any

from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset

_LOADERS = {
    "digits5k": "leaf_data.digits5k",
    "mnist": "leaf_data.mnist",
    "femnist": "leaf_data.femnist",
    "celeba": "leaf_data.celeba",
    "drawn_faces": "leaf_data.drawn_faces",
    "mnist_adafed": "leaf_data.adafed",
    "cifar10": "leaf_data.cifar10",
    "obstacles": "leaf_data.obstacles",
    "drawn_obstacles": "leaf_data.drawn_obstacles",
}


def names() -> tuple[str, ...]:
    """Returns the names `load` knows, the embedded default first."""
    return tuple(_LOADERS)


def load(
    name: str,
    data_dir: str | os.PathLike | None = None,
    **options: Any,
) -> FederatedDataset:
    """Loads a data set, cut into clients.

    Args:
        name: one of `names()`.
        data_dir: the folder that holds the files, itself or in a subfolder named
            like the data set. Without it the folder named by the environment
            variable `TFF_PMC_DATA_DIR`, then what the data set falls back to.
            `digits5k` needs none.
        **options: the data set's own, see the `load` of its module: `digits5k` and
            `mnist` take `partition` ("iid" or "noniid") and `seed`; `femnist` takes
            `source`, `sample_fraction`, `min_samples`, `seed` and `cache_dir`;
            `celeba` takes `client_rule`, `source`, `missing_images`, `seed` and
            `cache_dir`; `drawn_faces` takes `client_rule`, `num_identities`,
            `images_per_identity` and `seed`; `mnist_adafed` takes `simulation`,
            `num_clients`, `mislabeled_fraction`, `num_adversaries`,
            `images_per_client`, `server_set` and `seed`; `cifar10` takes
            `num_clients`, `image_fraction`, `seed` and `cache_dir`; `obstacles` takes
            `seed` and `cache_dir`; `drawn_obstacles` takes `pictures` and `seed`.

    Returns:
        The data set. The same arguments give the same one, to the byte.

    Raises:
        DataError: no such data set or option; files missing or unusable.
    """
    if name not in _LOADERS:
        raise DataError(f"no data set {name!r}: there are {', '.join(names())}")
    loader = importlib.import_module(_LOADERS[name]).load
    known = [
        parameter.name
        for parameter in inspect.signature(loader).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for option in options:
        if option not in known:
            raise DataError(
                f"{name} has no option {option!r}: there are {', '.join(known)}"
            )
    return loader(data_dir, **options)
