"""`cifar10`: 60,000 small photographs of ten kinds of things (Krizhevsky 2009).

Dealt as "Dual-Criterion Model Aggregation" (Zhang, Yu, Westerlund 2024) does for its
Table IV: the five training batches are four clients and the server's evaluation set.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
from typing import Any

import numpy as np

from declared_settings import ABOVE_0_TO_1, SettingError, setting
from leaf_data import partition
from leaf_data.dataset import register
from leaf_data.datasets.partitioned import DealtDataset, Partitioned
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import SERVER, FederatedDataset, Origin
from leaf_data.formats import data_files, image_folder
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import PHOTOGRAPH

# The names of the labels 0 to 9, which are sorted.
CLASSES = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
# The MD5s of the published python batches: the clients', the server's, the test set's.
_BATCHES = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
_BATCH_FOLDER = "cifar-10-batches-py"
_BATCH_SIZE, _SIDE = 10_000, 32
# Separate streams: how many images are used does not change the test cut's draw.
_DEAL_STREAM, _FRACTION_STREAM, _CUT_STREAM = 1000, 1001, 1002


@dataclasses.dataclass(frozen=True)
class Cifar10(DealtDataset):
    """CIFAR-10, in which each batch is a client and the fifth is the server's.

    The test images are shuffled so that the classes take turns and cut into equal
    parts, one a client. With 3 clients the fourth batch is unused. Image folders do not
    tell which batch an image was in: there the batches are dealt from the seed, 1,000
    images of each class in every batch.
    """

    cached = True

    image_fraction: float = setting(
        1.0,
        "The fraction of CIFAR-10's images that is used of each batch and of the test "
        "set, by class, for quick trials.",
        within=ABOVE_0_TO_1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_clients not in (0, 3, 4):
            raise SettingError(
                "--num_clients must be 3 or 4, or 0 for the experiment's number, got "
                f"{self.num_clients}"
            )

    def to_record(self) -> dict[str, Any]:
        """Returns the values by flag, the number of clients always among them."""
        return {"num_clients": self.num_clients, **super().to_record()}

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [32, 32, 3] RGB; y as in `CLASSES`.

        It looks for the python batches, in `cifar-10-batches-py` or right there, then
        for image folders (`train/airplane/*.png`, `test/airplane/*.png` and so on).
        """
        num_clients = self.num_clients or 4
        x, y, rows, origin = _read(data_dir, self.seed, cache_dir)
        random = partition.random_state(self.seed, _FRACTION_STREAM)
        split = partition.split_classes
        *batches, test = (
            batch[split(y[batch], self.image_fraction, random)[0]] for batch in rows
        )
        if not all(map(len, (*batches, test))):
            words = f"image_fraction={self.image_fraction} keeps no image of a batch"
            raise DataError(f"cifar10: {words}")
        ids = tuple(f"C{number}" for number in range(1, num_clients + 1))
        random = partition.random_state(self.seed, _CUT_STREAM)
        test_parts = partition.equal_parts(test, y, num_clients, random)
        return FederatedDataset(
            "cifar10",
            Examples.from_parts(x, y, batches[:num_clients], ids),
            Examples.from_parts(x, y, test_parts, ids),
            num_classes=len(CLASSES),
            pixel_convention=PHOTOGRAPH,
            origin=origin,
            options={**self.options(), "num_clients": num_clients},
            server_examples=Examples.from_parts(x, y, [batches[-1]], [SERVER]),
            class_names=CLASSES,
        )


@dataclasses.dataclass(frozen=True)
class Cifar10Dealt(Partitioned):
    """CIFAR-10, its 50,000 training images dealt to 100 clients, or another number.

    The classes take turns in the test images, of which client i has the i-th hundred.
    """

    cached = True

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set, from `Cifar10`'s files; the server has no examples."""
        x, y, (*batches, test), origin = _read(data_dir, self.seed, cache_dir)
        # Only how the images are dealt depends on the seed, and that follows here.
        train = np.sort(np.concatenate(batches))
        random = partition.random_state(self.seed, _CUT_STREAM)
        test = test[partition.mixed_classes(y[test], random)]
        training, testing = ((x[part], y[part]) for part in (train, test))
        origin = dataclasses.replace(origin, source=origin.source.partition(",")[0])
        data = self._build_federation(
            "cifar10_dealt", training, testing, origin, PHOTOGRAPH
        )
        return dataclasses.replace(data, class_names=CLASSES)


register("cifar10", Cifar10)
register("cifar10_dealt", Cifar10Dealt)


def _read(data_dir: Folder | None, seed: int, cache_dir: Folder | None) -> Any:
    """Returns images, labels, the rows of the batches and the test set, the origin."""
    folders = data_files.folders("cifar10", data_dir)
    for folder in folders:
        for sub in (os.path.join(folder, _BATCH_FOLDER), folder):
            if any(os.path.isfile(os.path.join(sub, name)) for name in _BATCHES):
                return _from_batches(sub)
        if os.path.isdir(os.path.join(folder, "train")):
            return _from_images(folder, seed, cache_dir)
    words = f"{_BATCH_FOLDER}/data_batch_1 and train/{CLASSES[0]}"
    raise data_files.missing("cifar10", folders, words)


def _from_batches(folder: str) -> Any:
    images, labels, paths = [], [], [os.path.join(folder, name) for name in _BATCHES]
    for path, (name, md5) in zip(paths, _BATCHES.items()):
        content = data_files.read(path)
        if hashlib.md5(content).hexdigest() != md5:  # A pickle runs what it says.
            raise DataError(f"{path}: is not CIFAR-10's {name}, MD5 {md5}")
        batch = pickle.loads(content, encoding="bytes")
        images.append(batch[b"data"].reshape(_BATCH_SIZE, 3, _SIDE, _SIDE))
        labels += batch[b"labels"]
    x = np.ascontiguousarray(np.moveaxis(np.concatenate(images), 1, -1))
    rows = np.split(np.arange(len(x)), len(paths))
    return (
        x,
        np.array(labels, np.int32),
        rows,
        Origin.from_files("python batches", paths),
    )


def _from_images(folder: str, seed: int, cache_dir: Folder | None) -> Any:
    sets = {"train": _BATCH_SIZE // 2, "test": _BATCH_SIZE // 10}
    expected = {f"{part}/{name}": n for part, n in sets.items() for name in CLASSES}
    for name, count in expected.items():  # Before a minute is spent on decoding.
        path = os.path.join(folder, name)
        if (num_images := len(image_folder.find(path))) != count:
            raise DataError(f"{path}: holds {num_images} images, not {count}")
    x, sha256, of_folder = image_folder.read(
        "cifar10", folder, list(expected), _SIDE, cache_dir, resize=False
    )
    y, num_train = of_folder % len(CLASSES), 5 * _BATCH_SIZE
    random = partition.random_state(seed, _DEAL_STREAM)
    order = partition.mixed_classes(y[:num_train], random)
    rows = [*np.array_split(order, 5), np.arange(num_train, len(y))]
    files = (("train and test", sha256),)
    origin = Origin("image folders, the batches dealt at random", files, folder)
    return x, y, rows, origin
