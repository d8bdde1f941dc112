"""Writes requirements.txt: the pinned closure of setup.py's dependencies, with hashes.

uv, itself pinned in tools/uv.txt, resolves the dependencies, the extras but for the
trackers, and pyproject.toml's overrides for every supported Python at once. What is
pinned in requirements.txt stays as it is, unless --upgrade is given. Each line has the
SHA-256 of every wheel that may be installed by it, as the package index states them.
What running needs stands before the line REST, and what only tests, notebooks,
documents and linters need behind it.
"""

import argparse
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "requirements.txt"
UV = ROOT / "tools" / "uv.txt"
PYTHONS = ("3.9", "3.10", "3.11")
# The Pythons for which a line holds, and the shortest marker for them.
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
# from setup.py and pyproject.toml; docs/dependencies.md has how to change a pin.
#
# Install it with --no-deps --require-hashes --only-binary :all:
# TFF pins two versions of jax that are gone, and pip has no overrides, so the first is
# needed (docs/dependencies.md). The hashes are those of wheels, hence the last.
"""
REST = "# For tests, notebooks, documents and linters alone:\n"
# Every glibc there may be, so that a newer machine's wheels are there, too.
PLATFORMS = [
    *(f"manylinux_2_{minor}_x86_64" for minor in range(100, 4, -1)),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"),
    "linux_x86_64",
]


def simplify(line, wheels):
    """Shortens a line's marker to what differs between the Pythons; adds the hashes.

    Args:
        line: a line as uv writes it: NAME==VERSION ; MARKER  # via NAMES.
        wheels: (name, version) -> {file name: SHA-256}.
    """
    from packaging.markers import Marker

    requirement, _, via = line.partition("  # via ")
    name, _, marker = requirement.partition(" ; ")
    holds = []
    for python in PYTHONS:
        # A marker may distinguish patch releases; the file must not.
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
    hashes = choose_hashes(name, wheels[tuple(name.split("=="))], holds)
    return (
        " \\\n    ".join(
            [
                f"{name}{MARKERS[tuple(holds)]}",
                *(f"--hash=sha256:{hash}" for hash in hashes),
            ]
        )
        + f"\n    # via {via}"
    )


def choose_hashes(name, wheels, pythons):
    """Returns the hashes of the wheels that any of the Pythons can install."""
    from packaging.tags import compatible_tags, cpython_tags
    from packaging.utils import parse_wheel_filename

    hashes = set()
    for python in pythons:
        version = tuple(int(part) for part in python.split("."))
        abi = f"cp{version[0]}{version[1]}"
        tags = {
            *cpython_tags(version, [abi], PLATFORMS),
            *compatible_tags(version, abi, PLATFORMS),
        }
        fit = {
            sha for file, sha in wheels.items() if parse_wheel_filename(file)[3] & tags
        }
        if not fit:
            sys.exit(f"{name} has no wheel for Python {python}")
        hashes |= fit
    return sorted(hashes)


def run(*command, **options):
    """Runs a command without output; on failure shows its output and stops."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode:
        sys.exit(done.stdout)


def compile_with_uv(scratch, upgrade):
    """Resolves with uv: what running needs, and lines with full markers, and wheels."""
    resolved, listed = scratch / "requirements.txt", scratch / "pylock.toml"
    if OUTPUT.exists() and not upgrade:
        shutil.copy(OUTPUT, resolved)  # uv keeps the pins that it finds there.
    uv = (str(scratch / "venv" / "bin" / "uv"), "pip", "compile", "--universal")
    uv += ("--python", sys.executable, "--no-python-downloads", "--no-header")
    uv += ("--python-version", PYTHONS[0])
    found = ("--annotation-style", "line", "--output-file")
    setup = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    extras = sorted(setup["EXTRAS_REQUIRE"].keys() - setup["TRACKERS"].keys())
    wanted = [word for extra in extras for word in ("--extra", extra)]
    whole = (*uv, "pyproject.toml", *wanted, *found, str(resolved))
    run(*whole, cwd=ROOT)
    running = scratch / "running.txt"
    part = (*uv, "pyproject.toml", "--extra", "cluster", "--constraint", str(resolved))
    run(*part, *found, str(running), cwd=ROOT)
    # With hashes uv writes those of all platforms, and no file names.
    run(*uv, str(resolved), "--no-deps", "--output-file", str(listed), cwd=ROOT)
    names = {line.partition("==")[0] for line in running.read_text().splitlines()}
    return names, resolved.read_text().splitlines(), read_wheels(listed.read_text())


def read_wheels(lock):
    """Reads a pylock.toml: (name, version) -> {file name: SHA-256}."""
    import tomli

    return {
        (package["name"], package["version"]): {
            wheel.get("name") or wheel["url"].rpartition("/")[2]: (
                wheel["hashes"]["sha256"]
            )
            for wheel in package["wheels"]
        }
        for package in tomli.loads(lock)["packages"]
    }


def main():
    """Makes a scratch environment, compiles in it, and replaces the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take new releases")
    parser.add_argument("--scratch", help=argparse.SUPPRESS)
    args = parser.parse_args()

    if args.scratch:  # The second call, by the scratch environment's Python.
        found = compile_with_uv(pathlib.Path(args.scratch), args.upgrade)
        running, lines, wheels = found
        parts: tuple[list[str], list[str]] = [], []
        for line in lines:
            own = line.partition("==")[0] in running
            parts[not own].append(simplify(line, wheels) + "\n")
        text = HEADER + "".join(parts[0]) + REST + "".join(parts[1])
        if "://" in text:
            sys.exit("requirements.txt would name a host")
        OUTPUT.write_text(text)
        return

    with tempfile.TemporaryDirectory() as scratch:
        python = os.path.join(scratch, "venv", "bin", "python")
        run(sys.executable, "-m", "venv", os.path.join(scratch, "venv"))
        install = (python, "-m", "pip", "install", "--quiet")
        run(*install, "--require-hashes", "-r", str(UV))
        run(*install, "packaging", "tomli")
        again = [python, __file__, "--scratch", scratch]
        code = subprocess.call(again + ["--upgrade"] * args.upgrade)
    sys.exit(code)


if __name__ == "__main__":
    main()
