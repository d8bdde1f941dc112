"""Dual's Tables IV and V from made-up run folders."""

import json

import numpy as np
import pandas as pd
import pytest

from leaf_data import DataError
from tff_pmc.reports import dual_seeds, dual_table4, published, read

LABELS = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 0])


def make_run(folder, wrong, validation=None, name="ten"):
    """A run in whose round r the first `wrong[r]` examples are answered wrongly."""
    predictions = folder / "predictions"
    predictions.mkdir(parents=True)
    np.savez(
        predictions / "labels.npz",
        y=LABELS,
        row_splits=[0, 4, 10],
        client_ids=np.array(["a", "b"]),
    )
    for round_num, errors in enumerate(wrong, 1):
        predicted = np.where(np.arange(10) < errors, (LABELS + 1) % 3, LABELS)
        np.savez(predictions / f"round_{round_num:04d}.npz", predicted=predicted)
    rounds = pd.DataFrame({"round": range(1, len(wrong) + 1)})
    rounds["correct"] = 10 - np.array(wrong)
    if validation is not None:
        rounds["validation_correct"] = validation
    rounds.to_csv(folder / "rounds.csv", index=False)
    settings = {"model": "cnn", "client_optimizer": "sgd", "learning_rate": 0.1}
    settings |= {"local_epochs": 1, "batch_size": 8, "rounds": 3, "batch_seed": 0}
    data = {"name": name, "options": {"image_fraction": 0.1}}
    data["origin"] = {"source": "somewhere"}
    (folder / "run.json").write_text(json.dumps({"settings": settings, "data": data}))
    return str(folder)


@pytest.fixture
def runs(tmp_path):
    three = "C1&C2&C3"
    return {
        ("weighted_mean", three): make_run(
            tmp_path / "w", [9, 4, 1, 1, 3], [1, 9, 5, 5, 5]
        ),
        ("simple_average", three): make_run(tmp_path / "s", [2, 2, 5]),
    }


def accuracy(cells, algorithm):
    rows = cells[(cells.algorithm == algorithm) & (cells.metric == "Accuracy")]
    return rows.iloc[0]


def test_the_epoch_is_chosen_in_three_ways(runs):
    """Right answers 1, 6, 9, 9, 7: best 3 (the first), last 5, validated 2."""
    cells = dual_table4.tidy_rows(runs)
    row = accuracy(cells, "Weighted Mean")
    chosen = ["best_epoch", "last", "validated"]
    assert [row[f"ours_{name}"] for name in chosen] == [0.9, 0.7, 0.6]
    assert [row[f"{name}_at"] for name in chosen] == [3, 5, 2]
    row = accuracy(cells, "Simple Average")
    assert (row.ours_best_epoch, row.best_epoch_at) == (0.8, 1)
    assert np.isnan(row.ours_validated) and row.validated_at is pd.NA


def test_the_four_metrics(runs):
    """Weighted mean at its best: the first 0 is answered 1, all else is right.

    Precision 1, 3/4, 1; F1 2 * 2 / (3 + 2), 2 * 3 / (3 + 4), 1.
    """
    cells = dual_table4.tidy_rows(runs)
    best = cells[cells.algorithm == "Weighted Mean"].set_index("metric").ours_best_epoch
    assert best["Precision"] == pytest.approx((1 + 3 / 4 + 1) / 3)
    assert best["F1 Score"] == pytest.approx((4 / 5 + 6 / 7 + 1) / 3)
    # (9 * 10 - (3*2 + 3*4 + 4*4)) / sqrt((100 - 34) (100 - 36)).
    assert best["MCC"] == pytest.approx(56 / np.sqrt(66 * 64))


def test_the_files_have_ours_beside_the_published(runs, tmp_path):
    text = dual_table4.write(runs, str(tmp_path / "out"))
    cells = pd.read_csv(tmp_path / "out" / "dual_table4.csv")
    # In the paper's order, whatever that of the mapping.
    assert list(dict.fromkeys(cells.algorithm)) == ["Simple Average", "Weighted Mean"]
    row = accuracy(cells, "Weighted Mean")
    assert (row.published, row.ours_best_epoch) == (0.8226, 0.9)
    assert row.difference == pytest.approx(0.0774)
    assert "+0.0774" in text
    assert "image_fraction=0.1" in text and "rate 0.1" in text
    assert "On 0.1 of the images: the differences are no comparison" in text
    markdown = (tmp_path / "out" / "dual_table4.md").read_text()
    assert "| Simple Average | Accuracy | 0.8000 | 0.5000 |  | 0.8199 |" in markdown


def test_the_noise_is_computed_from_the_two_rows_that_are_one_algorithm(runs, tmp_path):
    """Published .8226 - .8199 and .8303 - .8301; ours differ in rounding alone."""
    text = dual_table4.write(runs, str(tmp_path))
    assert "0.0027 (C1&C2&C3) and 0.0002 (C1&C2&C3&C4)" in text
    assert "the least noise of our rows" in text and "agree" not in text


