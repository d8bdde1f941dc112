"""Checks whether a recorded run can be resumed: settings, data and software."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any, Optional

from absl import logging

import tff_pmc
from tff_pmc.record import files
from tff_pmc.record.files import flatten_groups
from tff_pmc.record.record_error import RecordError

IMPORTED_PLUGINS: dict[str, str] = {}
"""The modules that `--plugin` names, and the sha256s of their files and imports."""

EXAMPLES = "examples_sha256"
"""The key, in the `data` of `run.json`, of the checksum of all examples."""

_PACKAGES = ("tensorflow-federated", "tensorflow-cpu", "tensorflow", "numpy")


def software_versions() -> dict[str, Optional[str]]:
    """Returns the versions of the software that a run's numbers depend on."""
    from tff_pmc import runtime  # It imports TensorFlow.

    versions: dict[str, Optional[str]] = {
        "tff_pmc": tff_pmc.__version__,
        "commit": _git_commit(),
        "python": platform.python_version(),
        **runtime.engine_versions(),
    }
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {**versions, **_plugin_versions()}


def warn_if_versions_differ(
    path: str, before: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    """Logs a warning that lists the versions that changed since the run started."""
    differing = "; ".join(
        f"{name}: {before.get(name)} there, {now.get(name)} here"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    )
    if differing:
        logging.warning(
            "%s was started with other versions (%s): new rounds may not be "
            "comparable with the recorded ones.",
            path,
            differing,
        )


def check_resumable(
    path: str, before: Mapping[str, Any], description: Mapping[str, Any]
) -> bool:
    """Raises a `RecordError`, which names the differences, if a run cannot be resumed.

    A run may be resumed with more rounds, orderings, seeds or learning rates than
    before. Returns whether there are more.
    """
    if not before:
        raise RecordError(f"{path} cannot be resumed: it contains no run")
    if before.get("format") != files.FORMAT:
        raise RecordError(
            f"{path} cannot be resumed: an earlier version with another format wrote "
            "it: choose another folder"
        )
    now = json.loads(
        json.dumps(description)
    )  # As the file has them: tuples become lists.
    pairs = [
        (flatten_groups(before.get("settings", {})), flatten_groups(now["settings"])),
        (before.get("data", {}), now["data"]),
    ]
    differing = {
        key: f"{key}: {_short(old.get(key))} there, {_short(new.get(key))} here"
        for old, new in pairs
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
        and not _is_extension(key, old.get(key), new.get(key))
    }
    examples = differing.pop(EXAMPLES, "")  # They differ, too, if anything else does.
    if differing:
        raise RecordError(
            f"{path} cannot be resumed, because its settings differ "
            f"({'; '.join(differing.values())}): use them, or choose another folder"
        )
    if examples:
        raise RecordError(
            f"{path} cannot be resumed: its settings now load other examples "
            f"({examples}), because a file, a plug-in or a module that it imports "
            "changed: restore it, or choose another folder"
        )
    return any(old != new for old, new in pairs)


@contextlib.contextmanager
def claim_folder(
    output_dir: str, plan: Mapping[str, Any], *, resume: bool
) -> Iterator[None]:
    """Locks a folder of several runs for this process, and writes their `run.json`."""
    to_write, now = True, _plugin_versions()
    plan = {**plan, "versions": now} if now else plan
    if resume:
        before = files.read_run_json(output_dir)
        to_write = check_resumable(output_dir, before, plan)
        warn_if_versions_differ(output_dir, before.get("versions", {}), now)
    else:
        files.make_empty_folder(output_dir, ", or --resume")
    with files.lock_folder(output_dir):
        if to_write:
            files.write_json(output_dir, plan)
        yield


def _plugin_versions() -> dict[str, Optional[str]]:
    return {f"--plugin={name}": sha256 for name, sha256 in IMPORTED_PLUGINS.items()}


def _is_extension(key: str, old: Any, new: Any) -> bool:
    lists = isinstance(old, list) and isinstance(new, list)
    if key == "baseline":  # It only concerns the tables.
        return True
    if key == EXAMPLES:  # Earlier versions did not record it.
        return old is None
    if key == "initial_weights":  # The same file, at any path.
        return lists and old[1:] == new[1:]
    if key == "rounds":
        return isinstance(old, int) and old < new
    if key in ("orderings", "seeds", "learning_rates"):
        return lists and all(item in new for item in old)
    return False


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]} ..."


def _git_commit() -> Optional[str]:
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        done = subprocess.run(
            ["git", "-C", here, "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
