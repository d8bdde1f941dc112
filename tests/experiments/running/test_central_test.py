"""A data set's central test set: its columns, apart from those of the clients."""

import dataclasses
import importlib

import numpy as np
import pytest
from cli import ROOT, SHORT, records

import leaf_data
from tff_pmc.experiments.experiment import EXPERIMENTS, settings
from tff_pmc.models import MODELS
from tff_pmc.record.results import read_results
from tff_pmc.reports.figures import plots

CHOSEN = (3, 7)  # Clients, of whose test examples the central test set is made.


@pytest.fixture
def wells(monkeypatch):
    """A regression, of the documents."""
    for registry in (leaf_data.dataset.DATASETS, MODELS, EXPERIMENTS):
        len(registry)
        monkeypatch.setattr(registry, "_things", dict(registry))
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples" / "numbers_and_words")
    importlib.import_module("wells")
    monkeypatch.delitem(importlib.sys.modules, "wells")
    return settings("wells", {"rounds": 2}), leaf_data.load("wells")


def with_central_test(data, clients):
    part = data.test_examples.subset(clients)
    central = leaf_data.Examples(
        part.x, part.y, np.array([0, len(part.y)]), ("central",)
    )
    return dataclasses.replace(data, central_test=central), len(part.y)


def test_the_central_accuracy_is_that_of_its_clients_together(runtime, tmp_path):
    """And without one a record is the same to the byte, but for the columns."""
    from tff_pmc.experiments.running import loop

    changes = {**SHORT, "evaluate_every": 3, "clients_per_round": 5.0}
    run_settings, data = settings("quickstart", changes), leaf_data.load("digits5k")
    central, size = with_central_test(data, CHOSEN)
    folders = str(tmp_path / "with"), str(tmp_path / "without")
    for folder, used in zip(folders, (central, data)):
        loop.run(run_settings, used, folder, title=None)
    lines = (tmp_path / "with" / "rounds.csv").read_text().splitlines()
    assert lines[0].endswith(",central_accuracy,central_correct,central_examples")
    assert [line.endswith(",,,") for line in lines[1:]] == [False, True, False]
    plain = (tmp_path / "without" / "rounds.csv").read_text().splitlines()
    assert [line.rsplit(",", 3)[0] for line in lines] == plain
    with_central, other = records(tmp_path / "with"), records(tmp_path / "without")
    # The checksum of a run's examples is that of these, too.
    assert {n for n in with_central if with_central[n] != other[n]} == {
        "rounds.csv",
        "run.json",
    }
    results = read_results(folders[0])
    names = [data.client_ids[k] for k in CHOSEN]
    tested = results.clients[results.clients["client"].isin(names)]
    right = tested.groupby("round")["correct"].sum()
    rows = results.rounds.set_index("round").loc[right.index]
    assert len(rows) and list(rows["central_correct"]) == list(right)
    assert set(rows["central_examples"]) == {size}
    np.testing.assert_allclose(rows["central_accuracy"], right / size, atol=1e-6)


def test_a_regression_has_the_central_loss_and_a_line_in_the_plot(
    runtime, tmp_path, wells
):
    from tff_pmc.experiments.running import loop

    run_settings, data = wells
    central, size = with_central_test(data, (1, 4))
    loop.run(run_settings, central, str(tmp_path / "out"), title=None)
    results = read_results(str(tmp_path / "out"))
    assert [name for name in results.rounds if "central" in name] == [
        "central_loss",
        "central_examples",
    ]
    tested = results.clients[results.clients["client"].isin(["b", "e"])]
    mean = tested.groupby("round")["loss_sum"].sum() / size
    np.testing.assert_allclose(results.rounds["central_loss"], mean, rtol=1e-5)
    (axes,) = plots.report(results).figures["loss"].axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert [*lines] == ["FedAvg (DS)", "FedAvg (DS), central test"]
    drawn = lines["FedAvg (DS), central test"]
    np.testing.assert_allclose(drawn.get_ydata(), results.rounds["central_loss"])
    assert drawn.get_linestyle() == ":"
