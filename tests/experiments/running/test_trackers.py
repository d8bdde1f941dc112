"""The trackers of docs/examples/trackers.

They log into modules that list the calls, instead of the packages. Where a package is
installed, they also log into its own files (offline).
"""

import importlib
import io
import json
import pathlib
import re
import sys
import types

import pytest
from cli import ROOT, SMALL, mark_as_running, run, table
from PIL import Image

from tff_pmc.experiments.callbacks import CALLBACKS
from tff_pmc.reports.figures import figure_layout

FOLDER = ROOT / "docs" / "examples" / "trackers"
REPORTS = {"report.html", "results.csv", "accuracy.png", "weights.png"}
MODEL = {"model.json", "weights.npz"}
ODD = {"a@1": 1.0, "a b/c": 2.0, "/a//b/": 3.0, "DS^0.5": 4.0}
"""Names of numbers, as a plug-in's column of `rounds.csv` may have them."""


class Tracker(types.ModuleType):
    """Lists its calls; a run has the identity that was passed, or its number."""

    def __init__(self, name):
        super().__init__(name)
        self.calls, self.run = [], None

    def _begun(self, number, name):
        number = number or f"run{sum(c[0] == 'new' for c in self.calls)}"
        kind = "again" if any(number in call for call in self.calls) else "new"
        self.calls.append((kind, number, name))
        self.run = types.SimpleNamespace(id=number)

    def _ended(self, status):
        self.calls.append(("end", status))


class Mlflow(Tracker):
    """Its settings are the parameters, and the tags, which alone may change."""

    def start_run(self, run_id, *, run_name):
        self._begun(run_id, run_name)
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=self.run.id))

    def set_tag(self, name, value):
        self.tag = {name: value}

    def log_params(self, settings):
        self.calls.append(("settings", {**settings, **self.tag}))

    def log_metrics(self, numbers, *, step):
        self.calls.append((step, numbers))

    def log_artifacts(self, folder, path="reports"):
        names = {file.name for file in pathlib.Path(folder).iterdir()}
        self.calls.append((path, names))

    def end_run(self, status):
        self._ended(status == "FINISHED")


class Wandb(Tracker):
    Image = staticmethod(lambda path: pathlib.Path(path).read_bytes()[1:4])

    def init(self, *, project, id, resume, name):
        assert (project, resume) == ("tff_pmc", "allow")
        self._begun(id, name)
        self.config = types.SimpleNamespace(update=self._settings)

    def _settings(self, settings, *, allow_val_change):
        assert allow_val_change
        self.calls.append(("settings", settings))

    def log(self, data, *, step):
        if {"plots/accuracy", "plots/weights"} <= {*data}:
            assert {*data.values()} == {b"PNG"} and step == self.step
        else:
            self.step = step
            self.calls.append((step, data))

    class Artifact:
        def __init__(self, name, type):
            assert re.fullmatch(r"[\w.-]+", name, re.ASCII)
            self.kind = type

        def add_dir(self, folder):
            self.names = {file.name for file in pathlib.Path(folder).iterdir()}

    def log_artifact(self, artifact):
        self.calls.append((artifact.kind, artifact.names))

    def finish(self, *, exit_code):
        self._ended(exit_code == 0)


@pytest.fixture
def register(monkeypatch):
    """Returns a function that imports a tracker's example, which registers it."""

    def import_example(name):
        monkeypatch.syspath_prepend(FOLDER)
        monkeypatch.setattr(CALLBACKS, "_things", dict(CALLBACKS))
        sys.modules.pop(f"{name}_tracker", None)
        return importlib.import_module(f"{name}_tracker")

    return import_example


