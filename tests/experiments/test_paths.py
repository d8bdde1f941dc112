"""Where a call writes: a folder of its own, and the home for `~`."""

import pathlib
import types

import numpy as np
import pytest
from cli import SHORT, SMALL, federation, refusal, run, softmax

import leaf_data
import run_experiments
import tff_pmc
from tff_pmc import experiments
from tff_pmc.experiments import experiment_reports, kept, load_model
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.record.tables import ROUNDS
from tff_pmc.reports import Report, output
from tff_pmc.reports.papers.paper_runs import read_kept


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home, in which we are."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_calls_in_the_same_second_have_separate_folders(home, monkeypatch):
    clock = types.SimpleNamespace(strftime=lambda form: "20260101-120000")
    monkeypatch.setattr(run_experiments, "time", clock)
    name = "quickstart-20260101-120000"
    words = [*SMALL, "--priority=DS", "--rounds=1"]
    for folder in (name, f"{name}-2"):
        assert run(*words).stdout.endswith(f"plots: runs/{folder}\n")
    assert {path.name for path in (home / "runs").iterdir()} == {name, f"{name}-2"}


def test_a_rejected_call_leaves_no_folder(home):
    refusal("--experiment=quickstart", "--clients_per_round=101")
    run("--experiment=quickstart", "--inspect", "--criteria=DS")
    assert not (home / "runs").exists()


def test_all_paths_may_start_with_a_tilde(home, runtime):
    run(*SMALL, "--priority=DS", "--rounds=1", "--output_dir=~/out")
    with softmax():
        settings = experiments.experiment.settings("quickstart", SHORT)
        from tff_pmc.experiments.running import loop

        data = leaf_data.load("digits5k")
        loop.run(settings.with_changes(rounds=1), data, "~/one")
        assert tff_pmc.load_model("~/out/DS") and tff_pmc.load_model("~/one", 1)
        load_model.export_model("~/out/DS", "~/exported")
    for path in ("~/out", pathlib.Path("~/out"), "~/one"):
        results = tff_pmc.read_results(path)
        assert results.labels == ["DS"]
    kept.keep(["~/out"], "~/kept/a")
    assert [*kept.kept_folders("~/kept")] == [str(home / "kept" / "a")]
    assert kept.remake("~/kept/a") == []
    assert [*read_kept("~/kept")] == ["a"]
    experiment_reports.write(EXPERIMENTS["quickstart"], results, "~/reports")
    output.write(Report(tables={"a": results.rounds}), "~/tables")
    assert len(ROUNDS.read("~/one")) == 1
    (home / "table.csv").write_text("client,fast\na,1\n")
    assert leaf_data.read_client_table("~/table.csv").client_ids == ("a",)
    examples = leaf_data.Examples(
        np.zeros((1, 2), np.uint8), np.zeros(1, np.int32), np.array([0, 1]), ("a",)
    )
    leaf_data.write_store(federation("toy", examples, 1), "~/store")
    assert leaf_data.open_store("~/store").client_ids[0] == "a"
    assert leaf_data.load("store", path="~/store").client_ids[0] == "a"
    written = {path.name for path in home.iterdir()} - {".keras"}
    assert written == {
        *("out", "one", "exported", "kept", "reports", "tables", "table.csv", "store")
    }
