"""Attributes of clients, in addition to their examples (numpy only).

PMC (section 4.2) names criteria that do not follow from examples: the trustworthiness
of a device, commercial targets, group membership. Such attributes are booleans or
numbers in [0, 1]: one column per attribute, one row per client.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data.client_ids import check_id, find_number
from leaf_data.errors import DataError, check_name
from leaf_data.formats import csv_fields, data_files

_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_CLIENT = "client"


@dataclasses.dataclass(frozen=True, eq=False)
class ClientTable:
    """A table of clients' attributes, one row for each of K clients.

    Attributes:
        client_ids: the clients, in the order of the values; () in an empty table.
        values: the columns by name, float32 [K] with values in [0, 1]; the constructor
            also takes dicts by client and pandas Series whose index names the clients.
        origin: the source of the table, in words with a file's checksum; "" if unknown.

    Raises:
        DataError: (constructor) a column does not have one value for each client.
    """

    client_ids: tuple[str, ...] = ()
    values: Mapping[str, npt.NDArray[np.float32]] = dataclasses.field(
        default_factory=dict
    )
    origin: str = ""

    def __post_init__(self) -> None:
        values = {
            name: np.asarray(
                values_by_client(column, self.client_ids, f"the attribute {name}"),
                np.float32,
            )
            for name, column in self.values.items()
        }
        for name, column in values.items():
            if column.shape != (len(self.client_ids),):
                raise DataError(
                    f"the attribute {name} must have a value for each of the "
                    f"{len(self.client_ids)} clients, got {list(column.shape)}"
                )
        object.__setattr__(self, "values", values)

    @classmethod
    def from_dict(
        cls, attributes: Mapping[str, Mapping[str, Union[bool, float]]]
    ) -> ClientTable:
        """Builds a table from `{client: {name: value}}`.

        Args:
            attributes: each client's values by name: booleans or numbers in [0, 1].

        Raises:
            DataError: `attributes` has another form, an attribute is missing for a
                client, or a value is not a boolean or a number in [0, 1]; the message
                names client and attribute.
        """
        rows = attributes.values() if isinstance(attributes, Mapping) else [attributes]
        for row in rows:
            if not isinstance(row, Mapping):
                raise DataError(
                    "a client table must map each client to its attributes, "
                    f"{{client: {{name: value}}}}; got {row!r:.40}"
                )
        for client in attributes:
            check_id(client)
        clients = tuple(attributes)
        names = tuple(attributes[clients[0]]) if clients else ()
        for client, row in attributes.items():
            if set(row) != set(names):
                odd = sorted(set(row) ^ set(names))[0]
                raise DataError(
                    f"client {client}: some clients have the attribute {odd} and some "
                    "do not: give it for all or for none"
                )
        values = {
            name: np.array(
                [
                    _value(row[name], f"client {client}", name)
                    for client, row in attributes.items()
                ],
                np.float32,
            )
            for name in names
        }
        return cls(clients, values, "a dict")

    def of(self, client_ids: Sequence[str]) -> ClientTable:
        """Returns the table of these clients alone, in this order.

        Raises:
            DataError: a client is not in the table; the message names it.
        """
        places = {client: place for place, client in enumerate(self.client_ids)}
        for client in client_ids:
            if client not in places:
                raise DataError(
                    f"the client table ({self.origin}) has no row for {client}: add one"
                )
        rows = [places[client] for client in client_ids]
        values = {name: column[rows] for name, column in self.values.items()}
        return ClientTable(tuple(client_ids), values, self.origin)


def values_by_client(column: Any, client_ids: Sequence[str], name: str) -> Any:
    """Returns a column of attributes in the order of the clients.

    Args:
        column: an array in this order, which is returned unchanged; or values by client
            in any order: a mapping, or a pandas Series, by its index. Its keys are
            names, or numbers 0 to K - 1; names of other clients are ignored.
        client_ids: the K clients' names.
        name: the column's name in messages.

    Raises:
        DataError: a client has no value or several, a key is not a client, or a value
            of an array is masked.
    """
    if isinstance(column, Mapping):
        keys, entries = list(column), list(column.values())
    elif hasattr(column, "iloc"):
        keys, entries = list(column.index), list(column.to_numpy())
    elif isinstance(column, np.ma.MaskedArray) and np.any(column.mask):
        raise DataError(f"{name} has masked values: fill them")
    else:
        return column
    by_name = {client: number for number, client in enumerate(client_ids)}
    values: dict[int, Any] = {}
    for key, value in zip(keys, entries):
        try:
            number = find_number(key, client_ids, by_name)
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
        if number is None and not isinstance(key, str):
            raise DataError(
                f"{name}: {key!r:.40} is not a client: use clients' names as keys or "
                "index, or an array in the clients' order"
            )
        if number in values:
            raise DataError(f"{name} has two values for {client_ids[number]!r}")
        if number is not None:
            values[number] = value
    for number, client in enumerate(client_ids):
        if number not in values:
            raise DataError(f"{name} has no value for the client {client!r}")
    return np.array([values[number] for number in range(len(client_ids))])


def read_client_table(path: str) -> ClientTable:
    """Reads a table from a CSV: a column `client`, and one for each attribute.

    Args:
        path: the file. A value is a number in [0, 1], or a boolean, written as true or
            false, yes or no.

    Returns:
        The table; its `origin` has the file's checksum.

    Raises:
        DataError: the file is missing or not such a table, a client or a column appears
            twice, or a name is missing or invalid; the message names file, line, client
            and attribute.
    """
    clients, columns = _read_rows(path)
    values = {name: np.array(column, np.float32) for name, column in columns.items()}
    return ClientTable(tuple(clients), values, f"CSV, sha256 {data_files.sha256(path)}")


def _read_rows(path: str) -> tuple[list[str], dict[str, list[float]]]:
    """Returns the clients of a CSV, and their values by column."""
    columns: dict[str, list[float]] = {}
    clients: dict[str, None] = {}
    for where, row in csv_fields.read_rows(path, [_CLIENT]):
        if not columns:
            csv_fields.check_column_names([*row], path)
            columns = {name: [] for name in row if name != _CLIENT}
        client = row.pop(_CLIENT).strip()
        if not client:
            raise DataError(f"{where}: the column {_CLIENT} is empty")
        check_name(client, f"{where}: the client")
        if client in clients:
            raise DataError(
                f"{where}: client {client} appears twice: keep one row for each client"
            )
        clients[client] = None
        for name, value in row.items():
            columns[name].append(_value(value, f"{where}: client {client}", name))
    if not columns:
        raise DataError(
            f"{path}: a client table needs the column '{_CLIENT}', at least one "
            "attribute, and rows"
        )
    return list(clients), columns


def _value(value: Any, where: str, name: str) -> float:
    content = value
    if isinstance(value, str):
        word = _WORDS.get(value.strip().lower())
        content = csv_fields.parse_number(value) if word is None else word
    try:
        number = float(content)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0.0 <= number <= 1.0:
        raise DataError(
            f"{where}: {name} must be a boolean or in [0, 1], got {value!r:.40}"
        )
    return number
