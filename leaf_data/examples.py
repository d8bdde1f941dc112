"""The examples of many clients, laid end to end in a few arrays (numpy only)."""

from __future__ import annotations

import dataclasses
import functools
import mmap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from declared_settings import require_sequence
from leaf_data import partition
from leaf_data.client_ids import ClientIds, ClientNumber, check_id, find_number
from leaf_data.errors import DataError

INPUT_TYPES = ("uint8", "float32", "int32", "int64")
"""The types of inputs: pixels, numbers, or ids of tokens."""

LABEL_TYPES = ("int32", "float32")
"""The types of labels: of classes, or the values of a regression."""

MASKED = -1
"""The label of a position that does not count, such as padding."""

LARGEST_LABEL = 2**31 - 2
"""The largest label of a class, so that int32 holds the number of classes."""

_ROWS_PER_CHUNK = 1 << 16  # Whose positions are counted at once.


class StorePart(NamedTuple):
    """The location of examples: a store's path, its header's checksum, and the part."""

    path: str
    digest: str
    part: str


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Examples:
    """All clients' examples; client k has rows `row_splits[k]:row_splits[k + 1]`.

    There are K clients and N examples. The arrays become read-only views: clients'
    examples are returned without a copy, so they must not be changed.

    Attributes:
        x: [N, ...], one of `INPUT_TYPES`: pixels as stored, uint8 (computations scale
            them), numbers, float32, or ids of words or other tokens, int32 or int64.
        y: int32 [N], the labels, from 0; or int32 [N, T], a label for each of the T
            positions of an example, from 0, or `MASKED`, -1, for a position that does
            not count; or, of a regression, float32 [N, ...], the values to be
            predicted, finite.
        row_splits: int64 [K + 1], from 0 to N. A client may have no examples.
        client_ids: the K clients' names, each once (see `errors.check_name`): a tuple,
            or `ClientIds`.
        attributes: by name, arrays [N, ...] of further attributes of the examples (a
            photograph's sharpness, say). They are not part of TFF's view.
        store_part: the part of a store that these are; None for all others, copies
            of a part included.

    Raises:
        DataError: (constructor) the arrays do not fit together.
    """

    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    row_splits: npt.NDArray[np.int64]
    client_ids: Sequence[str]
    attributes: Mapping[str, npt.NDArray[Any]] = dataclasses.field(default_factory=dict)
    store_part: StorePart | None = dataclasses.field(default=None, init=False)

    def __post_init__(self) -> None:
        types = {"x": INPUT_TYPES, "y": LABEL_TYPES, "row_splits": ("int64",)}
        for name, allowed in types.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype not in allowed:
                dtype = getattr(array, "dtype", type(array).__name__)
                words = " or ".join(allowed)
                raise DataError(f"{name} must be an array of {words}, got {dtype}")
            object.__setattr__(self, name, _read_only(check_unmasked(array, name)))
        if not isinstance(self.client_ids, ClientIds):
            object.__setattr__(self, "client_ids", _ordered_ids(self.client_ids))
        attributes = {
            name: _read_only(check_unmasked(values, name))
            for name, values in self.attributes.items()
        }
        object.__setattr__(self, "attributes", attributes)
        self._check()

    def __repr__(self) -> str:
        arrays = {"x": self.x, "y": self.y, **self.attributes}
        each = (f"{name}: {a.dtype} {[*a.shape[1:]]}" for name, a in arrays.items())
        count = f"{len(self.y)} of {len(self.client_ids)} clients"
        return f"Examples({count}, {', '.join(each)})"

    def _check(self) -> None:
        if 0 in (self.x.ndim, self.y.ndim) or len(self.x) != len(self.y):
            raise DataError(
                f"x and y must have one row for each example: x is {self.x.shape}, y "
                f"is {self.y.shape}"
            )
        check_label_shape(self.y)
        if not self.has_classes and not np.isfinite(self.y).all():
            raise DataError("y has a value that is not finite")
        ids, splits = self.client_ids, self.row_splits
        if not ids:
            raise DataError("there must be at least one client")
        if not isinstance(ids, ClientIds):
            for client in ids:
                check_id(client)
            if len(set(ids)) != len(ids):
                twice = next(client for client in ids if ids.count(client) > 1)
                raise DataError(
                    f"client id {twice!r} appears twice: ids must be unique"
                )
        if splits.shape != (len(ids) + 1,):
            raise DataError(
                f"row_splits must be [{len(ids) + 1}] for {len(ids)} clients, got "
                f"{list(splits.shape)}"
            )
        falls = " and falls between" if np.any(np.diff(splits) < 0) else ""
        if splits[0] != 0 or splits[-1] != len(self.y) or falls:
            raise DataError(
                f"row_splits has to rise from 0 to the {len(self.y)} examples; it "
                f"goes from {splits[0]} to {splits[-1]}{falls}"
            )
        if (error := find_negative_label(self.y)) is not None:
            row, words = error
            raise DataError(f"{words}: {self.describe_owner(row)} has it")
        for name, values in self.attributes.items():
            if name in ("x", "y", "row_splits"):  # Also the files of a store.
                raise DataError(f"an attribute cannot be named {name!r}")
            if values.ndim < 1 or len(values) != len(self.y):
                raise DataError(
                    f"attribute {name!r} must have one value for each of the "
                    f"{len(self.y)} examples, got {values.shape}"
                )

    @classmethod
    def from_parts(
        cls,
        x: npt.NDArray[Any],
        y: npt.NDArray[Any],
        parts: Sequence[npt.NDArray[Any]],
        client_ids: Iterable[str],
        attributes: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Examples:
        """Gathers each client's examples from a pool of M examples.

        Args:
            x: the pool's inputs, [M, ...], of a type as above; they are copied.
            y: the pool's labels, integers [M] or [M, T], or values, floats [M, ...].
            parts: for each client an array of its indices into the pool, from 0, or a
                mask, booleans [M]. For a data frame they are positions and not the
                labels of rows: `table.groupby(column).indices`, and not `.groups`.
            client_ids: the clients' names, as many as parts.
            attributes: by name, further attributes of the pool, [M, ...].

        Raises:
            DataError: the arrays do not fit together, or a part has an invalid index.
            SettingError: the clients' names have no order, as a set.
        """
        client_ids = _ordered_ids(client_ids)
        names = ["x", "y", *(attributes or {})]
        columns = (x, y, *(attributes or {}).values())
        masks = {f"parts[{k}]": part for k, part in enumerate(parts)}
        check_same_order({**dict(zip(names, columns)), **masks})
        pool = [check_unmasked(column, name) for name, column in zip(names, columns)]
        if 0 in [a.ndim for a in pool] or len({len(a) for a in pool}) > 1:
            shapes = ", ".join(f"{name} is {a.shape}" for name, a in zip(names, pool))
            raise DataError(f"a pool needs one row per example, but {shapes}")
        size = len(pool[0])
        part_rows = [_rows(part, size, f"parts[{k}]") for k, part in enumerate(parts)]
        splits = np.cumsum([0, *map(len, part_rows)], dtype=np.int64)
        rows = np.concatenate([np.zeros(0, np.int64), *part_rows])
        if len(rows) and not 0 <= rows.min() <= rows.max() < size:
            wrong = int(np.argmax((rows < 0) | (rows >= size)))
            k = int(np.searchsorted(splits, wrong, side="right")) - 1
            raise DataError(
                f"parts[{k}] has {rows[wrong]}: indices go from 0 to {size - 1}"
            )
        x, y, *others = (array[rows] for array in pool)
        return cls(
            x=x,
            y=as_labels(y),
            row_splits=splits,
            client_ids=client_ids,
            attributes=dict(zip(names[2:], others)),
        )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], part: str) -> Examples:
        """Builds the examples of a part from a cache's arrays, without a copy.

        They are `client_ids` [K] and, for each part, `sizes_PART` [K] and `x_PART`,
        `y_PART` and attributes [N, ...], the clients' examples one after the other.
        """
        suffix = f"_{part}"
        columns = {
            k[: -len(suffix)]: array
            for k, array in arrays.items()
            if k.endswith(suffix)
        }
        return cls(
            x=columns.pop("x"),
            y=columns.pop("y"),
            row_splits=np.cumsum([0, *columns.pop("sizes")], dtype=np.int64),
            client_ids=tuple(arrays["client_ids"].tolist()),
            attributes=columns,
        )

    @property
    def num_clients(self) -> int:
        """The number of clients, K."""
        return len(self.client_ids)

    @property
    def num_examples(self) -> int:
        """The number of all clients' examples, N."""
        return len(self.y)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The number of examples of each client, int64 [K]."""
        return np.diff(self.row_splits)

    @property
    def has_classes(self) -> bool:
        """Whether y are labels of classes, not the values of a regression."""
        return bool(self.y.dtype.kind == "i")

    @property
    def has_positions(self) -> bool:
        """Whether y has a label for each position of an example."""
        return self.has_classes and self.y.ndim > 1

    @functools.cached_property
    def label_counts(self) -> npt.NDArray[np.int64]:
        """The number of labels of each client that count, int64 [K].

        It is the number of positions that count, or of examples: that over which losses
        and accuracies are means.
        """
        return np.diff(self._label_splits) if self.has_positions else self.sizes

    @property
    def num_labels(self) -> int:
        """The number of all clients' labels that count."""
        return int(self.label_counts.sum())

    def counted_labels(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Returns the labels that count, int32 [P], and their clients, int64 [K + 1].

        The second array is the `row_splits` of the first. With one label for each
        example they are `y` and `row_splits`.
        """
        if not self.has_positions:
            return self.y, self.row_splits
        return self.y[self.y != MASKED], self._label_splits

    @functools.cached_property
    def _label_splits(self) -> npt.NDArray[np.int64]:
        """`row_splits` of the labels that count; reads mapped labels chunk by chunk."""
        counts = [
            np.count_nonzero(self.y[start : start + _ROWS_PER_CHUNK] != MASKED, axis=1)
            for start in range(0, len(self.y), _ROWS_PER_CHUNK)
        ]
        ends = np.concatenate([[0], *counts], dtype=np.int64).cumsum()
        return ends[self.row_splits]

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of one example's x."""
        return self.x.shape[1:]

    def position(self, client: int | str) -> int:
        """Returns the number, 0 to K - 1, of a client given by its number or its id.

        Raises:
            DataError: the client is unknown, or its number is another client's name.
        """
        by_name: Mapping[str, int] = {}
        if not isinstance(client, ClientNumber):
            by_name = self._index if isinstance(client, str) else self._numeric_names
        number = find_number(client, self.client_ids, by_name)
        if number is not None:
            return number
        raise DataError(
            f"unknown client {client!r}: the {self.num_clients} clients are "
            f"{self.client_ids[0]!r} to {self.client_ids[-1]!r}, or 0 to "
            f"{self.num_clients - 1} by number"
        )

    def describe_owner(self, row: int) -> str:
        """Returns the client of an example in the words of messages."""
        k = int(np.searchsorted(self.row_splits, row, side="right")) - 1
        return f"client {self.client_ids[k]!r}"

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {client: k for k, client in enumerate(self.client_ids)}

    @functools.cached_property
    def _numeric_names(self) -> dict[str, int]:
        """The numbers of the clients whose names are digits, by name."""
        ids = self.client_ids
        if isinstance(ids, ClientIds):
            digits = np.flatnonzero(np.char.isdigit(ids.encoded)).tolist()
        else:
            digits = [k for k, client in enumerate(ids) if client.isdigit()]
        return {ids[k]: k for k in digits}

    def client(self, client: int | str) -> dict[str, npt.NDArray[Any]]:
        """Returns one client's `x`, `y` and attributes, as views.

        Raises:
            DataError: the client is unknown.
        """
        k = self.position(client)
        rows = slice(self.row_splits[k], self.row_splits[k + 1])
        extras = {name: values[rows] for name, values in self.attributes.items()}
        return {"x": self.x[rows], "y": self.y[rows], **extras}

    def subset(self, clients: Iterable[int | str]) -> Examples:
        """Returns a copy of these clients' examples, in this order.

        Args:
            clients: the clients, by their numbers or ids.

        Raises:
            DataError: a client is unknown or named twice, or none is named.
            SettingError: the clients have no order, as a set, or are text.
        """
        chosen = [
            self.position(client) for client in require_sequence("clients", clients)
        ]
        if not chosen:
            raise DataError("clients is empty: a subset needs at least one")
        rows = [np.arange(*self.row_splits[k : k + 2]) for k in chosen]
        return self._gather(rows, chosen)

    def take(self, count: int) -> Examples:
        """Returns a copy of at most the first `count` examples of every client.

        Raises:
            DataError: `count` is negative.
        """
        if count < 0:
            raise DataError(f"count must be 0 or more, got {count}")
        sizes = np.minimum(self.sizes, count)
        rows = [start + np.arange(n) for start, n in zip(self.row_splits, sizes)]
        return self._gather(rows, range(self.num_clients))

    def limit(self, max_examples: int, seed: int) -> Examples:
        """Returns a copy with at most `max_examples` of every client, by a seed.

        Examples stay in their order. A client's draw depends on no other client.
        """
        starts, sizes = self.row_splits, self.sizes.tolist()
        rows = [
            start + partition.draw_at_most(max_examples, client, size, seed)
            for start, client, size in zip(starts, self.client_ids, sizes)
        ]
        return self._gather(rows, range(self.num_clients))

    def release(self) -> None:
        """Frees the pages that were read from memory-mapped arrays."""
        for array in (self.x, self.y, self.row_splits, *self.attributes.values()):
            # Without bytes an array has no map.
            if isinstance(array, np.memmap) and array.nbytes:
                mapped: Any = array
                mapped._mmap.madvise(mmap.MADV_DONTNEED)

    # Earlier names, for one more release.
    of_arrays, owner = from_arrays, describe_owner
    stored = property(lambda self: self.store_part)

    def _gather(self, rows: list[npt.NDArray[Any]], clients: Iterable[int]) -> Examples:
        ids = [self.client_ids[k] for k in clients]
        return Examples.from_parts(self.x, self.y, rows, ids, self.attributes)


def as_labels(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns labels as int32, values as float32; a `DataError` if they do not fit."""
    if y.dtype.kind not in "biuf":
        raise DataError(f"y must be integers or floats, got {y.dtype}")
    if y.dtype.kind == "f":
        with np.errstate(over="ignore"):
            values = y.astype(np.float32)
        if not np.isfinite(values).all():
            raise DataError(
                "y has a value that is not finite, or too large for float32"
            )
        return values
    labels = y.astype(np.int32)
    if not np.array_equal(labels, y) or labels.max(initial=0) > LARGEST_LABEL:
        raise DataError(f"y has a label beyond 2^31 - 2: {y.max()}, or {y.min()}")
    return labels


def check_label_shape(y: npt.NDArray[Any]) -> None:
    """Raises a `DataError` for classes that are neither [n] nor [n, T], T above 0."""
    if y.dtype.kind != "i" or y.ndim == 1 or (y.ndim == 2 and y.shape[1]):
        return
    raise DataError(
        "y must have one label for each example, [n], or one for each of its T "
        f"positions, [n, T]; got the shape {list(y.shape)}"
    )


def find_negative_label(y: npt.NDArray[Any]) -> tuple[int, str] | None:
    """Returns the row of a label below 0, except `MASKED`, and the words of an error.

    `MASKED` is allowed among labels of positions. The result is None if all labels are
    valid.
    """
    lowest = MASKED if y.ndim > 1 else 0
    if y.dtype.kind != "i" or not y.size or y.min() >= lowest:
        return None
    row = int(y.argmin()) // (y.size // len(y))
    masked = f"; {MASKED} marks a position that does not count" if y.ndim > 1 else ""
    return row, f"y has a negative label, {y.min()}{masked}"


def _ordered_ids(client_ids: Iterable[str]) -> tuple[str, ...]:
    """Returns clients' names in their order; of a mapping by name, its keys."""
    if isinstance(client_ids, Mapping):
        client_ids = client_ids.keys()
    return require_sequence("client_ids", client_ids)


def _rows(part: Any, size: int, name: str) -> npt.NDArray[np.int64]:
    """Returns the indices of a part, given as indices or as a mask of `size`."""
    if hasattr(part, "get_indexer"):
        raise DataError(
            f"{name} is an index of pandas, whose labels are not positions: give "
            "indices, such as table.groupby(column).indices, or a mask"
        )
    rows = check_unmasked(part, name)
    if rows.dtype == bool and rows.shape == (size,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
        description = f"{rows.dtype} {list(rows.shape)}"
        raise DataError(
            f"{name} must be indices, or a mask of {size}, got {description}"
        )
    return rows.astype(np.int64, copy=False)


def check_unmasked(values: Any, name: str) -> npt.NDArray[Any]:
    """Returns values as an array; raises a `DataError` if some are masked."""
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        raise DataError(f"{name} has masked values: fill them, or remove the rows")
    return values if isinstance(values, np.memmap) else np.asarray(values)


def check_same_order(columns: Mapping[str, Any]) -> None:
    """Raises a `DataError` if columns of pandas have the same rows in another order.

    Columns with other labels are read by position, as arrays are.
    """
    frames = {k: v.index for k, v in columns.items() if hasattr(v, "iloc")}
    for name, index in frames.items():
        first, expected = next(iter(frames.items()))
        if index is expected or index.equals(expected) or len(index) != len(expected):
            continue
        if index.sort_values().equals(expected.sort_values()):
            raise DataError(
                f"{name} has the rows of {first} in another order, by their indexes: "
                f"sort it with .loc[{first}.index]"
            )


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
