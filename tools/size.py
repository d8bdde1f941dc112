"""Prints how large package, tests and documents are, beside what is aimed at.

    python tools/size.py

Lines are counted as they stand, of the files that git tracks. The documents are
`docs/`, `results/README.md` and the Markdown files at the root.
"""

from __future__ import annotations

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
AIMS = {
    "package, lines": (("tff_pmc/*.py", "leaf_data/*.py"), 27_500),
    "tests, lines": (("tests/*.py",), 21_000),
    "documents, bytes": (("docs/*.md", "results/README.md", ":(glob)*.md"), 170_000),
}


def size(what: str) -> int:
    """Returns the number of lines, or of bytes, of the tracked files of a kind."""
    patterns, _ = AIMS[what]
    names = subprocess.run(
        ["git", "ls-files", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    files = [ROOT / name for name in names if name and (ROOT / name).exists()]
    if what.endswith("bytes"):
        return sum(path.stat().st_size for path in files)
    return sum(path.read_bytes().count(b"\n") for path in files)


def main() -> None:
    """Prints a line for each kind."""
    for what, (_, aim) in AIMS.items():
        print(f"{what:18}{size(what):>9,} (aim: at most {aim:,})")


if __name__ == "__main__":
    main()
