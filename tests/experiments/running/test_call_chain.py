"""docs/architecture.md lists the functions from the command to a training step."""

import pathlib
import re
import sys

from cli import ROOT, SMALL, run

MOST = 12
OURS = ("run_experiments.py", "tff_pmc/")


def place(frame):
    """Returns a frame's function and file, relative to the repository or package."""
    path = pathlib.Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT):
        return None
    name = path.relative_to(ROOT).as_posix()
    if not name.startswith(OURS):
        return None
    return frame.f_code.co_name, name.removeprefix("tff_pmc/")


def test_each_function_of_the_page_calls_the_next(tmp_path):
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.split("\n## From the command to a training step\n")[1]
    listed = re.findall(r"^\d+\. `(\w+)`, `([\w/]+\.py)`", section, re.MULTILINE)
    chain = []

    def watch(frame, event, unused):
        found = place(frame) if event == "call" and not chain else None
        if not found or not found[1].startswith("runtime/"):
            return
        calls = [found]
        while frame := frame.f_back:
            calls.append(place(frame))
        if ("next", "systems/rounds.py") in calls:
            chain.extend(call for call in reversed(calls) if call)

    sys.setprofile(watch)
    try:
        run(*SMALL, "--rounds=1", "--priority=DS", f"--output_dir={tmp_path / 'out'}")
    finally:
        sys.setprofile(None)
    assert chain == listed and len(listed) <= MOST
