"""Settings that are declared once, as dataclass fields.

A field made by `setting` carries its help, its range or choices and the name of its
flag. Everything else that a setting needs follows from the declaration: the
check, the command line's flag and `--help`, the settings in `run.json`, the table in
the documents.

    @dataclasses.dataclass(frozen=True)
    class Decay(Settings):
        title = "A rate that decays"

        factor: float = setting(
            0.9, "The factor of a round.", flag="decay_factor", within=BELOW_1
        )

    Decay(factor=2)   # SettingError: --decay_factor must be at least 0, below 1 ...

Nothing here depends on the library that reads the command line.
"""

from __future__ import annotations

import dataclasses
import functools
import numbers
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Callable, ClassVar, NamedTuple, TypeVar

Group = TypeVar("Group", bound="Declared")

_KEY = "setting"
# Type hints are evaluated from text, and every settings object needs its class's.
_type_hints: Callable[[type], dict[str, Any]] = functools.cache(typing.get_type_hints)
_KINDS: dict[type, tuple[type, str]] = {
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
    bool: (bool, "True or False"),
    str: (str, "text"),
}


class SettingError(ValueError):
    """A setting or an argument that cannot be used; the message names it."""


class Range(NamedTuple):
    """A range of numbers."""

    holds: Callable[[Any], bool]  # Whether a value is in the range.
    description: str  # The range in words, after "must be".


AT_LEAST_0 = Range(lambda n: n >= 0, "0 or more")
AT_LEAST_1 = Range(lambda n: n >= 1, "at least 1")
# Numbers are computed in float32, where they must be neither 0 nor infinite.
ABOVE_0 = Range(lambda x: 2.0**-126 <= x < 2.0**128, "above 0, as a float32")
ABOVE_0_TO_1 = Range(lambda x: 0 < x <= 1, "above 0, at most 1")
FROM_0_TO_1 = Range(lambda x: 0 <= x <= 1, "from 0 to 1")
BELOW_1 = Range(lambda x: 0 <= x < 1, "at least 0, below 1")
SEED = Range(lambda n: 0 <= n < 2**31, "in [0, 2^31)")


def check_value(name: str, value: Any, kind: type, within: Range | None = None) -> None:
    """Raises a `SettingError` with the name if a value has another type or range.

    The types int, float, bool and str are checked, and no others.
    """
    base, description = _KINDS.get(kind, (object, ""))
    # In Python a bool is an int; here it is not.
    has_kind = isinstance(value, bool) == (kind is bool) if description else True
    if not isinstance(value, base) or not has_kind:
        raise SettingError(f"{name} must be {description}, got {value!r}")
    if within is not None and not within.holds(value):
        raise SettingError(f"{name} must be {within.description}, got {value}")


def require_sequence(name: str, values: Any) -> tuple[Any, ...]:
    """Returns the items of an argument whose order counts, or is recorded.

    Raises:
        SettingError: the argument has no order, as a set; or it is a mapping, whose
            values would be lost; or it is text, or not iterable.
    """
    unordered = isinstance(values, (set, frozenset, Mapping))
    text = isinstance(values, (str, bytes))
    if unordered or text or not isinstance(values, Iterable):
        why = ", which has no order" if unordered else ""
        got = f"got {values!r:.60}{why}"
        raise SettingError(f"{name} must be a sequence, {got}: give a list")
    return tuple(values)


class Needs(NamedTuple):
    """The value of another setting without which a setting has no effect.

    needs=Needs("--partition=dirichlet", lambda group: group.partition == "dirichlet")
    """

    condition: str  # The other flag with its value, as it is typed.
    holds: Callable[[Any], bool]  # Whether a group has this value.


class Setting(NamedTuple):
    """One declared setting; see `setting` for what is declared."""

    default: Any
    help: str
    flag: str  # The name of the flag, without dashes.
    choices: Any  # A tuple of words; empty if any value is allowed.
    within: Range | None
    parse: Callable[[str], Any] | None
    repeated: bool
    has_flag: bool
    omit_default: bool
    needs: Needs | None
    # Set from the class that has the field.
    name: str = ""  # The name of the field.
    kind: type = object  # `int`, `float`, `str`, `bool`, or `tuple` by `parse`.
    owner: type = object  # The group that declares it.

    def check(self, value: Any, name: str = "") -> None:
        """Raises a `SettingError` for a value of another type, range or choice.

        The message has the name, by default the flag. None is allowed if it is the
        default.
        """
        name = name or f"--{self.flag}"
        if value is None and self.default is None:
            return
        if self.choices:
            if value not in self.choices:
                choices: list[str] = [c for c in self.choices if c]  # "" is a default.
                words = f"{'one of ' * (len(choices) > 1)}{', '.join(choices)}"
                raise SettingError(f"{name} must be {words}; got {value!r}")
            return
        check_value(name, value, self.kind, self.within)

    def accepts_same_values(self, other: Setting) -> bool:
        """Returns whether this setting and another accept the same values."""
        mine, theirs = ((s.kind, s.within, s.choices) for s in (self, other))
        return mine == theirs


