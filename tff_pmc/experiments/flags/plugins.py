"""Modules from outside the package that register data sets, models and the rest."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from declared_settings import SettingError
from tff_pmc import criteria
from tff_pmc.experiments.callbacks import CALLBACKS
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.flags import flag_definitions
from tff_pmc.experiments.flags.command import Command
from tff_pmc.record.plugin_files import plugin_sha256
from tff_pmc.record.resume_check import IMPORTED_PLUGINS
from tff_pmc.settings.run_settings import COMPONENTS


def import_plugins(arguments: Sequence[str]) -> None:
    """Imports the modules that `--plugin` names, so that their flags exist."""
    plugin_setting = [
        declared for declared in Command.declared() if declared.flag == "plugin"
    ]
    names = flag_definitions.parse(arguments, plugin_setting).get("plugin", ())
    IMPORTED_PLUGINS.clear()
    if not names:
        return
    # First those of the package, so that a plugin which takes a name of theirs fails.
    for registry in (*COMPONENTS.values(), CALLBACKS, EXPERIMENTS, criteria.REGISTRY):
        len(registry)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            _import(name)
        except ValueError as error:
            raise SettingError(f"--plugin={name}: {error}") from error
        IMPORTED_PLUGINS[name] = plugin_sha256(name)


def _import(name: str) -> None:
    """Imports a module; a `ValueError` reports in words why it cannot be used."""
    module_name = os.path.basename(name)
    module_name = module_name[:-3] if module_name.endswith(".py") else module_name
    if module_name != name:
        raise ValueError(
            f"give the module's name, not its file: --plugin={module_name}, from the "
            "folder that contains it"
        )
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise ValueError(str(error)) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # A script may end itself, with success even.
        words = f"{type(error).__name__}: {error}{_place(error)}"
        raise ValueError(words) from error
    file = os.path.join(os.getcwd(), f"{name}.py")
    module_file = getattr(module, "__file__", None) or "a part of Python"
    if os.path.exists(file) and os.path.realpath(module_file) != os.path.realpath(file):
        raise ValueError(f"another module has this name ({module_file}): rename yours")


def _place(error: BaseException) -> str:
    """Returns the line of a file in this folder that raised an error, if known."""
    here = os.path.join(os.path.realpath(os.getcwd()), "")
    frames = (
        []
        if isinstance(error, SyntaxError)
        else traceback.extract_tb(error.__traceback__)
    )
    for frame in reversed(frames):  # A syntax error names its line already.
        if os.path.realpath(frame.filename).startswith(here):
            return f" ({os.path.basename(frame.filename)}, line {frame.lineno})"
    return ""
