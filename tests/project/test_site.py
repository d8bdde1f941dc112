"""The checks of the site detect the faults that they are for."""

import json
import re
import runpy
import shutil
import types
import xml.etree.ElementTree

import pytest
import yaml
from commands import ROOT, python
from mkdocs.exceptions import PluginError

import tff_pmc


def check(folder):
    """Returns the exit code and the faults that the script prints."""
    done = python("tools/check_site.py", folder)
    return done.returncode, done.stderr.splitlines()


@pytest.fixture
def site(tmp_path):
    """A valid site: a page, a picture and a style sheet."""
    (tmp_path / "a b.png").write_bytes(b"")
    (tmp_path / "style.css").write_text("p { background: url('a b.png') }")
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css"><p id="here"><img src="a%20b.png">'
        '<img src="data:image/png;base64,AAAA"><a href="https://example.org/">x</a>'
    )
    return tmp_path


def test_a_correct_site_passes(site):
    assert check(site) == (0, [])


E, LOADS = "https://example.org", "index.html: loads https://example.org"
# A faulty tag, and the message.
FAULTS = [
    (f'<script src="{E}/a.js"></script>', f"{LOADS}/a.js"),
    ('<img src="file:///x.png">', "index.html: loads file:///x.png"),
    ('<source src="//example.org/a">', f"{LOADS}/a".replace("https:", "")),
    ('<link rel="preconnect" href="//example.org">', LOADS.replace("https:", "")),
    (f'<img srcset="a%20b.png 1x, {E}/b.png 2x">', f"{LOADS}/b.png"),
    (f'<p style="background: url({E}/c.png)">x</p>', f"{LOADS}/c.png"),
]  # fmt: skip


@pytest.mark.parametrize(("tag", "fault"), FAULTS)
def test_each_fault_is_named(site, tag, fault):
    with open(site / "index.html", "a") as file:
        file.write(tag)
    assert check(site) == (1, [fault])


def test_a_style_sheet_that_loads_from_elsewhere(site):
    (site / "style.css").write_text("@import 'https://example.org/font.css';")
    assert check(site) == (1, ["style.css: loads https://example.org/font.css"])
    (site / "none").mkdir()
    assert check(site / "none")[0] == 1  # An empty folder is not a site.


@pytest.fixture(scope="module")
def site_pages():
    """The module of `tools/`, which is not a package."""
    members = runpy.run_path(str(ROOT / "tools" / "site_pages.py"))
    return types.SimpleNamespace(**members)


def test_the_search_has_index_and_worker_as_scripts(site_pages, tmp_path):
    index = json.dumps({"docs": [{"text": "Personalized, SOURCE; no noise."}]})
    workers = tmp_path / "assets" / "javascripts" / "workers"
    for folder in (tmp_path / "search", workers):
        folder.mkdir(parents=True)
    (tmp_path / "search" / "search_index.json").write_text(index)
    worker = workers / "search.0.min.js"
    worker.write_text('say("a\\n SPELLINGS");e=e+s+o.id')
    site_pages.on_post_build(types.SimpleNamespace(site_dir=tmp_path))
    assert (tmp_path / "search" / "search_index.js").read_text() == (
        f"var __index = {index}"
    )
    _, line, *_ = (tmp_path / "search" / "search.js").read_text().splitlines()
    assert line == (
        r'const Started = Worker, source = "say(\"a\\n SPELLINGS\");e=e+s+o.id+\"/\"", '
        'spellings = {"personalised": "personalized"};'
    )
    assert worker.read_text().endswith('e=e+s+o.id+"/"')
    worker.write_text("another search")
    with pytest.raises(PluginError, match="is this another search"):
        site_pages.on_post_build(types.SimpleNamespace(site_dir=tmp_path))


