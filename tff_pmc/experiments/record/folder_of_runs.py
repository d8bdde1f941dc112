"""A folder for several runs, held by one process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from tff_pmc.experiments.record import files, same_run


@contextlib.contextmanager
def folder_of_runs(
    output_dir: str, plan: Mapping[str, Any], *, resume: bool
) -> Iterator[None]:
    """A folder for several runs, held by this process alone.

    Args:
        output_dir: a folder that is empty or not there yet, or, to resume, one of
            the same plan or of a part of it (`same_run.check_same`).
        plan: the shared settings and the labels of the runs, for `run.json`.
        resume: whether the folder holds runs to go on with.

    Raises:
        RecordError: the folder holds something else, or is in use.
    """
    to_write = True
    if resume:
        before = files.read_json(output_dir)
        to_write = same_run.check_same(output_dir, before, plan)
        files.check_plain(output_dir)
    else:
        files.make_empty_folder(output_dir)
    lock = files.take_lock(output_dir)
    try:
        files.sweep(output_dir)
        if to_write:
            files.write_json(output_dir, plan)
        yield
    finally:
        os.close(lock)
