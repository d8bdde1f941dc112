"""Confusion matrices and the numbers of each class, by scikit-learn."""

import warnings

import numpy as np
import pytest
from folders import write_folder
from sklearn import metrics

from tff_pmc.record.results import read_results
from tff_pmc.reports import output
from tff_pmc.reports.statistics import confusion
from tff_pmc.reports.tables import confusion_matrices

CLASSES = 4
SIZES = [7, 0, 12, 3, 9, 11, 5, 8, 6, 10, 4, 9]  # Eleven clients have examples.


@pytest.fixture
def run(tmp_path):
    """A run of three rounds, of which the second is the best: labels and answers."""
    random = np.random.default_rng(3)
    y = random.integers(0, CLASSES, sum(SIZES))
    answers = []
    for right in (0.3, 0.8, 0.5):
        guesses = random.integers(0, CLASSES, len(y))
        answers.append(np.where(random.random(len(y)) < right, y, guesses))
    answers[2][0] = 255  # A score that was no number.
    settings = {"priority": ["DS"], "batch_seed": 4}
    info = {"label": "DS", "settings": settings, "data": {"name": "digits"}}
    write_folder(tmp_path / "DS", info, y, np.cumsum([0, *SIZES]), answers)
    return read_results(str(tmp_path)), y, answers


def test_the_numbers_are_scikit_learns(run, tmp_path):
    results, y, answers = run
    report = confusion_matrices.report(results)
    table = report.tables["classes"].set_index(["round", "clients", "class"])
    table = table.sort_index()
    owner = np.repeat(np.arange(len(SIZES)), SIZES)
    for words, answer in (("best round, 2", answers[1]), ("last round, 3", answers[2])):
        shares = [
            np.mean(answer[owner == k] == y[owner == k]) if size else 2
            for k, size in enumerate(SIZES)
        ]
        worst = np.isin(owner, np.argsort(shares, kind="stable")[:2])  # A tenth of 11.
        for clients, rows in (
            (confusion_matrices.ALL, owner >= 0),
            (confusion_matrices.WORST, worst),
        ):
            row = table.loc[(words, clients)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                precision, recall, f1, count = metrics.precision_recall_fscore_support(
                    y[rows], answer[rows], labels=range(CLASSES), zero_division=np.nan
                )
            np.testing.assert_array_equal(row["examples"], count)
            np.testing.assert_allclose(row["recall"], recall)
            np.testing.assert_allclose(row["precision"], precision)
            np.testing.assert_allclose(row["f1"], f1)
    output.write(report, str(tmp_path / "made"))
    assert {path.name for path in (tmp_path / "made").iterdir()} == {
        *("classes.csv", "classes.md", "confusion.png")
    }


@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
def test_the_matrix_is_scikit_learns_and_has_a_column_for_no_class(run, normalize):
    _, y, answers = run
    counts = confusion.confusion_matrix(y, answers[2], CLASSES, normalize)
    matrix = metrics.confusion_matrix(
        y, answers[2], labels=[*range(CLASSES), 255], normalize=normalize
    )
    np.testing.assert_array_equal(counts, matrix[:-1])
    if normalize is None:
        assert counts.sum() == len(y) and counts[:, -1].sum() == 1


def test_another_normalization_is_refused():
    with pytest.raises(ValueError, match="choose true, pred, all or None"):
        confusion.confusion_matrix(np.array([0]), np.array([0]), 1, "rows")


def test_one_figure_has_true_labels_in_rows_and_predicted_ones_in_columns(run):
    figure = confusion_matrices.report(run[0]).figures["confusion"]
    *panels, bar = figure.axes
    assert [axes.get_title().split("\n")[0] for axes in panels] == 4 * ["DS"]
    for axes in panels:
        assert (axes.get_ylabel(), axes.get_xlabel()) == (
            "True label",
            "Predicted label",
        )
        # Without a prediction that is no class, a row sums to 1.
        assert np.nanmax(np.sum(axes.images[0].get_array(), axis=1)) <= 1 + 1e-12
    best = [axes for axes in panels if "best round, 2, all" in axes.get_title()]
    sums = best[0].images[0].get_array().sum(axis=1)
    np.testing.assert_allclose(sums, 1)


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ((3,), ["last tested and best round, 2 of 3"]),
        ((2, 3), ["last tested round, 1 of 3"]),
        ((2,), ["last round, 3"]),
    ],
)
def test_a_last_round_without_a_test_is_named(run, tmp_path, without, words):
    """And a best round whose predictions somebody has removed is left out."""
    results, *_ = run
    for number in without:
        (tmp_path / "DS" / "predictions" / f"round_000{number}.npz").unlink()
    report = confusion_matrices.report(results)
    assert list(report.tables["classes"]["round"].unique()) == words
    assert all(word in str(report.pages["classes"]) for word in words)


def test_runs_without_predictions_have_no_classes(run, tmp_path):
    results, *_ = run
    for path in (tmp_path / "DS" / "predictions").iterdir():
        path.unlink()
    assert confusion_matrices.report(results) == confusion_matrices.Report()
