"""Stores: federations on disk whose arrays are memory-mapped instead of read.

    leaf_data.write_store(clients, "my_store", test_fraction=0.2)
    data = leaf_data.open_store("my_store")

A store is a folder: `client_ids.npy` [K], and for each part, `train`, `test` and
perhaps `server`, `PART_x.npy` [N, ...], `PART_y.npy` [N, ...], `PART_row_splits.npy`
[K + 1] and `PART_NAME.npy` of each attribute of the examples, as `Examples` has them;
`header.json` has their types, shapes and checksums.

A run reads only the examples of its cohorts. `python -m leaf_data.convert` makes a
store from LEAF's JSON files or from a folder of CSVs.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import numbers
import os
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from declared_settings import setting
from leaf_data import equal_examples, partition
from leaf_data.client_ids import ClientIds
from leaf_data.dataset import Dataset, register
from leaf_data.errors import DataError, check_name, error_summary, raising_data_error
from leaf_data.examples import (
    INPUT_TYPES,
    Examples,
    StorePart,
    as_labels,
    check_label_shape,
    check_same_order,
    check_unmasked,
    find_negative_label,
)
from leaf_data.federated import (
    CENTRAL,
    SERVER,
    FederatedDataset,
    Origin,
    check_names,
    check_tokens,
)
from leaf_data.formats import data_files, npy_folder
from leaf_data.formats.data_files import Folder, expand_path
from leaf_data.pixels import NO_PIXELS, PixelConvention
from leaf_data.text import Vocabulary

Client = tuple[Any, ...]
"""A client's name, x and y, and perhaps the x and y it is tested on."""

_LOG = logging.getLogger(__name__)
_SPLIT_STREAM = 81  # Other than those that partitions draw from.
_ROWS_PER_CHUNK = 1 << 16  # That are copied at once.
_LONGEST_OPTIONS = 1 << 14
_HAS_TEST_EXAMPLES = "already has test examples: remove test_fraction"


def write_store(
    clients: Union[FederatedDataset, Iterable[Client]],
    path: Folder,
    *,
    test_fraction: float = 0.0,
    seed: int = 0,
    keep_equal_together: bool = False,
    options: Mapping[str, Any] = types.MappingProxyType({}),
    input_names: Sequence[str] = (),
    class_names: Sequence[str] = (),
    vocabulary: Vocabulary | None = None,
) -> None:
    """Writes a store, client by client, so that it may be larger than memory.

    Args:
        clients: a data set without a client table, of which the attributes are kept
            that all parts have; or an iterable of `(name, x, y)`, with x [n, ...] of
            one of `INPUT_TYPES` and y as in `Examples`: integers [n] from 0, or [n, T]
            for each position, or floats [n, ...] of a regression; or of
            `(name, x, y, x_test, y_test)`.
        path: the new folder.
        test_fraction: the part of each client's examples to test on, below 1: of n
            examples floor(test_fraction n). A warning says how many clients it leaves
            without any.
        seed: the seed of the random choice of these.
        keep_equal_together: whether `test_fraction` draws all or none of the examples
            whose x and y are equal, across clients; then clients may have fewer test
            examples, or more. It needs about 100 bytes of memory per example. By
            default a warning counts the test examples that are trained on, too.
        options: facts for the header (the classes' names, for example), as JSON; a
            data set's options are added.
        input_names: as in `FederatedDataset`; by default a data set's own, or none.
        class_names: likewise. There are as many classes as names, even if the last
            classes have no example.
        vocabulary: likewise. The inputs must be ids of its tokens.

    Raises:
        DataError: the folder already exists or cannot be made, a client has another
            form, or has test examples and a `test_fraction`, or the number of names
            is not that of the inputs, or less than that of the classes. Then no files
            remain.

    Examples:
        >>> write_store((read(file) for file in files), "store", test_fraction=0.2)
    """
    if not isinstance(test_fraction, numbers.Real) or not 0 <= test_fraction < 1:
        raise DataError(
            f"test_fraction must be at least 0 and below 1, got {test_fraction!r}"
        )
    if keep_equal_together and not test_fraction:
        raise DataError(
            "keep_equal_together needs a test_fraction: it changes how test examples "
            "are drawn"
        )
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise DataError(f"seed must be a whole number, 0 or more, got {seed!r}")
    data_options = clients.options if isinstance(clients, FederatedDataset) else {}
    options = {**data_options, **options}
    _check_options(options)
    with npy_folder.Writer(os.fspath(path)) as writer:
        if isinstance(clients, FederatedDataset):
            if test_fraction:
                raise DataError(_HAS_TEST_EXAMPLES)
            named = dataclasses.replace(
                clients,
                input_names=input_names or clients.input_names,
                class_names=class_names or clients.class_names,
                vocabulary=vocabulary or clients.vocabulary,
            )
            about = _write_data(writer, named)
        else:
            sides = {} if keep_equal_together else None
            about = _write_clients(
                writer, clients, test_fraction, seed, sides, vocabulary
            )
            about.update(_names(writer, about, input_names, class_names))
        if equal := about.pop("equal"):  # Then each run that reads it says so.
            options["equal_test_examples"] = equal
            _check_options(options)
        with raising_data_error(os.fspath(path), "cannot be written"):
            writer.finish({**about, "options": options})


