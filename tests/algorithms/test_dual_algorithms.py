"""Dual's experiment: the choice of lambda, its sets, and the tables."""

import pandas as pd
import pytest
from short_runs import run_all, runs_of

from tff_pmc.record.results import read_results


def test_dual_chooses_lambda_and_makes_its_table(runtime, federation, small, tmp_path):
    small["num_clients"] = 4
    dual, _ = runs_of("dual_criterion", "dual", dual_lambda_steps=3, **small)
    average, _ = runs_of("dual_criterion", "simple_average", **small)
    runs = [dual, average]
    text = run_all(runs, federation, tmp_path / "dual")
    assert "Dual-Criterion Weighted" in text and "0.8369" in text
    run = read_results(str(tmp_path / "dual" / runs[0].folder_name))
    assert set(run.candidates["ordering"]) == {
        "lambda=0.00",
        "lambda=0.50",
        "lambda=1.00",
    }
    # Judged on the 80 pictures that are reported, and the best of all is kept.
    assert set(run.candidates["examples"]) == {80}
    for _, trials in run.candidates.groupby("round"):
        assert trials["correct"].max() == trials["correct"][trials["kept"] == 1].item()
    kept = run.candidates[run.candidates["kept"] == 1]
    assert list(run.rounds["ordering"]) == list(kept["ordering"])
    assert list(run.rounds["correct"]) == list(kept["correct"])
    assert "(--judge_on=test)" in text
    table = pd.read_csv(tmp_path / "dual" / "dual_table4_lambda.csv")
    labels = [f"lambda={value:.2f}" for value in table["lambda"]]
    assert labels == list(run.rounds["ordering"])


@pytest.mark.slow
def test_dual_may_choose_lambda_on_the_evaluation_set(runtime, federation, tmp_path):
    """On the server's 60 pictures, of which each epoch's record has the right ones."""
    dual, _ = runs_of(
        *("dual_criterion", "dual"),
        **{"model": "keras_mnist_cnn", "num_clients": 4, "batch_size": 16},
        **{"dual_lambda_steps": 3, "judge_on": "server", "rounds": 1},
    )
    text = run_all([dual], federation, tmp_path)
    run = read_results(str(tmp_path / dual.folder_name))
    assert set(run.candidates["examples"]) == {60}
    kept = run.candidates[run.candidates["kept"] == 1]
    assert list(run.rounds["validation_correct"]) == list(kept["correct"])
    assert "(--judge_on=server)" in text
