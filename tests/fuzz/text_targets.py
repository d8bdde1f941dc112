"""Readers of texts: flag files, and the folders of the authors' published code."""

from __future__ import annotations

import functools
import pathlib
import random

from absl import flags
from fuzzing import register
from mutations import TEXTS, edit_lines

from leaf_data.declare import SettingError
from tff_pmc.experiments.flags import command_line, flag_definitions
from tff_pmc.record import reference_code
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.escape import message

FLAG_FILES = pathlib.Path(__file__).parents[2] / "experiments"


def _flag_seeds():
    return [path.read_bytes() for path in sorted(FLAG_FILES.glob("*.flags"))]


@functools.cache
def _flags():
    """The names of all flags, and some values."""
    settings = [one for part in flag_definitions.sections() for one in part.settings]
    values = ("1", "-1", "0.5", "1e400", "all", "DS", "DS,LD", "DS=0:1", "DS^2", "x=y")
    return [one.flag for one in settings], (*values, *TEXTS)


def _edit_flags(source: random.Random, data: bytes) -> bytes:
    names, values = _flags()
    lines = edit_lines(source, data, b"=").split(b"\n")
    for _ in range(source.randrange(4)):
        line = f"--{source.choice(names)}={source.choice(values)}"
        lines.insert(source.randrange(len(lines) + 1), line.encode(errors="ignore"))
    if source.randrange(4) == 0:
        name = source.choice(("flags", "quickstart.flags", ".", "/dev/zero", "fifo"))
        lines.insert(source.randrange(len(lines) + 1), b"--flagfile=" + name.encode())
    return b"\n".join(lines)


def _read_flags(folder, data):
    """Reads it as the command does, up to where it would make a run's folder."""
    path = folder / "flags"
    path.write_bytes(data)
    try:
        given = flag_definitions.parse([f"--flagfile={path}"])
        command = command_line.command_of(given)
        runs = command_line.runs_of(command, given)
        command_line.cluster_of(command, given)
    except (flags.Error, OSError, ValueError) as error:
        raise SettingError(message(error)) from error
    assert runs and len({(run.label, run.system.name) for run in runs}) == len(runs)


register("flag_file", _flag_seeds, _edit_flags, _read_flags, SettingError)

PARAMETERS = b"K (number of clients): 2\nLocal dataset type: iid\nPermutation: 3"
CLIENT = b"y_pred,y_true\n" + b"".join(b"%d,%d\n" % (k % 7, k % 10) for k in range(30))


def _read_authors(name, folder, data):
    written = dict.fromkeys((f"round_1/client_{k}.csv" for k in (1, 2)), CLIENT)
    for file, content in {"params.txt": PARAMETERS, **written, name: data}.items():
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    clients = reference_code.read(str(folder)).clients
    assert (
        (clients["correct"] >= 0) & (clients["correct"] <= clients["examples"])
    ).all()
    reference_code.listed(str(folder), 1)


register(
    "authors_parameters",
    lambda: [PARAMETERS],
    functools.partial(edit_lines, separator=b": "),
    functools.partial(_read_authors, "params.txt"),
    RecordError,
)
register(
    "authors_client",
    lambda: [CLIENT],
    edit_lines,
    functools.partial(_read_authors, "round_1/client_1.csv"),
    RecordError,
)
