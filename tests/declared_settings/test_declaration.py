"""Settings that are declared once, and registries: checks, and what follows."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from declared_settings import (
    ABOVE_0,
    ABOVE_0_TO_1,
    AT_LEAST_0,
    AT_LEAST_1,
    BELOW_1,
    FROM_0_TO_1,
    SEED,
    Registry,
    UnknownNameError,
)
from leaf_data import SettingError, Settings, setting


@dataclasses.dataclass(frozen=True)
class Shared(Settings):
    title = "What two groups share"

    rate: float = setting(0.5, "The rate.", flag="toy_rate", within=ABOVE_0_TO_1)


@dataclasses.dataclass(frozen=True)
class Toy(Shared):
    title = "A toy"

    size: int = setting(3, "The size.", within=AT_LEAST_1)
    color: str = setting("red", "The color.", choices=("red", "blue"))
    fast: bool = setting(False, "Whether it is fast.")
    path: str = setting("", "A path.")
    levels: tuple[int, ...] = setting(
        (1, 2), "The levels.", parse=lambda text: tuple(map(int, text.split(",")))
    )


@dataclasses.dataclass(frozen=True)
class Other(Shared):
    title = "Another toy"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "--size must be at least 1, got 0"),
        ({"size": 1.0}, "--size must be a whole number, got 1.0"),
        ({"size": True}, "--size must be a whole number, got True"),
        ({"rate": float("nan")}, "--toy_rate must be above 0, at most 1, got nan"),
        ({"rate": None}, "--toy_rate must be a number, got None"),
        ({"rate": True}, "--toy_rate must be a number, got True"),
        ({"color": "green"}, "--color must be one of red, blue; got 'green'"),
        ({"fast": 1}, "--fast must be True or False, got 1"),
        ({"path": None}, "--path must be text, got None"),
    ],
)
def test_the_error_for_an_invalid_value_names_its_flag(values, message):
    with pytest.raises(SettingError) as error:
        Toy(**values)
    assert str(error.value) == message


def test_valid_values():
    toy = Toy(size=np.int64(4), rate=1, color="blue", fast=True, levels=(7,))
    values = dict(toy_rate=1, size=4, color="blue", fast=True, path="", levels=(7,))
    assert toy.by_flag() == values
    with pytest.raises(dataclasses.FrozenInstanceError):
        toy.size = 5


@pytest.mark.parametrize(
    ("within", "good", "bad"),
    [
        (AT_LEAST_0, (0, 5), (-1,)),
        (AT_LEAST_1, (1,), (0,)),
        (ABOVE_0, (1e-9, 7), (0, -1, float("inf"), float("nan"))),
        (ABOVE_0_TO_1, (0.1, 1), (0, 1.1, float("nan"))),
        (FROM_0_TO_1, (0, 0.5, 1), (-0.1, 1.1, float("nan"))),
        (BELOW_1, (0, 0.99), (1, -0.1)),
        (SEED, (0, 2**31 - 1), (-1, 2**31)),
    ],
)
def test_ranges(within, good, bad):
    assert [within.holds(value) for value in good] == [True] * len(good)
    assert [bool(within.holds(value)) for value in bad] == [False] * len(bad)


def test_a_field_carries_its_whole_declaration():
    rate, size, color, _, _, levels = Toy.declared()
    assert (rate.name, rate.flag, rate.kind) == ("rate", "toy_rate", float)
    assert (rate.default, rate.help, rate.within) == (0.5, "The rate.", ABOVE_0_TO_1)
    assert (size.flag, size.kind) == ("size", int)
    assert color.choices == ("red", "blue")
    assert levels.kind is tuple and levels.parse("3,4") == (3, 4)
    assert Toy.flags() == ("toy_rate", "size", "color", "fast", "path", "levels")
    # A shared setting belongs to the base that declares it.
    assert (rate.owner, size.owner) == (Shared, Toy)
    (inherited,) = Other.declared()
    assert inherited.owner is Shared


def test_a_group_is_built_from_its_flags_only():
    values = {"toy_rate": 0.25, "color": "blue", "rounds": 7}
    toy = Toy.from_flag_values(values)
    assert toy == Toy(rate=0.25, color="blue")
    assert Toy.from_flag_values(toy.by_flag()) == toy
    with pytest.raises(SettingError, match="^--size must be at least 1, got -2$"):
        Toy.from_flag_values({"size": -2})


def test_choices_may_be_a_function():
    words = ["one"]

    @dataclasses.dataclass(frozen=True)
    class Late(Settings):
        word: str = setting("one", "A word.", choices=lambda: words)

    with pytest.raises(SettingError, match="must be one; got 'two'"):
        Late(word="two")
    words.append("two")
    assert Late(word="two").declared()[0].choices == ("one", "two")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two modules that register a color each, and its registry."""
    folder = tmp_path / "toy_colors"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from declared_settings import Registry\nCOLORS = Registry('color', __name__)\n"
    )
    for name, value in (("yellow", 3), ("blue", 1)):
        (folder / f"{name}.py").write_text(
            f"from toy_colors import COLORS\nCOLORS.register({name!r}, {value})\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("toy_colors")]:
        del sys.modules[name]


def test_a_registry_imports_its_package_when_first_read(package):
    import toy_colors

    assert "toy_colors.blue" not in sys.modules
    assert toy_colors.COLORS["blue"] == 1
    assert dict(toy_colors.COLORS) == {"blue": 1, "yellow": 3}
    assert len(toy_colors.COLORS) == 2 and "blue" in toy_colors.COLORS
    assert "green" not in toy_colors.COLORS


def test_packages_are_imported_in_order(package):
    """The colors of the second package come last, whatever their names."""
    import toy_colors

    dark = package / "dark"
    dark.mkdir()
    (dark / "__init__.py").write_text("")
    (dark / "black.py").write_text(
        "from toy_colors import COLORS\nCOLORS.register('black', 0)\n"
    )
    classes = Registry("color", "toy_colors", "toy_colors.dark")
    toy_colors.COLORS = classes  # The one that the modules register at.
    assert [*classes] == ["blue", "yellow", "black"]


def test_an_import_error_of_a_module_is_raised(package):
    broken = package / "broken.py"
    broken.write_text("import there_is_no_such_module\n")
    import toy_colors

    for _ in range(2):  # The second time too.
        with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
            len(toy_colors.COLORS)
    broken.unlink()
    assert toy_colors.COLORS["yellow"] == 3


def test_the_error_for_an_unknown_name_suggests_the_nearest():
    colors = Registry("color")
    colors.register("yellow", 3)
    colors.register("blue", 1)
    words = r"^unknown color 'bleu' \(did you mean blue\?\); known: yellow, blue$"
    with pytest.raises(UnknownNameError, match=words):
        colors["bleu"]


def test_a_name_is_registered_once():
    colors = Registry("color")
    thing = object()
    for _ in range(2):  # The same again changes nothing.
        assert colors.register("blue", thing) is thing
    with pytest.raises(ValueError, match="the color 'blue' already exists"):
        colors.register("blue", object())
    assert colors["blue"] is thing
