"""Confusion matrices and the numbers of each class, by scikit-learn."""

import warnings

import numpy as np
import pytest
from folders import write_folder
from sklearn import metrics

from tff_pmc.record.results import read_results
from tff_pmc.reports import output
from tff_pmc.reports.figures import confusion_plot, figure_layout
from tff_pmc.reports.statistics import confusion
from tff_pmc.reports.tables import confusion_matrices

CLASSES = 4
SIZES = [7, 0, 12, 3, 9, 11, 5, 8, 6, 10, 4, 9]  # Eleven clients have examples.


def write_run(folder, seed=4, shares=(0.3, 0.8, 0.5), classes=CLASSES, names=None):
    """Writes a run of which each round gets a share right; returns labels, answers."""
    random = np.random.default_rng(seed - 1)
    y = random.integers(0, classes, sum(SIZES))
    answers = []
    for right in shares:
        guesses = random.integers(0, classes, len(y))
        answers.append(np.where(random.random(len(y)) < right, y, guesses))
    settings = {"priority": ["DS"], "batch_seed": seed}
    info = {"label": "DS", "settings": settings, "data": {"name": "digits"}}
    info.update({"classes": names} if names else {})
    answers[-1][0] = 255  # A score that was no number.
    write_folder(folder / "DS", info, y, np.cumsum([0, *SIZES]), answers)
    return y, answers


@pytest.fixture
def run(tmp_path):
    """A run of three rounds, of which the second is the best: labels and answers."""
    y, answers = write_run(tmp_path)
    return read_results(str(tmp_path)), y, answers


def shades_of(axes):
    """Returns the shades of the cells, [rows, columns]."""
    (mesh,) = axes.collections
    rows, columns = len(axes.get_yticks()), len(axes.get_xticks())
    return np.reshape(mesh.get_array(), [rows, columns])


def worst_tenth(y, answers):
    """Returns which examples are those of the worst two clients of the eleven."""
    owner = np.repeat(np.arange(len(SIZES)), SIZES)
    shares = [
        np.mean(answers[owner == k] == y[owner == k]) if size else 2
        for k, size in enumerate(SIZES)
    ]
    return np.isin(owner, np.argsort(shares, kind="stable")[:2])


def test_the_numbers_equal_scikit_learns(run, tmp_path):
    results, y, answers = run
    report = confusion_matrices.report(results)
    table = report.tables["classes"].set_index(["round", "clients", "class"])
    table = table.sort_index()
    for words, answer in (("best round, 2", answers[1]), ("last round, 3", answers[2])):
        for clients, rows in (
            (confusion_matrices.ALL, y >= 0),
            (confusion_matrices.WORST, worst_tenth(y, answer)),
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
        *("classes.csv", "classes.md", "classes.png", "confusion.png")
    }


@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
def test_the_matrix_equals_scikit_learns_and_has_a_column_for_no_class(run, normalize):
    _, y, answers = run
    counts = confusion.confusion_matrix(y, answers[2], CLASSES, normalize)
    matrix = metrics.confusion_matrix(
        y, answers[2], labels=[*range(CLASSES), 255], normalize=normalize
    )
    np.testing.assert_array_equal(counts, matrix[:-1])
    if normalize is None:
        assert counts.sum() == len(y) and counts[:, -1].sum() == 1


def test_an_unknown_normalization_is_rejected():
    with pytest.raises(ValueError, match="choose true, pred, all or None"):
        confusion.confusion_matrix(np.array([0]), np.array([0]), 1, "rows")


def test_one_figure_has_true_labels_in_rows_and_predicted_ones_in_columns(run):
    figure = confusion_matrices.report(run[0]).figures["confusion"]
    panels = figure.axes
    assert [axes.get_title().split("\n")[0] for axes in panels] == 4 * ["FedAvg (DS)"]
    for axes in panels:
        assert (axes.get_ylabel(), axes.get_xlabel()) == (
            "True label",
            "Predicted label",
        )
        # If each prediction is a class, a row sums to 1.
        assert np.nanmax(np.sum(shades_of(axes), axis=1)) <= 1 + 1e-12
    best = [axes for axes in panels if "best round, 2, all" in axes.get_title()]
    np.testing.assert_allclose(shades_of(best[0]).sum(axis=1), 1)


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ((3,), ["last tested and best round, 2 of 3"]),
        ((2, 3), ["last tested round, 1 of 3"]),
        ((2,), ["last round, 3"]),
    ],
)
def test_a_last_round_without_a_test_is_named(run, tmp_path, without, words):
    """And a best round whose predictions somebody has removed is omitted."""
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


SEEDS = {0: (0.3, 0.8, 0.5), 1: (0.7, 0.4, 0.6), 2: (0.3, 0.5, 0.8)}


def test_the_counts_of_several_seeds_are_summed(tmp_path):
    """Each seed has its best round and its worst clients."""
    counts = {"last": [], "best": []}
    for seed, shares in SEEDS.items():
        y, answers = write_run(tmp_path / f"seed_{seed}", seed + 1, shares)
        for which, place in (("last", 2), ("best", int(np.argmax(shares)))):
            answer = answers[place]
            counts[which].append(
                [
                    metrics.confusion_matrix(
                        y[rows], answer[rows], labels=[*range(CLASSES), 255]
                    )
                    for rows in (y >= 0, worst_tenth(y, answer))
                ]
            )
    report = confusion_matrices.report(read_results(str(tmp_path)))
    table = report.tables["classes"].set_index(["round", "clients", "class"])
    table = table.sort_index()
    for which, words in (
        ("last", "last round, 3"),
        ("best", "best round of each seed"),
    ):
        for clients, summed in zip(
            (confusion_matrices.ALL, confusion_matrices.WORST), np.sum(counts[which], 0)
        ):
            rows = table.loc[(words, clients)]
            hits, examples = np.diag(summed)[:CLASSES], summed.sum(1)[:CLASSES]
            np.testing.assert_array_equal(rows["examples"], examples)
            np.testing.assert_allclose(rows["recall"], hits / examples)
            predictions = summed.sum(0)[:CLASSES]
            np.testing.assert_allclose(rows["precision"], hits / predictions)
    assert "summed over the seeds" in report.pages["classes"].markdown()
    assert len(report.figures["confusion"].axes) == 4


