"""The map of federations, of one cell and two rounds."""

import dataclasses
import re
import shutil

import pytest
from cli import records, refused, run, table

from tff_pmc.experiments.experiment import experiment

NAME = "when_it_helps"


@pytest.fixture
def one_cell(monkeypatch):
    """Leaves the map its one cell of few images a client and skewed labels."""
    from tff_pmc.experiments.running import helps_map

    whole = experiment(NAME)
    place = ("alpha 0.1", "power law")
    few = dataclasses.replace(whole, cells={place: whole.cells[place]})
    monkeypatch.setattr(helps_map, "experiment", lambda name: few)


@pytest.mark.slow
def test_the_best_step_is_run_under_other_seeds(one_cell, tmp_path):
    words = (f"--experiment={NAME}", "--rounds=2", "--local_epochs=1", "--seeds=3,4")
    words += ("--max_update_norm=0.5",)
    done = run(*words, f"--output_dir={tmp_path / 'whole'}")
    assert "of 1 federations" in done.stdout
    assert re.search("alpha_0_1_power_law: [1-9].* trainings were left", done.stdout)
    folder = tmp_path / "whole" / "alpha_0_1_power_law"
    right: dict = {}
    for row in table(folder / "one_step" / "DS" / "weightings.csv"):
        right[row["weighting"]] = right.get(row["weighting"], 0) + int(row["correct"])
    step = {label: (n - right["DS"]) / 20 for label, n in right.items()}
    best = max(set(step) - {"DS"}, key=lambda label: step[label])
    (row,) = table(tmp_path / "whole" / "when_it_helps.csv")
    assert step[row["ordering"]] == step[best]
    assert float(row["one_step"]) == pytest.approx(step[best], abs=1e-4)
    gains = []
    for seed in (3, 4):
        own, base = (
            [
                float(r["accuracy"])
                for r in table(folder / f"seed_{seed}" / n / "rounds.csv")
            ]
            for n in (row["ordering"].replace(",", "-"), "DS")
        )
        gains.append([100 * (a - b) for a, b in zip(own, base)])
    assert float(row["accuracy"]) == pytest.approx(
        sum(g[1] for g in gains) / 2, abs=1e-4
    )
    assert float(row["all_rounds"]) == pytest.approx(sum(map(sum, gains)) / 4, abs=1e-4)
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    shutil.rmtree(tmp_path / "resumed" / folder.name / "seed_4")
    run(*words, f"--output_dir={tmp_path / 'resumed'}", "--resume")
    assert records(tmp_path / "resumed") == records(tmp_path / "whole")


@pytest.mark.parametrize(
    "words, line",
    [
        (["--priority=DS;LD"], "it takes no others"),
        (["--seeds=0,1"], "--seeds: 0 is the seed of the run that chooses"),
        (["--priority=LD"], "runs DS and the ordering"),
        (["--counterfactuals=averages:0.5"], "--counterfactuals=orderings alone"),
        (["--counterfactual_rates=2"], "--counterfactuals=orderings alone"),
        (["--client_sizes=power_law"], "--client_sizes is what the federations diff"),
        (["--cluster=local", "--spread=runs"], "--spread=runs does not go with"),
    ],
)
def test_what_is_no_map_is_refused(tmp_path, words, line):
    folder = tmp_path / "out"
    assert line in refused(f"--experiment={NAME}", f"--output_dir={folder}", *words)
    assert not folder.exists()
