"""Run folders read back, and the settings of run.json of any age."""

import json

import pytest

from tff_pmc.reports import old_records, read
from tff_pmc.reports.record_error import RecordError

OLD = {
    "experiment": "quickstart",
    "dataset": "mnist",
    "model": "mnist_cnn",
    "partition": "noniid",
    "priority": ["LD", "DS"],
    "score": "prioritized",
    "criteria": ["DS", "LD"],
    "criteria_ranges": [[0, 10], [1, 2]],
    "rounds": 40,
    "adjustment": "fixed",
    "protocol": "paper",
    "reach": "above",
    "targets": [70, 80],
    "num_shards": 2,
    "aggregator": "criteria",
    "system": "",
    "dual_lambda": 0.0,
    "adapt_loss": False,
}
NEW = {
    "experiment": "quickstart",
    "protocol": "paper",
    "system": {"system": "prioritized"},
    "data": {"dataset": "mnist", "partition": "noniid"},
    "model": {"model": "mnist_cnn"},
    "training": {"rounds": 40, "num_packs": 2},
    "aggregation": {
        "priority": ["LD", "DS"],
        "criteria": ["DS", "LD"],
        "criteria_ranges": [["DS", 0, 10], ["LD", 1, 2]],
    },
    "adjustment": {"adjustment": "fixed"},
    "record": {"reach": "above", "targets": [70, 80]},
}


def write(folder, info):
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"data": {"name": "mnist"}, **info}))
    (folder / "rounds.csv").write_text("round,accuracy\n1,0.5\n")
    (folder / "weights.csv").write_text("round,ordering\n1,DS\n")
    (folder / "clients.csv").write_text("round,client,correct,examples\n1,a,1,2\n")
    return read.read_run(str(folder))


def test_both_forms_of_run_json_give_the_same_run(tmp_path):
    old = write(tmp_path / "old", {"settings": OLD})
    new = write(
        tmp_path / "new",
        {"settings": NEW, "label": "LD,DS", "system": "LD,DS", "note": ""},
    )
    assert old.settings == new.settings
    assert old.settings["num_packs"] == 2 and old.settings["system"] == "prioritized"
    for run in (old, new):
        assert (run.label, run.system, run.note) == ("LD,DS", "LD,DS", "")
        assert (run.targets, run.strictly_above) == ((70, 80), True)
        assert run.accuracy.tolist() == [0.5]
    assert old.path == str(tmp_path / "old")


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        (
            {"system": "AdaFed, weights only", "score": "prioritized"},
            {"system": "adafed_weights_only"},
        ),
        ({"system": "FedAvg", "aggregator": "criteria"}, {"system": "fedavg"}),
        ({"system": "Dual-criterion", "score": "dual"}, {"system": "dual"}),
        (
            {"system": "Simple average", "aggregator": "simple_average"},
            {"system": "simple_average"},
        ),
        (
            {"score": "owa", "score_weights": [1, 0], "quantifier": ""},
            {"system": "owa", "owa_weights": [1, 0], "owa_quantifier": ""},
        ),
        (
            {"score": "weighted_average", "score_weights": [0.5]},
            {"system": "weighted_average", "average_weights": [0.5]},
        ),
        (
            {"dataset": "mnist_adafed", "num_clients": 8},
            {"system": "prioritized", "dataset": "mnist_adafed", "adafed_clients": 8},
        ),
        (
            {"dataset": "cifar10", "num_clients": 4, "epsilon": 0.5, "beta": 0.9},
            {
                "system": "prioritized",
                "dataset": "cifar10",
                "num_clients": 4,
                "laplace_epsilon": 0.5,
                "momentum_beta": 0.9,
            },
        ),
    ],
)
def test_old_settings_are_read_by_the_flags_of_today(settings, flags):
    assert old_records.settings_by_flag({"settings": settings}) == flags


def test_the_published_codes_runs_have_no_settings():
    assert old_records.settings_by_flag({"params": {}}) == {}


def test_a_system_is_told_from_what_its_data_differs_in(tmp_path):
    old = write(
        tmp_path / "old",
        {"settings": {"system": "AdaFed"}, "label": "AdaFed, 50% mislabeled"},
    )
    new = write(
        tmp_path / "new",
        {
            "settings": {"system": {"system": "adafed"}},
            "label": "AdaFed, 50% mislabeled",
            "system": "AdaFed",
            "note": "50% mislabeled",
        },
    )
    for run in (old, new):
        assert (run.system, run.note) == ("AdaFed", "50% mislabeled")
        assert run.settings["system"] == "adafed"


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ({"priority": ["LD", "DS"]}, "LD,DS"),
        ({"priority": ["LD"], "score": "owa"}, "LD"),
        (
            {"priority": ["LD", "DS"], "score": "owa", "score_weights": [0.5, 0.5]},
            "OWA[0.5,0.5]:DS,LD",
        ),
        (
            {
                "priority": ["LD", "DS"],
                "score": "weighted_average",
                "score_weights": [0.75, 0.25],
            },
            "average[0.75,0.25]:LD,DS",
        ),
        ({"priority": ["LD", "DS"], "score": "product"}, "product:DS,LD"),
    ],
)
def test_records_without_a_label_tell_the_scores_apart(tmp_path, settings, label):
    settings = {"criteria": ["DS", "LD", "MD"], **settings}
    assert write(tmp_path / "run", {"settings": settings}).label == label


def test_a_broken_run_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        read.read_run(str(tmp_path))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RecordError, match="run.json is not JSON"):
        read.read_run(str(tmp_path))
