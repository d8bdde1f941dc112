"""The README's Python is run as it stands."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_blocks_of_the_readme_run():
    """All but the one that stands for the user's own model, one after another."""
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    code = "\n".join(block for block in blocks if "..." not in block)
    code += """
with tff_pmc.Runtime():
    _, metrics = process.next(process.initialize(), clients)
print("trusted", metrics["aggregator"]["totals"][1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert "trusted 6.0" in done.stdout, done.stderr
