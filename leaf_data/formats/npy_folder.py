"""A folder of memory-mapped `.npy` files; `header.json` has their checksums."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.lib.format
import numpy.typing as npt

from leaf_data.errors import DataError, check_name, raising_data_error
from leaf_data.formats import data_files

HEADER = "header.json"


class Writer:
    """Writes such a folder row by row; a context that removes it after an error."""

    def __init__(self, path: str, *, replace: bool = False) -> None:
        self._path = os.path.abspath(data_files.expand_path(path))
        if os.path.lexists(self._path) and not replace:
            raise DataError(f"{path}: already exists: choose a new folder")
        self._partial = f"{self._path}.{uuid.uuid4().hex}.partial"
        self._arrays: dict[str, dict[str, Any]] = {}
        self._files: dict[str, tuple[Any, Any]] = {}  # And a checksum each.
        with raising_data_error(path, "cannot be made"):
            os.makedirs(self._partial)

    def append(self, name: str, rows: npt.NDArray[Any]) -> None:
        """Adds rows to an array, [n, ...]; the first rows set its type and shape."""
        like = {"dtype": rows.dtype.str, "shape": [0, *rows.shape[1:]]}
        if name not in self._files:
            file = open(os.path.join(self._partial, f"{name}.npy"), "wb")
            self._files[name], self._arrays[name] = (file, hashlib.sha256()), like
            self._write_header(name)
        declared = self._arrays[name]
        if {**declared, "shape": [0, *declared["shape"][1:]]} != like:
            raise DataError(
                f"{name} has rows of {rows.dtype} {like['shape'][1:]}, but earlier "
                f"rows were {np.dtype(declared['dtype'])} {declared['shape'][1:]}"
            )
        content = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        with raising_data_error(
            self._path, "cannot be written"
        ):  # A full disk names no file.
            self._files[name][0].write(content)
        self._files[name][1].update(content)
        declared["shape"][0] += len(rows)

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns the current shape of an array."""
        return tuple(self._arrays[name]["shape"])

    def finish(self, about: Mapping[str, Any]) -> None:
        """Writes the headers, and renames the folder to its final name."""
        for name, (file, digest) in self._files.items():
            self._write_header(name)
            file.close()
            self._arrays[name]["sha256"] = digest.hexdigest()
        with open(os.path.join(self._partial, HEADER), "w") as header:
            json.dump({"format": 1, **about, "arrays": self._arrays}, header, indent=1)
        if os.path.lexists(self._path):
            shutil.rmtree(self._path)  # Processes that have mapped it keep it.
        os.rename(self._partial, self._path)

    def _write_header(self, name: str) -> None:
        file, declared = self._files[name][0], self._arrays[name]
        file.seek(0)  # The header is as long for any number of rows.
        description = {"descr": declared["dtype"], "shape": tuple(declared["shape"])}
        form: Any = numpy.lib.format  # It has no types.
        form.write_array_header_1_0(file, {**description, "fortran_order": False})

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *unused: Any) -> None:
        for file, _ in self._files.values():
            with contextlib.suppress(OSError):  # A full disk, reported already.
                file.close()
        shutil.rmtree(self._partial, ignore_errors=True)


def open_folder(
    path: str, *, verify: bool = False
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Maps the arrays, and returns them and the header; `verify` reads all of them."""
    name, arrays = os.path.join(path, HEADER), {}
    with raising_data_error(name, "is not a header", ValueError, RecursionError):
        header = json.loads(data_files.read(name))
        if not isinstance(header, dict) or header.get("format") != 1:
            raise ValueError("it needs format 1")
    with raising_data_error(
        path, "cannot be read", Exception
    ):  # Damage raises nearly anything.
        for array, declared in header["arrays"].items():
            check_name(array, f"{name}: the array")
            file = os.path.join(path, f"{array}.npy")
            with raising_data_error(file, "cannot be read", Exception):
                mapped = np.load(file, mmap_mode="r", allow_pickle=False)
                if list(mapped.shape) != declared["shape"]:
                    raise ValueError(f"its shape is {mapped.shape}, not as in {HEADER}")
                content = np.ascontiguousarray(mapped).reshape(-1).view(np.uint8).data
                if verify and hashlib.sha256(content).hexdigest() != declared["sha256"]:
                    raise DataError(
                        f"{file}: its content is not what was written (sha256): copy "
                        "it again"
                    )
            arrays[array] = mapped
    return arrays, header
