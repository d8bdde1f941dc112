"""The reports of an experiment, of one seed and of several, by their files."""

import pandas as pd
import pytest
from cli import empty_figures
from small_results import join_results, of_seeds, with_losses

from tff_pmc.experiments import experiment_reports
from tff_pmc.experiments.experiment import Experiment, Variant
from tff_pmc.record.results import Results

EFFECT = {"effect.csv", "effect.md", "effect.png"}
OF_ORDERINGS = Experiment("t", {})
OF_SPREAD = Experiment("t", {}, reports=("spread_effect",))
ROWS = [Variant("a row")]
OF_ALGORITHMS = Experiment("t", {}, reports=("algorithm_effect",), rows=ROWS)


@pytest.fixture(scope="module", autouse=True)
def without_figures():
    with empty_figures():
        yield


def runs(seeds, labels=("DS", "LD"), **options):
    counts = {label: [[3, k + 1], [4, k + 2]] for k, label in enumerate(labels)}
    return of_seeds({seed: counts for seed in range(seeds)}, [9, 9], **options)


def files(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("experiment", "seeds", "names"),
    [
        (OF_ORDERINGS, 1, {"results.csv", "results.md"}),
        (OF_ALGORITHMS, 1, {"results.csv", "results.md"}),
        (OF_ORDERINGS, 2, {*EFFECT, "seeds.csv", "seeds.md"}),
        (OF_ALGORITHMS, 2, {*EFFECT, "seeds.csv", "seeds.md"}),
    ],
)
def test_each_report_covers_one_seed_or_several(tmp_path, experiment, seeds, names):
    text = experiment_reports.write(
        experiment, runs(seeds, targets=(40,)), str(tmp_path)
    )
    seed_folders = {f"seed_{seed}" for seed in range(seeds)} if seeds > 1 else set()
    of_all = {"accuracy.png", "difference.png", "fairness.png", "report.html"}
    assert files(tmp_path) == {*names, *of_all, *seed_folders}
    for name in seed_folders:
        assert {"results.csv", "fairness.png"} < files(tmp_path / name)
        assert "effect.csv" not in files(tmp_path / name)
    shown = "rounds_to_target" in experiment.reports and seeds == 1
    assert ("Rounds until a share" in text) == shown
    assert "Accuracy over all test" in text or "# Over 2 seeds" in text


@pytest.mark.parametrize(
    ("labels", "baseline", "compared"),
    [
        (("DS", "LD", "MD"), "", "FedAvg (DS)"),
        (("LD", "MD"), "", "LD"),
        (("LD", "MD"), "MD", "MD"),
        (("LD", "MD"), "CB", "LD"),
    ],
)
def test_without_ds_or_another_baseline_the_first_run_is_the_baseline(
    tmp_path, labels, baseline, compared
):
    results = runs(2, labels, baseline=baseline)
    experiment_reports.write(OF_ORDERINGS, results, str(tmp_path), per_seed=[1])
    assert (tmp_path / "seed_1").exists() and not (tmp_path / "seed_0").exists()
    assert f"| row | minus {compared} |" in (tmp_path / "effect.md").read_text()


@pytest.mark.parametrize("experiment", [OF_ORDERINGS, OF_ALGORITHMS, OF_SPREAD])
@pytest.mark.parametrize("seeds", [1, 2])
def test_without_clients_on_record_reports_of_rounds_are_made(
    tmp_path, experiment, seeds
):
    """With the numbers that it has with them."""
    whole = runs(seeds, targets=(40,))
    tables = {"rounds": whole.rounds, "cohort": whole.cohort}
    alone = Results(whole.runs, tables.get, about=whole.about)
    text = experiment_reports.write(experiment, alone, str(tmp_path / "alone"))
    assert "results of each client are needed but were not recorded" in text
    experiment_reports.write(experiment, whole, str(tmp_path / "whole"))
    lost = {"fairness.png"}
    assert files(tmp_path / "alone") == files(tmp_path / "whole") - lost
    name = "results" if seeds == 1 else "seeds"
    products = [name] if seeds == 1 else [name, "effect"]
    for product in products:
        paths = [tmp_path / side / f"{product}.csv" for side in ("alone", "whole")]
        rows, others = (path.read_text().splitlines() for path in paths)
        assert 1 < len(rows) < len(others) or experiment is OF_ALGORITHMS
        assert [row for row in others if row in rows] == rows
        page = (tmp_path / "alone" / f"{product}.md").read_text()
        assert "no rounds to target: results of each client are needed" in page
    if seeds == 2:
        effect = pd.read_csv(tmp_path / "alone" / "effect.csv")
        names = ["accuracy", "last accuracy", "best accuracy"]
        assert [*effect["measure"]] == names
        last = {label: (4 + extra) / 18 for label, extra in (("DS", 1), ("LD", 2))}
        difference = effect.set_index("measure")["mean"]["last accuracy"]
        assert difference == pytest.approx(last["LD"] - last["DS"])


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_regression_has_no_report_that_needs_accuracy(tmp_path, seeds):
    results = join_results(
        with_losses({"DS": [[4, 4], [2, 2]], "LD": [[4, 4], [3, 3]]}, [2, 2], seed=seed)
        for seed in range(seeds)
    )
    experiment = Experiment("t", {}, reports=("pmc_table4", "ordering_effect"))
    text = experiment_reports.write(experiment, results, str(tmp_path))
    assert "Not made: pmc_table4 (these are regression runs" in text
    products = {"results.csv"} if seeds == 1 else {"effect.csv", "seeds.csv"}
    assert {*products, "loss.png"} <= files(tmp_path)
    pages = [*tmp_path.glob("*.md"), *tmp_path.glob("*.html")]
    assert pages and not [p for p in pages if "ccuracy" in p.read_text()]


def test_seeds_with_other_runs_are_rejected_before_a_file_is_written(tmp_path, fails):
    results = runs(2).only([True, True, True, False])
    fails(
        lambda: experiment_reports.write(OF_ORDERINGS, results, str(tmp_path)),
        "seed 1 has no run of LD",
    )
    assert not files(tmp_path)
