"""The rows of a comparison: their values by flag, and their names (no TensorFlow).

    --rows='fedavg; fedprox fedprox_mu=0.1; prioritized priority=LD,DS,MD'

The name of a row contains all that the row sets, and does not depend on other rows, so
that rows can be added to a folder.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from declared_settings import SettingError
from tff_pmc.algorithms import ALGORITHMS, Algorithm
from tff_pmc.experiments.callbacks import CALLBACKS
from tff_pmc.experiments.experiment import Variant
from tff_pmc.experiments.flags import flag_definitions
from tff_pmc.experiments.flags.command import COMMAND_FLAGS, parse_algorithm
from tff_pmc.settings import RunSettings
from tff_pmc.settings.record_settings import RecordSettings
from tff_pmc.settings.run_settings import owners_clause

Values = Mapping[str, Any]
BuildSettings = Callable[[Values], RunSettings]

_COMPONENTS_OF_A_ROW = {"model", "selection"}
"""The flags of the command that a row may set."""

_ORDERING_FLAGS = ("priority", "adjustment")
"""The flags that take several values in a command, and a row only one of them."""


def has_candidates(algorithm: str) -> bool:
    """Returns whether an algorithm has candidates that `--adjustment` searches."""
    kind = ALGORITHMS[algorithm]
    return kind.takes_priority or kind.candidates != Algorithm.candidates


def parse_row(row: Variant) -> Variant:
    """Returns a row with parsed values instead of texts.

    Raises:
        SettingError: the algorithm or a flag is unknown, a value is wrong, or a row
            cannot set the flag. The message has the row.
    """
    try:
        algorithm = parse_algorithm(row.algorithm)
        # `mu` is `fedprox_mu` in a row of fedprox.
        flags_of_names = {
            re.sub(f"^{algorithm}_", "", flag): flag
            for flag in ALGORITHMS[algorithm].flags()
        }
        texts = {flags_of_names.get(f, f): text for f, text in row.changes.items()}
        parsed = flag_definitions.parse([f"--{f}={text}" for f, text in texts.items()])
        values = {flag: parsed[flag] for flag in texts}
        for flag, value in values.items():
            _check_flag(flag, algorithm)
            if flag in _ORDERING_FLAGS and [*value] == [("all",)]:
                raise SettingError("--priority=all is several rows: write each")
    except (flags.Error, ValueError) as error:
        raise SettingError(f"--rows: {row.text}: {error}") from error
    return dataclasses.replace(row, algorithm=algorithm, changes=values)


def _check_flag(flag: str, algorithm: str) -> None:
    """Raises a `SettingError` for a flag that a row cannot set."""
    callback_flags = {name for kind in CALLBACKS.values() for name in kind.flags()}
    if flag in (COMMAND_FLAGS | callback_flags) - _COMPONENTS_OF_A_ROW:
        raise SettingError(f"--{flag} holds for all rows: give it to the command")
    if flag in RecordSettings.flags() or flag.endswith("_seed"):
        raise SettingError(
            f"--{flag} must be equal in all rows: give it to the command"
        )
    kind = ALGORITHMS[algorithm]
    unused = {name for other in ALGORITHMS.values() for name in other.flags()}
    unused = unused - {*kind.flags()} | {*kind.unused_flags}
    unused |= set() if kind.takes_priority else {"priority"}
    if flag in unused or (flag == "adjustment" and not has_candidates(algorithm)):
        raise SettingError(
            f"--{flag} has no effect on the algorithm {algorithm}{owners_clause(flag)}"
        )


def name_rows(
    rows: Sequence[Variant], values: Sequence[Values], build: BuildSettings
) -> list[RunSettings]:
    """Returns the settings of rows, with labels that say what each row sets.

    Args:
        rows: the rows, parsed.
        values: of each row, the values by flag of its run, those of the row included.
        build: returns the settings of such values.

    Raises:
        SettingError: a row cannot be run, or two rows have the same label.
    """
    named: list[RunSettings] = []
    text_by_run: dict[object, str] = {}  # By settings, and by label.
    for row, values_of_row in zip(rows, values):
        try:
            run = build(values_of_row)
        except SettingError as error:
            raise SettingError(f"--rows: {row.text}: {error}") from error
        notes = [
            _note(row.algorithm, flag, value)
            for flag, value in row.changes.items()
            if not _label_shows(flag, value, values_of_row, run.label, build)
        ]
        named.append(dataclasses.replace(run, row_notes=tuple(notes)))
        for same in (repr(run), named[-1].label):
            other = text_by_run.setdefault(same, row.text)
            if other is not row.text:
                raise SettingError(
                    f"--rows: '{other}' and '{row.text}' are the same run, "
                    f"{named[-1].label}: remove one of them"
                )
    return named


def _label_shows(
    flag: str, value: Any, values: Values, label: str, build: BuildSettings
) -> bool:
    """Returns whether a label without notes shows a row's value of a flag."""
    if flag in _ORDERING_FLAGS or (
        isinstance(value, tuple) and _value_text(value) in label
    ):
        return True
    others = {name: other for name, other in values.items() if name != flag}
    try:
        return build(others).label != label
    except SettingError:  # The run needs the value, so only its text can tell.
        return _value_text(value) in label


def _note(algorithm: str, flag: str, value: Any) -> str:
    """Returns a setting in words: `mu 0.1` of `--fedprox_mu=0.1`."""
    words = re.sub(f"^{algorithm}_", "", flag).replace("_", " ")
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {_value_text(value)}"


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_value_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
