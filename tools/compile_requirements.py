"""Writes requirements.txt: the pinned closure of setup.py's dependencies.

uv resolves the dependencies, the extras and pyproject.toml's overrides for every
supported Python at once. What is pinned in requirements.txt stays as it is, unless
--upgrade is given.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "requirements.txt"
PYTHONS = ("3.9", "3.10", "3.11")
# The Pythons for which a line holds, and the shortest marker that says so.
MARKERS = {
    ("3.9", "3.10", "3.11"): "",
    ("3.9", "3.10"): " ; python_version < '3.11'",
    ("3.10", "3.11"): " ; python_version >= '3.10'",
    ("3.9", "3.11"): " ; python_version != '3.10'",
    ("3.9",): " ; python_version < '3.10'",
    ("3.10",): " ; python_version == '3.10'",
    ("3.11",): " ; python_version >= '3.11'",
}
HEADER = """\
# Every package that the project, its tests and its linters need, pinned, for
# CPython 3.9, 3.10 and 3.11 on Linux x86_64 with glibc. Made by `make requirements`
# from setup.py and the overrides in pyproject.toml; do not edit.
#
# Install it with --no-deps: TFF pins two versions of jax that are gone, and pip has
# no overrides (docs/dependencies.md).
"""


def simplify(line):
    """Shortens a line's marker to what differs between the supported Pythons."""
    from packaging.markers import Marker

    requirement, _, via = line.partition("  # via ")
    name, _, marker = requirement.partition(" ; ")
    holds = []
    for python in PYTHONS:
        # A marker may tell patch releases apart; the file must not.
        answers = {
            not marker
            or Marker(marker).evaluate(
                {
                    "python_version": python,
                    "python_full_version": python + patch,
                    "implementation_name": "cpython",
                    "platform_python_implementation": "CPython",
                    "platform_machine": "x86_64",
                    "platform_system": "Linux",
                    "sys_platform": "linux",
                    "os_name": "posix",
                }
            )
            for patch in (".0", ".99")
        }
        if len(answers) > 1:
            sys.exit(f"{name}: {marker} differs within Python {python}")
        if answers.pop():
            holds.append(python)
    if not holds:
        sys.exit(f"{name}: {marker} holds for no supported Python")
    for how in (" (pyproject.toml)", ", --override (workspace)", ", -c (workspace)"):
        via = via.replace(how, "")
    return f"{name}{MARKERS[tuple(holds)]}  # via {via}"


def run(*command, **options):
    """Runs a command without output; on failure shows what it said and stops."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        sys.exit(done.stdout)


def compile_with_uv(scratch, upgrade):
    """Resolves with uv and returns the lines, with uv's full markers."""
    resolved = scratch / "requirements.txt"
    if OUTPUT.exists() and not upgrade:
        shutil.copy(OUTPUT, resolved)  # uv keeps the pins that it finds there.
    run(
        str(scratch / "venv" / "bin" / "uv"),
        *("pip", "compile", "pyproject.toml", "--output-file", str(resolved)),
        *("--all-extras", "--universal", "--python-version", PYTHONS[0]),
        *("--python", sys.executable, "--no-python-downloads"),
        *("--no-header", "--annotation-style", "line"),
        cwd=ROOT,
    )
    return resolved.read_text().splitlines()


def main():
    """Makes a scratch environment, compiles in it, and replaces the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take new releases")
    parser.add_argument("--scratch", help=argparse.SUPPRESS)
    args = parser.parse_args()

    if args.scratch:  # The second call, by the scratch environment's Python.
        lines = compile_with_uv(pathlib.Path(args.scratch), args.upgrade)
        text = HEADER + "".join(simplify(line) + "\n" for line in lines)
        if "://" in text:
            sys.exit("requirements.txt would name a host")
        OUTPUT.write_text(text)
        return

    with tempfile.TemporaryDirectory() as scratch:
        python = os.path.join(scratch, "venv", "bin", "python")
        run(sys.executable, "-m", "venv", os.path.join(scratch, "venv"))
        run(python, "-m", "pip", "install", "--quiet", "uv", "packaging")
        again = [python, __file__, "--scratch", scratch]
        code = subprocess.call(again + ["--upgrade"] * args.upgrade)
    sys.exit(code)


if __name__ == "__main__":
    main()
