"""The trackers of docs/examples/trackers, on modules in the place of the packages."""

import importlib
import json
import sys
import types

import pytest
from cli import ROOT, SMALL, mark_as_running, run, table

from tff_pmc.experiments.callbacks import CALLBACKS

FOLDER = ROOT / "docs" / "examples" / "trackers"


class Tracker(types.ModuleType):
    """Lists its calls; a run has the identity that was passed, or its number."""

    def __init__(self, name):
        super().__init__(name)
        self.calls, self.run = [], None

    def _begun(self, number, name, settings=None):
        number = number or f"run{sum(c[0] == 'new' for c in self.calls)}"
        kind = "again" if any(number in call for call in self.calls) else "new"
        self.calls.append((kind, number, name))
        self.run = types.SimpleNamespace(id=number)
        if settings is not None:
            self.calls.append(("settings", settings))

    def _ended(self, status):
        self.calls.append(("end", status))


class Mlflow(Tracker):
    def start_run(self, run_id, *, run_name):
        self._begun(run_id, run_name)
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=self.run.id))

    def log_params(self, settings):
        self.calls.append(("settings", settings))

    def log_metrics(self, numbers, *, step):
        self.calls.append((step, numbers))

    def log_figure(self, figure, name):
        self.calls.append((name.replace(".png", ""), type(figure).__name__))

    def end_run(self, status):
        self._ended(status == "FINISHED")


class Wandb(Tracker):
    Image = staticmethod(lambda figure: type(figure).__name__)

    def init(self, *, project, id, resume, name, config):
        assert (project, resume) == ("tff_pmc", "allow")
        self._begun(id, name, config)

    def log(self, data, step=None):
        named = [(step, data)] if step else list(data.items())
        self.calls.extend(named)

    def finish(self, *, exit_code):
        self._ended(exit_code == 0)


@pytest.mark.parametrize("kind", [Mlflow, Wandb])
def test_a_tracker_has_a_runs_settings_numbers_and_plots(kind, tmp_path, monkeypatch):
    """A run that resumes is the same run there."""
    name, out = kind.__name__.lower(), tmp_path / "out"
    tracker = kind(name)
    monkeypatch.setitem(sys.modules, name, tracker)
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(CALLBACKS, "_things", dict(CALLBACKS))
    source = (FOLDER / f"{name}_tracker.py").read_text()
    assert source.count("\n") <= 32
    importlib.import_module(f"{name}_tracker")
    monkeypatch.delitem(sys.modules, f"{name}_tracker")
    flags = [*SMALL, "--clients_per_round=2", f"--callbacks={name}"]
    flags += ["--priority=DS;LD", f"--output_dir={out}"]
    run(*flags)
    first = tracker.calls[: len(tracker.calls) // 2]
    assert first[0] == ("new", "run0", "DS")
    assert tracker.calls[len(first)] == ("new", "run1", "LD")
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
    assert first[4:] == [("accuracy", "Figure"), ("end", True)]
    del tracker.calls[len(first) :]
    mark_as_running(out / "DS")
    run(*flags, "--rounds=3", "--resume")
    again = tracker.calls[len(first) :]
    assert again[0] == ("again", "run0", "DS")
    assert [call[0] for call in again if isinstance(call[0], int)][0] == 3
