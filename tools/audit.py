"""Lists known vulnerabilities of what requirements.txt pins: `make audit`.

    python tools/audit.py                     queries the OSV service, by pip-audit
    python tools/audit.py --database FOLDER   reads a checkout of the Python Packaging
                                              Advisory Database; no network

Those of pins that docs/dependencies.md names as held are marked so; it exits with 1
where there is one of another pin.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHONS = ("3.9", "3.10", "3.11")
OFFLINE = "--database=FOLDER asks a copy of the database on this machine."


def read_pins(text):
    """Returns {Python: {name: version}} of the text of a requirements.txt."""
    from packaging.requirements import Requirement

    pins = {python: {} for python in PYTHONS}
    for line in re.findall(r"^[a-z0-9].*", text, re.MULTILINE):
        requirement = Requirement(re.split(r" \\$|  # ", line)[0])
        (pin,) = requirement.specifier
        for python in PYTHONS:
            where = {"python_version": python}
            if requirement.marker is None or requirement.marker.evaluate(where):
                pins[python][requirement.name] = pin.version
    return pins


def ask_service(pins):
    """Yields (name, version, ids, versions that mend it) from the OSV service.

    Args:
        pins: {Python: {name: version}}.
    """
    with tempfile.TemporaryDirectory() as scratch:
        python = os.path.join(scratch, "venv", "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", f"{scratch}/venv"], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "pip-audit"]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            no_answer(done.stderr)
        asked = os.path.join(scratch, "requirements.txt")
        for pinned in pins.values():
            with open(asked, "w") as file:
                file.writelines(f"{n}=={version}\n" for n, version in pinned.items())
            done = subprocess.run(
                [python, "-m", "pip_audit", "--requirement", asked, "--no-deps"]
                + ["--disable-pip", "--vulnerability-service=osv", "--format=json"]
                + ["--progress-spinner=off"],
                capture_output=True,
                text=True,
            )
            if not done.stdout.startswith("{"):
                no_answer(done.stderr)
            for package in json.loads(done.stdout)["dependencies"]:
                for entry in package.get("vulns", ()):
                    ids = [entry["id"], *entry["aliases"]]
                    yield (
                        package["name"],
                        package["version"],
                        ids,
                        entry["fix_versions"],
                    )


def no_answer(text):
    """Ends with the last line that a command printed."""
    words = text.strip().splitlines() or ["pip-audit said nothing"]
    sys.exit(f"No answer: {words[-1]}\n{OFFLINE}")


def read_database(pins, folder):
    """Yields the same from the files vulns/NAME/*.yaml of a folder."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for name, version in sorted(
        {pin for each in pins.values() for pin in each.items()}
    ):
        for path in sorted((folder / "vulns" / name).glob("*.yaml")):
            entry = yaml.load(path.read_bytes(), loader)
            for affected in () if "withdrawn" in entry else entry["affected"]:
                if version not in affected.get("versions", ()):
                    continue
                mended = [
                    event["fixed"]
                    for versions in affected["ranges"]
                    if versions["type"] == "ECOSYSTEM"
                    for event in versions["events"]
                    if "fixed" in event
                ]
                yield name, version, [entry["id"], *entry.get("aliases", ())], mended


def read_held(page):
    """Returns the pins, NAME==VERSION, that the table under "Old pins" names."""
    page = page.partition("\n## Old pins\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([a-z0-9-]+==[^`]+)`", page, re.MULTILINE))


def report(pins, found, held):
    """Prints a line for each vulnerability; returns the exit code.

    Args:
        pins: {Python: {name: version}}.
        found: (name, version, ids, versions that mend it) of each.
        held: the pins, NAME==VERSION, that stay as they are.
    """
    code, lines = 0, set()
    for name, version, ids, mended in found:
        pythons = [python for python in PYTHONS if pins[python].get(name) == version]
        is_held = f"{name}=={version}" in held
        code = code if is_held else 1
        lines.add(
            f"{name}=={version} (Python {', '.join(pythons)}): {' '.join(ids)}; "
            f"mended in {' '.join(mended) or 'no release'}"
            + ("; held" if is_held else "")
        )
    print("\n".join(sorted(lines)))
    number = sum(not line.endswith("held") for line in lines)
    print(f"{len(lines)} known vulnerabilities, {number} of them in pins not held")
    return code


def main():
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--database", type=pathlib.Path, help="a folder with vulns/")
    database = parser.parse_args().database
    if database and not (database / "vulns").is_dir():
        parser.error(f"{database} has no folder vulns")
    pins = read_pins((ROOT / "requirements.txt").read_text())
    held = read_held((ROOT / "docs" / "dependencies.md").read_text())
    found = read_database(pins, database) if database else ask_service(pins)
    return report(pins, found, held)


if __name__ == "__main__":
    sys.exit(main())