@pytest.mark.parametrize("kind", [Mlflow, Wandb])
def test_a_tracker_has_a_runs_settings_numbers_and_files(
    kind, tmp_path, monkeypatch, register
):
    """A run that resumes is the same run there, with the rounds that it has now."""
    name, out = kind.__name__.lower(), tmp_path / "out"
    tracker = kind(name)
    monkeypatch.setitem(sys.modules, name, tracker)
    register(name)
    source = (FOLDER / f"{name}_tracker.py").read_text()
    assert source.count("\n") <= 50
    flags = [*SMALL, "--clients_per_round=2", f"--callbacks={name}", "--keep=best"]
    flags += ["--priority=DS;LD,DS", f"--output_dir={out}"]
    run(*flags)
    first = tracker.calls[: len(tracker.calls) // 2]
    assert first[0] == ("new", "run0", "DS")
    assert tracker.calls[len(first)] == ("new", "run1", "LD,DS")
    assert first[1][1]["learning_rate"] == 0.1 and first[1][1]["rounds"] == 2
    json.dumps(first[1][1])
    rows = table(out / "DS" / "rounds.csv")
    cohort = table(out / "DS" / "cohort.csv")
    for row, (step, numbers) in zip(rows, first[2:4]):
        assert step == int(row["round"])
        assert numbers["accuracy"] == float(row["accuracy"]) and "round" not in numbers
        weights = [float(c["weight"]) for c in cohort if c["round"] == row["round"]]
        assert numbers["weight_largest"] == max(weights)
        assert numbers["weight_smallest"] == min(weights)
    assert {call[0] for call in first[4:-1]} == {"reports", "model", "model_best"}
    artifacts = dict(first[4:-1])
    assert REPORTS <= artifacts["reports"]
    assert MODEL <= artifacts["model"] and MODEL <= artifacts["model_best"]
    assert first[-1] == ("end", True)
    del tracker.calls[len(first) :]
    mark_as_running(out / "DS")
    run(*flags, "--rounds=3", "--resume")
    again = tracker.calls[len(first) :]
    assert again[0] == ("again", "run0", "DS") and again[1][1]["rounds"] == 3
    assert [call[0] for call in again if isinstance(call[0], int)][0] == 3


def run_twice(name, folder, files):
    """A run of two rounds, resumed with a third; returns its identity in the tracker.

    `files` returns the names of all files that the tracker has of the run.
    """
    flags = [*SMALL, "--clients_per_round=2", f"--callbacks={name}"]
    flags += ["--priority=LD,DS", f"--output_dir={folder}"]
    run(*flags)
    identity = (folder / "LD-DS" / f"{name}_run_id.txt").read_text()
    assert REPORTS | MODEL <= files(identity)
    run(*flags, "--rounds=3", "--resume")
    return identity


def test_mlflow_keeps_settings_rounds_and_files(tmp_path, monkeypatch, register):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path / 'mlruns'}")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    pytest.importorskip("mlflow")
    tracking = pytest.importorskip("mlflow.tracking")
    module = register("mlflow")
    store = tmp_path / "mlruns"

    def files(identity):
        (folder,) = store.glob(f"*/{identity}/artifacts")
        return {file.name for file in folder.rglob("*")}

    identity = run_twice("mlflow", tmp_path / "out", files)
    client = tracking.MlflowClient()
    recorded = client.get_run(identity)
    assert recorded.data.tags["rounds"] == "3"
    assert recorded.data.params["learning_rate"] == "0.1"
    history = client.get_metric_history(identity, "accuracy")
    assert [point.step for point in history] == [1, 2, 3]
    module.mlflow.start_run(identity)  # Names that MLflow would refuse.
    callback = module.MLflow()
    callback.after_round(types.SimpleNamespace(numbers=ODD, round_num=4))
    module.mlflow.end_run()
    assert {"a_1", "a b/c", "_a_/b_", "DS_0.5"} <= {
        *client.get_run(identity).data.metrics
    }


def test_wandb_keeps_settings_rounds_and_files(tmp_path, monkeypatch, register):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    pytest.importorskip("wandb")
    datastore = pytest.importorskip("wandb.sdk.internal.datastore")
    records = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    image = io.BytesIO()  # It opens the images, which runs of tests do not draw.
    Image.new("P", (1, 1)).save(image, "PNG")
    monkeypatch.setattr(figure_layout, "png_bytes", lambda figure: image.getvalue())
    register("wandb")

    def read(identity):
        """The settings, the steps, and the artifacts of a run, over all its files."""
        settings, steps, artifacts = {}, [], {}
        for path in sorted(tmp_path.glob(f"wandb/offline-run-*/run-{identity}.wandb")):
            store = datastore.DataStore()
            store.open_for_scan(str(path))
            while (content := store.scan_data()) is not None:
                record = records.Record()
                record.ParseFromString(content)
                for item in record.config.update:
                    settings[item.key] = json.loads(item.value_json)
                for item in record.history.item:
                    steps += [item.value_json] if item.key == "_step" else []
                if record.HasField("artifact"):
                    contents = record.artifact.manifest.contents
                    artifacts[record.artifact.name] = {c.path for c in contents}
        return settings, steps, artifacts

    def files(identity):
        return set().union(*read(identity)[2].values())

    identity = run_twice("wandb", tmp_path / "out", files)
    settings, steps, artifacts = read(identity)
    assert settings["rounds"] == 3 and settings["learning_rate"] == 0.1
    assert steps == ["1", "2", "3"]
    assert {*artifacts} == {"LD_DS-reports", "LD_DS-model"}
