"""Attributes of clients, which no example shows (numpy only).

PMC (section 4.2) names criteria that no example shows: the trustworthiness of a
device, commercial targets, group membership. Such attributes are booleans or
numbers in [0, 1], a column each, a row for every client.
"""

from __future__ import annotations

import collections
import csv
import dataclasses
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, check_name, reading
from leaf_data.formats import places

_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_CLIENT = "client"
_MAX_BYTES = 1 << 23  # A table of 10,000 clients and ten attributes has one of them.


@dataclasses.dataclass(frozen=True, eq=False)
class ClientTable:
    """A table of clients' attributes, a row for each of K clients.

    Attributes:
        client_ids: the clients, in the order of the values; none in an empty table.
        values: the columns by name, float32 [K] with values in [0, 1].
        origin: the file the table came from, in words with its checksum; "" if none.
    """

    client_ids: tuple[str, ...] = ()
    values: Mapping[str, npt.NDArray[np.float32]] = dataclasses.field(
        default_factory=dict
    )
    origin: str = ""

    @classmethod
    def from_dict(
        cls, attributes: Mapping[str, Mapping[str, Union[bool, float]]]
    ) -> ClientTable:
        """Returns a table of `{client: {name: value}}`.

        Args:
            attributes: each client's values by name: booleans or numbers in [0, 1].

        Raises:
            DataError: a client lacks an attribute, or a value is not a boolean or
                a number in [0, 1]; the message names client and attribute.
        """
        names = list(next(iter(attributes.values()), ()))
        for client, row in attributes.items():
            for name in sorted(set(row) ^ set(names)):
                raise DataError(
                    f"client {client}: the attribute {name} is not there for every "
                    "client"
                )
        rows = {
            client: [row[name] for name in names] for client, row in attributes.items()
        }
        return _table(names, rows, "a dict")

    def of(self, client_ids: Sequence[str]) -> ClientTable:
        """Returns the rows of these clients, in their order.

        Raises:
            DataError: a client is not in the table; the message names it.
        """
        places = {client: place for place, client in enumerate(self.client_ids)}
        for client in client_ids:
            if client not in places:
                raise DataError(
                    f"the client table ({self.origin}) has no row for {client}"
                )
        rows = [places[client] for client in client_ids]
        values = {name: column[rows] for name, column in self.values.items()}
        return ClientTable(tuple(client_ids), values, self.origin)


def read_client_table(path: str) -> ClientTable:
    """Reads a table from a CSV: a column `client`, and one for each attribute.

    Args:
        path: the file. A value is a number in [0, 1], or a boolean, written as true or
            false, yes or no.

    Raises:
        DataError: the file is missing or no such table, a client or a column is there
            twice, or a name is none; the message names file, client and attribute.
    """
    with reading(path, "cannot be read as CSV", UnicodeDecodeError, csv.Error):
        content = places.read(path, _MAX_BYTES)
        file = io.StringIO(content.decode("utf-8-sig"), newline="")
        header, rows = _read_rows(path, csv.reader(file, strict=True))
    digest = hashlib.sha256(content).hexdigest()
    return _table(header, rows, f"CSV, sha256 {digest}", f"{path}: ")


def _read_rows(
    path: str, lines: Iterator[list[str]]
) -> tuple[list[str], dict[str, list[str]]]:
    """Returns the names of the attributes, and the fields of each client."""
    none = DataError(
        f"{path}: a client table has a column 'client', at least one more, and rows"
    )
    header = next(lines, [])
    for name, count in collections.Counter(header).items():
        check_name(name, f"{path}: the column")
        if count > 1:
            raise DataError(f"{path}: the column {name} is there twice")
    if _CLIENT not in header or len(header) < 2:
        raise none
    place = header.index(_CLIENT)
    rows: dict[str, list[str]] = {}
    # An empty line is no row.
    for number, row in enumerate((line for line in lines if line), 2):
        if len(row) != len(header) or not row[place]:
            raise DataError(f"{path}: line {number} has the wrong number of fields")
        client = check_name(row.pop(place), f"{path}: line {number}: the client")
        if client in rows:
            raise DataError(f"{path}: client {client} is there twice")
        rows[client] = row
    if not rows:
        raise none
    return header[:place] + header[place + 1 :], rows


def _table(
    names: Sequence[str],
    rows: Mapping[str, Sequence[Any]],
    origin: str,
    where: str = "",
) -> ClientTable:
    """Makes the table of each client's values in the order of the names."""
    values = {
        name: np.array(
            [
                _value(row[place], f"{where}client {client}: {name}")
                for client, row in rows.items()
            ],
            np.float32,
        )
        for place, name in enumerate(names)
    }
    return ClientTable(tuple(rows), values, origin)


def _value(value: Any, what: str) -> float:
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower(), value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 <= number <= 1.0:
        raise DataError(f"{what} must be a boolean or in [0, 1], got {value!r:.40}")
    return number
