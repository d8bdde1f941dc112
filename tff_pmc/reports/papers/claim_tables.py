"""What the papers say of their results, as data: one table a paper.

`claims/PAPER.toml` has, in the paper's order, a `[[claim]]` for each thing that it says
and runs can judge, and a `[[headline]]` for each of its numbers that the pages show
beside ours. `[columns]` names sets of a published table's columns, `[runs]` names
several runs, and `[default]` has what all of a paper's claims share. A claim has

* `place`: where the paper says it: section, table or figure.
* `says`: what it says, in our words.
* `experiments`: the names of the experiments whose runs it takes.
* `judge`: which judge decides (`judges.JUDGES`), by default `compared`, and the judge's
  own keys, the function's parameters.

`[tables]` names the published table of an experiment, `[settings]` has what makes its
runs the paper's, `[hours]` has what the runs cost that would decide its claims, and
`[needs]` what they need and could not be had. A claim whose runs are not those of the
flag file has `flags` that make them so, and `hours` and `settings` of its own.

The keys of `quantities.Row` say what of which runs is held against what, with which
sign, size and tolerance. Those that differ between several measures of a claim stand
in the rows of `measures`; each is made once for each label `against` that it is held.
"""

from __future__ import annotations

import functools
import inspect
import math
import pathlib
import string
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from tff_pmc import project_files
from tff_pmc.reports.papers import judging
from tff_pmc.reports.papers.headlines import NUMBERS, Headline
from tff_pmc.reports.papers.judges import JUDGES
from tff_pmc.reports.papers.judging import Answer, Cells
from tff_pmc.reports.papers.quantities import QUANTITIES, Row
from tff_pmc.reports.rounds_to_target import DEVICES
from tff_pmc.settings.papers import PAPERS, folders

if sys.version_info >= (3, 11):
    import tomllib
else:  # The same reader, from before it was in the standard library.
    import tomli as tomllib

FOLDER = pathlib.Path(__file__).parent / "claims"

_TOP = (
    *("paper", "tables", "settings", "hours", "needs", "runs", "columns", "default"),
    *("claim", "headline"),
)
# Keys of a measure that are a number, two or none that rise, or any of these.
_ALONE = ("tolerance", "digits", "times")
_PAIRS = ("rounds", "within")
_BOTH = "printed"


class ClaimError(ValueError):
    """A table of claims says what it cannot; one line that names file and claim."""


class Claim(NamedTuple):
    """What a paper says, and how runs of ours judge it; see above.

    `judge` takes the runs that there are by their experiments' names. It raises a
    `RecordError` where they are not the ones that it takes, and a `TooShortError` where
    they ended before what it is about.
    """

    paper: str
    place: str
    says: str
    experiments: Sequence[str]
    judge: Callable[[Mapping[str, Sequence[Any]]], Answer]
    needs: str = ""
    hours: Mapping[str, float] = types.MappingProxyType({})
    flags: str = ""
    settings: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({})


@functools.cache
def claims(paper: str = "") -> tuple[Claim, ...]:
    """Returns the claims of a paper, or of all of them in the order of `PAPERS`."""
    names = [paper] if paper else PAPERS
    return tuple(claim for name in names for claim in _of_paper(name)[0])


def headline_numbers() -> tuple[Headline, ...]:
    """Returns the headline numbers of all papers, in their order."""
    return tuple(number for name in PAPERS for number in _of_paper(name)[1])


@functools.cache
def _of_paper(paper: str) -> tuple[tuple[Claim, ...], tuple[Headline, ...]]:
    return read((PAPERS[paper].folder or FOLDER) / f"{paper.lower()}.toml")


