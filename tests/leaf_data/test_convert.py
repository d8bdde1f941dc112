"""Stores made of LEAF's files and of CSVs, and what is no such file."""

import os

import numpy as np
import pytest
from leaf_documents import write_leaf

import leaf_data
from leaf_data import convert


def leaf_file(folder, part, users, number=0):
    data = {user: {"x": x, "y": y} for user, (x, y) in users.items()}
    write_leaf(folder / part / f"all_data_{number}_keep_0_{part}_9.json", data)


def test_leafs_files_and_csvs_are_converted(tmp_path, capsys):
    leaf_file(tmp_path / "leaf", "train", {"u": ([[0.5], [1]], [0, 1])})
    leaf_file(tmp_path / "leaf", "test", {"u": ([[0.25]], [1])})
    store = str(tmp_path / "of_leaf")
    assert convert.main([str(tmp_path / "leaf"), store]) == 0
    data = leaf_data.open_store(store)
    assert data.train_examples.x.tolist() == [[0.5], [1]]
    assert data.test_examples.client("u")["y"].tolist() == [1]
    csvs = tmp_path / "csvs"
    csvs.mkdir()
    for name in ("d1.csv", "d2.CSV"):
        (csvs / name).write_text("a,kind,b\n" + "1,0,2\n3,1,4\n" * 5)
    (csvs / "._d1.csv").write_text("no table")
    store = str(tmp_path / "of_csvs")
    options = ["--label=kind", "--test_fraction=0.2"]
    assert convert.main([str(csvs), store, *options]) == 0
    assert "2 clients, 2 classes" in capsys.readouterr().out
    data = leaf_data.open_store(store)
    assert data.client_ids == ("d1", "d2") and list(data.train_examples.sizes) == [8, 8]
    assert {tuple(row) for row in data.train_examples.x.tolist()} == {(1, 2), (3, 4)}
    (csvs / "d3.csv.gz").write_text("")
    assert convert.main([str(csvs), f"{store}2", *options]) == 2
    assert "d3.csv.gz has to be unpacked first" in capsys.readouterr().err


@pytest.mark.parametrize(
    "x", [*([[bad]] for bad in (10**400, {}, "1.5", None, 1e39)), [[1], [1, 2]]]
)
def test_what_leafs_files_have_instead_of_numbers_is_one_line(tmp_path, capsys, x):
    for part in ("train", "test"):
        leaf_file(tmp_path / "\x1b[31m", part, {"u": (x, [0] * len(x))})
    arguments = [str(tmp_path / "\x1b[31m"), str(tmp_path / "store")]
    assert convert.main(arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert "its examples are not float32 numbers of one shape" in last
    assert "\\x1b[31m" in last and "\x1b" not in last


@pytest.mark.parametrize(("part", "other"), [("train", "test"), ("test", "train")])
def test_a_leaf_file_without_its_other_part_is_refused(tmp_path, capsys, part, other):
    """Its test examples would be trained on."""
    for label, own in enumerate(("train", "test")):
        leaf_file(tmp_path, own, {"u": ([[0.5]], [label])})
    leaf_file(tmp_path, part, {"v": ([[1]] * 10, [0] * 10)}, number=1)
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 2
    assert f"1_keep_0_{part}_9.json has no {other} file" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


ROWS = "a,kind,b\n1,0,2\n"
NO_LABEL = "labels must be whole numbers, 0 or more, or words; --label_type"
IDS = "leaf_data.write_store takes ids as int32"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("," * 99_999 + "\n", ": must have kind once, and others"),
        ("kind\n1\n", ": must have kind once, and others: ['kind']"),
        ("kind,a,a\n0,1,1\n", ": must have a once, and others: ['kind', 'a', 'a']"),
        ("a,kind\n1,0\n", ": its columns differ from those of c.csv"),
        ("a,kind,b\n", ": has no rows: take it out of the folder"),
        # As an editor counts them, the header first.
        (ROWS + "\n", ": line 3 has 0 fields, not 3"),
        (ROWS + "1,2\n", ": line 3 has 2 fields, not 3"),
        ('a,kind,b\n1,0,"2\n"\n1,2\n', ": line 4 has 2 fields, not 3"),
        (ROWS + "1e39,0,1\n", ": line 3: a is '1e39': a float32 would be inf"),
        (ROWS + "nan,0,1\n", ": line 3: a is 'nan': it has to be a number"),
        (ROWS + "1,0,\n", ": line 3: b is '': it has to be a number"),
        (ROWS + "x,0,1\n", ": line 3: a is 'x': it has to be a number"),
        *(
            (f"{ROWS}1,{bad},1\n", f": line 3: kind is '{bad}': {NO_LABEL}")
            for bad in ("nan", 0.5, "x", "", -1, 2**31, "1e300", "inf")
        ),
        # 2^24 is the last whole number before which float32 holds all.
        *(
            (f"{ROWS}{bad},0,1\n", f": line 3: a is '{bad}': a float32 would be {held}")
            for bad, held in (
                ("16777217", "16777216; " + IDS),
                ("-16777217.0", "-16777216; " + IDS),
                (2**53 + 1, 2**53),
            )
        ),
        # What is no CSV, unlike these, cannot be read as one.
        ('a,kind,b\n1,0,"', ": cannot be read as CSV (unexpected end of data)"),
        ("a,kind,b\n1,0,\udcff\n", ": cannot be read as CSV ('utf-8' codec"),
    ],
    ids=lambda value: value if len(value) < 99 else "long",
)
def test_a_csv_that_is_none_is_one_line(tmp_path, capsys, text, says):
    (tmp_path / "csvs").mkdir()
    if text.startswith("a,kind"):  # A good one is read before.
        (tmp_path / "csvs" / "c.csv").write_text(ROWS)
    (tmp_path / "csvs" / "d.csv").write_text(text, "utf-8", "surrogateescape")
    store = str(tmp_path / "store")
    assert convert.main([str(tmp_path / "csvs"), store, "--label=kind"]) == 2
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert f"d.csv{says}" in last and len(last) < 1000
    assert ("cannot be read" in last) == ("cannot be read" in says)
    assert not os.path.exists(store)


