"""A loaded data set: the examples of a federation of clients."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from declared_settings import SettingError, require_sequence
from leaf_data import equal_examples, partition
from leaf_data.client_table import ClientTable
from leaf_data.errors import DataError, check_name
from leaf_data.examples import MASKED, Examples
from leaf_data.formats import data_files
from leaf_data.pixels import NO_PIXELS, PixelConvention
from leaf_data.text import Vocabulary

if TYPE_CHECKING:
    import tensorflow_federated as tff

SERVER = "server"
"""The one client of `FederatedDataset.server_examples`."""

CENTRAL = "central"
"""The one client of `FederatedDataset.central_test`."""

_LOG = logging.getLogger(__name__)
# A separate stream: partitions draw from the seed too.
_HOLD_OUT_STREAM = 80
_AT_ONCE = 1 << 16  # Clients.
_MAPPED_ROWS = 1024  # About as many rows of a mapped array enter its checksum.
_MANY_FILES = 4  # More files than these are not listed one by one.
_MANY_NAMES = 40  # As for files.
_UNEVEN = 100  # The ratio of two inputs' scales from which a line says so.
_SAMPLE = 16, 1 << 12  # Blocks of rows, and their length, that show the scales.


@dataclasses.dataclass(frozen=True)
class Origin:
    """The files that a data set was read from.

    Attributes:
        source: the kind of source in words, e.g. "idx files".
        files: the file name without folder and the sha256 of each file, as found.
        folder: their folder on this machine; "" without files.
    """

    source: str
    files: tuple[tuple[str, str], ...]
    folder: str

    @classmethod
    def from_files(cls, source: str, paths: Sequence[str]) -> Origin:
        """Builds the origin from files of one folder, and reads them for checksums."""
        files = tuple(
            (os.path.basename(path), data_files.sha256(path)) for path in paths
        )
        return cls(source, files, os.path.dirname(paths[0]))

    of_files = from_files  # Its earlier name, for one more release.

    def __str__(self) -> str:
        """Lists the files with checksums; of many, the number and one checksum."""
        if len(self.files) > _MANY_FILES:
            together = hashlib.sha256(repr(sorted(self.files)).encode()).hexdigest()
            return (
                f"{self.source}: {len(self.files)} files, {self.files[0][0]} and so "
                f"on (sha256 over their names and checksums {together})"
            )
        files = ", ".join(f"{name} (sha256 {digest})" for name, digest in self.files)
        return f"{self.source}: {files}" if files else self.source


@dataclasses.dataclass(frozen=True, eq=False)
class FederatedDataset:
    """Clients with their training and test examples.

    `train_examples` and `test_examples` are numpy arrays, which the package's
    training uses; `train` and `test` are the same examples as TFF's `ClientData`.

    Attributes:
        name: the name of the data set.
        train_examples: the examples that the clients train on.
        test_examples: each client's test set; the same clients, in the same
            order.
        num_classes: the number of classes; labels are 0 to num_classes - 1. 0 for a
            regression, whose labels are float32.
        pixel_convention: the meaning of the pixels' values; `pixels.NO_PIXELS` if
            the inputs are not images.
        origin: the files it was read from.
        options: the options that it was loaded with, defaults included.
        client_table: attributes of the clients; by default none.
        server_examples: the server's evaluation set, as the client "server"; by
            default None.
        central_test: a test set that belongs to no client, as the client "central",
            with separate results; by default None.
        input_names: the names of the inputs, in order: of the columns of a table, or
            else along the last axis of x; by default (), without names.
        class_names: the names of the classes, in order; by default (), without names.
        vocabulary: the tokens that the inputs are ids of, if they are text; by default
            None.

    Raises:
        DataError: (constructor) the sets of examples do not fit together, a label is
            out of range, the number of names is not that of inputs or classes, or the
            inputs are not integers although there is a vocabulary.
    """

    name: str
    train_examples: Examples
    test_examples: Examples
    num_classes: int
    pixel_convention: PixelConvention
    origin: Origin
    options: Mapping[str, Any]
    client_table: ClientTable = ClientTable()
    server_examples: Examples | None = None
    central_test: Examples | None = None
    input_names: Sequence[str] = ()
    class_names: Sequence[str] = ()
    vocabulary: Vocabulary | None = None

    def __post_init__(self) -> None:
        train, test = self.train_examples, self.test_examples
        parts = {"train": train, "test": test}
        if train.client_ids != test.client_ids:
            raise DataError(
                f"{self.name}: train and test have different clients: both need the "
                "same client_ids"
            )
        for part, client, single in (
            ("server", SERVER, self.server_examples),
            ("central_test", CENTRAL, self.central_test),
        ):
            if single is not None:
                parts[part] = single
                if single.client_ids != (client,):
                    raise DataError(
                        f"{self.name}: the one client of {part} is {client!r}, not "
                        f"{single.client_ids}"
                    )
        if self.central_test is not None and not self.central_test.num_examples:
            raise DataError(f"{self.name}: central_test has no examples")
        if not train.has_classes and self.num_classes:
            raise DataError(
                f"{self.name}: float32 labels have no classes: num_classes must be 0, "
                f"got {self.num_classes}"
            )
        for part, examples in parts.items():
            for what in ("x", "y"):
                in_train, in_part = (getattr(e, what) for e in (train, examples))
                forms = [f"{a.dtype} {a.shape[1:]}" for a in (in_train, in_part)]
                if forms[0] != forms[1]:
                    raise DataError(
                        f"{self.name}: one {what} of train is {forms[0]}, of {part} "
                        f"{forms[1]}: both must have the same type and shape"
                    )
            highest = examples.y.max(initial=-1)
            if train.has_classes and highest >= self.num_classes:
                row = int(examples.y.argmax()) // (examples.y.size // len(examples.y))
                owner = examples.describe_owner(row)
                raise DataError(
                    f"{self.name}: {part} has label {highest}, but there are "
                    f"{self.num_classes} classes: {owner} has it"
                )
        for field, count in (
            ("input_names", self.element_shape[-1] if self.element_shape else 1),
            ("class_names", self.num_classes),
        ):
            try:
                names = check_names(field, getattr(self, field), count)
            except DataError as error:
                raise DataError(f"{self.name}: {error}") from error
            object.__setattr__(self, field, names)
        if self.vocabulary is not None:
            for part, examples in parts.items():
                check_tokens(f"{self.name}: {part}", examples.x, self.vocabulary)

    @property
    def client_ids(self) -> Sequence[str]:
        """The clients, in the order of both sets of examples."""
        return self.train_examples.client_ids

    @property
    def has_classes(self) -> bool:
        """Whether examples have classes, so that accuracy is defined."""
        return self.train_examples.has_classes

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of one example's x, e.g. (28, 28)."""
        return self.train_examples.element_shape

    def with_client_table(self, table: ClientTable) -> FederatedDataset:
        """Returns the same data set with a table of client attributes.

        Raises:
            DataError: a client is not in the table.
        """
        return dataclasses.replace(self, client_table=table.of(self.client_ids))

    def hold_out(
        self,
        fraction: float,
        seed: int = 0,
        *,
        pooled: bool = False,
        keep_equal_together: bool = False,
    ) -> tuple[FederatedDataset, Examples]:
        """Sets aside a random part of every client's training examples.

        Args:
            fraction: the part of each client's examples, between 0 and 1. Of n
                examples floor(fraction n) are set aside, so that at least one
                remains.
            seed: the seed of the choice, 0 to 2**32 - 1.
            pooled: whether the examples set aside are mixed and dealt to the clients,
                to each the number that was taken from it. By default they stay with
                their client.
            keep_equal_together: whether of examples whose x and y are equal, across
                clients, all or none are set aside; then clients may have fewer set
                aside, or more. By default a warning counts those on both sides.

        Returns:
            The data set without them, and the examples set aside, of the same clients,
            both in their old order unless `pooled` mixes them.

        Raises:
            DataError: the fraction is not between 0 and 1, or sets nothing aside.
        """
        if not 0 < fraction < 1:
            raise DataError(f"fraction must be between 0 and 1, got {fraction}")
        random = partition.random_state(seed, _HOLD_OUT_STREAM)
        examples = self.train_examples
        keys = equal_examples.example_keys(examples.x, examples.y)
        sides: dict[int, bool] = {}
        remaining_rows, aside_rows = [], []
        for start, size in zip(examples.row_splits, examples.sizes):
            order = random.permutation(size)
            count = partition.floor_share(fraction, size)
            is_aside = np.isin(np.arange(size), order[:count])
            if keep_equal_together:
                own_keys = keys[start : start + size]
                is_aside = equal_examples.draw_together(own_keys, order, count, sides)
            remaining_rows.append(start + np.flatnonzero(~is_aside))
            aside_rows.append(start + np.flatnonzero(is_aside))
        aside_keys = keys[np.concatenate(aside_rows)]
        equal = equal_examples.count_shared(
            keys[np.concatenate(remaining_rows)], aside_keys
        )
        if equal:
            _LOG.warning(
                "%s: %d of %d examples that are set aside are equal to examples that "
                "remain; hold_out(keep_equal_together=True) keeps equal ones together",
                self.name,
                equal,
                len(aside_keys),
            )
        if pooled:
            mixed = random.permutation(np.concatenate(aside_rows))
            aside_rows = np.split(mixed, np.cumsum([len(r) for r in aside_rows[:-1]]))
        remaining, aside = (
            Examples.from_parts(
                examples.x, examples.y, rows, self.client_ids, examples.attributes
            )
            for rows in (remaining_rows, aside_rows)
        )
        if not aside.num_examples:
            raise DataError(
                f"{self.name}: a fraction of {fraction} holds out no example, as the "
                f"largest client has {examples.sizes.max()}: give a larger fraction"
            )
        return dataclasses.replace(self, train_examples=remaining), aside

    @functools.cached_property
    def train(self) -> tff.simulation.datasets.ClientData:
        """TFF's view of the training examples (imports TensorFlow and TFF)."""
        return _client_data(self.train_examples)

    @functools.cached_property
    def test(self) -> tff.simulation.datasets.ClientData:
        """TFF's view of the test examples (imports TensorFlow and TFF)."""
        return _client_data(self.test_examples)

    @functools.cached_property
    def examples_sha256(self) -> str:
        """The checksum of all examples and of the clients that hold them, as hex.

        Examples of a store enter by the checksum of the store; of other memory-mapped
        arrays about 1,024 rows at even distances enter, of arrays in memory all rows.
        """
        digest = hashlib.sha256()
        parts = (self.train_examples, self.test_examples)
        for examples in filter(None, (*parts, self.server_examples, self.central_test)):
            _update(digest, examples)
        return digest.hexdigest()

    def describe(self) -> str:
        """Returns a few lines for people: sizes, names, pixels, options, origin.

        A line says where one input is a hundred times as large as another.
        """
        train, server = self.train_examples, self.server_examples
        options = ", ".join(
            f"{key}={value}"
            for key, value in self.options.items()
            if not (key == "classes" and self.class_names)  # They have a line.
        )
        shape = " x ".join(map(str, self.element_shape)) or "one"
        classes, labels = "float32 labels", ""
        if self.has_classes:
            classes = _count(self.num_classes, "class", "es")
            labels = f", {_range(_label_extremes(train), 'label')} a client"
        clients = _count(train.num_clients, "client")
        lines = [
            f"{self.name}{options and f' ({options})'}: "
            f"{clients}, {classes}, {shape} {train.x.dtype}",
            f"train: {_sizes(train)}{labels}",
            f"test: {_sizes(self.test_examples)}",
        ]
        units = "examples"
        if train.has_positions:
            units = "positions that count"
            lines.append(_describe_positions(train, self.test_examples))
        # Names of classes that are the vocabulary's tokens are not listed.
        num_tokens = len(self.vocabulary.tokens) if self.vocabulary else 0
        for what, names in (
            ("inputs", self.input_names),
            ("classes", self.class_names),
        ):
            if names and len(names) != num_tokens:
                lines.append(f"{what}: {_join_names(names)}")
        if self.vocabulary is not None:
            lines.append(f"vocabulary: {num_tokens} {self.vocabulary.unit}")
        lines += self._uneven_scales()
        for what, part, other, effect in (
            ("training", train, self.test_examples, "count in all test results"),
            ("test", self.test_examples, train, "reach no target"),
        ):
            without = np.flatnonzero((part.label_counts == 0) & (other.sizes > 0))
            if len(without):
                first = self.client_ids[without[0]]
                lines.append(
                    f"clients without {what} {units}: {len(without)} of {clients} "
                    f"({first} first); they {effect}"
                )
        for words, tested in (
            ("test example", self.test_examples),
            ("central test example", self.central_test),
        ):
            if tested is not None and (equal := _count_equal(train, tested)):
                lines.append(
                    f"equal to training examples: {equal} of "
                    f"{_count(tested.num_examples, words)}, which a model may remember"
                )
        if server is not None:
            lines.append(f"server: {_count(server.num_examples, 'example')}")
        if self.central_test is not None:
            count = _count(self.central_test.num_examples, "example")
            lines.append(f"central test: {count}")
        if self.pixel_convention != NO_PIXELS:
            lines.append(f"pixels: {self.pixel_convention}")
        return "\n".join([*lines, f"from {self.origin}"])

    def _uneven_scales(self) -> list[str]:
        """Returns a line if one input is much larger than another; it slows training.

        Of many rows a sample is read, in blocks, because the inputs may be mapped.
        """
        x = self.train_examples.x
        if x.dtype != np.float32 or x.ndim != 2 or x.shape[1] < 2:
            return []
        largest = np.zeros(x.shape[1], np.float32)
        blocks, length = _SAMPLE
        last = max(0, len(x) - length)
        for start in sorted({*np.linspace(0, last, blocks, dtype=int).tolist()}):
            size = np.abs(x[start : start + length])
            size = np.where(np.isfinite(size), size, 0)
            largest = np.maximum(largest, size.max(axis=0, initial=0))
        self.train_examples.release()
        order = [k for k in np.argsort(largest, kind="stable") if largest[k] > 0]
        if not order or largest[order[-1]] < _UNEVEN * largest[order[0]]:
            return []
        small, large = (
            f"{self.input_names[k] if self.input_names else f'input {k}'} up to "
            f"{largest[k]:.3g}"
            for k in (order[0], order[-1])
        )
        return [
            f"scales: {small}, {large}: the larger input outweighs the smaller unless "
            "the inputs are scaled, or the model's first layer does it, such as "
            "Keras' Normalization (docs/own_data.md#scales)"
        ]


