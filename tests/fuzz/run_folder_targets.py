"""Readers of the files of a run's folder: its settings, its records, its states."""

from __future__ import annotations

import functools
import gzip
import pathlib
import shutil
import tempfile

import numpy as np
from fuzzing import register, same
from mutations import edit_json, edit_lines, flip

from tff_pmc.record import checkpoints, read
from tff_pmc.record.record_error import RecordError

# A run that is kept, of one of AdaFed's systems; each file of it is damaged by itself.
RUN = pathlib.Path(__file__).parents[2] / "results/reproduced/adafed_1/seed_0/fedavg"
TABLES = ("clients.csv", "rounds.csv", "cohort.csv", "weights.csv", "class_f1.csv")
ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array(7, np.int32)]
LENGTHS = {"rounds.csv": checkpoints.Length(812, "9f" * 32)}


def _read_folder(name, folder, data):
    run = folder / "run"
    shutil.copytree(RUN, run)
    (run / name.replace(".gz", "")).unlink()
    (run / name).write_bytes(data)
    found = read.read_run(str(run))
    accuracy = np.asarray(found.accuracy, float)
    assert ((accuracy >= 0) & (accuracy <= 1)).all()


def _read_table(name, folder, data):
    (folder / name).write_bytes(data)
    found = read.read_table(str(folder), name)
    assert len(found) and (found["round"] >= 1).all()


def _state_seeds():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "state")
        checkpoints.write_state(str(path), ARRAYS, 3, LENGTHS)
        return [path.read_bytes()]


def _read_state(folder, data):
    path = folder / "round_3.state"
    path.write_bytes(data)
    arrays, lengths = checkpoints.read_state(str(path), ARRAYS, 3)
    assert lengths == LENGTHS
    for found, written in zip(arrays, ARRAYS):
        same(found, written)


register(
    "run_json",
    lambda: [(RUN / "run.json").read_bytes()],
    edit_json,
    functools.partial(_read_folder, "run.json"),
    RecordError,
)
for _name in TABLES:
    _whole = _name in ("clients.csv", "rounds.csv")
    register(
        f"run_{_name[:-4]}",
        lambda name=_name: [(RUN / name).read_bytes()],
        edit_lines,
        functools.partial(_read_folder if _whole else _read_table, _name),
        RecordError,
    )
register(
    "run_clients_packed",
    lambda: [gzip.compress((RUN / "clients.csv").read_bytes(), mtime=0)],
    flip,
    functools.partial(_read_folder, "clients.csv.gz"),
    RecordError,
)
register("run_state", _state_seeds, flip, _read_state, RecordError)
