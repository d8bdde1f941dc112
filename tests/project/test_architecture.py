"""The rules of docs/architecture.md: which module may import which, and TensorFlow."""

import ast
import collections
import graphlib
import re

import pytest
from commands import ROOT, python

# Top to bottom: a module imports from its own folder or from those below it.
LAYERS = [
    ["run_experiments"],
    ["tff_pmc.experiments"],
    ["tff_pmc.cluster"],
    ["tff_pmc.algorithms"],
    ["tff_pmc.reports.claims_page", "tff_pmc.reports.results_page"],
    ["tff_pmc.reports.papers"],
    ["tff_pmc.reports.output", "tff_pmc.reports.tables"],
    ["tff_pmc.reports.figures"],
    ["tff_pmc.reports.statistics"],
    ["tff_pmc.reports"],
    ["tff_pmc.record"],
    ["tff_pmc.processes"],
    ["tff_pmc.clients"],
    ["tff_pmc.aggregation"],
    ["tff_pmc.runtime"],
    ["tff_pmc.settings"],
    ["tff_pmc.criteria"],
    ["tff_pmc.models"],
    ["tff_pmc.search", "tff_pmc.scores", "tff_pmc.selections", "tff_pmc.optimizers"],
    ["tff_pmc._lazy", "tff_pmc.escape", "tff_pmc.project_files", "tff_pmc.__init__"],
    ["leaf_data"],
    ["declared_settings"],
]
# The modules that import TensorFlow; every other one is imported without it.
WITH_TENSORFLOW = (
    "tff_pmc.aggregation",
    "tff_pmc.clients",
    "tff_pmc.cluster.engine",
    "tff_pmc.cluster.worker_packs",
    "tff_pmc.cluster.pack_encoding",
    "tff_pmc.processes",
    "tff_pmc.runtime",
    "tff_pmc.models.tff_types",
    "tff_pmc.optimizers.adadelta",
    "tff_pmc.experiments.running",
    "leaf_data.tff_client_data",  # TFF's view of a federation.
)


def modules():
    for folder in ("tff_pmc", "leaf_data", "declared_settings"):
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


def folder_of(name):
    """The folder of a module or package, as tff_pmc.record."""
    size = 2 if name.startswith("tff_pmc.") else 1
    return ".".join(name.split(".")[:size])


