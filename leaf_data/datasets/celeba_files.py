"""The list of CelebA's photos and their people: of its own files, or of LEAF's JSON.

LEAF's files hold the photos' names as `x` and Smiling as `y`, 0.0 or 1.0, of the
identities with 5 photos or more. Images and sharpness are CelebA's own files'.
"""

from __future__ import annotations

import collections
import dataclasses
import io
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from leaf_data.datasets.celeba_clients import Clients
from leaf_data.errors import DataError, check_name, reading
from leaf_data.formats import data_files, leaf_json

IDENTITIES = "identity_CelebA.txt"  # Who is on each photo.
ATTRIBUTES = "list_attr_celeba.txt"  # The photos' 40 attributes.
IMAGES = "img_align_celeba"  # The folder of the images.
SIDE = 64  # The width and height that the images are given, in pixels.
DRAWN_PREFIX = "drawn_"  # Every drawing's file name begins so: it is a stand-in.

# All photos' list has 27 MB; its longest line, of attributes' names, 500 characters.
_MAX_BYTES, _MAX_LINE, _MAX_DIGITS = 1 << 27, 1 << 14, 18
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, eq=False)
class Photos:
    """The names, people and attributes of N photos, without their pixels."""

    names: tuple[str, ...]  # Without suffix: LEAF's copies are .png, the original .jpg.
    identities: tuple[str, ...]  # The person's number in the file, e.g. "2880".
    smiling: npt.NDArray[np.int32]  # [N], the label: 1 where Smiling is 1, else 0.
    sharp: Optional[npt.NDArray[np.uint8]]  # [N], 0 where Blurry is 1; None if unknown.

    @property
    def drawn(self) -> bool:
        """Whether any of them is a drawing of `leaf_data.datasets.drawn_faces`."""
        return any(name.startswith(DRAWN_PREFIX) for name in self.names)

    def by_identity(self) -> dict[str, npt.NDArray[Any]]:
        """Returns each identity's rows in file order, in the order they appear."""
        rows: dict[str, list[int]] = collections.defaultdict(list)
        for row, identity in enumerate(self.identities):
            rows[identity].append(row)
        return {identity: np.array(found) for identity, found in rows.items()}


def find(folders: Sequence[str], needed: Sequence[str]) -> str:
    """Finds LEAF's `raw` folder: in each folder `data/raw`, `raw` and itself."""
    for folder in folders:
        for sub in (os.path.join("data", "raw"), "raw", ""):
            found = os.path.join(folder, sub).rstrip(os.sep)
            if os.path.isdir(os.path.join(found, IMAGES)):
                for name in needed:
                    if not os.path.exists(os.path.join(found, name)):
                        raise DataError(f"{found}: has {IMAGES} but no {name}")
                return found
    words = f"{IMAGES}, each also inside data/raw and raw"
    raise data_files.missing("celeba", folders, words)


def read_photos(folder: str) -> Photos:
    """Reads `identity_CelebA.txt` and `list_attr_celeba.txt`."""
    identities = _read_identities(os.path.join(folder, IDENTITIES))
    attributes = read_attributes(os.path.join(folder, ATTRIBUTES))
    for name in sorted(identities.keys() ^ attributes.keys()):
        both = IDENTITIES, ATTRIBUTES
        one, other = both if name in identities else both[::-1]
        raise DataError(f"{folder}: {name} is in {one}, not in {other}")
    labels = {name: smiling for name, (smiling, _) in attributes.items()}
    return _photos(identities, labels, attributes)


def _photos(
    identities: Mapping[str, str],
    labels: Mapping[str, int],
    attributes: Mapping[str, tuple[int, int]],
) -> Photos:
    """Joins what is known of each photo by its name; attributes may be missing."""
    sharp = [1 - attributes[name][1] for name in identities] if attributes else None
    return Photos(
        names=tuple(identities),
        identities=tuple(identities.values()),
        smiling=np.array([labels[name] for name in identities], np.int32),
        sharp=None if sharp is None else np.array(sharp, np.uint8),
    )


def read_attributes(path: str) -> dict[str, tuple[int, int]]:
    """Reads `list_attr_celeba.txt`: the number of photos, the names, a line a photo."""
    lines = _lines(path)
    _, count = next(lines, (0, [""]))
    _, header = next(lines, (0, []))
    for column in ("Smiling", "Blurry"):
        if column not in header:
            raise DataError(f"{path}: line 2 has no column {column}")
        if header.count(column) > 1:
            raise DataError(f"{path}: line 2 has the column {column} twice")
    # The photo's name has no column of its own.
    columns = [1 + header.index(column) for column in ("Smiling", "Blurry")]
    bits = {"1": 1, "-1": 0}
    attributes: dict[str, tuple[int, int]] = {}
    for number, fields in lines:
        if len(fields) != len(header) + 1:
            raise DataError(
                f"{path}: line {number} has {len(fields)} fields, not a photo and "
                f"{len(header)} attributes"
            )
        try:
            smiling, blurry = (bits[fields[column]] for column in columns)
        except KeyError as error:
            raise DataError(
                f"{path}: line {number}: an attribute is 1 or -1, not {error!s:.40}"
            ) from error
        _add(attributes, path, number, fields[0], (smiling, blurry))
    if count != [str(len(attributes))]:
        said = ascii(" ".join(count)[:40])[1:-1]
        raise DataError(f"{path}: line 1 says {said} photos, {len(attributes)} follow")
    return attributes