def open_store(path: Folder, *, verify: bool = False) -> FederatedDataset:
    """Opens a store; its arrays are mapped, and read where they are used.

    Args:
        path: the folder.
        verify: whether to read all of it and compare with the checksums.

    Returns:
        The data set; its examples are read from the store when they are used.

    Raises:
        DataError: the folder is not a store, or a file does not match its header.
    """
    folder = os.path.abspath(expand_path(path))
    arrays, header = npy_folder.open_folder(folder, verify=verify)
    try:
        name, num_classes = check_name(header["name"]), int(header["num_classes"])
        if not 0 <= num_classes < 2**31:
            raise DataError(f"num_classes is {num_classes}, not from 0 to 2^31 - 1")
        source, options = header["source"], dict(header["options"])
        check_name(source, "the source")
        _check_options(options)
        pixels = PixelConvention(**header["pixels"])
        check_name(pixels.name)
        if {type(pixels.background), type(pixels.ink)} - {int, type(None)}:
            raise DataError("pixels must be whole numbers, or none")
        parts = list(header["parts"])
        names = ClientIds(arrays["client_ids"])
        examples = {
            part: Examples(
                x=arrays[f"{part}_x"],
                y=arrays[f"{part}_y"],
                row_splits=arrays[f"{part}_row_splits"],
                client_ids=(part,) if part in (SERVER, CENTRAL) else names,
                attributes={
                    name: arrays[f"{part}_{name}"] for name in header["attributes"]
                },
            )
            for part in parts
        }
        digest = _digest(folder)
        for part, part_examples in examples.items():
            store_part = StorePart(folder, digest, part)
            object.__setattr__(part_examples, "store_part", store_part)
        data = FederatedDataset(
            name=name,
            train_examples=examples["train"],
            test_examples=examples["test"],
            server_examples=examples.get(SERVER),
            central_test=examples.get(CENTRAL),
            num_classes=num_classes,
            pixel_convention=pixels,
            # The source may say, for example, that the data is incomplete.
            origin=Origin(source, ((npy_folder.HEADER, digest),), folder),
            options=options,
            input_names=header.get("input_names", ()),
            class_names=(
                header["class_names"]
                if "class_names" in header
                else _earlier_class_names(options, num_classes)
            ),
            vocabulary=(
                Vocabulary.from_dict(header["vocabulary"])
                if "vocabulary" in header
                else None
            ),
        )
    except Exception as error:  # A header's contents may be of any kind and size.
        raise DataError(f"{folder}: is not a store ({error_summary(error)})") from error
    for part_examples in examples.values():
        part_examples.release()
    return data


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises a `DataError` for options that do not fit into the header or a line."""
    try:
        length = len(json.dumps(options))
    except (TypeError, ValueError) as error:
        raise DataError(
            f"options cannot be written as JSON: {error_summary(error)}"
        ) from error
    if length > _LONGEST_OPTIONS:
        raise DataError(f"options have more than {_LONGEST_OPTIONS} characters")
    for key, value in options.items():
        if not f"{key}={value}".isprintable():
            raise DataError(
                f"the option {ascii(key)} has a character that cannot be printed"
            )


def _earlier_class_names(options: Mapping[str, Any], count: int) -> Sequence[str]:
    """Returns the names of classes in a header of an earlier version, or ()."""
    try:
        return check_names("classes", options.get("classes", ()), count)
    except (DataError, TypeError):  # The user wrote something else there.
        return ()


def _names(
    writer: npy_folder.Writer,
    about: Mapping[str, Any],
    input_names: Sequence[str],
    class_names: Sequence[str],
) -> dict[str, Any]:
    """Returns the header's entries for names and for the number of classes."""
    shape = writer.shape("train_x")[1:]
    num_classes = about["num_classes"]
    if num_classes:  # Else it is a regression.
        num_classes = max(num_classes, len(class_names))
    inputs = check_names("input_names", input_names, shape[-1] if shape else 1)
    classes = check_names("class_names", class_names, num_classes)
    return {
        "num_classes": num_classes,
        "input_names": [*inputs],
        "class_names": [*classes],
    }


