"""`femnist`: handwritten characters; each writer is a client.

LEAF (Caldas et al. 2018) made it of EMNIST. Its 62 classes are 0-9 the digits, 10-35
A-Z and 36-61 a-z. There are two sources, which are not interchangeable:

  leaf  the JSON files of LEAF's `preprocess.sh`: about 3,600 writers, 818,000 images.
  tff   TFF's `emnist_all.sqlite`: 3,400 writers, 671,585 + 77,483 images.

In both 1.0 is white paper (255 here), and images are upright, 28 rows from the top:
seen of LEAF in real files; of TFF in its documentation and in the synthetic digits it
ships for tests, which are drawn so, and not in its database itself. The labels' order
is the same by LEAF's code and TFF's documentation.

LEAF's `group_by_writer.py` adds the first image of every writer, but the very first,
twice: two equal images in a writer's examples are LEAF's, and a random split puts the
two on either side now and then. They are kept.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from declared_settings import ABOVE_0_TO_1, AT_LEAST_0, setting
from leaf_data import leaf_clients, partition
from leaf_data.dataset import Dataset, register
from leaf_data.datasets import femnist_leaf
from leaf_data.datasets.femnist_leaf import NUM_CLASSES, SIDE
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset
from leaf_data.formats import data_files, tff_sqlite
from leaf_data.formats.cache import Arrays
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import BLACK_ON_WHITE


@dataclasses.dataclass(frozen=True)
class Femnist(Dataset):
    """FEMNIST, in which each writer is a client.

    The first load converts all files into a cache (see `cache.load_or_make`), which
    later loads read whatever their settings. The settings then apply in LEAF's order:
    sample, remove, split. LEAF's data that is already split stays so; other data is
    split by sample, 90 to 10, and writers with fewer than 2 images are excluded.

    `sample_fraction` is LEAF's `-s niid --sf`: below 1, whole writers are taken from
    each file (TFF's database counts as one) until the fraction is reached, see
    `partition.leaf_sample`. If the last writer is already split, both parts are cut in
    proportion. LEAF's seeds give other writers. `min_samples` is LEAF's `-k`: a
    writer's images in train and test are counted together, after sampling.

    Clients are in the order of the files' numbers, then of each file's `users`, which
    sampling thins but does not reorder; for "tff" they are sorted by id.
    """

    cached = True

    source: str = setting(
        "leaf",
        "Where FEMNIST is read from: LEAF's JSON, or TFF's emnist_all.sqlite.",
        flag="femnist_source",
        choices=("leaf", "tff"),
    )
    sample_fraction: float = setting(
        1.0,
        "The fraction of FEMNIST to use, by LEAF's niid rule (preprocess.sh --sf).",
        within=ABOVE_0_TO_1,
    )
    min_samples: int = setting(
        0,
        "FEMNIST's writers with fewer images are excluded (preprocess.sh -k).",
        within=AT_LEAST_0,
    )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [28, 28], 255 = white paper; 62 classes.

        A client may have only train or only test examples, where the source has it so.

        "leaf" is looked for by `leaf_json.find`, "tff" as `emnist_all.sqlite` or
        `.sqlite.lzma`. Without a `data_dir`, and where the folder of
        `TFF_PMC_DATA_DIR` has no database, "tff" falls back to TFF's cache and
        download.
        """
        folders = data_files.folders("femnist", data_dir)
        if self.source == "leaf":
            arrays, origin = leaf_clients.load_cached(
                "femnist", folders, femnist_leaf.read, cache_dir
            )
        else:
            arrays, origin = tff_sqlite.load(
                DATABASE, folders, cache_dir, data_dir is None
            )
        train, test = self._train_and_test(arrays, origin.folder)
        return FederatedDataset(
            "femnist",
            train,
            test,
            num_classes=NUM_CLASSES,
            pixel_convention=BLACK_ON_WHITE,
            origin=origin,
            options=self.options(),
            class_names=tuple(string.digits + string.ascii_uppercase)
            + tuple(string.ascii_lowercase),
        )

    def _train_and_test(self, arrays: Arrays, folder: str) -> list[Examples]:
        """Samples writers, removes small ones, and splits examples not yet split."""
        is_split = "x_all" not in arrays
        names = tff_sqlite.PARTS if is_split else ("all",)
        parts = [Examples.from_arrays(arrays, name) for name in names]
        sizes = np.stack([part.sizes for part in parts], axis=1)
        taken = sizes.sum(axis=1)  # Of each writer.
        least = 0 if is_split else 2
        if self.sample_fraction < 1:
            files = arrays.get("files", np.zeros(len(taken), np.int64))
            taken = partition.leaf_sample(taken, files, self.sample_fraction, self.seed)
            least = max(least, 1)
        users = np.flatnonzero(taken >= max(least, self.min_samples))
        if not len(users):
            raise DataError(
                f"femnist: no writer in {folder} is left with "
                f"sample_fraction={self.sample_fraction} and "
                f"min_samples={self.min_samples}: raise the fraction or lower "
                "min_samples"
            )
        if not is_split:
            ids = parts[0].client_ids
            splits = [
                partition.leaf_split(ids[k], int(taken[k]), self.seed) for k in users
            ]
            return [_gather(parts[0], users, rows) for rows in zip(*splits)]
        if len(users) == len(taken) and self.sample_fraction == 1:
            return parts  # All of them, and no copy of them.
        counts = partition.leaf_cut(sizes, taken)[users].T
        return [
            _gather(part, users, map(np.arange, sizes_in_part))
            for part, sizes_in_part in zip(parts, counts)
        ]


register("femnist", Femnist)


def _download(folder: str) -> Any:
    import tensorflow_federated as tff

    tff.simulation.datasets.emnist.load_data(only_digits=False, cache_dir=folder)


def _convert(features: Arrays) -> Arrays:
    y = features["label"]
    if not ((0 <= y) & (y < NUM_CLASSES)).all():
        raise DataError(f"a label that is not one of 0 to 61: {y.min()} to {y.max()}")
    return {"x": femnist_leaf.to_bytes(features["pixels"]), "y": y.astype(np.int32)}


DATABASE = tff_sqlite.Database(
    dataset="femnist",
    file="emnist_all.sqlite",
    title="TFF's EMNIST",
    # As `tff.simulation.datasets.emnist.load_data(only_digits=False)` names them.
    splits=("all_train", "all_test"),
    features={"pixels": ((SIDE * SIDE,), "float32"), "label": ((), "int64")},
    convert=_convert,
    download=_download,
)


def _gather(
    examples: Examples, users: npt.NDArray[np.int64], rows: Iterable[partition.IntArray]
) -> Examples:
    """Returns these users' examples, of each the rows counted from the user's first."""
    parts = [examples.row_splits[k] + chosen for k, chosen in zip(users, rows)]
    ids = [examples.client_ids[k] for k in users]
    return Examples.from_parts(examples.x, examples.y, parts, ids)
