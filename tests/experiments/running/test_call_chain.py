"""docs/architecture.md lists the functions from the command to a training step."""

import pathlib
import re
import sys

from cli import ROOT, SMALL, run

MOST = 12


def calls_of(frame):
    """Returns our functions on the stack, the first caller first, with their files."""
    calls = []
    while frame:
        path = pathlib.Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(("run_experiments.py", "tff_pmc/")):
                file = name.removeprefix("tff_pmc/")
                calls.append((frame.f_code.co_name, file))
        frame = frame.f_back
    return calls[::-1]


def test_each_function_of_the_page_calls_the_next(tmp_path, monkeypatch):
    from tff_pmc.runtime.context import EngineContext

    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.split("\n## From the command to a training step\n")[1]
    listed = re.findall(r"^\d+\. `(\w+)`, `([\w/]+\.py)`", section, re.MULTILINE)
    invoke, chains = EngineContext.invoke, []

    def watched(self, *arguments):
        calls = calls_of(sys._getframe())
        if ("next", "algorithms/trainer.py") in calls:
            chains.append([*calls, ("invoke", "runtime/context.py")])
        return invoke(self, *arguments)

    monkeypatch.setattr(EngineContext, "invoke", watched)
    run(*SMALL, "--rounds=1", "--priority=DS", f"--output_dir={tmp_path / 'out'}")
    # What follows is in the graph, which was traced when the process was built.
    last = listed.index(("invoke", "runtime/context.py"))
    assert chains[0] == listed[: last + 1] and len(listed) <= MOST
    traced = [("train_pack", "packed_training"), ("train_locally", "packed_training")]
    assert listed[last + 1 :] == [(f, f"clients/{file}.py") for f, file in traced]