def check_tokens(where: str, x: npt.NDArray[Any], vocabulary: Vocabulary) -> None:
    """Raises a `DataError` if inputs are not ids of the vocabulary's tokens.

    Inputs that are mapped from a file are not read; whoever wrote them checked them.
    """
    count = len(vocabulary.tokens)
    if x.dtype.kind != "i":
        raise DataError(
            f"{where}: a vocabulary needs int32 or int64 inputs, its ids, got {x.dtype}"
        )
    if isinstance(x, np.memmap) or not x.size:
        return
    if x.min() < 0 or x.max() >= count:
        raise DataError(
            f"{where}: inputs are {x.min()} to {x.max()}, but the vocabulary's ids are "
            f"0 to {count - 1}"
        )


def check_names(field: str, names: Any, count: int) -> tuple[str, ...]:
    """Returns the names of inputs or classes, as many as there are, or ().

    Raises:
        DataError: they are not texts that can stand in records, each once, have no
            order, as a set, or are more or fewer than `count`; the message begins with
            `field`.
    """
    try:
        checked: tuple[str, ...] = require_sequence(field, names)
    except SettingError as error:
        raise DataError(str(error)) from error
    if not all(isinstance(name, str) for name in checked):
        raise DataError(f"{field} must be a sequence of texts, got {names!r:.40}")
    if checked and len(checked) != count:
        raise DataError(f"{field} has {len(checked)} names, the data has {count}")
    for name in checked:
        check_name(name, f"{field}:")
        if not name:
            raise DataError(f"{field} has an empty name")
    if len(set(checked)) < len(checked):
        twice = next(name for name in checked if checked.count(name) > 1)
        raise DataError(f"{field} has {twice!r} twice")
    return checked


