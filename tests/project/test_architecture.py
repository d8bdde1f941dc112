"""The rules of docs/architecture.md: who may import whom, and what stays light."""

import ast
import collections
import graphlib

import pytest
from commands import ROOT, python

# Top to bottom: a module imports from its own folder or from those below it.
LAYERS = [
    ["run_experiments"],
    ["tff_pmc.experiments"],
    ["tff_pmc.cluster"],
    ["tff_pmc.algorithms"],
    ["tff_pmc.reports"],
    ["tff_pmc.record"],
    ["tff_pmc.processes"],
    ["tff_pmc.clients"],
    ["tff_pmc.aggregation"],
    ["tff_pmc.runtime"],
    ["tff_pmc.settings"],
    ["tff_pmc.criteria"],
    ["tff_pmc.models"],
    ["tff_pmc.search", "tff_pmc.scores", "tff_pmc.selections"],
    ["tff_pmc._lazy", "tff_pmc.project_files", "tff_pmc.__init__"],
    ["leaf_data"],
]
# The folders in which TensorFlow is at home; everything else is imported without it.
WITH_TENSORFLOW = (
    "tff_pmc.aggregation",
    "tff_pmc.clients",
    "tff_pmc.cluster.engine",
    "tff_pmc.cluster.placed_packs",
    "tff_pmc.cluster.travel",
    "tff_pmc.processes",
    "tff_pmc.runtime",
    "tff_pmc.models.tff_types",
    "tff_pmc.experiments.running",
    "leaf_data.tff_client_data",  # The view of a federation that is TFF's.
)


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
    """What a module imports when it is imported, or where a function needs it.

    Not what only the types of its arguments need.
    """
    tree = ast.parse(path.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
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
        # The package hands on what is in it, when it is asked for.
        if below is not None and name != "tff_pmc.__init__":
            assert below >= own, f"{name} imports {imported}, a layer above it"


def test_no_circle_of_imports():
    """Not even one that an import inside a function hides."""
    known = {name.removesuffix(".__init__"): path for name, path in modules()}
    needs = {
        name: {i if i in known else i.rpartition(".")[0] for i in imports(path)}
        for name, path in known.items()
    }
    graphlib.TopologicalSorter(
        {name: found & known.keys() for name, found in needs.items()}
    ).prepare()


LIGHT = [n.removesuffix(".__init__") for n, _ in modules()
         if not n.startswith(WITH_TENSORFLOW)]  # fmt: skip
IMPORTED = f"""
import importlib, sys
for name in {LIGHT!r}:
    importlib.import_module(name)
    if 'tensorflow' in sys.modules: sys.exit(name)
"""
COLLECTED = """
import sys, pytest
arguments = ['--collect-only', '-q', '-p', 'no:cacheprovider', 'tests']
if pytest.main(arguments): sys.exit('the collection failed')
if 'tensorflow' in sys.modules: sys.exit('TensorFlow is imported')
"""


@pytest.mark.parametrize("code", [IMPORTED, COLLECTED], ids=["modules", "tests"])
def test_all_but_the_folders_of_tensorflow_is_imported_without_it(code):
    assert len(LIGHT) > 100
    done = python("-c", code)
    assert done.returncode == 0, done.stderr or done.stdout[-2000:]


def test_modules_have_names_of_their_own():
    names = [path.name for _, path in modules() if path.name != "__init__.py"]
    assert [n for n, count in collections.Counter(names).items() if count > 1] == []


def test_the_tests_have_the_folders_of_what_they_test():
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder = path.parent.relative_to(ROOT / "tests")
        known = (ROOT / folder, ROOT / "tff_pmc" / folder)
        # A module with several files of tests has a folder, too.
        known += tuple(place.with_suffix(".py") for place in known)
        assert any(place.exists() for place in known) or folder.name in (
            "fuzz",  # All readers.
            "project",  # The repository as a whole.
            "vocabulary",  # The modules that stand in no folder.
        ), path
