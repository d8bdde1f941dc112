"""The files of a plug-in's code: its own, and those of modules that it imports.

They are found by reading the import statements, including those within functions.
Installed packages, the standard library and this project are not included.
"""

from __future__ import annotations

import ast
import hashlib
import pathlib
import site
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from typing import Optional

_PROJECT = ("tff_pmc", "leaf_data", "declared_settings")
_SUFFIXES = (".py", str(sysconfig.get_config_var("EXT_SUFFIX")))


def plugin_sha256(name: str) -> str:
    """Returns the sha256 of the files of a plug-in, or "" if it has none.

    Args:
        name: the imported module, as `--plugin` names it.
    """
    content = b"".join(file.read_bytes() for file in sorted(plugin_files(name)))
    return hashlib.sha256(content).hexdigest() if content else ""


def plugin_files(name: str) -> set[pathlib.Path]:
    """Returns the files of an imported module and of the modules that these import.

    A package contributes all its modules.
    """
    module, roots = sys.modules[name], _import_roots()
    to_scan = set(_module_files(roots, name.split(".")))
    if module.__file__:  # It has none if it is a folder that is not a package.
        file = pathlib.Path(module.__file__)
        to_scan |= {file, *(file.parent.rglob("*.py") if _is_package(module) else ())}
    files: set[pathlib.Path] = set()
    while to_scan:
        file = to_scan.pop().resolve()
        files.add(file)
        for folder, parts in _imported_names(file):
            if folder is None and parts[0] in _PROJECT:
                continue
            imported = _module_files([folder] if folder else roots, parts)
            to_scan |= {path.resolve() for path in imported} - files
    return files


def _is_package(module: object) -> bool:
    return hasattr(module, "__path__")


def _import_roots() -> list[pathlib.Path]:
    """Returns the folders that Python imports from, except those of installations."""
    paths = [sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    installed = {pathlib.Path(path).resolve() for path in paths}
    folders = [pathlib.Path(entry).resolve() for entry in sys.path]
    return [
        folder
        for folder in folders
        if folder.is_dir() and not installed & {folder, *folder.parents}
    ]


def _module_files(
    folders: Sequence[pathlib.Path], parts: Sequence[str]
) -> Iterator[pathlib.Path]:
    """Yields the files of the module with a dotted name, from the first folder with it.

    Parts after the module's name, as in `from module import name`, are ignored.
    """
    for folder in folders:
        if (folder / parts[0] / "__init__.py").is_file():
            yield from (folder / parts[0]).rglob("*.py")
            return
        for suffix in _SUFFIXES:
            if (file := folder / f"{parts[0]}{suffix}").is_file():
                yield file
                return
    inner = [folder / parts[0] for folder in folders if (folder / parts[0]).is_dir()]
    if inner and parts[1:]:  # A folder that is not a package has no code itself.
        yield from _module_files(inner, parts[1:])


def _imported_names(
    file: pathlib.Path,
) -> Iterator[tuple[Optional[pathlib.Path], list[str]]]:
    """Yields the imports of a file: a folder, and the parts of the dotted name.

    The folder is the one from which a relative import starts, else None.
    """
    try:
        nodes = ast.walk(ast.parse(file.read_bytes()))
    except (SyntaxError, ValueError):  # A compiled module, say.
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield None, alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            folder = [None, *file.parents][node.level]
            module = node.module.split(".") if node.module else []
            for alias in node.names:
                yield folder, [*module, alias.name]
        elif isinstance(node, ast.Call) and node.args:
            function, text = node.func, getattr(node.args[0], "value", None)
            name = getattr(function, "attr", getattr(function, "id", ""))
            if name in ("import_module", "__import__") and isinstance(text, str):
                yield None, text.split(".")
