"""The lists of CelebA's photos: CelebA's two files, or LEAF's JSON.

Either becomes a data frame with a row for each photo, by its name without suffix
(LEAF's copies are .png, the originals .jpg): `identity`, the person's number;
`smiling`, the label; `sharp`, 0 where Blurry is set, which LEAF's JSON has only with
the file of attributes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from leaf_data.datasets.celeba_clients import Clients, Rows
from leaf_data.errors import DataError, raising_data_error
from leaf_data.formats import leaf_json

# Who is on each photo, and the photos' 40 attributes.
FILES = IDENTITIES, ATTRIBUTES = "identity_CelebA.txt", "list_attr_celeba.txt"


def read_raw(folder: str) -> pd.DataFrame:
    """Reads CelebA's files, in the order of `identity_CelebA.txt`."""
    path = os.path.join(folder, IDENTITIES)
    with raising_data_error(path, "cannot be read", ValueError):
        people = pd.read_csv(path, sep=r"\s+", names=["photo", "identity"], dtype=str)
    # Ascending identities are part of a client rule: they have to be numbers.
    people = _index_by_photo(path, people, ["identity"], r"[0-9]{1,18}", "a number")
    people["identity"] = people["identity"].astype("int64").astype(str)
    attributes = read_attributes(os.path.join(folder, ATTRIBUTES))
    for name in people.index.symmetric_difference(attributes.index):
        raise DataError(
            f"{folder}: {name!a:.80} is in only one of {IDENTITIES} and {ATTRIBUTES}"
        )
    return people.join(attributes)


def read_attributes(path: str) -> pd.DataFrame:
    """Reads `list_attr_celeba.txt`: the number of photos, the header, the rows."""
    with raising_data_error(path, "cannot be read", ValueError):
        with open(path, encoding="utf-8-sig") as file:
            count, header = file.readline().split(), file.readline().split()
            for column in ("Smiling", "Blurry"):
                if column not in header:
                    raise DataError(f"{path}: line 2 has no column {column}")
            table = pd.read_csv(file, sep=r"\s+", names=["photo", *header], dtype=str)
    table = _index_by_photo(path, table, ["Smiling", "Blurry"], "1|-1", "1 or -1")
    if count != [str(len(table))]:
        raise DataError(
            f"{path}: line 1 is {count!a:.40}, but {len(table)} photos follow"
        )
    return pd.DataFrame(
        {
            "smiling": (table["Smiling"] == "1").astype(np.int32),
            "sharp": (table["Blurry"] == "-1").astype(np.uint8),
        }
    )


def read_leaf(
    files: Sequence[leaf_json.LeafFile], folder: str
) -> tuple[pd.DataFrame, Clients, list[str]]:
    """Reads LEAF's JSON, and the attributes if the folder has them.

    Returns the photos, the clients of files that LEAF has split, and their sha256s.
    """
    attributes = os.path.join(folder, ATTRIBUTES)
    rows, users, digests = [], {}, []
    for file in files:
        examples_by_user, digest = leaf_json.read(file.path, _names_and_labels)
        digests.append(digest)
        for user, examples in examples_by_user.items():
            users[user] = file.path
            rows += [(name, user, label, file.part) for name, label in examples]
    columns = ["photo", "identity", "smiling", "part"]
    photos = pd.DataFrame(rows, columns=columns).set_index("photo")
    for name, user in photos["identity"][photos.index.duplicated()].items():
        raise DataError(f"{users[user]}: user {user}: {name!a:.80} appears twice")
    if os.path.exists(attributes):
        photos = photos.join(read_attributes(attributes)["sharp"])
        for name in photos.index[photos["sharp"].isna()]:
            raise DataError(f"{attributes}: has no photo {name!a:.80}, which LEAF has")
        photos["sharp"] = photos["sharp"].astype(np.uint8)
    clients: Clients = {}
    if files[0].part != "all":
        train, test = (
            rows_by_identity(photos, photos["part"] == part)
            for part in ("train", "test")
        )
        none = np.zeros(0, np.int64)
        clients = {
            user: (train.get(user, none), test.get(user, none)) for user in users
        }
    return photos, clients, digests


def rows_by_identity(photos: pd.DataFrame, among: Any = True) -> dict[str, Rows]:
    """Returns each identity's rows in file order, in the order they appear."""
    rows = np.flatnonzero(np.broadcast_to(among, len(photos)))
    owners, names = pd.factorize(photos["identity"].to_numpy()[rows])
    ends = np.cumsum(np.bincount(owners, minlength=len(names)))
    parts = np.split(rows[np.argsort(owners, kind="stable")], ends[:-1])
    return dict(zip(names, parts))


def _index_by_photo(
    path: str, table: pd.DataFrame, columns: list[str], form: str, words: str
) -> pd.DataFrame:
    """Returns columns by photo; raises a `DataError` for other or repeated texts."""
    for column in columns:
        valid = table[column].str.fullmatch(form, na=False)
        for name, value in table[["photo", column]][~valid].itertuples(index=False):
            raise DataError(
                f"{path}: {name!a:.80}: {column} must be {words}, got {value!a:.40}"
            )
    if not len(table):
        raise DataError(f"{path}: contains no photo")
    table = table.set_index(table["photo"].str.rsplit(".", n=1).str[0])
    for name in table.index[table.index.duplicated()]:
        raise DataError(f"{path}: {name!a:.80} appears twice")
    return table[columns]


def _names_and_labels(x: list[Any], y: list[Any]) -> list[tuple[str, int]]:
    for name, label in zip(x, y):
        if not isinstance(name, str) or not name:
            raise DataError(f"x holds {name!a:.40}, not a photo's name")
        if type(label) not in (int, float) or label not in (0, 1):
            raise DataError(f"{name!a:.80} has the label {label!r:.40}, not 0 or 1")
    return [(os.path.splitext(name)[0], int(label)) for name, label in zip(x, y)]