# Answers a query with the documents that contain it.
WORKER = """
let docs;
self.addEventListener("message", ({data: message}) => {
  if (message.type === 0) docs = message.data.docs;
  else if (message.data === "broken") throw new Error("no such word");
  else self.postMessage({type: 3, data: {items: docs.filter(
    (doc) => doc.text.includes(message.data)).map((doc) => [doc])}});
});
"""


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
def test_a_search_that_misses_its_page_is_named(site_pages, tmp_path):
    check_search = runpy.run_path(str(ROOT / "tools" / "check_site.py"))["check_search"]
    docs = [{"location": f"{n}.html#x", "text": "equalized checkpoint"} for n in "abc"]
    docs.append({"location": "d.html", "text": "checkpoint, early"})
    workers = tmp_path / "assets" / "javascripts" / "workers"
    for folder in (tmp_path / "search", workers):
        folder.mkdir(parents=True)
    index = json.dumps({"config": {}, "docs": docs})
    (tmp_path / "search" / "search_index.json").write_text(index)
    (workers / "search.0.min.js").write_text(f"{WORKER}// e=e+s+o.id")
    site_pages.on_post_build(types.SimpleNamespace(site_dir=tmp_path))
    page_by_query = {"early": "d.html", "--checkpoint": "c.html"}
    page_by_query.update({"equalised": "a.html", "the checkpoints": "a.html"})
    assert check_search(tmp_path, page_by_query) == []
    assert check_search(tmp_path, {"checkpoint": "d.html", "early": "a.html"}) == [
        "search for 'checkpoint': d.html is not among ['a.html', 'b.html', 'c.html']",
        "search for 'early': a.html is not among ['d.html']",
    ]
    (fault,) = check_search(tmp_path, {"broken": "a.html"})
    assert "the search fails" in fault and "no such word" in fault


@pytest.mark.parametrize(
    ("place", "boost"),
    [("results/reproduced/a/b.md", 1e-6), ("flags.md", 4), ("scaling.md", 1)],
)
def test_kept_results_come_last_in_a_search(site_pages, place, boost):
    page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri=place), meta={})
    assert site_pages.on_page_markdown("text", page, None, None) == "text"
    assert page.meta.get("search", {"boost": 1}) == {"boost": boost}


def test_every_diagram_has_a_text_for_readers_who_cannot_see_it():
    text = "\n".join(
        path.read_text("utf-8")
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    )
    for path in sorted((ROOT / "docs" / "images").glob("*.svg")):
        shown = re.findall(rf"!\[([^\]]*)\]\((?:docs/)?images/{path.name}\)", text)
        assert shown and all(len(words) > 40 for words in shown), path.name
        root = xml.etree.ElementTree.parse(path).getroot()
        names = [child.tag.rpartition("}")[2] for child in root]
        assert {"title", "desc"} <= set(names), path.name


def imported(text):
    """Yields the (module, name)s that Python code imports from our packages."""
    for statement in re.finditer(
        r"^from ((?:tff_pmc|leaf_data)[\w.]*) import (?:\(([^)]*)\)|(.+))$", text, re.M
    ):
        names = (statement[2] or statement[3]).partition("#")[0]
        for name in filter(None, map(str.strip, names.split(","))):
            yield statement[1], name.partition(" as ")[0]


def documented_members():
    """Returns the members that the API reference shows, by module; None is all."""
    shown = {}
    for path in sorted((ROOT / "docs" / "api").glob("*.md")):
        for directive in re.finditer(
            r"^::: (\S+)$((?:\n    .*)*)", path.read_text("utf-8"), re.M
        ):
            options = yaml.safe_load(directive[2]) or {}
            members = options.get("options", {}).get("members")
            shown[directive[1]] = members and set(members)
    return shown


def test_imports_of_documents_and_notebooks_are_in_the_reference():
    shown, used = documented_members(), set()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for code in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S):
            used.update(imported(code))
    for path in sorted((ROOT / "docs" / "examples").rglob("*.py")):
        used.update(imported(path.read_text("utf-8")))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            used.update(imported("".join(cell["source"])))
    assert ("tff_pmc.reports.figures.accuracy_plot", "accuracy_plot") in used
    lacking = {
        (module, name)
        for module, name in used
        # A module itself, and private names, are not members.
        if not module.split(".")[-1].startswith("_")
        and f"{module}.{name}" not in shown
        and (module not in shown or name not in (shown[module] or {name}))
    }
    assert not lacking


def test_the_reference_shows_only_public_names_and_all_exported_ones():
    """A package shows its `__all__`; for a module, the page lists the members."""
    for module, members in documented_members().items():
        path = ROOT / module.replace(".", "/") / "__init__.py"
        offers = path.is_file() and "__all__ = " in path.read_text("utf-8")
        assert members or offers, module
        assert not any(name.startswith("_") for name in [module, *(members or ())])
    page = (ROOT / "docs" / "api" / "index.md").read_text("utf-8")
    rows = re.findall(r"^\| \[`(\w+)`\]\[([\w.]+)\] \|", page, re.M)
    assert all(place.endswith(f".{name}") for name, place in rows)
    modules = set(re.findall(r"`(\w+)`", page.partition("##")[0]))
    assert {name for name, _ in rows} | modules == set(tff_pmc.__all__)


def test_the_members_in_the_reference_exist():
    for module, members in documented_members().items():
        path = ROOT / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        text = path.read_text("utf-8")
        for name in members or ():
            assert re.search(rf"^(?:def |class )?{name}\b", text, re.M), (module, name)
