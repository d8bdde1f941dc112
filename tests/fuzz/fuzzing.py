"""The core of the fuzzer: what is tried, on what, and what counts as a fault.

A target is a reader of files that others may have made. It is given good inputs with
random changes, and each time has to end in one of its errors, said in one line, or in a
correct result; within 2 seconds of computing, and with 300 MB of memory more than the
input. A reader is added by `register`, in a module that `targets.py` imports.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import gc
import pathlib
import random
import re
import shutil
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from leaf_data import DataError

SECONDS, MEGABYTES = 2.0, 300
LONGEST_MESSAGE = 1000
HANGS_AFTER = 30  # Seconds on the clock, in which the process is ended from within.


@dataclasses.dataclass(frozen=True)
class Target:
    """A reader that is fuzzed.

    Attributes:
        name: its name, which is also that of its folder of found inputs.
        seeds: a function that makes good inputs.
        mutate: a function of a source of random numbers and an input, which makes
            another input of it.
        read: a function of an empty folder and an input. It puts the input where the
            reader looks for it, reads it, and checks by `assert` what comes back.
        error: the error that says what is wrong with an input.
    """

    name: str
    seeds: Callable[[], list[bytes]]
    mutate: Callable[[random.Random, bytes], bytes]
    read: Callable[[pathlib.Path, bytes], Any]
    error: type[Exception]


TARGETS: dict[str, Target] = {}


def register(
    name: str, seeds: Any, mutate: Any, read: Any, error: type[Exception] = DataError
) -> None:
    """Adds a target; its name has to be new."""
    assert name not in TARGETS, name
    TARGETS[name] = Target(name, seeds, mutate, read, error)


def inputs(target: Target, seed: int):
    """Yields inputs without end: the good ones, then changed ones; always the same."""
    good = target.seeds()
    yield from good
    for number in range(1 << 62):
        source = random.Random(f"{target.name} {seed} {number}")
        yield target.mutate(source, source.choice(good))


def judge(
    target: Target, data: bytes, seconds: float = SECONDS, megabytes: float = MEGABYTES
) -> tuple[str, Optional[str]]:
    """Reads one input.

    Returns:
        "accepted" or "refused", and None; or "fault" and what it is.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fuzz_"))
    try:
        before, start = _reset_peak(), time.process_time()
        outcome, fault = _read(target, folder, data)
        spent, peak = time.process_time() - start, _memory("VmHWM") - before
    finally:
        shutil.rmtree(folder)
    if fault is None and spent > seconds:
        fault = f"{spent:.1f} s"
    if fault is None and peak > megabytes * 1e6 + len(data):
        fault = f"{peak / 1e6:.0f} MB"
    return ("fault", fault) if fault else (outcome, None)


def run(
    target: Target, seed: int, seconds: float, found: pathlib.Path, log=print
) -> dict[str, int]:
    """Tries inputs for a time, and keeps those that are faults in a folder.

    The input at hand is in the folder as `current`, should the process end with it.

    Returns:
        How many were "accepted", "refused" and a "fault".
    """
    count, kinds = {"accepted": 0, "refused": 0, "fault": 0}, set()
    found.mkdir(parents=True, exist_ok=True)
    current = found / "current"
    end = time.monotonic() + seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in inputs(target, seed):
            if time.monotonic() > end:
                break
            current.write_bytes(data)
            faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)  # Anew.
            outcome, fault = judge(target, data)
            if fault and fault[0].isdigit():  # Whoever else uses the machine, once.
                outcome, fault = judge(target, data)
            count[outcome] += 1
            if fault is None:
                continue
            kind = re.sub(r"[\d.]+|\[.*|[\"']", "", fault.split(":")[0])
            if kind not in kinds:  # One of a kind is enough.
                kinds.add(kind)
                path = found / f"{target.name}_{seed}_{sum(count.values())}"
                path.write_bytes(data)
                log(f"{target.name}: {fault}; the input is {path}")
    faulthandler.cancel_dump_traceback_later()
    current.unlink(missing_ok=True)
    return count


def _read(
    target: Target, folder: pathlib.Path, data: bytes
) -> tuple[str, Optional[str]]:
    try:
        target.read(folder, data)
    except target.error as error:
        message = str(error)
        bad = [c for c in message if unicodedata.category(c) in ("Cc", "Cs")]
        if bad or len(message) > LONGEST_MESSAGE:
            return "fault", f"a message of {len(message)} characters with {bad[:3]!a}"
        return "refused", None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{pathlib.Path(last.filename).name} {last.name}"
        return "fault", ascii(f"{type(error).__name__} in {place}: {error}"[:300])
    return "accepted", None


def _reset_peak() -> int:
    """Starts to measure a peak anew; returns the memory in use, bytes."""
    gc.collect(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _memory("VmRSS")


def _memory(what: str) -> int:
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(what):
                return 1024 * int(line.split()[1])
    raise AssertionError(what)


def same(found: Any, expected: Any) -> None:
    """Asserts that two arrays are equal, in type, shape and values."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.array_equal(found, expected)
