"""The names of the clients of a large federation, as one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, check_name


class ClientNumber(int):
    """A client's number, 0 to K - 1, where clients may have numbers for names.

    Functions raise a `DataError` for a plain `int` that is another client's name.
    """


def find_number(
    client: Any, ids: Sequence[str], by_name: Mapping[str, int]
) -> Optional[int]:
    """Returns the number of a client given by its name or number, or None if unknown.

    Args:
        client: the name, or the number, 0 to K - 1.
        ids: the K clients' names.
        by_name: the numbers of the clients by name; to look up a number, the clients
            with a number for a name are enough.

    Raises:
        DataError: `client` is the number of one client and the name of another.
    """
    if isinstance(client, str):
        return by_name.get(client)
    is_number = isinstance(client, (int, np.integer)) and not isinstance(client, bool)
    if not is_number or not 0 <= client < len(ids):
        return None
    number = int(client)
    if not isinstance(client, ClientNumber):
        named = by_name.get(str(number), number)
        if named != number:
            raise DataError(
                f"client {number} is the number of {ids[number]!r} and the name of "
                f"another client: give the name, {ids[number]!r} or {str(number)!r}"
            )
    return number


class ClientIds(Sequence[str]):
    """The names of K clients in an array, for federations too large for a tuple.

    Attributes:
        encoded: the names in UTF-8, bytes [K].

    Raises:
        DataError: (constructor) a name is invalid, or appears twice.
    """

    def __init__(self, encoded: npt.NDArray[Any]) -> None:
        if encoded.ndim != 1 or encoded.dtype.kind != "S" or not len(encoded):
            raise DataError(
                f"the array of client ids must be bytes [K], got {encoded.dtype} "
                f"{list(encoded.shape)}"
            )
        self.encoded = encoded
        letters = np.ascontiguousarray(encoded).view(np.uint8).reshape(len(encoded), -1)
        ends = letters == 0  # After a name; a name contains no 0.
        plain = ((letters >= 32) & (letters < 127)) | ends
        if not plain.all() or ends[:, 0].any() or (ends[:, :-1] > ends[:, 1:]).any():
            for name in self:  # Slow, so only if some are not ASCII.
                check_id(name)
        if len(np.unique(encoded)) < len(encoded):
            raise DataError("a client id appears twice: ids must be unique")

    @classmethod
    def from_names(cls, names: Sequence[str]) -> ClientIds:
        """Returns the same names as an array."""
        if isinstance(names, ClientIds):
            return names
        return cls(np.char.encode(np.array(names, str), "utf-8"))

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return tuple(map(_decode, self.encoded[place]))
        return _decode(self.encoded[place])

    def __iter__(self) -> Iterator[str]:
        return map(_decode, self.encoded)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ClientIds):
            return np.array_equal(self.encoded, other.encoded)
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


def _decode(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"client id {ascii(name[:40])} is not UTF-8") from error


def check_id(client: Any) -> None:
    """Raises a `DataError` if this cannot be the name of a client."""
    if not isinstance(client, str) or not client:
        raise DataError(f"client ids must be non-empty text, got {client!r}")
    check_name(client, "client id")