def imports(name, path):
    """Yields what a module imports, at any time and in any way.

    Counted are imports at the top, within functions and under TYPE_CHECKING, and names
    of modules as texts: those that `import_module`, `resolve_name` and `LazyModule`
    take, and the package that a `Registry` searches. Not counted are a package in the
    registry's own folder, whose modules import the registry to register, and the entry
    points of `ENGINES`, of which a user's `--engine` chooses one.
    """
    by_text = {"import_module", "resolve_name", "LazyModule"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            named = [t.partition(":")[0] for t in texts if isinstance(t, str)]
            if called in by_text:
                yield from named
            elif called == "Registry":
                yield from (n for n in named if folder_of(n) != folder_of(name))


@pytest.mark.parametrize(
    "line",
    [
        "import tff_pmc.record",
        "def f():\n    from tff_pmc import record",
        "if TYPE_CHECKING:\n    from tff_pmc import record",
        'importlib.import_module("tff_pmc.record")',
        'pkgutil.resolve_name("tff_pmc.record:f")',
        'record = LazyModule("tff_pmc.record")',
        'RECORDS = Registry("record", "tff_pmc.record")',
    ],
)
def test_each_way_to_import_is_counted(line, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(line)
    assert "tff_pmc.record" in [*imports("tff_pmc.settings.module", path)]


@pytest.mark.parametrize(("name", "path"), list(modules()), ids=lambda v: str(v)[-40:])
def test_imports_run_one_way(name, path):
    importer_layer = layer(name)
    assert importer_layer is not None, f"{name} is in no layer"
    for imported in imports(name, path):
        imported_layer = layer(imported)
        # A package exports its modules' names, or searches them to register.
        within = name.endswith("__init__") and imported.startswith(name[:-8])
        if imported_layer is not None and not within:
            assert imported_layer >= importer_layer, (
                f"{name} imports {imported}, a layer above it"
            )


def test_imports_have_no_cycle():
    """Including imports within functions and for types."""
    paths = {name.removesuffix(".__init__"): path for name, path in modules()}
    graph = {}
    for name, path in paths.items():
        imported = imports(name, path)
        needs = {i if i in paths else i.rpartition(".")[0] for i in imported}
        graph[name] = needs & paths.keys()
    graphlib.TopologicalSorter(graph).prepare()


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
def test_only_the_folders_of_tensorflow_import_it(code):
    assert len(LIGHT) > 100
    done = python("-c", code)
    assert done.returncode == 0, done.stderr or done.stdout[-2000:]


def test_module_names_are_unique():
    names = [path.name for _, path in modules() if path.name != "__init__.py"]
    assert [n for n, count in collections.Counter(names).items() if count > 1] == []


def test_the_tests_have_the_folders_of_what_they_test():
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder = path.parent.relative_to(ROOT / "tests")
        candidates = (ROOT / folder, ROOT / "tff_pmc" / folder)
        # A module with several files of tests has a folder, too.
        candidates += tuple(candidate.with_suffix(".py") for candidate in candidates)
        assert any(candidate.exists() for candidate in candidates) or folder.name in (
            "fuzz",  # All readers.
            "project",  # The repository as a whole.
            "vocabulary",  # The modules that stand in no folder.
        ), path


PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def answers():
    """What the page says is where, as (files, names)."""
    _, _, table = PAGE.partition("## Where is it?")
    for row in re.findall(r"^\| .*\? \|.*", table.partition("\n## ")[0], re.M):
        _, _, files, names, _ = row.split("|")
        yield re.findall(r"`([\w/.]+\.py)`", files), re.findall(r"`(\w+)`", names)
    for names, file in re.findall(r"^\d+\. `(\w+)`, `([\w/.]+\.py)`", PAGE, re.M):
        yield [file], [names]


@pytest.mark.parametrize(("files", "names"), list(answers()), ids=str)
def test_what_the_page_names_is_in_the_files_that_it_names(files, names):
    paths = [ROOT / file if (ROOT / file).is_file() else ROOT / "tff_pmc" / file
             for file in files]  # fmt: skip
    assert files and names and all(path.is_file() for path in paths), files
    assert len(files) <= 3  # A reader opens this page, and then two or three files.
    text = "\n".join(path.read_text("utf-8") for path in paths)
    for name in names:
        assert re.search(rf"^ *(?:def |class |@)?{name}\b", text, re.M), name
    # Each file has one of the names.
    for path in paths:
        names_here = [n for n in names if re.search(rf"\b{n}\b", path.read_text())]
        assert names_here, path


@pytest.mark.parametrize(
    ("question", "files"),
    [
        ("What is sent from a client?", 1),
        ("Where does a criterion become a client's weight?", 2),
        ("Where is a cohort drawn?", 2),
        ("Where are the bytes of a round counted?", 1),
        ("Where does the server take its step?", 1),
    ],
)
def test_each_question_is_answered_by_few_files(question, files):
    (row,) = re.findall(rf"^\| {re.escape(question)} \|(.*?)\|", PAGE, re.M)
    assert len(re.findall(r"`[\w/.]+\.py`", row)) == files


def test_the_page_answers_all_its_questions():
    table = PAGE.partition("## Where is it?")[2].partition("\n## ")[0]
    assert len(list(answers())) == table.count("\n|") - 2 + 12


def test_the_folders_of_the_page_and_of_the_repository_map_exist():
    table = PAGE.partition("\n## Folders")[2].partition("\n## ")[0]
    names = re.findall(r"`((?:tff_pmc|leaf_data|declared_settings)/[\w/.]*)`", table)
    contributing = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = contributing.partition("\n## Where things are")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| (`.*?) \|", table, re.M):
        names += re.findall(r"`([^`]+)`", row)
    for name in names:
        assert (ROOT / name).exists(), name
    folders = ("tff_pmc", "leaf_data", "docs", "tests", "tools", "results")
    folders += ("experiments", "benchmarks", "notebooks")
    assert set(folders) <= {name.split("/")[0] for name in names}
