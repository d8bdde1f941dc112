"""Databases of examples by client that TFF ships, read by TFF's `SqlClientData`."""

from __future__ import annotations

import dataclasses
import lzma
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from leaf_data.errors import DataError, error_summary, raising_data_error
from leaf_data.federated import Origin
from leaf_data.formats import data_files
from leaf_data.formats.cache import Arrays, load_or_make
from leaf_data.formats.data_files import Folder

PARTS = ("train", "test")


@dataclasses.dataclass(frozen=True)
class Database:
    """A database that TFF ships, and how its examples are converted."""

    dataset: str  # Its name in `leaf_data`.
    file: str  # Its name; TFF's download adds `.lzma`.
    title: str  # For messages and the origin, e.g. "TFF's EMNIST".
    splits: Sequence[str]  # The `split_name` of `PARTS`.
    features: Mapping[str, tuple[tuple[int, ...], str]]  # Shape and type of each.
    convert: Callable[[Arrays], Arrays]  # Features of n examples to x, y and others.
    download: Callable[[str], Any]  # Lets TFF download it into a folder.


def load(
    database: Database, folders: Sequence[str], cache_dir: Folder | None, download: bool
) -> tuple[Arrays, Origin]:
    """Finds, downloads if allowed, and reads a database once."""
    name, source = database.file, database.title
    paths = [os.path.join(f, n) for f in folders for n in (name, f"{name}.lzma")]
    path = next(filter(os.path.isfile, paths), "")
    if not path and not download:
        raise data_files.missing(database.dataset, folders, f"{name} or {name}.lzma")
    if not path:
        folder = data_files.expand_path(cache_dir or os.path.join("~", ".tff"))
        path, source = os.path.join(folder, name), f"{source} (its download)"
        with raising_data_error(
            path, "TFF could not download it: pass data_dir", Exception
        ):
            database.download(folder)
    folder, file = os.path.split(path)
    cache = f"{database.dataset}_tff"
    arrays, (digest,) = load_or_make(
        cache, folder, [path], lambda: read(path, database), cache_dir
    )
    return arrays, Origin(source, ((file, digest),), folder)


def read(path: str, database: Database) -> Arrays:
    """Reads all clients' examples, in the form that `Examples.from_arrays` takes."""
    import tensorflow as tf
    import tensorflow_federated as tff

    sql_client_data = tff.simulation.datasets.SqlClientData
    spec = {k: tf.io.FixedLenFeature(*like) for k, like in database.features.items()}
    with tempfile.TemporaryDirectory() as scratch:  # Gigabytes, where TMPDIR names.
        with raising_data_error(path, f"not {database.title}, or damaged", Exception):
            unpacked = path
            if path.endswith(".lzma"):
                unpacked = os.path.join(scratch, database.file)
                with lzma.open(path) as packed, open(unpacked, "wb") as file:
                    shutil.copyfileobj(packed, file)
            parts = [sql_client_data(unpacked, split) for split in database.splits]
            ids = sorted({client for data in parts for client in data.client_ids})
        if not ids:
            raise DataError(f"{path}: has no clients with a split of {database.splits}")
        arrays: Arrays = {"client_ids": np.array(ids, str)}
        for part, data in zip(PARTS, parts):
            converted, ids_of_part = [], set(data.client_ids)
            for client in ids:
                try:
                    # A client of the other part only has no examples.
                    get = data.serializable_dataset_fn(
                        client if client in ids_of_part else ""
                    )
                    protos = list(get.as_numpy_iterator())
                    parsed = tf.io.parse_example(tf.constant(protos, tf.string), spec)
                    values = {k: value.numpy() for k, value in parsed.items()}
                    converted.append(database.convert(values))
                except Exception as error:
                    words = f"{path}: client {client}: {error_summary(error, 400)}"
                    raise DataError(words) from error
            sizes = [len(example_arrays["y"]) for example_arrays in converted]
            arrays[f"sizes_{part}"] = np.array(sizes, np.int64)
            for name in converted[0]:
                arrays[f"{name}_{part}"] = np.concatenate(
                    [example_arrays[name] for example_arrays in converted]
                )
    return arrays