def _join_names(names: Sequence[str]) -> str:
    """Joins names with commas; of many, the first and the last."""
    if len(names) > _MANY_NAMES:
        names = [*names[: _MANY_NAMES - 1], "...", names[-1]]
    return ", ".join(names)


def _count_equal(train: Examples, test: Examples) -> int:
    """Counts the test examples that are training examples, too, by x and y.

    It is 0 for a store, whose options have the number, so that it need not be read.
    """
    if train.store_part or test.store_part:
        return 0
    keys = (equal_examples.example_keys(part.x, part.y) for part in (train, test))
    return equal_examples.count_shared(*keys)


def _update(digest: hashlib._Hash, examples: Examples) -> None:
    """Adds examples to a checksum."""
    part = examples.store_part
    if part is not None:
        digest.update(f"{part.digest} {part.part}".encode())
        return
    ids = np.array(list(examples.client_ids), str)
    arrays = {"x": examples.x, "y": examples.y, **examples.attributes}
    for name, array in {**arrays, "ids": ids, "splits": examples.row_splits}.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        if isinstance(array, np.memmap):
            array = array[:: max(1, len(array) // _MAPPED_ROWS)]
        elif array.dtype.hasobject:
            array = array.astype(str)
        for start in range(0, len(array), _AT_ONCE):
            rows = np.ascontiguousarray(array[start : start + _AT_ONCE])
            digest.update(rows.reshape(-1).view(np.uint8).data)


def _label_extremes(examples: Examples) -> list[int]:
    """Returns the fewest and the most labels that a client has."""
    extremes: list[int] = []
    for start in range(0, examples.num_clients, _AT_ONCE):
        splits = examples.row_splits[start : start + _AT_ONCE + 1]
        owner = np.repeat(np.arange(len(splits) - 1), np.diff(splits))
        y = examples.y[splits[0] : splits[-1]]
        if examples.has_positions:
            owner, y = np.repeat(owner, y.shape[1]), y.reshape(-1)
            owner, y = owner[y != MASKED], y[y != MASKED]
        pairs = np.unique(owner << 32 | y)
        counts = np.bincount(pairs >> 32, minlength=len(splits) - 1)
        extremes += [int(counts.min()), int(counts.max())]
    examples.release()
    return extremes


def _describe_positions(train: Examples, test: Examples) -> str:
    """Returns a line on the positions of examples, and how many of them count."""
    counted = ", ".join(
        f"{part.num_labels} of {part.y.size} in {name} count"
        for name, part in (("train", train), ("test", test))
    )
    return f"labels: one for each of {_count(train.y.shape[1], 'position')}; {counted}"


def _client_data(examples: Examples) -> tff.simulation.datasets.ClientData:
    # Imported here: TensorFlow and TFF take ten seconds, loading takes less than one.
    from leaf_data.tff_client_data import ExamplesClientData

    return ExamplesClientData(examples)


def _sizes(examples: Examples) -> str:
    return (
        f"{_count(examples.num_examples, 'example')}, {_range(examples.sizes)} a client"
    )


def _range(values: Any, what: str = "") -> str:
    low, high = np.min(values), np.max(values)
    words = _count(high, what) if what else f"{high}"
    return words if low == high else f"{low}-{words}"


def _count(number: int, what: str, ending: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else ending}"
