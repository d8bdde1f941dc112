"""Checks a built site for loads from elsewhere, and what its search finds.

    python tools/check_site.py build/site

MkDocs checks the links. The search is tried where Node is installed.
"""

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

# What a browser gets by itself; a link that is followed by hand is <a>.
LOADS = {
    "audio", "embed", "iframe", "image", "img", "input", "link", "object", "script",
    "source", "track", "use", "video",
}  # fmt: skip
ADDRESSES = {"data", "href", "poster", "src", "xlink:href"}
# What readers search for, and the page that has to be among the first three.
SEARCHES = {
    "checkpoint": "architecture.html",
    "early stopping": "flags.html",
    "own model": "own_code.html",
    "GPU": "install.html",
    "learning rate schedule": "flags.html",
    "weights of a client": "own_code.html",
}
STYLE_ADDRESS = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s]+)""")


class _Page(html.parser.HTMLParser):
    """Collects what a page loads."""

    def __init__(self, path):
        super().__init__()
        self.loads = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        """Looks at every attribute that names an address."""
        for name, value in attrs:
            if name in ADDRESSES and value is not None and tag in LOADS:
                self.loads.append(value)
            elif name == "srcset":
                self.loads += [part.split()[0] for part in value.split(",")]
            elif name == "style":
                self.loads += STYLE_ADDRESS.findall(value or "")


def check(folder):
    """Returns what a site loads from elsewhere, a line for each."""
    folder = pathlib.Path(folder)
    loads = {path: _Page(path).loads for path in sorted(folder.rglob("*.html"))}
    if not loads:
        return [f"{folder}: no page"]
    for path in sorted(folder.rglob("*.css")):
        loads[path] = STYLE_ADDRESS.findall(path.read_text("utf-8"))
    return [
        f"{path.relative_to(folder).as_posix()}: loads {address}"
        for path, addresses in loads.items()
        for address in addresses
        if _is_elsewhere(address)
    ]


def check_search(folder, searches):
    """Returns the searches of a site that do not find their page, a line for each."""
    script = pathlib.Path(__file__).with_name("search_site.js")
    command = ["node", str(script), str(folder), *searches]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return [f"{folder}: the search fails: {done.stderr.strip()}"]
    return [
        f"search for {query!r}: {searches[query]} is not among {found[:3]}"
        for query, found in json.loads(done.stdout).items()
        if searches[query] not in found[:3]
    ]


def _is_elsewhere(address):
    parts = urllib.parse.urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def main():
    """Checks the folder that is named; prints the faults, and exits with 1 for any."""
    faults = check(sys.argv[1])
    if (pathlib.Path(sys.argv[1]) / "search").is_dir():
        if shutil.which("node"):
            faults += check_search(sys.argv[1], SEARCHES)
        else:
            print("Node is not installed: the site's search was not tried.")
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
