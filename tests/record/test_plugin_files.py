"""Which files are the code of a plug-in: those whose change is reported on a resume."""

import importlib
import sys

import pytest

from tff_pmc.record.plugin_files import plugin_files, plugin_sha256

# The files by name, and those that count; "plug_main" is the plug-in.
LAYOUTS = {
    "alone": ({"plug_main.py": "import json, numpy"}, ""),
    "at once": ({"plug_main.py": "import plug_help"}, "plug_help.py"),
    "of a name": ({"plug_main.py": "from plug_help import A"}, "plug_help.py"),
    "later": (
        {"plug_main.py": "def load():\n    import plug_help"},
        "plug_help.py",
    ),
    "by a string": (
        {"plug_main.py": "import importlib\nimportlib.import_module('plug_help')"},
        "plug_help.py",
    ),
    "of a helper": (
        {"plug_main.py": "import plug_a", "plug_a.py": "import plug_help"},
        "plug_a.py plug_help.py",
    ),
    "in a circle": (
        {"plug_main.py": "import plug_a", "plug_a.py": "import plug_main"},
        "plug_a.py",
    ),
    "a package": (
        {"plug_main.py": "import plug_p", "plug_p/__init__.py": "", "plug_p/b.py": ""},
        "plug_p/__init__.py plug_p/b.py",
    ),
    "of a package": (
        {"plug_main.py": "from plug_p import a", "plug_p/__init__.py": "",
         "plug_p/a.py": "import plug_help"},
        "plug_p/__init__.py plug_p/a.py plug_help.py",
    ),
    "of a folder": (
        {"plug_main.py": "from plug_f import a", "plug_f/a.py": "from .b import C",
         "plug_f/b.py": "C = 1", "plug_f/c.py": ""},
        "plug_f/a.py plug_f/b.py",
    ),
    "a package itself": (
        {"plug_main/__init__.py": "", "plug_main/a.py": "import plug_help"},
        "plug_main/a.py plug_help.py",
    ),
    "not ours": ({"plug_main.py": "import tff_pmc, leaf_data, numpy, json"}, ""),
    "not Python": (
        {"plug_main.py": "try:\n    import plug_a\nexcept SyntaxError:\n    pass",
         "plug_a.py": "def ("},
        "plug_a.py",
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_files_of_a_plugin_are_found_and_hashed(tmp_path, monkeypatch, layout):
    written, others = LAYOUTS[layout]
    texts = {"plug_help.py": "A = 1", "plug_not.py": "A = 1", **written}
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    try:
        importlib.import_module("plug_main")
        main = {name for name in written if name.startswith("plug_main")}
        expected = {*main, *others.split()}
        names = {str(path.relative_to(tmp_path)) for path in plugin_files("plug_main")}
        assert names == expected
        first = plugin_sha256("plug_main")
        for name in texts:
            path = tmp_path / name
            path.write_text(f"{texts[name]}\n#")
            assert (plugin_sha256("plug_main") != first) == (name in expected), name
            path.write_text(texts[name])
    finally:
        for name in {*sys.modules} - before:
            del sys.modules[name]