def _digest(folder: str) -> str:
    """Returns the checksum of the header, which contains those of all arrays."""
    return data_files.sha256(os.path.join(folder, npy_folder.HEADER))


def _write_data(writer: npy_folder.Writer, data: FederatedDataset) -> dict[str, Any]:
    source = f"a store of {data.origin.source.removeprefix('a store of ')}"
    check_name(source, "the source")
    parts = {"train": data.train_examples, "test": data.test_examples}
    if data.server_examples is not None:
        parts[SERVER] = data.server_examples
    if data.central_test is not None:
        parts[CENTRAL] = data.central_test
    writer.append("client_ids", ClientIds.from_names(data.client_ids).encoded)
    if data.client_table.values:
        raise DataError(
            "a store cannot hold a client table: keep the table as a CSV and give it "
            "with the store"
        )
    shared = set(data.train_examples.attributes)
    attributes = sorted(shared.intersection(*(e.attributes for e in parts.values())))
    for part, examples in parts.items():
        columns = {"x": examples.x, "y": examples.y}
        columns.update({name: examples.attributes[name] for name in attributes})
        for name, array in columns.items():
            for start in range(0, max(1, len(array)), _ROWS_PER_CHUNK):
                writer.append(f"{part}_{name}", array[start : start + _ROWS_PER_CHUNK])
        writer.append(f"{part}_row_splits", examples.row_splits)
    tested_parts = data.train_examples, data.test_examples
    keys = (equal_examples.example_keys(part.x, part.y) for part in tested_parts)
    return {
        "equal": _warn_of_equal(*keys, fraction=0),
        "name": data.name,
        "source": source,
        "num_classes": data.num_classes,
        "input_names": [*data.input_names],
        "class_names": [*data.class_names],
        "pixels": dataclasses.asdict(data.pixel_convention),
        "parts": list(parts),
        "attributes": attributes,
        **({"vocabulary": data.vocabulary.to_dict()} if data.vocabulary else {}),
    }


def _write_clients(
    writer: npy_folder.Writer,
    clients: Iterable[Client],
    fraction: float,
    seed: int,
    sides: dict[int, bool] | None,
    vocabulary: Vocabulary | None,
) -> dict[str, Any]:
    names: dict[str, None] = {}
    keys = {"train": bytearray(), "test": bytearray()}
    splits: dict[str, list[int]] = {"train": [0], "test": [0]}
    num_classes = 0
    not_finite: list[str] = []
    for number, client in enumerate(clients):
        if not isinstance(client, (tuple, list)) or not client:
            raise DataError(
                f"client {number}: must be (name, x, y), got {client!r:.40}"
            )
        name, *arrays = client
        if not isinstance(name, str) or not name or name in names:
            raise DataError(
                f"client {number}: {name!r:.80} is not a name, or appears twice: names "
                "are different texts, such as str(number)"
            )
        names[check_name(name, f"client {number}")] = None
        try:
            pairs = _train_and_test(arrays, fraction, (seed, number), sides)
            for part, (x, y) in zip(splits, pairs):
                if x.dtype.kind == "f" and not np.isfinite(x).all():
                    not_finite.append(name)
                if vocabulary is not None:
                    check_tokens(part, x, vocabulary)
                keys[part] += equal_examples.example_keys(x, y).tobytes()
                writer.append(f"{part}_x", x)
                writer.append(f"{part}_y", y)
                splits[part].append(splits[part][-1] + len(y))
                if (negative := find_negative_label(y)) is not None:
                    raise DataError(negative[1])
                if y.dtype == np.int32:
                    num_classes = max(num_classes, int(y.max(initial=-1)) + 1)
        except DataError as error:
            raise DataError(f"client {name}: {error}") from error
    if not names:
        raise DataError("there must be at least one client")
    if not splits["test"][-1]:
        words = "give a test_fraction"
        if fraction:
            words = f"give a larger test_fraction than {fraction}"
        elif len(arrays) == 4:
            words = "all their x_test are empty"
        raise DataError(f"no client has test examples: {words}")
    all_keys = (np.frombuffer(part, np.int64) for part in keys.values())
    equal = _warn_of_equal(*all_keys, fraction=fraction)
    if count := len({*not_finite}):
        _LOG.warning(
            "%d of %d clients have inputs that are nan or infinite, the first %s: the "
            "loss on them is nan, and a round excludes clients that train on them: "
            "replace these values, or remove the examples",
            count,
            len(names),
            not_finite[0],
        )
    untested = np.flatnonzero(np.diff(splits["test"]) == 0)
    if fraction and len(untested):
        first = untested[0]
        size = np.diff(splits["train"])[first]
        _LOG.warning(
            "%d of %d clients have no test examples: for client %s, %s of %d "
            "examples is less than one%s",
            len(untested),
            len(names),
            list(names)[first],
            fraction,
            size,
            "" if sides is None else ", or equal examples are kept together",
        )
    writer.append("client_ids", ClientIds.from_names(list(names)).encoded)
    for part, row_splits in splits.items():
        writer.append(f"{part}_row_splits", np.array(row_splits, np.int64))
    return {
        "equal": equal,
        "name": "store",
        "source": "a store",
        "num_classes": num_classes,
        "pixels": dataclasses.asdict(NO_PIXELS),
        "parts": list(splits),
        "attributes": [],
        **({"vocabulary": vocabulary.to_dict()} if vocabulary else {}),
    }


