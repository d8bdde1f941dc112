"""Attributes of clients, which no example shows (numpy only).

PMC (section 4.2) names criteria that no example shows: the trustworthiness of a
device, commercial targets, group membership. Such attributes are booleans or
numbers in [0, 1], a column each, a row for every client.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError

_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_CLIENT = "client"


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
        clients = tuple(attributes)
        names = tuple(attributes[clients[0]]) if clients else ()
        for client, row in attributes.items():
            if set(row) != set(names):
                odd = sorted(set(row) ^ set(names))[0]
                raise DataError(
                    f"client {client}: the attribute {odd} is not there for every "
                    "client"
                )
        values = {
            name: np.array(
                [_value(row[name], client, name) for client, row in attributes.items()],
                np.float32,
            )
            for name in names
        }
        return cls(clients, values, "a dict")

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
        DataError: the file is missing or no such table; the message names file,
            client and attribute.
    """
    try:
        with open(path, "rb") as raw:
            digest = hashlib.sha256(raw.read()).hexdigest()
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as CSV ({error})") from error
    if not rows or _CLIENT not in rows[0] or len(rows[0]) < 2:
        raise DataError(
            f"{path}: a client table has a column 'client', at least one more, and rows"
        )
    attributes: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows, 2):
        client = row.pop(_CLIENT)
        if not client or None in row or None in row.values():
            raise DataError(f"{path}: line {number} has the wrong number of fields")
        if client in attributes:
            raise DataError(f"{path}: client {client} is there twice")
        attributes[client] = row
    try:
        table = ClientTable.from_dict(attributes)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return dataclasses.replace(table, origin=f"CSV, sha256 {digest}")


def _value(value: Any, client: str, name: str) -> float:
    if isinstance(value, str):
        value = _WORDS.get(value.strip().lower(), value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 <= number <= 1.0:
        raise DataError(
            f"client {client}: {name} must be a boolean or in [0, 1], got {value!r}"
        )
    return number
