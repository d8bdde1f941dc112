"""`mnist`: the 60,000 + 10,000 digits of LeCun, Cortes and Burges.

Partitions as in "Prioritized Multi-Criteria Federated Learning", section 5: 100
clients with 600 training and 100 test images each.
"""

from __future__ import annotations

import logging
import os

import numpy as np

from leaf_data import idx, places
from leaf_data import partition as partitions
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import WHITE_ON_BLACK, FederatedDataset, Origin

_NUM_CLIENTS = 100
_SHAPES = {
    "x_train": (60000, 28, 28),
    "y_train": (60000,),
    "x_test": (10000, 28, 28),
    "y_test": (10000,),
}
_IDX_NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
_NPZ_NAME = "mnist.npz"
# As in keras.datasets.mnist, which reads the file with pickle allowed: so only
# Keras's download and cache are used, not its reader.
_KERAS_URL = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"
_KERAS_SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"


def load(
    data_dir: str | os.PathLike | None = None,
    *,
    partition: str = "iid",
    seed: int = 0,
) -> FederatedDataset:
    """Loads MNIST, in 100 clients.

    It is looked for as `read` says. Client i's test set is test images 100 i ..
    100 i + 99 in file order, under either partition and any seed.

    Args:
        data_dir: the folder.
        partition: "iid", or "noniid": sorted shards, 200 of 300 images, two a
            client. Nine shards hold two digits, so a client has 1 to 4 labels (the
            paper says two at most); see `partition.sorted_shards`.
        seed: of the partition, 0 to 2**32 - 1.

    Returns:
        The data set: x uint8 [28, 28], 0 = background; ten classes.

    Raises:
        DataError: no data found; a file is truncated, corrupt or not MNIST's; no
            such partition or seed.
    """
    # Before seconds are spent on files.
    partitions.by_name(partition, np.zeros(_NUM_CLIENTS * 2), _NUM_CLIENTS, seed)
    arrays, origin = read(data_dir)
    ids = partitions.client_ids(_NUM_CLIENTS)
    parts = partitions.by_name(partition, arrays["y_train"], _NUM_CLIENTS, seed)
    test_parts = partitions.consecutive(len(arrays["y_test"]), _NUM_CLIENTS)
    return FederatedDataset(
        name="mnist",
        train_examples=Examples.from_parts(
            arrays["x_train"], arrays["y_train"], parts, ids
        ),
        test_examples=Examples.from_parts(
            arrays["x_test"], arrays["y_test"], test_parts, ids
        ),
        num_classes=10,
        pixel_convention=WHITE_ON_BLACK,
        origin=origin,
        options={"partition": partition, "seed": int(seed)},
    )


def read(
    data_dir: str | os.PathLike | None,
) -> tuple[dict[str, np.ndarray], Origin]:
    """Finds and reads the images and labels, in file order.

    They are looked for in `data_dir` and its subfolder `mnist`: first the four idx
    files (`train-images-idx3-ubyte.gz` and so on, or unpacked), then `mnist.npz`.
    Without a `data_dir` the folder named by `TFF_PMC_DATA_DIR` is searched so, then
    Keras's cache, then Keras downloads it (11 MB; the only case in which loading
    imports TensorFlow). With a `data_dir` nothing is ever downloaded.

    Args:
        data_dir: the folder.

    Returns:
        `x_train` uint8 [60000, 28, 28], `y_train` uint8 [60000], and `x_test` and
        `y_test` of 10,000; and where they came from.

    Raises:
        DataError: no data found; a file is truncated, corrupt or not MNIST's.
    """
    folders = places.folders("mnist", data_dir)
    for folder in folders:
        paths = {key: idx.find(folder, name) for key, name in _IDX_NAMES.items()}
        if all(paths.values()):
            arrays = {key: idx.read(paths[key], _SHAPES[key]) for key in _SHAPES}
            return arrays, _origin("idx files", list(paths.values()))
        npz = os.path.join(folder, _NPZ_NAME)
        if os.path.isfile(npz):
            return _from_npz(npz, "npz file")
    if data_dir is not None:
        raise DataError(f"mnist: no data in {_looked_for(folders)}")
    cached = os.path.join(os.path.expanduser("~"), ".keras", "datasets", _NPZ_NAME)
    if os.path.isfile(cached):
        return _from_npz(cached, "Keras's cache")
    logging.getLogger(__name__).warning("MNIST: downloading %s", _KERAS_URL)
    try:
        downloaded = _download()
    except Exception as error:  # Keras raises plain Exceptions.
        reason = " ".join(str(error).split()) or type(error).__name__
        where = _looked_for(folders) if folders else f"{cached} (Keras's cache)"
        raise DataError(
            f"mnist: no data in {where}, and Keras could not download it "
            f"({reason}): pass data_dir or set "
            f"{places.ENVIRONMENT_VARIABLE} to the folder that holds the idx files or "
            f"{_NPZ_NAME}"
        ) from error
    return _from_npz(downloaded, "Keras's download")


def _download() -> str:
    """Lets Keras fetch the file into its cache and check it; returns its path."""
    import tensorflow as tf

    return tf.keras.utils.get_file(
        _NPZ_NAME, origin=_KERAS_URL, file_hash=_KERAS_SHA256
    )


def _from_npz(path: str, source: str) -> tuple[dict[str, np.ndarray], Origin]:
    return idx.read_npz(path, _SHAPES), _origin(source, [path])


def _origin(source: str, paths: list[str]) -> Origin:
    files = tuple((os.path.basename(path), places.sha256(path)) for path in paths)
    return Origin(source=source, files=files, folder=os.path.dirname(paths[0]))


def _looked_for(folders: tuple[str, ...]) -> str:
    """What was looked for and where; of a half-complete set, what is missing."""
    text = (
        f"{' or '.join(folders)}: looked for {', '.join(_IDX_NAMES.values())} "
        f"(.gz or unpacked) and {_NPZ_NAME}"
    )
    for folder in folders:
        missing = [n for n in _IDX_NAMES.values() if not idx.find(folder, n)]
        if len(missing) < len(_IDX_NAMES):
            text += f"; {folder} lacks {', '.join(missing)}"
    return text