def check_known(folder: str, images: Mapping[str, str], names: Sequence[str]) -> None:
    """Refuses an image that the text files do not list."""
    unknown = [images[name] for name in sorted(set(images).difference(names))]
    if unknown:
        raise DataError(
            f"{folder}: {unknown[0]}, one of {len(unknown)} images, is not in "
            f"{IDENTITIES} and {ATTRIBUTES}"
        )


def _read_identities(path: str) -> dict[str, str]:
    identities: dict[str, str] = {}
    for number, fields in _lines(path):
        # Ascending identities are part of a client rule: they have to be numbers.
        digits = fields[1] if len(fields) == 2 else ""
        if not digits.isdecimal() or len(digits) > _MAX_DIGITS:
            raise DataError(
                f"{path}: line {number} has to be a photo and a number, not "
                f"{' '.join(fields)[:80]!r}"
            )
        _add(identities, path, number, fields[0], str(int(digits)))
    if not identities:
        raise DataError(f"{path}: lists no photo")
    return identities


def _lines(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yields line number and fields of each line that is not blank."""
    with reading(path, "cannot be read", UnicodeDecodeError):
        with data_files.open_file(path, _MAX_BYTES) as content:
            file = io.TextIOWrapper(content, encoding="utf-8-sig")
            lines = iter(lambda: file.readline(_MAX_LINE), "")
            for number, line in enumerate(lines, 1):
                if len(line) == _MAX_LINE:
                    raise DataError(f"{path}: line {number} is too long")
                fields = line.split()
                if fields:
                    yield number, fields


def _stem(name: str) -> str:
    """Returns a photo's name without suffix, by which images and lists are matched."""
    return os.path.splitext(name)[0]


def _add(table: dict[str, Any], path: str, number: int, name: str, value: Any) -> None:
    check_name(name, f"{path}: line {number}: the photo")
    name = _stem(name)
    if name in table:
        raise DataError(f"{path}: line {number}: {name} is there twice")
    table[name] = value


class Listing(NamedTuple):
    """The photos that files list, with all that is known but the images."""

    words: str  # The kind of files, for the data set's origin.
    folder: str  # LEAF's raw folder, which holds the images.
    photos: Photos
    clients: Clients  # None where the files do not say who they are.
    files: tuple[tuple[str, str], ...]  # Their names and sha256s.


def of_own_files(folders: tuple[str, ...]) -> Listing:
    """Reads CelebA's own text files."""
    folder = find(folders, (IDENTITIES, ATTRIBUTES))
    return Listing("CelebA's files", folder, read_photos(folder), {}, _digests(folder))


def of_leaf(folders: tuple[str, ...]) -> Listing:
    """Reads LEAF's JSON, and CelebA's attributes if they are there."""
    files = leaf_json.find("celeba", folders)
    sub = os.path.basename(os.path.dirname(files[0].path))
    if sub in ("sampled_data", "rem_user_data"):
        raise DataError(
            f"{files[0].path}: is sampled but not split: let preprocess.sh split it, "
            "with -t sample"
        )
    folder = find(folders, ())
    path = os.path.join(folder, ATTRIBUTES)
    attributes = read_attributes(path) if os.path.exists(path) else {}
    if not attributes:
        _LOG.warning("%s: is not there, so nothing is known of sharpness", path)
    photos, clients, digests = _read_leaf(files, attributes)
    digests += _digests(folder)
    return Listing("LEAF JSON and images", folder, photos, clients, digests)


def _digests(folder: str) -> tuple[tuple[str, str], ...]:
    """Returns names and sha256s of those of CelebA's text files that are there."""
    paths = {name: os.path.join(folder, name) for name in (IDENTITIES, ATTRIBUTES)}
    there = {name: path for name, path in paths.items() if os.path.exists(path)}
    return tuple((name, data_files.sha256(path)) for name, path in there.items())


def _read_leaf(
    files: Sequence[leaf_json.LeafFile], attributes: Mapping[str, tuple[int, int]]
) -> tuple[Photos, Clients, tuple[tuple[str, str], ...]]:
    """Returns photos, clients of files that LEAF has split, and the files' sha256s."""
    labels: dict[str, int] = {}
    identities: dict[str, str] = {}
    clients: dict[str, dict[str, list[int]]] = {}
    digests = []
    for file in files:
        found, digest = leaf_json.read(file.path, _names_and_labels)
        digests.append((os.path.basename(file.path), digest))
        for user, examples in found.items():
            rows = clients.setdefault(user, {"train": [], "test": [], "all": []})
            for name, label in examples:
                where = f"{file.path}: user {user}: {name}"
                if name in labels:
                    raise DataError(f"{where} is there twice")
                if attributes and name not in attributes:
                    raise DataError(f"{where} is not in {ATTRIBUTES}")
                if attributes and attributes[name][0] != label:
                    raise DataError(
                        f"{where} has the label {label}, Smiling in {ATTRIBUTES} is "
                        f"{attributes[name][0]}"
                    )
                rows[file.part].append(len(labels))
                labels[name], identities[name] = label, user
    split: Clients = {}
    if files[0].part != "all":
        for user, parts in clients.items():
            train, test = (np.array(parts[p], np.int64) for p in ("train", "test"))
            split[user] = train, test
    return _photos(identities, labels, attributes), split, tuple(digests)


def _names_and_labels(x: list[Any], y: list[Any]) -> list[tuple[str, int]]:
    for name, label in zip(x, y):
        if not isinstance(name, str) or not name:
            raise DataError(f"x holds {name!r:.40}, not a photo's name")
        check_name(name, "the photo")
        if type(label) not in (int, float) or label not in (0, 1):
            raise DataError(f"{name} has the label {label!r:.40}, not 0 or 1")
    return [(_stem(name), int(label)) for name, label in zip(x, y)]
