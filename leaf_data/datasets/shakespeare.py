"""`shakespeare`: the next letter of a play; each speaking role is a client.

LEAF (Caldas et al. 2018) made it of Project Gutenberg's Shakespeare, as McMahan et al.
(2017) have it: 80 letters, and the next one. There are two sources:

  leaf  the JSON files of LEAF's `preprocess.sh`.
  tff   TFF's `shakespeare.sqlite`, whose examples are the passages that a role speaks.
        Those of a part are joined into one text and cut into windows by LEAF's rule:
        ends of lines and runs of spaces become one space.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from declared_settings import setting
from leaf_data import leaf_clients, partition
from leaf_data.dataset import Dataset, register
from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset
from leaf_data.formats import data_files, tff_sqlite
from leaf_data.formats.cache import Arrays
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import NO_PIXELS
from leaf_data.text import (
    LETTERS,
    WINDOW,
    Vocabulary,
    cut_windows,
    letter_ids,
    list_unknown,
)

_LOG = logging.getLogger(__name__)
_Arrays = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


@dataclasses.dataclass(frozen=True)
class Shakespeare(Dataset):
    """Shakespeare, in which each speaking role is a client.

    Examples with a letter that is not among LEAF's 80 are excluded; a warning and the
    origin have their number and the letters. Data that is split stays so. Other data is
    split as LEAF does: the first 90 % of a role's windows train it, the next 79, which
    overlap these, are excluded, and the rest test it. Roles without a test example are
    then excluded.
    """

    cached = True

    source: str = setting(
        "leaf",
        "Where Shakespeare is read from: LEAF's JSON, or TFF's shakespeare.sqlite.",
        flag="shakespeare_source",
        choices=("leaf", "tff"),
    )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x int32 [80], ids of letters; y, the id of the next.

        The files are looked for as those of `femnist` are.
        """
        folders = data_files.folders("shakespeare", data_dir)
        if self.source == "leaf":
            arrays, origin = leaf_clients.load_cached(
                "shakespeare", folders, _read, cache_dir
            )
        else:
            arrays, origin = tff_sqlite.load(
                DATABASE, folders, cache_dir, data_dir is None
            )
        arrays, excluded = _exclude_unknown(arrays)
        if excluded:
            _LOG.warning("%s: %s", origin.folder, excluded)
            origin = dataclasses.replace(origin, source=f"{origin.source}, {excluded}")
        train, test = leaf_clients.split_examples(
            arrays,
            origin.folder,
            lambda _, size: partition.leaf_split_text(size, WINDOW - 1),
        )
        return FederatedDataset(
            "shakespeare",
            train,
            test,
            num_classes=len(LETTERS),
            pixel_convention=NO_PIXELS,
            origin=origin,
            options=self.options(),
            class_names=[*(c if c.isprintable() else ascii(c)[1:-1] for c in LETTERS)],
            vocabulary=Vocabulary("letters", tuple(LETTERS)),
        )


register("shakespeare", Shakespeare)


def to_arrays(x: list[Any], y: list[Any]) -> _Arrays:
    """Converts a LEAF user's texts and next letters to ids of `letter_ids`."""
    for values, length, what in ((x, WINDOW, "x"), (y, 1, "y")):
        for index, text in enumerate(values):
            if not isinstance(text, str):
                raise DataError(f"{what}[{index}] is {text!r:.40}, not a text")
            if len(text) != length:
                raise DataError(
                    f"{what}[{index}] has {len(text)} letters, but needs {length}"
                )
    return letter_ids("".join(x)).reshape(-1, WINDOW), letter_ids("".join(y))


def _read(files: Sequence[Any]) -> Arrays:
    return leaf_clients.read_arrays(files, to_arrays)


def _exclude_unknown(arrays: Arrays) -> tuple[Arrays, str]:
    """Excludes examples with an unknown letter, and returns a line about them."""
    num_excluded, total, letters = 0, 0, []
    kept = dict(arrays)
    for part in ("train", "test", "all"):
        if f"y_{part}" not in arrays:
            continue
        x, y, sizes = (arrays[f"{name}_{part}"] for name in ("x", "y", "sizes"))
        is_unknown = (x < 0).any(axis=1) | (y < 0)
        total += len(y)
        if is_unknown.any():
            num_excluded += int(is_unknown.sum())
            letters += [x[is_unknown].ravel(), y[is_unknown]]
            ends = np.cumsum(sizes)
            counts = np.concatenate([[0], np.cumsum(is_unknown)])
            kept[f"sizes_{part}"] = sizes - (counts[ends] - counts[ends - sizes])
            kept[f"x_{part}"], kept[f"y_{part}"] = x[~is_unknown], y[~is_unknown]
    if not num_excluded:
        return arrays, ""
    return kept, (
        f"excluded {num_excluded:,} of {total:,} examples with letters that are not "
        f"among LEAF's {len(LETTERS)}: {list_unknown(np.concatenate(letters))}"
    )


def _download(folder: str) -> Any:
    import tensorflow_federated as tff

    tff.simulation.datasets.shakespeare.load_data(cache_dir=folder)


def _convert(features: Arrays) -> Arrays:
    passages = [passage.decode("utf-8") for passage in features["snippets"].tolist()]
    text = re.sub("  +", " ", " ".join(passages).replace("\n", " "))
    x, y = cut_windows(letter_ids(text))
    return {"x": x, "y": y}


DATABASE = tff_sqlite.Database(
    dataset="shakespeare",
    file="shakespeare.sqlite",
    title="TFF's Shakespeare",
    splits=tff_sqlite.PARTS,
    features={"snippets": ((), "string")},
    convert=_convert,
    download=_download,
)