def test_a_folder_without_csvs_is_one_line(tmp_path, capsys):
    folder, store = str(tmp_path / "csvs"), str(tmp_path / "store")
    os.mkdir(folder)
    assert convert.main([folder, store, "--label=kind"]) == 2
    assert f"{folder}: has no CSV" in capsys.readouterr().err


@pytest.mark.parametrize("largest", ["16777216", "33554432", "-16777216.", "1.5e10"])
def test_numbers_that_float32_holds_are_taken(tmp_path, largest):
    (tmp_path / "c.csv").write_text(f"a,kind\n{largest},0\n1,1\n")
    store = str(tmp_path / "store")
    options = ["--label=kind", "--test_fraction=0.5"]
    assert convert.main([str(tmp_path), store, *options]) == 0
    data = leaf_data.open_store(store)
    both = [*data.train_examples.x.ravel(), *data.test_examples.x.ravel()]
    assert sorted(both) == sorted([1, np.float32(largest)])


def test_leafs_ids_that_float32_merges_are_refused(tmp_path, capsys):
    leaf_file(tmp_path, "train", {"u": ([[16777216], [16777217]], [0, 1])})
    leaf_file(tmp_path, "test", {"u": ([[1]], [1])})
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 2
    assert "have 16777217: a float32 would be 16777216; " + IDS in (
        capsys.readouterr().err
    )


RATINGS = "user,movie,rating\n" + "7,1,{0}\nx y,2,{1}\n7,3,{2}\n"


@pytest.mark.parametrize(
    ("labels", "options", "want", "kind"),
    [
        ((0, 2, 1), "", {"7": [0, 1], "x y": [2]}, "3 classes"),
        # Sorted, and not as they come.
        (("good", "bad", "a b"), "", {"7": [2, 0], "x y": [1]}, "3 classes"),
        (
            (0.5, 2, 1.5),
            "--label_type=number",
            {"7": [0.5, 1.5], "x y": [2]},
            "float32",
        ),
    ],
)
def test_a_column_names_the_clients(tmp_path, capsys, labels, options, want, kind):
    """Of one table, and of several: here each label is in both."""
    csvs = tmp_path / "csvs"
    csvs.mkdir()
    for name in "ab":
        (csvs / f"{name}.csv").write_text(RATINGS.format(*labels))
    store = str(tmp_path / "store")
    given = f"--label=rating --test_fraction=0.5 --client=user {options}".split()
    assert convert.main([str(csvs), store, *given]) == 0
    out, err = capsys.readouterr()
    assert kind in out and "--client=COLUMN" not in err
    data = leaf_data.open_store(store)
    assert list(data.client_ids) == ["7", "x y"] and data.element_shape == (1,)
    movies = {"7": [1, 3], "x y": [2]}
    for name, own in want.items():
        parts = [e.client(name) for e in (data.train_examples, data.test_examples)]
        found = sorted(
            (*p["x"][k], p["y"][k]) for p in parts for k in range(len(p["y"]))
        )
        assert found == sorted(2 * [*zip(movies[name], own)])
    classes = sorted(labels) if isinstance(labels[0], str) else None
    assert data.options.get("classes") == classes
    assert ("classes=['a b', 'bad', 'good']" in out) == bool(classes)


def test_one_table_that_makes_one_client_is_warned_of(tmp_path, capsys):
    (tmp_path / "ratings.csv").write_text(RATINGS.format(0, 1, 0).replace("x y", "8"))
    given = ["--label=rating", "--test_fraction=0.4"]
    assert convert.main([str(tmp_path), str(tmp_path / "store"), *given]) == 0
    says = "all examples are of one client, ratings, because there is one CSV: --client"
    assert says in capsys.readouterr().err.splitlines()[-1]
    given = ["--client=user"]
    assert convert.main([str(tmp_path), str(tmp_path / "store2"), *given]) == 2
    assert "--client and --label_type go with --label" in capsys.readouterr().err
    (tmp_path / "ratings.csv").write_text(RATINGS.format(0, 1, 0).replace("x y", " "))
    given += ["--label=rating", "--test_fraction=0.4"]
    assert convert.main([str(tmp_path), str(tmp_path / "store3"), *given]) == 2
    assert "ratings.csv: line 3: the column user is empty" in capsys.readouterr().err


def test_a_full_disk_is_named(tmp_path):
    from leaf_data.formats import npy_folder

    path, full = (
        str(tmp_path / "store"),
        pytest.raises(leaf_data.DataError, match="No spa"),
    )
    with full as error, npy_folder.Writer(path) as writer:
        writer.append("a", np.zeros(1))
        full_disk = open("/dev/full", "wb", buffering=0)
        writer._files["a"] = full_disk, writer._files["a"][1]
        writer.append("a", np.zeros(1))
    assert str(error.value).startswith(f"{path}: cannot be written")
    assert os.listdir(tmp_path) == []
