"""`femnist`: handwritten characters, a client a writer (LEAF; Caldas et al. 2018).

62 classes: 0-9 the digits, 10-35 A-Z, 36-61 a-z. Two sources, not interchangeable:

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

import operator
import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data import femnist_leaf, femnist_tff, leaf_json, partition, places, sampling
from leaf_data.cache import Arrays, cached, key_of_files
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import BLACK_ON_WHITE, FederatedDataset, Origin
from leaf_data.femnist_values import NUM_CLASSES

SOURCES = ("leaf", "tff")
# Part of the key: a cache that another version of the conversion made is not used.
_VERSION = 1


def load(
    data_dir: Union[str, os.PathLike[str], None] = None,
    *,
    source: str = "leaf",
    sample_fraction: float = 1.0,
    min_samples: int = 0,
    seed: int = 0,
    cache_dir: Union[str, os.PathLike[str], None] = None,
) -> FederatedDataset:
    """Loads FEMNIST, a client a writer.

    Without a `data_dir` the folder named by `TFF_PMC_DATA_DIR` counts. It and its
    subfolder `femnist` are searched: for "leaf" as `leaf_json.find` says, for "tff" for
    `emnist_all.sqlite` or `.sqlite.lzma`. Where neither folder is named, or the one of
    `TFF_PMC_DATA_DIR` has no database, "tff" goes on to TFF's own cache and download.

    The first load converts all that is there into a cache (see `cache.cached`), which
    the later ones read whatever their options. The options then apply in LEAF's order:
    sample, remove, split. LEAF's data that is already split stays so; unsplit, it is
    split by sample, 90 to 10, and writers with fewer than 2 images are left out.

    The clients' order is that of the files' numbers, then of each file's `users`, whom
    sampling thins and does not reorder; for "tff" that of the sorted ids.

    Args:
        data_dir: the folder.
        source: "leaf" or "tff".
        sample_fraction: above 0; below 1, LEAF's `-s niid --sf`: from each file (TFF's
            database counts as one) whole writers until the fraction is reached, see
            `sampling.niid`. Of the last writer, if already split, both parts are cut in
            proportion. LEAF's seeds give other writers.
        min_samples: LEAF's `-k`: writers with fewer images, train and test together,
            are removed; after sampling, as in LEAF.
        seed: of the sampling and of the split of unsplit data, 0 to 2**32 - 1.
        cache_dir: where to keep the cache, and TFF's download, instead.

    Returns:
        The data set: x uint8 [28, 28], 255 = white paper; 62 classes. A client may
        have only train or only test examples, where the source has it so.

    Raises:
        DataError: no data found; a file is truncated or not what it should be (the
            message names file and user); no such option; no writer is left.
    """
    _check(source, sample_fraction, min_samples, seed)
    folders = places.folders("femnist", data_dir)
    if source == "leaf":
        arrays, origin = _from_leaf(folders, cache_dir)
    else:
        arrays, origin = femnist_tff.load(
            folders, cache_dir, download=data_dir is None, version=_VERSION
        )
    train, test = _parts(arrays, sample_fraction, min_samples, seed, origin.folder)
    return FederatedDataset(
        name="femnist",
        train_examples=train,
        test_examples=test,
        num_classes=NUM_CLASSES,
        pixel_convention=BLACK_ON_WHITE,
        origin=origin,
        options={
            "source": source,
            "sample_fraction": float(sample_fraction),
            "min_samples": int(min_samples),
            "seed": int(seed),
        },
    )


def _check(source: Any, fraction: Any, min_samples: Any, seed: int) -> None:
    """Refuses options before minutes are spent on files."""
    if source not in SOURCES:
        raise DataError(f"femnist: no source {source!r}: there are leaf, tff")
    number = isinstance(fraction, (int, float)) and not isinstance(fraction, bool)
    if not number or not 0 < fraction <= 1:
        raise DataError(
            f"femnist: sample_fraction has to be in (0, 1], not {fraction!r}"
        )
    try:
        count = operator.index(min_samples)
    except TypeError:
        count = -1
    if count < 0 or isinstance(min_samples, bool):
        raise DataError(
            f"femnist: min_samples has to be an integer from 0, not {min_samples!r}"
        )
    partition.random_state(seed)


def _from_leaf(
    folders: tuple[str, ...], cache_dir: Union[str, os.PathLike[str], None]
) -> tuple[Arrays, Origin]:
    files = leaf_json.find("femnist", folders)
    folder = os.path.dirname(os.path.dirname(files[0].path))
    arrays = cached(
        "femnist",
        folder,
        key_of_files([file.path for file in files], version=_VERSION),
        lambda: femnist_leaf.read(files),
        cache_dir,
    )
    if files[0].part == "all":
        sub = os.path.basename(os.path.dirname(files[0].path))
        source = f"LEAF JSON ({sub}, split here)"
    else:
        source = "LEAF JSON (train and test)"
    digests = zip(arrays["source_names"].tolist(), arrays["source_sha256"].tolist())
    return arrays, Origin(source, tuple(digests), folder)


def _parts(
    arrays: Arrays, fraction: float, min_samples: int, seed: int, folder: str
) -> tuple[Examples, Examples]:
    """The train and the test examples that the options leave."""
    names = ("all",) if "x_all" in arrays else ("train", "test")
    sizes = np.stack([arrays[f"sizes_{name}"] for name in names], axis=1)
    ids = arrays["client_ids"].tolist()
    taken = sizes.sum(axis=1)
    keep = np.ones(len(ids), bool)
    if fraction < 1:
        files = arrays.get("files", np.zeros(len(ids), np.int64))
        taken = sampling.niid(taken, files, fraction, seed)
        keep &= taken > 0
    keep &= taken >= max(min_samples, 2 if names == ("all",) else 0)
    if not keep.any():
        raise DataError(
            f"femnist: no writer in {folder} is left with sample_fraction={fraction} "
            f"and min_samples={min_samples}"
        )
    users = np.flatnonzero(keep)
    if names == ("all",):
        splits = [sampling.split(ids[k], int(taken[k]), seed) for k in users]
        train, test = zip(*splits)
        return _gather(arrays, "all", users, train), _gather(arrays, "all", users, test)
    if keep.all() and fraction == 1:
        # All of them, and no copy of them.
        return _whole(arrays, "train"), _whole(arrays, "test")
    cut = sampling.cut_parts(sizes, taken)
    rows = [[np.arange(count) for count in cut[users, part]] for part in (0, 1)]
    return (
        _gather(arrays, "train", users, rows[0]),
        _gather(arrays, "test", users, rows[1]),
    )


def _whole(arrays: Arrays, part: str) -> Examples:
    sizes = arrays[f"sizes_{part}"]
    return Examples(
        x=arrays[f"x_{part}"],
        y=arrays[f"y_{part}"],
        row_splits=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        client_ids=tuple(arrays["client_ids"].tolist()),
    )


def _gather(
    arrays: Arrays,
    part: str,
    users: npt.NDArray[np.int64],
    rows: Sequence[npt.NDArray[np.int64]],
) -> Examples:
    """These users, of each the rows counted from its own first."""
    sizes = arrays[f"sizes_{part}"]
    starts = np.cumsum(sizes) - sizes
    return Examples.from_parts(
        arrays[f"x_{part}"],
        arrays[f"y_{part}"],
        [starts[k] + chosen for k, chosen in zip(users, rows)],
        arrays["client_ids"][users].tolist(),
    )
