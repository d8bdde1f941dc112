"""Registries: found in the modules of a package, looked into late, names and errors."""

from __future__ import annotations

import sys

import pytest

from leaf_data.declare import Registry, UnknownNameError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two modules that register a color each, and its registry."""
    folder = tmp_path / "toy_colors"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from leaf_data.declare import Registry\nCOLORS = Registry('color', __name__)\n"
    )
    for name, value in (("yellow", 3), ("blue", 1)):
        (folder / f"{name}.py").write_text(
            f"from toy_colors import COLORS\nCOLORS.register({name!r}, {value})\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("toy_colors")]:
        del sys.modules[name]


def test_the_modules_of_the_package_are_imported_when_it_is_first_looked_into(package):
    import toy_colors

    assert "toy_colors.blue" not in sys.modules
    assert toy_colors.COLORS["blue"] == 1
    assert dict(toy_colors.COLORS) == {"blue": 1, "yellow": 3}
    assert len(toy_colors.COLORS) == 2 and "blue" in toy_colors.COLORS
    assert "green" not in toy_colors.COLORS


def test_one_more_module_is_one_more_thing(package):
    (package / "green.py").write_text(
        "from toy_colors import COLORS\nCOLORS.register('green', 2)\n"
    )
    import toy_colors

    assert list(toy_colors.COLORS) == ["blue", "green", "yellow"]


def test_a_module_that_cannot_be_imported_is_not_passed_over(package):
    broken = package / "broken.py"
    broken.write_text("import there_is_no_such_module\n")
    import toy_colors

    for _ in range(2):  # The second time too.
        with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
            len(toy_colors.COLORS)
    broken.unlink()
    assert toy_colors.COLORS["yellow"] == 3


def test_an_unknown_name_names_its_neighbor():
    colors = Registry("color")
    colors.register("yellow", 3)
    colors.register("blue", 1)
    with pytest.raises(UnknownNameError) as error:
        colors["bleu"]
    assert str(error.value) == (
        "no color 'bleu' (did you mean blue?): there are yellow, blue"
    )
    with pytest.raises(UnknownNameError) as error:
        colors["quartz"]
    assert str(error.value) == "no color 'quartz': there are yellow, blue"
    assert isinstance(error.value, ValueError)


def test_a_name_is_given_once():
    colors = Registry("color")
    thing = object()
    assert colors.register("blue", thing) is thing
    colors.register("blue", thing)  # The same again changes nothing.
    with pytest.raises(ValueError, match="there is a color 'blue' already"):
        colors.register("blue", object())
    assert colors["blue"] is thing
