"""PMC's Tables 3, 5, 7: right and wrong against DS, on pairs counted by hand."""

import random

import numpy as np
import pytest

from tff_pmc.reports import read_folder
from tff_pmc.reports.papers import pmc_joint

Y = [0, 1, 0, 1, 1, 0]  # Three clients with two examples each.
SPLITS = [0, 2, 4, 6]


def write_files(folder, index, rounds, celeba=False):
    """A run of the published code; a round lists (predictions, labels) of its files."""
    folder.mkdir(parents=True)
    kind = "" if celeba else "Local dataset type: iid\r\n"
    lines = f"{kind}K (number of clients): {len(rounds[0])}\r\nPermutation: {index}"
    (folder / "params.txt").write_bytes(lines.encode())
    for number, files in enumerate(rounds, start=1):
        (folder / f"round_{number}").mkdir()
        for place, (predicted, labels) in enumerate(files, start=1):
            rows = [f"{p},{y}\n" for p, y in zip(predicted, labels)]
            path = folder / f"round_{number}" / f"client_{place}.csv"
            path.write_text("y_pred,y_true\n" + "".join(rows))
    return folder


def cells(rows, experiment):
    return rows[rows["experiment"] == experiment]["value"].tolist()


def joint(path, *arguments):
    return pmc_joint.joint_rows(read_folder.read_runs(str(path)), *arguments)


def test_each_run_at_its_best_round_example_by_example(tmp_path, write_run):
    # DS is best in round 2, and again in round 3, which is later. LD in round 1.
    write_run(
        tmp_path / "DS",
        "DS",
        [[1, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]],
    )
    write_run(tmp_path / "LD", "LD", [[1, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0]])
    rows = joint(tmp_path)
    assert list(rows.columns[:4]) == [
        "experiment",
        "ds_outcome",
        "experiment_outcome",
        "value",
    ]
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
        shuffler = random.Random(f"7/{label}")
        for _ in range(best[label]):
            shuffler.shuffle(clients)
        lined_up[label] = np.concatenate(clients)
    expected = [
        int(((lined_up["DS"] == ds) & (lined_up["MD,DS,LD"] == own)).sum())
        for ds in (False, True)
        for own in (False, True)
    ]
    rows = joint(tmp_path, "shuffled", 7)
    assert cells(rows, "MD,DS,LD") == expected
    others = [cells(joint(tmp_path, "shuffled", n), "MD,DS,LD") for n in range(4)]
    assert any(other != expected for other in others)
    aligned = cells(joint(tmp_path), "MD,DS,LD")
    assert aligned != expected
    assert aligned[0] + aligned[1] == expected[0] + expected[1]  # DS's own wrongs.
    assert aligned[0] + aligned[2] == expected[0] + expected[2]


def test_shuffling_hides_that_both_err_on_the_same_examples(tmp_path, write_run):
    """Both are wrong on the same 60 of 600: aligned 60, by chance 6."""
    hard = np.random.default_rng(0).permutation(600) < 60
    y, splits = np.zeros(600, int), np.arange(0, 601, 10)
    for label in ("DS", "LD"):
        write_run(tmp_path / label, label, [(~hard).astype(int)], y, splits)
    assert cells(joint(tmp_path), "LD") == [60, 0, 0, 540]
    both_wrong = [cells(joint(tmp_path, "shuffled", s), "LD")[0] for s in range(20)]
    assert 3 < np.mean(both_wrong) < 12


# The published code's runs: two clients, with the labels 0, 1 and 1, 1.
FIRST, SECOND = (0, 1), (1, 1)
DS_FILES = [((0, 0), FIRST), ((1, 1), SECOND)]
LD_FILES = [((1, 1), SECOND), ((0, 0), FIRST)]


def test_published_runs_are_aligned_by_labels_or_paired_by_file(tmp_path):
    """Both are wrong on the first client's second example, in other files."""
    write_files(tmp_path / "1", 0, [DS_FILES])
    write_files(tmp_path / "2", 1, [LD_FILES])
    assert cells(joint(tmp_path), "LD") == [1, 0, 0, 3]
    assert cells(joint(tmp_path, "shuffled"), "LD") == [0, 1, 1, 2]


def test_published_runs_whose_clients_look_alike_are_not_aligned(tmp_path, fails):
    alike = [((0, 0), FIRST), ((0, 1), FIRST)]
    write_files(tmp_path / "1", 0, [alike], celeba=True)
    write_files(tmp_path / "2", 1, [alike], celeba=True)
    fails(lambda: joint(tmp_path), tmp_path, "same test labels", "cannot be aligned")
    assert cells(joint(tmp_path, "shuffled"), "CB") == [1, 0, 0, 3]


def test_published_test_sets_of_other_sizes_still_line_up_row_by_row(tmp_path):
    """One client has three examples: its rows meet those of two others."""
    long, short = ((0, 0, 1), (0, 0, 0)), ((1,), (1,))  # Wrong in the third.
    write_files(tmp_path / "1", 0, [[long, short]], celeba=True)
    write_files(tmp_path / "2", 2, [[short, long]], celeba=True)
    assert cells(joint(tmp_path), "IS") == [1, 0, 0, 3]
    assert cells(joint(tmp_path, "shuffled"), "IS") == [0, 1, 1, 2]


def test_what_cannot_be_joined_is_refused_by_name(tmp_path, fails, write_run):
    right = [[1, 1, 1, 0, 0, 0]]
    write_run(tmp_path / "a" / "LD", "LD", right)
    fails(lambda: joint(tmp_path / "a"), "one run of DS, and there are 0")
    write_run(tmp_path / "a" / "DS", "DS", right)
    write_run(tmp_path / "a" / "other", "DS", right)
    fails(lambda: joint(tmp_path / "a"), "there are 2", "a/DS", "a/other")

    for name, changes in [
        ("ids", {"clients": ["x", "y", "z"]}),
        ("labels", {"y": [1, *Y[1:]]}),
        ("splits", {"splits": [0, 1, 4, 6]}),
        ("sizes", {"splits": [0, 2, 4, 5], "y": Y[:5]}),
    ]:
        write_run(tmp_path / name / "DS", "DS", right)
        short = [right[0][: len(changes.get("y", Y))]]
        write_run(tmp_path / name / "LD", "LD", short, **changes)
        fails(lambda name=name: joint(tmp_path / name), f"{name}/DS and", f"{name}/LD")
    fails(lambda: joint(tmp_path / "sizes", "shuffled"), "sizes/DS and")
    with pytest.raises(ValueError, match="pairing must be"):
        joint(tmp_path / "ids", "sorted")
