"""Run folders read back: the settings by flag, the label, the system and its note."""

import json

import pytest

from tff_pmc.record import read
from tff_pmc.record.record_error import RecordError

INFO = {
    "label": "AdaFed, 50% mislabeled",
    "system": "AdaFed",
    "note": "50% mislabeled",
    "data": {"name": "mnist"},
    "settings": {
        "experiment": "adafed_3",
        "system": {"system": "adafed"},
        "data": {"dataset": "mnist", "partition": "noniid"},
        "training": {"rounds": 40, "num_packs": 2},
        "record": {"reach": "above", "targets": [70, 80]},
    },
}


def test_a_run_is_read_by_the_flags_of_its_settings(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(INFO))
    (tmp_path / "rounds.csv").write_text("round,accuracy\n1,0.5\n")
    (tmp_path / "weights.csv").write_text("round,ordering\n1,DS\n")
    (tmp_path / "clients.csv").write_text("round,client,correct,examples\n1,a,1,2\n")
    run = read.read_run(str(tmp_path))
    assert run.settings["num_packs"] == 2 and run.settings["system"] == "adafed"
    assert (run.label, run.system, run.note) == (
        *("AdaFed, 50% mislabeled", "AdaFed", "50% mislabeled"),
    )
    assert (run.targets, run.strictly_above) == ((70, 80), True)
    assert (run.adjustment, run.candidates, run.cohort) == ("fixed", None, None)


def test_a_broken_run_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        read.read_run(str(tmp_path))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RecordError, match="run.json is not JSON"):
        read.read_run(str(tmp_path))
