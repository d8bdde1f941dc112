"""Readers of the files of a run's folder: its settings, its tables, its predictions."""

from __future__ import annotations

import functools
import gzip
import io
import json
import pathlib

import numpy as np
from fuzzing import register, same
from mutations import edit_json, edit_lines, flip

from tff_pmc.record.predictions import read_predictions
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import read_results
from tff_pmc.record.tables import TABLES

# Runs that are kept, of AdaFed's systems; each file of them is damaged by itself.
RUNS = pathlib.Path(__file__).parents[2] / "results/reproduced/adafed_1"
KEPT = ("rounds", "clients", "cohort", "class_f1")
INFO = {
    **{"label": "DS", "system": "Prioritized", "status": "finished"},
    "settings": {"experiment": "quickstart", "training": {"batch_seed": 0}},
    "data": {"name": "mnist", "clients": 2, "origin": {"source": "idx files"}},
}


def _first_run(name):
    """The rows of the first run in a kept table, as its folder had them."""
    lines = gzip.decompress((RUNS / f"{name}.csv.gz").read_bytes()).split(b"\n")
    rows = [line.split(b",", 2) for line in lines if line]
    return b"".join(
        b"%s\n" % row[2] for row in rows if row[:2] in (rows[0][:2], rows[1][:2])
    )


def _read_table(name, ending, folder, data):
    (folder / f"{name}.csv{ending}").write_bytes(data)
    found = TABLES[name].read(str(folder))
    assert (found["round"] >= 1).all() or len(found) == 0 or name != "rounds"
    if {"correct", "examples"} <= {*found.columns}:
        assert not (found["correct"] > found["examples"]).any()


def _read_run_json(folder, data):
    (folder / "run.json").write_bytes(data)
    (folder / "rounds.csv").write_text("round,accuracy\n1,0.5\n")
    found = read_results(str(folder))
    assert len(found.rounds) == 1 and found.labels


def _predictions():
    file = io.BytesIO()
    np.savez(file, predicted=np.arange(6, dtype=np.uint8))
    return [file.getvalue()]


def _read_predictions(folder, data):
    (folder / "predictions").mkdir()
    labels = {"y": np.zeros(6, np.uint8), "row_splits": np.array([0, 2, 6])}
    np.savez(folder / "predictions" / "labels.npz", **labels, client_ids=["a", "b"])
    (folder / "predictions" / "round_0001.npz").write_bytes(data)
    same(read_predictions(str(folder), 1).predicted, np.arange(6))


register(
    "run_json",
    lambda: [json.dumps(INFO, indent=1).encode()],
    edit_json,
    _read_run_json,
    RecordError,
)
for _name in KEPT:
    register(
        f"run_{_name}",
        functools.partial(lambda name: [_first_run(name)], _name),
        edit_lines,
        functools.partial(_read_table, _name, ""),
        RecordError,
    )
register(
    "run_clients_packed",
    lambda: [gzip.compress(_first_run("clients"), mtime=0)],
    flip,
    functools.partial(_read_table, "clients", ".gz"),
    RecordError,
)
register("run_predictions", _predictions, flip, _read_predictions, RecordError)
