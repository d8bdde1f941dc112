"""Checks a built site for loads from elsewhere, and what its search finds.

    python tools/check_site.py build/site

MkDocs checks the links. The search is tried where Node is installed.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

# What a browser gets by itself; a link that is followed by hand is <a>.
LOADS = re.compile(
    r"<(?:audio|embed|iframe|image|img|input|link|object|script|source|track|use|video)"
    r"\b[^>]*?\s(?:(?:data|href|poster|src|xlink:href)=[\"']?|"
    r"srcset=[\"'](?:[^\"']*,\s*)?)((?:\w+:)?//[^\s\"'>]+)"
    r"|(?:url\(\s*|@import\s+)[\"']?((?:\w+:)?//[^\"')\s]+)"
)
# What readers search for, and the page that has to be among the first three.
SEARCHES = {
    "checkpoint": "architecture.html",
    "early stopping": "flags.html",
    "own model": "own_code.html",
    "GPU": "install.html",
    "learning rate schedule": "flags.html",
    "weights of a client": "own_code.html",
    "continue a line": "text.html",
}


def check_loads(folder):
    """Returns one line for each load from elsewhere of a site's pages."""
    pages = sorted(folder.rglob("*.html"))
    if not pages:
        return [f"{folder}: no page"]
    return [
        f"{path.relative_to(folder).as_posix()}: loads {match[1] or match[2]}"
        for path in [*pages, *sorted(folder.rglob("*.css"))]
        for match in LOADS.finditer(path.read_text("utf-8"))
    ]


def check_search(folder, searches):
    """Returns one line for each search that misses its page."""
    script = pathlib.Path(__file__).with_name("search_site.js")
    command = ["node", str(script), str(folder), *searches]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return [f"{folder}: the search fails: {done.stderr.strip()}"]
    return [
        f"search for {query!r}: {searches[query]} is not among {pages[:3]}"
        for query, pages in json.loads(done.stdout).items()
        if searches[query] not in pages[:3]
    ]


if __name__ == "__main__":
    site = pathlib.Path(sys.argv[1])
    faults = check_loads(site)
    if (site / "search").is_dir() and shutil.which("node"):
        faults += check_search(site, SEARCHES)
    elif (site / "search").is_dir():
        print("Node is not installed: the site's search was not tried.")
    print(*faults, sep="\n", end="\n" if faults else "", file=sys.stderr)
    sys.exit(bool(faults))
