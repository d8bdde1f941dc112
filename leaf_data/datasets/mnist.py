"""`mnist`: the 60,000 + 10,000 digits of LeCun, Cortes and Burges.

"Prioritized Multi-Criteria Federated Learning" (PMC, section 5.1) partitions it in
McMahan's two ways. How many clients and images it has is not printed: 100 clients with
600 training images each are McMahan's, and 100 test images are those of the authors'
published code.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.dataset import register
from leaf_data.datasets.partitioned import Partitioned
from leaf_data.errors import DataError, error_summary
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.formats import data_files, idx
from leaf_data.formats.data_files import Folder

Arrays = dict[str, npt.NDArray[np.uint8]]

# The idx files, by the names of the arrays in `mnist.npz`.
_IDX_NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
_SHAPES: dict[str, tuple[int, ...]] = {
    "x_train": (60000, 28, 28),
    "y_train": (60000,),
    "x_test": (10000, 28, 28),
    "y_test": (10000,),
}
_NPZ_NAME = "mnist.npz"
# As in keras.datasets.mnist, which reads the file with pickle allowed: so only
# Keras's download and cache are used, not its reader.
_KERAS_URL = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"
_KERAS_SHA256 = "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"


@dataclasses.dataclass(frozen=True)
class Mnist(Partitioned):
    """MNIST, in 100 clients or another number of them.

    Of 100, client i's test set is test images 100 i .. 100 i + 99 in file order, under
    any partition and seed. The partition "noniid" has 200 shards of 300 images, nine of
    which hold two digits, so a client has 1 to 4 labels (the paper says two at most);
    see `partition.sorted_shards`.
    """

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [28, 28], 0 = background; ten classes."""
        arrays, origin = read(data_dir)
        train, test = ((arrays[f"x_{p}"], arrays[f"y_{p}"]) for p in ("train", "test"))
        return self._build_federation("mnist", train, test, origin)


register("mnist", Mnist)


def read(data_dir: Folder | None) -> tuple[Arrays, Origin]:
    """Finds and reads the images and labels, in file order.

    They are looked for in `data_dir` and its subfolder `mnist`: first the four idx
    files (`train-images-idx3-ubyte.gz` and so on, or unpacked), then `mnist.npz`.
    Without a `data_dir` the folder named by `TFF_PMC_DATA_DIR` is searched so, then
    Keras's cache, then Keras downloads it (11 MB; the only case in which loading
    imports TensorFlow). With a `data_dir` nothing is ever downloaded.
    """
    folders = data_files.folders("mnist", data_dir)
    for folder in folders:
        paths = {key: idx.find(folder, name) for key, name in _IDX_NAMES.items()}
        existing = {key: path for key, path in paths.items() if path is not None}
        if len(existing) == len(paths):
            arrays = {key: idx.read(existing[key], _SHAPES[key]) for key in _SHAPES}
            return arrays, Origin.from_files("idx files", list(existing.values()))
        npz = os.path.join(folder, _NPZ_NAME)
        if os.path.isfile(npz):
            return _from_npz(npz, "npz file")
    if data_dir is not None:
        raise _missing_error(folders)
    cached = os.path.join(os.path.expanduser("~"), ".keras", "datasets", _NPZ_NAME)
    if os.path.isfile(cached):
        return _from_npz(cached, "Keras's cache")
    logging.getLogger(__name__).warning("MNIST: downloading %s", _KERAS_URL)
    try:
        downloaded = _download()
    except Exception as error:  # Keras raises plain Exceptions.
        nowhere = f"mnist: no data in {cached} (Keras's cache)"
        raise DataError(
            f"{_missing_error(folders) if folders else nowhere}, and Keras could not "
            f"download it ({error_summary(error)}): pass data_dir or set "
            f"{data_files.ENVIRONMENT_VARIABLE} to the folder that holds the idx files "
            f"or {_NPZ_NAME}"
        ) from error
    return _from_npz(downloaded, "Keras's download")


def _download() -> Any:
    """Lets Keras fetch the file into its cache and check it; returns its path."""
    import tensorflow as tf

    return tf.keras.utils.get_file(
        _NPZ_NAME, origin=_KERAS_URL, file_hash=_KERAS_SHA256
    )


def _from_npz(path: str, source: str) -> tuple[Arrays, Origin]:
    return idx.read_npz(path, _SHAPES), Origin.from_files(source, [path])


def _missing_error(folders: tuple[str, ...]) -> DataError:
    """Builds the error that names the files, or those of them, that are missing."""
    words = f"{', '.join(_IDX_NAMES.values())} (.gz or unpacked) and {_NPZ_NAME}"
    for folder in folders:
        absent = [n for n in _IDX_NAMES.values() if not idx.find(folder, n)]
        if len(absent) < len(_IDX_NAMES):
            words += f"; {folder} lacks {', '.join(absent)}"
    return data_files.missing("mnist", folders, words)
