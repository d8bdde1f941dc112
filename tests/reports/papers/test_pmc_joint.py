"""PMC's Tables 3, 5, 7: right and wrong against DS, on pairs counted by hand."""

import random
import shutil

import numpy as np
import pandas as pd
import pytest
from reported import write

from tff_pmc.record.results import read_results
from tff_pmc.reports.papers import pmc_joint

Y = [0, 1, 0, 1, 1, 0]  # Three clients with two examples each.


def cells(rows, experiment):
    return rows[rows["experiment"] == experiment]["value"].tolist()


def joint(path, pairing="aligned"):
    return pmc_joint.joint_rows(read_results(str(path)), pairing)


def test_each_run_at_its_best_round_example_by_example(tmp_path, write_run):
    # DS is best in round 2, and again in round 3, which is later. LD in round 1.
    ds = [[1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    write_run(tmp_path / "DS", "DS", ds)
    write_run(tmp_path / "LD", "LD", [[1, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0]])
    rows = joint(tmp_path)
    outcomes = list(zip(rows["ds_outcome"], rows["experiment_outcome"]))
    assert outcomes == [("X", "X"), ("X", "✓"), ("✓", "X"), ("✓", "✓")]
    # Wrong in both: the last example. Examples 3 and 4: LD alone is right.
    assert cells(rows, "LD") == [1, 2, 1, 2]
    assert set(rows["ds_round"]) == {2} and set(rows["experiment_round"]) == {1}


def test_shuffled_pairs_places_in_lists_that_each_run_shuffled(tmp_path, write_run):
    """Against two lists of clients, shuffled in place once a round."""
    generator = np.random.default_rng(3)
    splits = np.cumsum([0, *generator.integers(1, 5, 60)])
    y = generator.integers(0, 2, splits[-1])
    right = {
        "DS": generator.random((4, len(y))) < np.array([[0.3], [0.4], [0.6], [0.2]]),
        "MD,DS,LD": generator.random((2, len(y))) < np.array([[0.2], [0.7]]),
    }
    best = {"DS": 3, "MD,DS,LD": 2}
    lined_up = {}
    for label, rounds in right.items():
        write_run(tmp_path / label, label, rounds.astype(int), y, splits)
        assert rounds.sum(axis=1).argmax() + 1 == best[label]
        clients = np.split(rounds[best[label] - 1], splits[1:-1])
        shuffler = random.Random(f"0/{label}")
        for _ in range(best[label]):
            shuffler.shuffle(clients)
        lined_up[label] = np.concatenate(clients)
    expected = [
        int(((lined_up["DS"] == ds) & (lined_up["MD,DS,LD"] == ordering)).sum())
        for ds in (False, True)
        for ordering in (False, True)
    ]
    assert cells(joint(tmp_path, "shuffled"), "MD,DS,LD") == expected
    aligned = cells(joint(tmp_path), "MD,DS,LD")
    assert aligned != expected
    assert aligned[0] + aligned[1] == expected[0] + expected[1]  # DS's own wrongs.
    assert aligned[0] + aligned[2] == expected[0] + expected[2]


# Files of the published code's runs, (predictions, labels) of two clients: both models
# are wrong on the first's second example, in other files; clients of one look; and one
# with three examples, the third wrong, whose rows meet those of two others.
FIRST, SECOND = ((0, 0), (0, 1)), ((1, 1), (1, 1))
ALIKE = [FIRST, ((0, 1), (0, 1))]
LONG, SHORT = ((0, 0, 1), (0, 0, 0)), ((1,), (1,))


def write_published(folder, lines, clients):
    """A run of one round of the published code: (predictions, labels) of each file."""
    place = folder / "round_1"
    place.mkdir(parents=True)
    (folder / "params.txt").write_text("\n".join(lines))
    for number, pair in enumerate(clients, start=1):
        rows = [f"{predicted},{y}" for predicted, y in zip(*pair)]
        text = "\n".join(["y_pred,y_true", *rows, ""])
        (place / f"client_{number}.csv").write_text(text)


@pytest.mark.parametrize(
    ("of_ds", "of_other", "label", "aligned", "shuffled"),
    [
        ([FIRST, SECOND], [SECOND, FIRST], "LD", [1, 0, 0, 3], [0, 1, 1, 2]),
        ([LONG, SHORT], [SHORT, LONG], "CB", [1, 0, 0, 3], [0, 1, 1, 2]),
        (ALIKE, ALIKE, "CB", None, [1, 0, 0, 3]),
    ],
)
def test_published_runs_are_aligned_by_labels_or_paired_by_file(
    tmp_path, fails, of_ds, of_other, label, aligned, shuffled
):
    kind = ["Local dataset type: iid"] * (label == "LD")
    for index, files in enumerate((of_ds, of_other)):
        lines = [*kind, "K (number of clients): 2", f"Permutation: {index}"]
        write_published(tmp_path / f"{index}", lines, files)
    if aligned:
        assert cells(joint(tmp_path), label) == aligned
    else:
        words = "same test labels", "cannot be aligned"
        fails(lambda: joint(tmp_path), tmp_path, *words)
    assert cells(joint(tmp_path, "shuffled"), label) == shuffled


@pytest.mark.parametrize(
    ("changes", "pairing"),
    [
        ({"clients": ["x", "y", "z"]}, "aligned"),
        ({"y": [1, *Y[1:]]}, "aligned"),
        ({"splits": [0, 1, 4, 6]}, "aligned"),
        ({"splits": [0, 2, 4, 5], "y": Y[:5]}, "aligned"),
        ({"splits": [0, 2, 4, 5], "y": Y[:5]}, "shuffled"),
    ],
)
def test_runs_that_cannot_be_joined_are_rejected_and_named(
    tmp_path, fails, write_run, changes, pairing
):
    right = [[1, 1, 1, 0, 0, 0]]
    write_run(tmp_path / "DS", "DS", right)
    write_run(tmp_path / "LD", "LD", [right[0][: len(changes.get("y", Y))]], **changes)
    fails(lambda: joint(tmp_path, pairing), "DS and LD were tested on different")
    alone = read_results(str(tmp_path / "LD"))
    fails(lambda: pmc_joint.joint_rows(alone, pairing), "need a run of DS")


# Two clients with 2 and 3 test examples.
FIVE, TWO_CLIENTS = list(range(5)), [0, 2, 5]


def test_independence_by_hand():
    # Margins 4, 6 and 3, 7 of ten; and of twenty in halves.
    counts = pmc_joint.independent_counts([1, 3, 2, 4, 9, 1, 1, 9])
    np.testing.assert_allclose(counts, [1.2, 2.8, 1.8, 4.2, 5, 5, 5, 5])


def test_the_joint_table_with_the_published_one(tmp_path, write_run):
    write_run(tmp_path / "runs" / "DS", "DS", [[1, 0, 1, 0, 0]], FIVE, TWO_CLIENTS)
    write_run(tmp_path / "runs" / "MD", "MD", [[1, 1, 0, 0, 0]], FIVE, TWO_CLIENTS)
    runs = read_results(str(tmp_path / "runs"))
    text = write("pmc_table3", runs.only(label="DS"), tmp_path)
    assert text == "PMC Table 3 is omitted: there are no two runs, DS and another"
    text = write("pmc_table3", runs, tmp_path)
    cells = pd.read_csv(tmp_path / "table3.csv")
    aligned = cells[cells["pairing"] == "aligned"]
    assert set(cells["experiment"]) == {"MW"} and len(cells) == 8
    # Both wrong 2, only MD right 1, only DS right 1, both right 1; margins 3, 2.
    assert aligned["ours"].tolist() == [2, 1, 1, 1]
    assert aligned["independent"].tolist() == pytest.approx([1.8, 1.2, 1.2, 0.8])
    assert aligned["published"].tolist() == [0, 98, 107, 9795]
    expected = pytest.approx([1.0486, 96.9514, 105.9514, 9796.0486])
    assert aligned["published_independent"].tolist() == expected
    assert aligned["difference"].tolist() == [2, -97, -106, -9794]
    shuffled = cells[cells["pairing"] == "shuffled"]["ours"].tolist()
    assert shuffled[2] + shuffled[3] == 2 and shuffled[1] + shuffled[3] == 2
    page = (tmp_path / "table3.md").read_text()

    # Without predictions, the page is made from the kept CSV, or is absent.
    for label in runs.labels:
        shutil.rmtree(tmp_path / "runs" / label / "predictions")
    text = write("pmc_table3", runs, tmp_path / "none")
    assert text.startswith("PMC Table 3 is omitted: ") and "--predictions" in text
    shutil.copy(tmp_path / "table3.csv", tmp_path / "runs")
    write("pmc_table3", runs, tmp_path / "again")
    assert (tmp_path / "again" / "table3.md").read_text() == page


@pytest.mark.parametrize(
    "data",
    [
        {"name": "celeba", "origin": {"source": "INCOMPLETE: 3 of 9 images"}},
        {"name": "celeba", "origin": {"source": "all of CelebA"}},
    ],
)
def test_incomplete_data_are_named_everywhere(tmp_path, data, write_run):
    for name, right in (("DS", [1, 0, 1, 0, 0]), ("IS", [1, 1, 0, 0, 0])):
        options = {"y": FIVE, "splits": TWO_CLIENTS, "data": {**data, "clients": 2}}
        write_run(tmp_path / "runs" / name, name, [right], **options)
    runs = read_results(str(tmp_path / "runs"))
    for report in ("pmc_table6", "pmc_table7"):
        write(report, runs, tmp_path)
    source = data["origin"]["source"]
    for name in ("table6.csv", "table7.csv"):
        table = pd.read_csv(tmp_path / name)
        if source == "all of CelebA":
            assert "data" not in table
        else:
            assert set(table["data"]) == {source}
    for name in ("table6.md", "table7.md"):
        markdown = (tmp_path / name).read_text("utf-8")
        assert f"- Runs: {data['name']} ({source}), 2 clients, 1 rounds" in markdown