def read(path: pathlib.Path) -> tuple[tuple[Claim, ...], tuple[Headline, ...]]:
    """Returns the claims and the headline numbers of a file.

    Raises:
        ClaimError: there is no such file; a key, judge, experiment, sign or name is
            unknown, or missing.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ClaimError(f"{path.name}: {error}") from error
    for key in table:
        if key not in _TOP:
            raise ClaimError(f"{path.name}: {key!r} is none of {', '.join(_TOP)}")
    found: dict[str, list[Any]] = {"claim": [], "headline": []}
    for kind, make in (("claim", _claim), ("headline", _headline)):
        for number, own in enumerate(table.get(kind, ()), start=1):
            try:
                found[kind].append(make(table, own))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                lacks = isinstance(error, KeyError)
                why = f"the key {error} is missing" if lacks else error
                place = own.get("place", "without a place")
                raise ClaimError(
                    f"{path.name}, {kind} {number} ({place}): {why}"
                ) from error
    return tuple(found["claim"]), tuple(found["headline"])


def _claim(table: Mapping[str, Any], own: Mapping[str, Any]) -> Claim:
    keys = {**table.get("default", {}), **own}
    place, says, experiments = (keys.pop(k) for k in ("place", "says", "experiments"))
    hours = keys.pop("hours", table.get("hours", {}))
    settings = keys.pop("settings", table.get("settings", {}))
    flags = " ".join(keys.pop("flags", "").split())
    name = keys.pop("judge", "compared")
    _known("experiment", experiments, _experiments())
    _known("judge", [name], JUDGES)
    judge = JUDGES[name]
    if "measures" in inspect.signature(judge).parameters:
        shared = {key: keys.pop(key) for key in Row._fields if key in keys}
        tables = [table.get("tables", {}).get(name) for name in experiments]
        if all(tables):
            shared["tables"] = tables
        rows, against = keys.pop("measures", [{}]), _labels(table, keys, "against")
        bases = [{"base": label} for label in against] or [{}]
        keys["measures"] = [
            _row(table, {**shared, **row, **base}) for row in rows for base in bases
        ]
    else:
        keys = {key: value for key, value in keys.items() if key in own}
        if "columns" in keys:
            keys["columns"] = _columns(table, keys["columns"])
    inspect.signature(judge).bind({}, **keys)  # A TypeError names the odd key.
    words = " ".join(says.split())
    bound = functools.partial(judge, **keys)
    # What one of several experiments needs keeps the others from nothing.
    needs = {table.get("needs", {}).get(name, "") for name in experiments}
    need = needs.pop() if len(needs) == 1 else ""
    of_runs = tuple(experiments), bound, need, hours, flags, settings
    return Claim(table["paper"], place, words, *of_runs)


def _headline(table: Mapping[str, Any], own: Mapping[str, Any]) -> Headline:
    keys = dict(own)
    number = keys.pop("number")
    _known("experiment", [keys["experiment"]], _experiments())
    _known("number", [number], NUMBERS)
    fields = {key: keys.pop(key) for key in Headline._fields if key in keys}
    needed = table.get("settings", {}).get(fields["experiment"], {})
    fields["settings"] = {**needed, **fields.get("settings", {})}
    measure = functools.partial(NUMBERS[number], **keys)
    found = Headline(paper=table["paper"], measure=measure, **fields)
    inspect.signature(NUMBERS[number]).bind(*found.labels, **keys)
    return found


@functools.cache
def _experiments() -> Mapping[str, Mapping[str, float]]:
    """Returns the flag files of each experiment, and their rounds (inf: none set)."""
    found: dict[str, dict[str, float]] = {}
    own = project_files.folder(project_files.FLAG_FILES)
    for folder in folders(own):
        for path in sorted(folder.glob("*.flags")):
            name, rounds = "", math.inf
            for line in path.read_text(encoding="utf-8").splitlines():
                flag, _, value = line.partition("=")
                name = value if flag == "--experiment" else name
                rounds = float(value) if flag == "--rounds" else rounds
            file = f"experiments/{path.name}" if folder == own else path.name
            found.setdefault(name, {})[file] = rounds
    found.pop("", None)
    return found


def command(experiment: str, flags: str = "") -> str:
    """Returns the command of the experiment's flag file, of several the longest.

    With more flags it has these, too; they may have other seeds than the first five.
    """
    files = _experiments().get(experiment, {})
    what = f"--experiment={experiment} --priority=all"
    if files:
        what = f"--flagfile={max(files, key=lambda name: files[name])}"
    seeds = "" if "--seeds=" in flags else "--seeds=0,1,2,3,4"
    parts = [".venv/bin/python run_experiments.py", what, seeds, "--data_dir=DIR"]
    return " ".join(filter(None, [*parts, flags]))


def _row(table: Mapping[str, Any], keys: Mapping[str, Any]) -> Row:
    _known("key of a measure", keys, Row._fields)
    own = dict(keys)
    own.update({k: _columns(table, own[k]) for k in ("columns", "minus") if k in own})
    if "runs" in own:
        own["runs"] = _labels(table, own, "runs")
    if not isinstance(own.get("base", 0), (int, float)):
        own["base"] = [label for label in _labels(table, own, "base") if label]
    row = Row(**own)
    for name in (*_ALONE, *_PAIRS, _BOTH):
        value = getattr(row, name)
        several = isinstance(value, (list, tuple))
        numbers = value if several else [value]
        usable = all(type(one) in (int, float) and one == one for one in numbers)
        fits = name == _BOTH or several == (name in _PAIRS)
        if not (usable and fits and len(numbers) < 3 and [*numbers] == sorted(numbers)):
            words = "two numbers" if name in _PAIRS else "a number"
            raise ValueError(f"{name} has to be {words}, not {value!r}")
    _known("sign", [row.sign], judging.SIGNS)
    _known("quantity", [row.of], QUANTITIES)
    names = [part[1] for part in string.Formatter().parse(row.name) if part[1]]
    _known("part of a name", names, ("run", "columns", "minus", "base"))
    return row


def _columns(table: Mapping[str, Any], names: Any) -> dict[str, Cells]:
    """Returns the cells of columns by their names in `[columns]`."""
    known = table.get("columns", {})
    _known("set of columns", _listed(names), known)
    return {
        name: [
            (int(target), share)
            for target, shares in known[name].items()
            for share in (DEVICES if shares == "all" else shares)
        ]
        for name in _listed(names)
    }


def _labels(table: Mapping[str, Any], keys: dict[str, Any], key: str) -> list[str]:
    """Takes labels out of keys; names in `[runs]` stand for several."""
    groups = table.get("runs", {})
    names = _listed(keys.pop(key, ()))
    return [label for one in names for label in groups.get(one, [one])]


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [*value]


def _known(what: str, names: Any, known: Any) -> None:
    for name in names:
        if name not in known:
            raise ValueError(
                f"unknown {what} {name!r}; it has to be one of {', '.join(known)}"
            )