def setting(
    default: Any,
    words: str,
    *,
    flag: str = "",
    choices: Sequence[str] | Callable[[], Sequence[str]] = (),
    within: Range | None = None,
    parse: Callable[[str], Any] | None = None,
    repeated: bool = False,
    has_flag: bool = True,
    omit_default: bool = False,
    needs: Needs | None = None,
) -> Any:
    """Declares a setting: a dataclass field with its help, range and flag.

    Args:
        default: the default value.
        words: the help text, in whole sentences.
        flag: the name of its flag, unique in the project; by default the field's.
        choices: the allowed words, or a function that returns them if they are
            registered later; by default any.
        within: the range of a number; by default any.
        parse: a function from the flag's text to the value, for a value that is neither
            a word nor a number.
        repeated: whether the flag takes several values, each of which is a run.
        has_flag: whether the command line has a flag for it.
        omit_default: leave the default out of records, so that runs from before the
            setting can be resumed.
        needs: the value of another setting of the group without which this one has no
            effect; `check_given` raises then. By default it always has an effect.

    Returns:
        The field, for the body of a `Settings` class.
    """
    how = parse, repeated, has_flag, omit_default, needs
    declared = Setting(default, words, flag, choices, within, *how)
    return dataclasses.field(default=default, metadata={_KEY: declared})


class Declared:
    """A dataclass whose fields are declared by `setting`.

    Attributes:
        errors_name_fields: whether errors name fields instead of flags, because the
            values are arguments of Python functions.
    """

    errors_name_fields: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for declared in self.declared():
            name = declared.name if self.errors_name_fields else ""
            declared.check(getattr(self, declared.name), name)

    def check_given(self, flags: Collection[str]) -> None:
        """Raises a `SettingError` if a given setting has no effect with the others.

        The constructor cannot know which values the user set, and which are defaults
        or an experiment's; the reader of flags or options knows.

        Args:
            flags: the flags of the settings that the user set.

        Raises:
            SettingError: a setting needs another one; the message names both.
        """
        for declared in self.declared():
            needs = declared.needs
            if needs and declared.flag in flags and not needs.holds(self):
                raise SettingError(f"--{declared.flag} needs {needs.condition}")

    @classmethod
    def declared(cls) -> tuple[Setting, ...]:
        """Returns the settings of the group; the settings of its bases come first."""
        kinds = _type_hints(cls)
        settings = []
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            if _KEY in field.metadata:
                setting_: Setting = field.metadata[_KEY]
                kind, choices = kinds[field.name], setting_.choices
                owner = next(  # The class whose body has the field.
                    base
                    for base in reversed(cls.__mro__)
                    if field.name in vars(base).get("__annotations__", {})
                )
                placed = setting_._replace(
                    name=field.name,
                    flag=setting_.flag or field.name,
                    kind=typing.get_origin(kind) or kind,
                    choices=tuple(choices() if callable(choices) else choices),
                    owner=owner,
                )
                settings.append(placed)
        return tuple(settings)

    @classmethod
    def flags(cls) -> tuple[str, ...]:
        """Returns the names of the settings' flags."""
        return tuple(declared.flag for declared in cls.declared())

    @classmethod
    def from_flag_values(cls: type[Group], values: Mapping[str, Any]) -> Group:
        """Builds the group from values by flag, without those of other groups."""
        settings = cls.declared()
        return cls(**{s.name: values[s.flag] for s in settings if s.flag in values})

    def values_of(self, base: type[Declared]) -> dict[str, Any]:
        """Returns the values by field of the settings that a class `base` declares."""
        return {s.name: getattr(self, s.name) for s in base.declared()}

    def by_flag(self) -> dict[str, Any]:
        """Returns the values by flag."""
        return {s.flag: getattr(self, s.name) for s in self.declared()}

    def to_record(self) -> dict[str, Any]:
        """Returns the values by flag for a record; see `omit_default`."""
        omitted = {s.flag: s.default for s in self.declared() if s.omit_default}
        return {
            flag: value
            for flag, value in self.by_flag().items()
            if flag not in omitted or value != omitted[flag]
        }


@dataclasses.dataclass(frozen=True)
class Settings(Declared):
    """A group of settings; a subclass is a frozen dataclass of `setting` fields.

    Attributes:
        title: the heading of the group's flags in the help.

    Raises:
        SettingError: (constructor) a value is not one of its choices, or has another
            type or range.
    """

    title: ClassVar[str] = ""

    @property
    def note(self) -> str:
        """What tables add to the label of a run with these settings; "" for nothing."""
        return ""