def _warn_of_equal(
    train: npt.NDArray[np.int64], test: npt.NDArray[np.int64], *, fraction: float
) -> int:
    """Counts the test examples that are trained on, too, by keys, and warns of them."""
    equal = equal_examples.count_shared(train, test)
    if equal:
        _LOG.warning(
            "%d of %d test examples are equal to training examples (x and y), so that "
            "a model may only remember them: %s",
            equal,
            len(test),
            "keep_equal_together (--keep_equal_together) draws all or none of them"
            if fraction
            else "take them out of one of the two sets",
        )
    return equal


def _train_and_test(
    arrays: Sequence[Any],
    fraction: float,
    stream: tuple[int, int],
    sides: dict[int, bool] | None,
) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Returns a client's (x, y) to train on, and to be tested on."""
    if len(arrays) not in (2, 4):
        raise DataError("must be (name, x, y), or (name, x, y, x_test, y_test)")
    pairs = [_check_arrays(*arrays[k : k + 2]) for k in range(0, len(arrays), 2)]
    if len(pairs) == 2:
        if fraction:
            raise DataError(_HAS_TEST_EXAMPLES)
        for name, array, other in zip("xy", *pairs):
            if (array.dtype, array.shape[1:]) != (other.dtype, other.shape[1:]):
                raise DataError(
                    f"a training {name} is {array.dtype} {array.shape[1:]} and a test "
                    f"{name} {other.dtype} {other.shape[1:]}: both must be the same"
                )
        return pairs
    ((x, y),) = pairs
    seed, number = stream
    order = np.random.default_rng([seed, _SPLIT_STREAM, number]).permutation(len(y))
    count = partition.floor_share(fraction, len(y))
    is_test = np.isin(np.arange(len(y)), order[:count])
    if sides is not None:
        keys = equal_examples.example_keys(x, y)
        is_test = equal_examples.draw_together(keys, order, count, sides)
    return [(x[~is_test], y[~is_test]), (x[is_test], y[is_test])]


def _check_arrays(x: Any, y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    check_same_order({"x": x, "y": y})
    try:
        x, y = check_unmasked(x, "x"), check_unmasked(y, "y")
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"x and y must be arrays: {error_summary(error)}") from error
    if x.ndim < 1 or y.ndim < 1 or len(x) != len(y):
        raise DataError(
            f"x and y must have one row for each example, got {x.shape} and {y.shape}"
        )
    if x.dtype not in INPUT_TYPES:
        raise DataError(
            f"x must be one of {', '.join(INPUT_TYPES)}, got {x.dtype}: "
            "x.astype(numpy.float32) makes numbers of it"
        )
    y = as_labels(y)
    check_label_shape(y)
    return x, y


@dataclasses.dataclass(frozen=True)
class StoreDataset(Dataset):
    """Your data in a store on disk, of up to millions of clients."""

    reads_folder = False
    path: str = setting(
        "", "The folder of the store, as leaf_data.write_store writes it.", flag="store"
    )
    verify: bool = setting(
        False,
        "Read all of the store, and compare it with its checksums, before the run.",
        flag="verify_data",
    )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Opens the store; `data_dir` has no meaning here."""
        if not self.path:
            raise DataError("store: no folder given: set path (--store)")
        data = open_store(self.path, verify=self.verify)
        # The path and how it was opened are not properties of the data.
        return dataclasses.replace(data, options={**data.options, "seed": self.seed})


register("store", StoreDataset)
