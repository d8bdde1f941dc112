"""Fuzzes readers for a time, each in a process of its own: `make fuzz`.

    python tests/fuzz/run_fuzz.py --seconds=3600
    python tests/fuzz/run_fuzz.py --seconds=60 --targets=npz,png --seed=7
    python tests/fuzz/run_fuzz.py --input=FILE --targets=npz

The seconds are those of all targets together. Inputs that are faults are kept in the
folder that `--found` names; the last command reads one of them again, and shows the
whole error. It exits with 1 where there was a fault.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import pathlib
import resource
import sys
import tempfile
import time
import traceback

# The packages are those of this checkout, from whatever folder it is run.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import fuzzing
from targets import TARGETS

_GIGABYTES = 8  # Whatever a reader asks for, the machine is left alone.
_FAULTS = 3  # The exit code of a target's process that found some and ended well.


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--targets", default="", help="their names; all by default")
    parser.add_argument("--seed", type=int, default=None, help="default: the time")
    parser.add_argument("--found", type=pathlib.Path, default=None)
    parser.add_argument("--input", type=pathlib.Path, default=None)
    options = parser.parse_args(arguments)
    options.targets = options.targets.split(",") if options.targets else [*TARGETS]
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"no target {name}: there are {', '.join(TARGETS)}")
    if options.seed is None:
        options.seed = int(time.time())
    if options.found is None:
        options.found = pathlib.Path(tempfile.mkdtemp(prefix="fuzz_found_"))
    return options


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    options = _parse(arguments)
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        if options.input is not None:
            data = options.input.read_bytes()
            for name in options.targets:
                with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
                    TARGETS[name].read(pathlib.Path(folder), data)
            return 0
        for name in options.targets:  # What readers import late is imported once.
            fuzzing.judge(TARGETS[name], TARGETS[name].seeds()[0])
        share = options.seconds / len(options.targets)
        return max([_run_apart(name, share, options) for name in options.targets])
    finally:
        logging.disable(before)


def _run_apart(name: str, seconds: float, options: argparse.Namespace) -> int:
    """Runs one target; where an input ends its process, goes on with another seed."""
    end, seed, code = time.monotonic() + seconds, options.seed, 0
    fork = multiprocessing.get_context("fork")  # A new Python imports for seconds.
    while True:
        left = max(end - time.monotonic(), 0.1)
        with tempfile.TemporaryFile("w+", errors="replace") as words:
            process = fork.Process(
                target=_run_here, args=(name, seed, left, options.found, words)
            )
            process.start()
            process.join()
            words.seek(0)
            last_words = words.read().splitlines()[-12:]
        if process.exitcode in (0, _FAULTS):
            return max(code, 1 if process.exitcode else 0)
        kept = options.found / f"{name}_{seed}_ended"
        current = options.found / "current"
        if current.exists():
            current.rename(kept)
        print(f"{name}: the process ended with {process.exitcode}; the input is {kept}")
        print("\n".join(last_words), flush=True)
        code, seed = 1, seed + 1
        if time.monotonic() > end:
            return code


def _run_here(name: str, seed: int, seconds: float, found: pathlib.Path, words) -> None:
    """Runs one target in this process, which ends; its errors go to a file."""
    os.dup2(words.fileno(), 2)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_GIGABYTES << 30,) * 2)
        count = fuzzing.run(TARGETS[name], seed, seconds, found)
        print(json.dumps({"target": name, "seed": seed, **count}), flush=True)
        code = _FAULTS if count["fault"] else 0
    except BaseException:
        traceback.print_exc(file=words)
        words.flush()
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    sys.exit(main())