def test_a_seed_without_predictions_is_not_summed_but_named(tmp_path):
    for seed in SEEDS:
        write_run(tmp_path / f"seed_{seed}", seed + 1)
    for path in (tmp_path / "seed_1" / "DS" / "predictions").iterdir():
        path.unlink()
    table = confusion_matrices.report(read_results(str(tmp_path))).tables["classes"]
    assert [*table["round"].unique()] == [
        *("last round, 3 (2 of 3 seeds)", "best round, 2 (2 of 3 seeds)")
    ]
    assert table.loc[:3, "examples"].sum() == 2 * sum(SIZES)


def test_classes_have_the_names_of_the_data(tmp_path):
    names = ["standing", "$walking$", "_a name that is far too long", "lying"]
    write_run(tmp_path, names=names)
    report = confusion_matrices.report(read_results(str(tmp_path)))
    assert report.tables["classes"]["name"].tolist() == 4 * names
    (grid,) = [b.grid for b in report.pages["classes"].blocks if hasattr(b, "grid")]
    assert [line[3] for line in grid[1:5]] == names  # All four, in order.
    assert "five" not in report.pages["classes"].markdown()
    written = ["standing", r"\$walking\$", " _a name that i…", "lying"]
    panel, *_ = report.figures["confusion"].axes
    rows, columns = (
        [text.get_text() for text in axis.get_ticklabels()]
        for axis in (panel.yaxis, panel.xaxis)
    )
    assert rows == columns == written
    (heat_map,) = report.figures["classes"].axes
    assert [text.get_text() for text in heat_map.get_yticklabels()] == written


def test_the_heat_map_has_a_row_per_class_with_its_f1_in_the_last_round(run):
    results, y, answers = run
    (heat_map,) = confusion_matrices.report(results).figures["classes"].axes
    f1 = [
        metrics.f1_score(y[rows], answers[2][rows], labels=range(CLASSES), average=None)
        for rows in (y >= 0, worst_tenth(y, answers[2]))
    ]
    np.testing.assert_allclose(shades_of(heat_map), np.transpose(f1))
    written = [text.get_text() for text in heat_map.texts]
    assert written == [f"{value:.2f}" for value in np.ravel(np.transpose(f1))]
    heads = [text.get_text() for text in heat_map.get_xticklabels()]
    assert heads == ["FedAvg (DS)\nall clients", "FedAvg (DS)\nworst tenth"]


@pytest.mark.parametrize("classes", [5, 6])
def test_up_to_five_classes_are_all_listed_else_the_five_of_lowest_f1(
    tmp_path, classes
):
    write_run(tmp_path, classes=classes)
    report = confusion_matrices.report(read_results(str(tmp_path)))
    table = report.tables["classes"][:classes]
    (grid,) = [b.grid for b in report.pages["classes"].blocks if hasattr(b, "grid")]
    listed = [int(line[3]) for line in grid[1:6]]
    lowest = [*range(5)] if classes == 5 else table.nsmallest(5, "f1")["class"].tolist()
    assert listed == lowest
    assert ("the five with" in report.pages["classes"].markdown()) == (classes == 6)


@pytest.mark.parametrize("named", [True, False])
def test_some_of_many_classes_are_named_and_none_is_numbered(tmp_path, named):
    names = [chr(ord("A") + k) for k in range(26)]
    write_run(tmp_path, classes=26, names=names if named else None)
    report = confusion_matrices.report(read_results(str(tmp_path)))
    panel, *_ = report.figures["confusion"].axes
    assert not panel.texts
    if named:
        written = [text.get_text() for text in panel.get_yticklabels()]
        assert 8 < len(written) <= 26 and {*written} <= {*names}
    (heat_map,) = report.figures["classes"].axes
    assert len(heat_map.get_yticks()) == 26


@pytest.mark.parametrize(("factor", "words"), [(1, "examples"), (200, "percent of it")])
def test_a_cell_has_its_count_or_its_percentage_if_the_count_is_long(factor, words):
    counts = np.eye(10, 11, dtype=int) * 90 + 1
    part = confusion_plot.ConfusionPart("DS", "last round, 1", "all", factor * counts)
    figure = confusion_plot.confusion_plot([part])
    assert figure.get_supxlabel().endswith(f"numbers: {words}")
    (panel, _) = figure.axes
    first = [text.get_text() for text in panel.texts[:2]]
    assert first == (["91", "1"] if factor == 1 else [f"{100 * 91 / 101:.0f}", "1"])


@pytest.mark.parametrize("rows", [2, 9])
def test_on_a_phone_the_columns_of_the_heat_map_are_in_panels(rows):
    counts = np.eye(3, 4, dtype=int)
    parts = [
        confusion_plot.ConfusionPart(f"row {k}", "last round, 1", clients, counts)
        for k in range(rows)
        for clients in ("all clients", "worst tenth")
    ]
    with figure_layout.for_page(figure_layout.PAGE_WIDTHS["narrow"]):
        panels = confusion_plot.class_f1_plot(parts).axes
    assert (len(panels) > 1) == (rows == 9)
    assert sum(len(axes.get_xticks()) for axes in panels) == len(parts)
    assert sum(len(axes.texts) for axes in panels) == 3 * len(parts)