def test_over_seeds_ours_are_spread_and_the_published_one_stands_beside(runs, tmp_path):
    """The weighted mean's best is .9 under two seeds, .7 under one."""
    folders = {seed: str(tmp_path / str(seed)) for seed in (0, 5, 7)}
    dual_table4.write(runs, folders[0])
    dual_table4.write(runs, folders[5])
    other = {
        **runs,
        ("weighted_mean", "C1&C2&C3"): make_run(tmp_path / "w7", [9, 3, 5]),
    }
    dual_table4.write(other, folders[7])
    infos = [read.read_info(folder) for folder in runs.values()]
    text = dual_seeds.write(folders, infos, str(tmp_path))
    assert "On 0.1 of the images" in text and "rate 0.1" in text
    row = accuracy(pd.read_csv(tmp_path / "dual_table4.csv"), "Weighted Mean")
    assert row["mean"] == pytest.approx(2.5 / 3, abs=1e-6)
    assert row["deviation"] == pytest.approx(np.sqrt(0.04 / 3), abs=1e-6)
    assert (row.lowest, row.highest, row.published) == (0.7, 0.9, 0.8226)
    assert row.difference == pytest.approx(2.5 / 3 - 0.8226, abs=1e-6)
    assert "the seeds 0, 5, 7." in text and "Noise" in text
    page = (tmp_path / "dual_table4.md").read_text()
    # Equal under all seeds.
    assert "| Simple Average | Accuracy | 0.8000 | 0.0000 | 0.8000 | 0.8000 |" in page


def test_drawn_pictures_are_not_held_against_the_papers(tmp_path):
    folder = make_run(tmp_path / "run", [0], name="drawn_obstacles")
    text = dual_table4.write({("dual", "C1&C2&C3"): folder}, str(tmp_path), table=5)
    cells = pd.read_csv(tmp_path / "dual_table5.csv")
    assert cells["difference"].isna().all() and cells["published"].notna().all()
    assert "Stand-in data" in text
    infos = [read.read_info(folder)]
    text = dual_seeds.write({0: str(tmp_path)}, infos, str(tmp_path / "run"), table=5)
    assert "Stand-in data" in text


def test_the_noise_follows_the_published_table(runs, tmp_path, monkeypatch):
    """Not a number written down: another table has another noise."""
    theirs = published.table("dualcriterion_table4")
    theirs.loc[theirs.algorithm == "Simple Average", "value"] -= 0.01
    monkeypatch.setattr(published, "table", lambda name: theirs)
    assert "0.0127 (C1&C2&C3)" in dual_table4.write(runs, str(tmp_path))


def test_table_5_is_of_the_positive_class(tmp_path):
    """Two of three zeros right, one answered 1: precision 1/2 and F1 2/3 of class 1."""
    folder = make_run(tmp_path / "run", [0])
    np.savez(
        tmp_path / "run" / "predictions" / "labels.npz",
        y=[0, 0, 0, 1],
        row_splits=[0, 2, 4],
        client_ids=np.array(["a", "b"]),
    )
    np.savez(
        tmp_path / "run" / "predictions" / "round_0001.npz", predicted=[0, 0, 1, 1]
    )
    text = dual_table4.write({("median", "C1&C2&C3"): folder}, str(tmp_path), table=5)
    cells = pd.read_csv(tmp_path / "dual_table5.csv").set_index("metric")
    assert cells.ours_best_epoch["Precision"] == 0.5
    assert cells.ours_best_epoch["F1 Score"] == pytest.approx(2 / 3)
    assert cells.published["Accuracy"] == 0.93029
    assert "Noise" not in text  # Its three places are not of one size.


def test_what_the_paper_does_not_have_stands_alone(tmp_path):
    runs = {("personalized_text", "C1"): make_run(tmp_path / "run", [3])}
    dual_table4.write(runs, str(tmp_path))
    row = accuracy(pd.read_csv(tmp_path / "dual_table4.csv"), "personalized_text")
    assert row.ours_last == 0.7 and np.isnan(row.published)


def test_without_the_published_tables_it_goes_on(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "FOLDER", str(tmp_path / "none"))
    assert "No comparison" in dual_table4.write(runs, str(tmp_path))


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match="no runs"):
        dual_table4.write({}, str(tmp_path))
    with pytest.raises(ValueError, match="4 or 5"):
        dual_table4.write({("median", "C1"): "x"}, str(tmp_path), table=3)
    with pytest.raises(DataError, match="rounds.csv"):
        dual_table4.write({("median", "C1"): str(tmp_path)}, str(tmp_path))
    folder = make_run(tmp_path / "run", [3])
    (tmp_path / "run" / "predictions" / "round_0001.npz").unlink()
    with pytest.raises(DataError, match="round_0001.npz is missing"):
        dual_table4.write({("median", "C1"): folder}, str(tmp_path))
