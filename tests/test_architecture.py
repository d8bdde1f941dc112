"""The rules of docs/architecture.md: who may import whom, and what stays light."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Top to bottom: a module imports from its own layer or from those below it.
LAYERS = [
    ["run_experiments"],
    ["tff_pmc.experiments"],
    ["tff_pmc.reports"],
    ["tff_pmc.processes"],
    ["tff_pmc.aggregation"],
    ["tff_pmc.clients"],
    ["tff_pmc.runtime"],
    ["tff_pmc.criteria", "tff_pmc.server_criteria", "tff_pmc.models"],
    ["tff_pmc.search", "tff_pmc.scores"],
    ["tff_pmc._lazy", "tff_pmc._worker_host", "tff_pmc.__init__"],
    ["leaf_data"],
]
WITHOUT_TENSORFLOW = [
    "leaf_data",
    "tff_pmc",
    "tff_pmc.scores",
    "tff_pmc.search",
    "tff_pmc.criteria",
    "tff_pmc.server_criteria",
    "tff_pmc.models",
    "tff_pmc.experiments.command_line",
    "tff_pmc.experiments.config",
    "tff_pmc.experiments.named",
    "tff_pmc.experiments.parsing",
    "tff_pmc.experiments.rows",
    "tff_pmc.reports.tables",
    "tff_pmc.reports.plots",
]


def modules():
    for folder in ("tff_pmc", "leaf_data"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name, path
    yield "run_experiments", ROOT / "run_experiments.py"


def layer(name):
    for depth, prefixes in enumerate(LAYERS):
        for prefix in prefixes:
            if name == prefix or name.startswith(prefix + "."):
                return depth
    return None


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda v: str(v)[-40:])
def test_imports_run_one_way(name, path):
    own = layer(name)
    assert own is not None, f"{name} is in no layer"
    for imported in imports(path):
        below = layer(imported)
        if below is not None:
            assert below >= own, f"{name} imports {imported}, a layer above it"


@pytest.mark.parametrize("name", WITHOUT_TENSORFLOW)
def test_it_is_imported_without_tensorflow(name):
    code = f"import sys, {name}; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_modules_are_read_in_one_sitting():
    for name, path in modules():
        assert len(path.read_text().splitlines()) <= 350, name
