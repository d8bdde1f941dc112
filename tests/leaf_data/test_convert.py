"""Stores made from LEAF's files and from CSVs, and files that are neither."""

import json
import os

import numpy as np
import pytest
from leaf_documents import write_leaf

import leaf_data
from leaf_data import convert, csv_clients


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
    assert "d3.csv.gz is packed: unpack it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        *(
            ([[1], [bad]], [0, 0], f"x[1] is [{bad!r:.30}")
            for bad in (10**400, {}, "1.5", None, 1e39)
        ),
        ([[1], [1, 2]], [0, 0], "x[1] is [1, 2]"),
        (["text", ""], [0, 0], "x[0] is 'text'; of text, LEAF's Shakespeare, Sent140"),
        ([["a"], ["b"]], [0, 0], "x[0] is ['a']; of text, LEAF's Shakespeare"),
        # No tweets, whose fifth field is the text.
        (["the cat sat on it".split()] * 2, [0, 0], "; of text, LEAF's Shakespeare"),
        ([["1", 2, "b", 4, "c"]] * 2, [0, 0], "; of text, LEAF's Shakespeare"),
        ([[], []], [0, 0], "x[0] is []"),
        *(
            ([[1], [2]], [0, bad], f"y has {bad}: labels must be from 0 to 2147483646")
            for bad in (-1, 2**31 - 1, 10**30, 1e300)
        ),
        ([[1], [2]], [[0, 1], [0, -2]], "y has -2: labels must be from -1 to"),
        ([[1], [2]], [0, "b"], "y[1] is 'b', not a number"),
        ([[1], [2]], [0, [1]], "y[1] is [1], not a number"),
        ([[1], [2]], [[], 0], "y[0] is [], not a number"),
        ([[1], [2]], [[0, 1], 1], "y[1] is 1, not a list of 2 numbers"),
        ([[1], [2]], [[0, 1], [1]], "y[1] is [1], not a list of 2 numbers"),
        ([[1], [2]], [[0, 1], [0, "b"]], "y[1] is [0, 'b'], not a list of 2 numbers"),
        ([[1], [2]], [[0, 1], [[0], 1]], "y[1] is [[0], 1], not a list of 2 numbers"),
        ([[1], [2]], [None, 1], "y[0] is None, not a number"),
    ],
)
def test_a_leaf_file_without_numbers_is_an_error_in_one_line(
    tmp_path, capsys, x, y, message
):
    for part in ("train", "test"):
        leaf_file(tmp_path / "\x1b[31m", part, {"u": (x, y)})
    arguments = [str(tmp_path / "\x1b[31m"), str(tmp_path / "store")]
    assert convert.main(arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert message in last and "_train_9.json: user u: " in last
    assert "its examples are not float32 numbers of one shape: x" in last or y != [0, 0]
    assert "\\x1b[31m" in last and "\x1b" not in last


@pytest.mark.parametrize(("part", "other"), [("train", "test"), ("test", "train")])
def test_a_leaf_file_without_its_other_part_is_rejected(tmp_path, capsys, part, other):
    """Its test examples would be trained on."""
    for label, name in enumerate(("train", "test")):
        leaf_file(tmp_path, name, {"u": ([[0.5]], [label])})
    leaf_file(tmp_path, part, {"v": ([[1]] * 10, [0] * 10)}, number=1)
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 2
    assert f"1_keep_0_{part}_9.json, but in no {other} file" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


ROWS = "a,kind,b\n1,0,2\n"
NO_LABEL = "labels must be whole numbers, 0 or more, or words; --label_type"
IDS = "store ids as int32 with leaf_data.write_store"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("," * 99_999 + "\n", ": line 1 must have the column 'kind', got []"),
        ("a;kind\n1;0\n", ": line 1 must have the column 'kind', got ['a;kind']: comm"),
        ("kind\n1\n", ": line 1 has no column besides kind: the inputs are"),
        ("kind,a,a\n0,1,1\n", ": line 1: the column a appears twice: remove or"),
        ("a,kind\n1,0\n", ": its columns differ from those of c.csv: b"),
        ("a,kind,b\n", ": has no rows: remove it from the folder"),
        # As an editor counts them, the header first.
        (ROWS + "1,2\n", ": line 3 has 2 fields, not 3"),
        ('a,kind,b\n1,0,"2\n"\n1,2\n', ": line 4 has 2 fields, not 3"),
        (ROWS + "1e39,0,1\n", ": line 3: a is '1e39': float32 would turn it into inf"),
        (
            f"{ROWS}{'9' * 5000},0,1\n",
            f": line 3: a is '{'9' * 39}: float32 would turn it into inf",
        ),
        (ROWS + "nan,0,1\n", ": line 3: a is 'nan': it has to be a number"),
        (ROWS + "1,0,\n", ": line 3: b is '': it has to be a number"),
        (ROWS + "x,0,1\n", ": line 3: a is 'x': it has to be a number"),
        *(
            (f"{ROWS}1,{bad},1\n", f": line 3: kind is '{bad}': {NO_LABEL}")
            for bad in (0.5, -1, 2**31, "1e300", "1e400")
        ),
        *(
            (f"{ROWS}1,{bad},1\n", f": line 3: kind is '{bad}': a missing value? ")
            for bad in ("nan", "NaN", "", "inf", "-Infinity")
        ),
        *(
            (f"{ROWS}1,{bad},1\n", f": line 3: kind is '{bad}': a word, but ")
            for bad in ("x", "1_0", "\uff11", "0x1", "NA")
        ),
        *(
            (f"{ROWS}{bad},0,1\n", f": line 3: a is '{bad}': it has to be a number")
            for bad in (
                "1_7",
                "\uff11\uff12",
                "\u0661",
                "inf",
                "1d3",
                "1 2",
                "-",
                "TRUE",
            )
        ),
        (",kind,b\n1,0,2\n", ": line 1: the column '' has no name: it may be the"),
        (" ,kind,b\n1,0,2\n", ": line 1: the column '' has no name"),
        ("a,kind,b,,\n1,0,2,,\n", ": line 1: the column '' has no name"),
        ("kind,b,,\n0,2,,\n", ": line 1: the column '' has no name"),
        ("Unnamed: 0,kind\n1,0\n", ": line 1: the column 'Unnamed: 0' has no name"),
        ("kind,Unnamed: 0.1\n1,0\n", ": line 1: the column 'Unnamed: 0.1' has no na"),
        ("unnamed: 0_level_1,kind\n1,0\n", ": line 1: the column 'unnamed: 0_level_1'"),
        ("a\x1b,kind\n1,0\n", ": line 1: the column 'a\\x1b' has the control"),
        # 2^24 is the last whole number before which float32 holds all.
        *(
            (
                f"{ROWS}{bad},0,1\n",
                f": line 3: a is '{bad}': float32 would turn it into {held}",
            )
            for bad, held in (
                ("16777217", "16777216: " + IDS),
                ("-16777217.0", "-16777216: " + IDS),
                ("1700000013.5", "1700000000: " + IDS),  # A time in seconds.
                (2**53 + 1, 2**53),
                ("0" * 20 + "16777217", 2**24),
            )
        ),
        # Unlike these, a file that is not a CSV cannot be read as one.
        ('a,kind,b\n1,0,"', ": cannot be read as CSV (unexpected end of data)"),
        ("a,kind,b\n1,0,\udcff\n", ": cannot be read as CSV ('utf-8' codec"),
    ],
    ids=lambda value: value if len(value) < 99 else "long",
)
def test_an_invalid_csv_is_an_error_in_one_line(tmp_path, capsys, text, says):
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


def test_a_folder_without_csvs_is_an_error_in_one_line(tmp_path, capsys):
    folder, store = str(tmp_path / "csvs"), str(tmp_path / "store")
    os.mkdir(folder)
    assert convert.main([folder, store, "--label=kind"]) == 2
    assert f"{folder}: has no CSV" in capsys.readouterr().err


@pytest.mark.parametrize("largest", ["16777216", "33554432", "-16777216.", "1.5e10"])
def test_numbers_that_float32_holds_are_accepted(tmp_path, largest):
    (tmp_path / "c.csv").write_text(f"a,kind\n{largest},0\n1,1\n")
    store = str(tmp_path / "store")
    options = ["--label=kind", "--test_fraction=0.5"]
    assert convert.main([str(tmp_path), store, *options]) == 0
    data = leaf_data.open_store(store)
    numbers = [*data.train_examples.x.ravel(), *data.test_examples.x.ravel()]
    assert sorted(numbers) == sorted([1, np.float32(largest)])


def test_leafs_ids_that_float32_merges_are_rejected(tmp_path, capsys):
    leaf_file(tmp_path, "train", {"u": ([[16777216], [16777217]], [0, 1])})
    leaf_file(tmp_path, "test", {"u": ([[1]], [1])})
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 2
    assert "have 16777217: float32 would turn it into 16777216: " + IDS in (
        capsys.readouterr().err
    )


LEAF_FILES = {
    "FedProx's": ("data/train/mytrain.json", "data/test/mytest.json"),
    "one folder": ("all_data_train.json", "all_data_test.json"),
    "two files": ("train/a.json", "train/b.json", "test/b.json", "test/c.json"),
    "no numbers": ("my_train.json", "my_test.json"),
}


@pytest.mark.parametrize("kind", LEAF_FILES)
def test_leafs_users_are_matched_whatever_the_files_are_called(tmp_path, kind):
    """Users are in another order, and in other files, in the test files."""
    paths = [tmp_path / path for path in LEAF_FILES[kind]]
    numbers = {f"u{k}": k for k in range(6)}

    def document(users, offset):
        return {u: {"x": [[k + offset]], "y": [k % 2]} for u, k in users}

    users = [*numbers.items()]
    half = len(paths) // 2
    for number, path in enumerate(paths[:half]):
        write_leaf(path, document(users[number::half], 0))
    for number, path in enumerate(paths[half:]):
        write_leaf(path, document(users[::-1][number * 3 :][: 6 // half], 0.5))
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 0
    data = leaf_data.open_store(tmp_path / "store")
    assert sorted(data.client_ids) == sorted(numbers)
    for user, k in numbers.items():
        train, test = data.train_examples.client(user), data.test_examples.client(user)
        assert (train["x"].tolist(), train["y"].tolist()) == ([[k]], [k % 2])
        assert (test["x"].tolist(), test["y"].tolist()) == ([[k + 0.5]], [k % 2])


def test_leafs_files_of_two_samples_are_recognized_by_their_users(tmp_path, capsys):
    """Not by their names, which may differ where the users are others."""
    users = {name: ([[0.5], [1.5]], [0, 1]) for name in "abc"}

    def convert_files(*files):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in files:
            data = {u: {"x": users[u][0], "y": users[u][1]} for u in text}
            write_leaf(folder / "all_data" / name, data)
        store = str(folder / "store")
        code = convert.main([str(folder), store, "--test_fraction=.5"])
        return code, capsys.readouterr().err.splitlines()[-1]

    files = ("all_data_0_niid_05.json", "ab"), ("all_data_0_niid_1.json", "c")
    assert convert_files(*files)[0] == 0
    code, says = convert_files(files[0], ("all_data_1_niid_05.json", "bc"))
    assert code == 2 and "user b: is in " in says
    assert "all_data_0_niid_05.json and in " in says and "1_niid_05.json: keep" in says


def test_leafs_users_without_examples(tmp_path, capsys, caplog):
    full, empty = ([[0.5, 1], [2, 3]], [0, 1]), ([], [])
    leaf_file(tmp_path, "train", {"no": empty, "a": full, "b": full, "c": empty})
    leaf_file(tmp_path, "test", {"no": empty, "a": full, "b": empty, "c": full})
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 0
    data = leaf_data.open_store(tmp_path / "store")
    assert list(data.client_ids) == ["a", "b", "c"]
    assert list(data.train_examples.sizes) == [2, 2, 0]
    assert list(data.test_examples.sizes) == [2, 0, 2]
    assert "train_9.json: user no has no examples, and is excluded" in caplog.text
    out = capsys.readouterr().out
    assert "clients without training examples: 1 of 3 clients (c first)" in out
    assert "clients without test examples: 1 of 3 clients (b first)" in out


@pytest.mark.parametrize(
    ("train", "test", "says"),
    [
        ("ab", "a", "user b is in {train}, but in no test file: each user trains and"),
        ("a", "ab", "user b is in {test}, but in no train file: each user trains and"),
        ("a", "b", "-t sample"),
    ],
)
def test_leafs_users_must_be_in_both_parts(tmp_path, capsys, train, test, says):
    paths = {}
    for part, users in (("train", train), ("test", test)):
        path = tmp_path / "leaf" / part / f"{part}.json"
        examples = {"x": [[0.5], [1.5]], "y": [0, 1], part: 0}
        paths[part] = write_leaf(path, dict.fromkeys(users, examples))
    assert convert.main([str(tmp_path / "leaf"), str(tmp_path / "store")]) == 2
    assert says.format(**paths) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("train", "test", "says"),
    [
        (([], []), ([], []), "leaf: no user has examples"),
        (([[1]], [0]), ([], []), "no client has test examples: all their x_test"),
        (([[1]], [0]), ([[1, 2]], [0]), "a training x is float32 (1,) and a test x"),
    ],
)
def test_leafs_files_without_examples_to_use(tmp_path, capsys, train, test, says):
    leaf_file(tmp_path / "leaf", "train", {"u": train})
    leaf_file(tmp_path / "leaf", "test", {"u": test})
    if not train[0]:  # Two equal files are another error.
        path = next((tmp_path / "leaf" / "test").iterdir())
        path.write_text(path.read_text() + " ")
    assert convert.main([str(tmp_path / "leaf"), str(tmp_path / "store")]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ([[1]], [0], "[[1], []], but those of earlier users [[2], []]"),
        ([[1, 2]], [[0, 1]], "[[2], [2]], but those of earlier users [[2], []]"),
    ],
)
def test_leafs_users_must_have_examples_of_one_shape(tmp_path, capsys, x, y, says):
    users = {"a": ([], []), "b": ([[0.5, 1]], [0]), "c": (x, y)}
    for part in ("train", "test"):
        leaf_file(tmp_path / "leaf", part, users)
        users = {**users, "c": (x * 2, y * 2)}
    assert convert.main([str(tmp_path / "leaf"), str(tmp_path / "store")]) == 2
    words = "user c: an example's x and y have the shapes"
    assert f"train_9.json: {words} {says}" in capsys.readouterr().err


def write_csvs(folder, files):
    """Writes CSVs: rows by path, `u` the client, `a` the input, `y` the label."""
    for path, rows in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(rows) + "\n")


TRAIN_ROWS = ["u,a,y", *(f"{k % 2},{k},{k % 2}" for k in range(6))]
TEST_ROWS = ["u,a,y", *(f"{k % 2},{k},{k % 2}" for k in (106, 107, 108))]


@pytest.mark.parametrize(
    "names",
    [
        ("train", "test"),
        ("Train", "Test"),
        ("TRAIN", "TEST"),
        ("training", "testing"),
        ("train_data", "test_data"),
        ("data.train", "data.test"),
        ("x_train", "x_test"),
        ("Xtrain", "Xtest"),
        ("mytrain", "mytest"),
        ("trainset", "test"),
        ("train_2020", "test_2021"),
        ("Trainingsdaten", "Testdaten"),
        ("train", "valid"),
        ("train", "validation"),
        ("train", "dev"),
        ("train", "holdout"),
        ("train/a", "test/a"),
        ("train/a", "Valid/b"),
        ("Training/mytrain", "Testing/mytest"),
    ],
)
def test_a_training_and_a_test_table(tmp_path, capsys, names):
    files = dict(zip((f"f/{name}.csv" for name in names), (TRAIN_ROWS, TEST_ROWS)))
    write_csvs(tmp_path, files)
    store = str(tmp_path / "store")
    options = ["--label=y", "--client=u", "--test_fraction=.5"]
    assert convert.main([str(tmp_path / "f"), store, *options]) == 0
    data = leaf_data.open_store(store)
    for client, train, test in (("0", [0, 2, 4], [106, 108]), ("1", [1, 3, 5], [107])):
        assert data.train_examples.client(client)["x"].ravel().tolist() == train
        assert data.test_examples.client(client)["x"].ravel().tolist() == test
    err = capsys.readouterr().err
    first, second = files
    assert f"the training set is {tmp_path / first}, the test set" in err
    assert f"{tmp_path / second}: rename" in err
    assert "--test_fraction has no effect" in err


@pytest.mark.parametrize(
    ("names", "want"),
    [
        ("train test", {"all": "03"}),
        ("x_train x_test", {"x": "03"}),
        ("ann_train ann_test bo_train bo_test", {"ann": "01", "bo": "23"}),
        ("train/ann test/ann train/bo", {"ann": "01", "bo": "2-"}),
        # No pair: these are clients, and so is whoever is called so.
        ("dev_1 dev_2", {"dev_1": "0", "dev_2": "1"}),
        ("contest strain", {"contest": "0", "strain": "1"}),
        ("train_1 train_2", {"train_1": "0", "train_2": "1"}),
    ],
)
def test_a_training_and_a_test_table_without_a_column_of_clients(tmp_path, names, want):
    """Row k is in file k, so that `want` says which is trained and which tested on."""
    places = {name: str(k) for k, name in enumerate(names.split())}
    if want.get("all") or want.get("x"):
        want = {key: "01" for key in want}
    rows = {f"f/{n}.csv": ["a,y", *[f"{k},0", f"{k},1"]] for n, k in places.items()}
    write_csvs(tmp_path, rows)
    store = str(tmp_path / "store")
    pair = any(len(parts) == 2 for parts in want.values())
    options = ["--label=y"] + ["--test_fraction=.5"] * (not pair)
    assert convert.main([str(tmp_path / "f"), store, *options]) == 0
    data = leaf_data.open_store(store)
    assert list(data.client_ids) == list(want)
    for client, parts in want.items():
        examples = data.train_examples, data.test_examples
        for part, arrays in zip(parts if pair else parts * 2, examples):
            x = set(arrays.client(client)["x"].ravel().astype(int).astype(str))
            assert x == set(part) - {"-"}


SHARED = ["u,a,y", "7,1,0", "8,2,1"]


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        (
            {"train": SHARED, "test": SHARED, "notes": SHARED},
            "--client=u",
            "train.csv and test.csv are a training and a test set, but notes.csv is ne",
        ),
        (
            {"train": SHARED, "test": SHARED, "val": SHARED},
            "--client=u",
            "val.csv is a validation set, which is neither",
        ),
        ({"test": SHARED, "b": SHARED}, "", "test.csv is a test set by its name, but"),
        (
            {"train_a": SHARED, "test_b": SHARED},
            "",
            "train_a.csv and test_b.csv are a training and a test file of different",
        ),
        (
            {"train_a": SHARED, "test_a": SHARED, "test": SHARED},
            "",
            "test.csv names no client",
        ),
        (
            {"train/a": SHARED, "test/a_train": SHARED},
            "",
            "a_train.csv: is a train file by its name, in the folder of test files",
        ),
        # A user in two files, by row and file, however the name is written.
        (
            {"a": SHARED, "b": ["u,a,y", "9,0,0", "7,3,1"]},
            "--client=u",
            "f/b.csv: line 3: u is '7', who is also in F/a.csv: line 2: --join",
        ),
        (
            {"a": SHARED, "b": ["u,a,y", "7.0,3,1"]},
            "--client=u",
            "f/b.csv: line 2: u is '7.0', who is also in F/a.csv: line 2: --join",
        ),
        (
            {"train_1": SHARED, "train_2": SHARED, "test": SHARED},
            "--client=u",
            "f/train_2.csv: line 2: u is '7', who is also in F/train_1.csv: line 2",
        ),
        ({"a": SHARED, "a.CSV": SHARED}, "", "f/a.csv are both of the client 'a': --"),
        ({"1": SHARED, "1.0": SHARED}, "", "f/1.csv are both of the client '1': --"),
        # One number in two spellings of which neither is pandas's.
        (
            {"a": [*SHARED, "007,3,1"]},
            "--client=u",
            "f/a.csv: line 4: u is '007', and '7' in F/a.csv: line 2, which is the",
        ),
        ({"1": SHARED, "01": SHARED}, "", "f/1.csv: the name is '1', and '01' in F/01"),
        ({"a": [*SHARED, " ,3,1"]}, "--client=u", "f/a.csv: line 4: the column u is e"),
        ({"sub/a": SHARED}, "", "f: has no CSV: these are not read: sub/"),
        ({"train/a": SHARED}, "", "f: has no CSV: these are not read: train/"),
    ],
)
def test_parts_and_clients_are_never_guessed(tmp_path, capsys, files, options, says):
    write_csvs(
        tmp_path / "f",
        {n if n.endswith("CSV") else f"{n}.csv": rows for n, rows in files.items()},
    )
    arguments = ["--label=y", "--test_fraction=.5", *options.split()]
    store = tmp_path / "store"
    assert convert.main([str(tmp_path / "f"), str(store), *arguments]) == 2
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert says.replace("F/", f"{tmp_path}/f/") in last and not store.exists()


@pytest.mark.parametrize(
    ("texts", "want"),
    [
        (("1 2", "1.0 2.0"), {"1": 2, "2": 2}),
        (("1.0 2.", "3.00 -4.0"), {"1": 1, "2": 1, "3": 1, "-4": 1}),
        # Versions, which are numbers by their form alone, and names.
        (("1.0 1.1", "2.0 x"), {"1.0": 1, "1.1": 1, "2.0": 1, "x": 1}),
        (("1.1 1.10", "0.5 5e-1"), {"1.1": 1, "1.10": 1, "0.5": 1, "5e-1": 1}),
        (("007 u1.0", "1a 1"), {"007": 1, "u1.0": 1, "1a": 1, "1": 1}),
    ],
)
def test_ids_as_pandas_writes_them_are_one_client(tmp_path, texts, want):
    for name, ids in zip("ab", texts):
        rows = [f"{u},{k},{k}" for k, u in enumerate(ids.split())]
        write_csvs(tmp_path, {f"f/{name}.csv": ["id,a,y", *rows]})
    clients = csv_clients.read_clients(
        str(tmp_path / "f"), "y", {"0": 0, "1": 1}, "id", join=True
    )
    assert {name: len(y) for name, _, y in clients} == want


def test_files_of_a_client_are_joined_with_join(tmp_path):
    write_csvs(tmp_path / "f", {"a.csv": ["a,y", "1,0"], "a.CSV": ["a,y", "2,1"]})
    ((name, x, y),) = csv_clients.read_clients(
        str(tmp_path / "f"), "y", {"0": 0, "1": 1}, join=True
    )
    assert (name, sorted(x.ravel()), sorted(y)) == ("a", [1, 2], [0, 1])


def test_other_files_are_named_and_empty_lines_are_skipped(tmp_path, capsys):
    write_csvs(
        tmp_path / "f",
        {
            "a.csv": ["", "a,y", "1,0", "", "2,1", "", "  ", ",", ",,,"],
            "b.tsv": [],
            ".c": [],
        },
    )
    for name in ("b.zip", "b.xlsx", "README"):
        (tmp_path / "f" / name).write_text("")
    write_csvs(tmp_path / "f", {"old/z.csv": []})
    arguments = [str(tmp_path / "f"), str(tmp_path / "store"), "--label=y"]
    assert convert.main([*arguments, "--test_fraction=.5"]) == 0
    out, err = capsys.readouterr()
    assert "these are not: README, b.tsv, b.xlsx, b.zip, old/\n" in err
    assert "train: 1 example, " in out and "test: 1 example, " in out


def test_other_files_next_to_training_and_test_files_are_named(tmp_path, capsys):
    write_csvs(tmp_path / "f", {"train/a.csv": TRAIN_ROWS, "test/a.csv": TEST_ROWS})
    for path in ("train/b.tsv", "x.zip", "val/a.csv", "test/.hidden"):
        write_csvs(tmp_path / "f", {path: []})
    arguments = [f"{tmp_path}/f/", str(tmp_path / "store"), "--label=y"]
    assert convert.main(arguments) == 0
    assert "these are not: val/, x.zip, train/b.tsv\n" in capsys.readouterr().err
    assert list(leaf_data.open_store(tmp_path / "store").client_ids) == ["a"]


def test_equal_rows_are_counted_or_kept_together(tmp_path, capsys):
    rows = [f"{k},{k % 2}" for k in range(20)]
    write_csvs(tmp_path / "f", {"a.csv": ["a,y", *rows, *rows]})
    arguments = [str(tmp_path / "f"), str(tmp_path / "apart"), "--label=y"]
    assert convert.main([*arguments, "--test_fraction=.5"]) == 0
    data = leaf_data.open_store(tmp_path / "apart")
    count = np.isin(data.test_examples.x, data.train_examples.x).sum()
    assert count and f"equal_test_examples={count})" in capsys.readouterr().out
    arguments[1] = str(tmp_path / "together")
    assert (
        convert.main([*arguments, "--test_fraction=.5", "--keep_equal_together"]) == 0
    )
    data = leaf_data.open_store(tmp_path / "together")
    assert not np.isin(data.test_examples.x, data.train_examples.x).any()
    assert data.test_examples.num_examples == 20


def test_a_fraction_has_no_effect_with_leafs_test_files(tmp_path, capsys):
    for part, x in (("train", [[0], [1], [2], [3]]), ("test", [[4]])):
        leaf_file(tmp_path, part, {"u": (x, [0] * len(x))})
    arguments = [str(tmp_path), str(tmp_path / "store"), "--test_fraction=.5"]
    assert convert.main(arguments) == 0
    assert "--test_fraction has no effect, because there are" in capsys.readouterr().err
    data = leaf_data.open_store(tmp_path / "store")
    assert data.train_examples.num_examples == 4 and data.test_examples.x == [[4]]


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
    """In one table, and in several that are joined: here each label is in both."""
    csvs = tmp_path / "csvs"
    csvs.mkdir()
    for name in "ab":
        (csvs / f"{name}.csv").write_text(RATINGS.format(*labels))
    store = str(tmp_path / "store")
    arguments = (
        f"--label=rating --test_fraction=0.5 --client=user --join {options}".split()
    )
    assert convert.main([str(csvs), store, *arguments]) == 0
    out, err = capsys.readouterr()
    assert kind in out and "--client=COLUMN" not in err
    data = leaf_data.open_store(store)
    assert list(data.client_ids) == ["7", "x y"] and data.element_shape == (1,)
    movies = {"7": [1, 3], "x y": [2]}
    for name, rows in want.items():
        parts = [e.client(name) for e in (data.train_examples, data.test_examples)]
        stored = sorted(
            (*p["x"][k], p["y"][k]) for p in parts for k in range(len(p["y"]))
        )
        assert stored == sorted(2 * [*zip(movies[name], rows)])
    classes = sorted(labels) if isinstance(labels[0], str) else None
    assert data.options.get("classes") == classes
    assert ("classes: a b, bad, good\n" in out) == bool(classes)
    assert "classes=" not in out


def test_a_table_that_becomes_one_client_warns(tmp_path, capsys):
    (tmp_path / "ratings.csv").write_text(RATINGS.format(0, 1, 0).replace("x y", "8"))
    arguments = ["--label=rating", "--test_fraction=0.4"]
    assert convert.main([str(tmp_path), str(tmp_path / "store"), *arguments]) == 0
    says = "all examples are of one client, ratings, because there is one CSV: --client"
    assert says in capsys.readouterr().err.splitlines()[-1]
    arguments = ["--client=user"]
    assert convert.main([str(tmp_path), str(tmp_path / "store2"), *arguments]) == 2
    assert "--client needs --label: both name" in capsys.readouterr().err
    (tmp_path / "ratings.csv").write_text(RATINGS.format(0, 1, 0).replace("x y", " "))
    arguments += ["--label=rating", "--test_fraction=0.4"]
    assert convert.main([str(tmp_path), str(tmp_path / "store3"), *arguments]) == 2
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


def convert_csv(tmp_path, text, *options):
    """Converts one CSV, c.csv; returns the exit code and the store's path."""
    (tmp_path / "csvs").mkdir()
    (tmp_path / "csvs" / "c.csv").write_text(text, "utf-8")
    store = str(tmp_path / "store")
    options = ["--test_fraction=0.5", *options]
    return convert.main([str(tmp_path / "csvs"), store, *options]), store


def table(labels, header="a,kind", inputs=None):
    inputs = inputs or ["1", "4"] * len(labels)
    return "\n".join([header, *map(",".join, zip(inputs, labels))]) + "\n"


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (
            ["yes", "no"] * 9 + ["7"] + ["yes"] * 9,
            "line 20: kind is '7': a number, but",
        ),
        (
            ["yes", "no"] * 9 + ["nan"] + ["yes"] * 9,
            "line 20: kind is 'nan': a missing",
        ),
        (
            ["yes", "no"] * 9 + ["inf"] + ["yes"] * 9,
            "line 20: kind is 'inf': a missing",
        ),
        (["1", "0"] * 9 + ["low"] + ["1"] * 9, "line 20: kind is 'low': a word, but"),
        # The first row may be the one that is different.
        (["7"] + ["yes", "no"] * 9, "line 2: kind is '7': a number, but"),
        (["yes"] + ["7", "8"] * 9, "line 2: kind is 'yes': a word, but"),
        # Rows count, and not the different labels.
        (["1", "2", "3"] + ["yes"] * 9, "line 2: kind is '1': a number, but"),
        (["0.5", "1"] * 9, "line 2: kind is '0.5': labels must be"),
    ],
)
def test_the_label_of_another_kind_is_named(tmp_path, capsys, labels, says):
    code, store = convert_csv(tmp_path, table(labels), "--label=kind")
    assert code == 2 and not os.path.exists(store)
    assert f"c.csv: {says}" in capsys.readouterr().err


AGES = ["20_29", "30_39", "40_49"]


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (table(["NA", "yes", "no"] * 4), "", "c.csv: line 2: kind is 'NA', which"),
        (table(["yes", "?"] * 4), "", "is '?', which becomes a class (4 of 8 rows)"),
        (table(["yes", "None"] * 4), "", "is 'None'"),
        (table(["yes", "null"] * 4), "", "is 'null'"),
        (table(["yes", "-"] * 4), "", "is '-'"),
        (table(AGES * 4), "", ""),
        (table(["0", "319000"] * 4), "", "319,001 classes, 0 to the largest"),
        (table(["0", "319000"] * 4), "", "2 different labels: --label_type=number"),
        (table(["0", "319000"] * 4), "--label_type=number", ""),
        (table(["0", "3"] * 4, "index,kind"), "", "index seems to name the rows"),
        (table(["0", "1"] * 4, "a,kind", "87654321"), "", "a numbers the rows"),
        (table(["0", "1"] * 3, "a,kind", "012340"), "", ""),
    ],
)  # fmt: skip
def test_doubtful_data_warn(tmp_path, caplog, text, options, says):
    assert convert_csv(tmp_path, text, "--label=kind", *options.split())[0] == 0
    lines = [
        r.getMessage() for r in caplog.records if r.name == "leaf_data.csv_clients"
    ]
    assert says in "\n".join(lines) if says else not lines


def test_names_of_columns_and_classes_are_printed_and_kept(tmp_path, capsys):
    rows = [f"{k},{'uv'[k % 2]},{AGES[k % 3]},{k % 5}" for k in (3, 9, 4, 1, 5, 9)]
    text = "\n".join(["pulse,user,age,Unnamed", *rows]) + "\n"
    code, store = convert_csv(tmp_path, text, "--label=age", "--client=user")
    out = capsys.readouterr().out
    assert code == 0
    assert "inputs: pulse, Unnamed\n" in out
    assert "classes: 20_29, 30_39, 40_49\n" in out
    with open(os.path.join(store, "header.json")) as file:
        header = json.load(file)
    data = leaf_data.open_store(store)
    for kept in (header["input_names"], data.input_names):
        assert list(kept) == ["pulse", "Unnamed"]
    for kept in (header["class_names"], data.class_names, data.options["classes"]):
        assert list(kept) == AGES
    for kept in (header["options"], data.options):
        assert kept["label_column"] == "age" and kept["client_column"] == "user"


def test_many_classes_have_their_names(tmp_path):
    """More than a store's options could hold."""
    labels = [f"word {number:05}" for number in range(2000)]
    code, store = convert_csv(tmp_path, table(labels), "--label=kind")
    data = leaf_data.open_store(store)
    assert code == 0 and list(data.class_names) == labels
    assert "classes" not in data.options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--label=kind", "a is 'user_48': it has to be a number"),
        ("--label=kind", "if the column names the clients: --client=a"),
        ("--label=kind --client=kind", "the column kind cannot have both"),
        ("--label=a --client=a --label_type=number", "the column a cannot have both"),
    ],
)
def test_a_forgotten_or_wrong_client_column_is_named(tmp_path, capsys, options, says):
    text = table(["0", "1"], inputs=["user_48", "user_49"])
    assert convert_csv(tmp_path, text, *options.split())[0] == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--label=kind"]])
def test_a_file_or_nothing_instead_of_a_folder_is_an_error_in_one_line(
    tmp_path, capsys, options
):
    path = tmp_path / "c.csv"
    path.write_text(table(["0", "1"]))
    a_file = f"is a file: name the folder that contains it, {tmp_path}"
    for name, says in (("c.csv", a_file), ("d", "is not a folder")):
        arguments = [str(tmp_path / name), str(tmp_path / "store"), *options]
        assert convert.main(arguments) == 2
        assert f"{tmp_path / name}: {says}" in capsys.readouterr().err


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "csvs").mkdir()
    (tmp_path / "csvs" / "c.csv").write_text(table(["0", "1"] * 2))
    leaf_file(tmp_path / "leaf", "train", {"u": ([[0.5], [1]], [0, 1])})
    leaf_file(tmp_path / "leaf", "test", {"u": ([[0.25]], [1])})
    options = ["--label=kind", "--test_fraction=0.5"]
    assert convert.main(["~/csvs", "~/of_csvs", *options]) == 0
    assert convert.main(["~/leaf", "~/of_leaf"]) == 0
    for name in ("of_csvs", "of_leaf"):
        assert leaf_data.open_store(str(tmp_path / name)).num_classes == 2


def test_columns_are_matched_by_their_names(tmp_path):
    """Files may have them in another order, and with spaces behind commas."""
    (tmp_path / "csvs").mkdir()
    (tmp_path / "csvs" / "a.csv").write_text("a,b,y\n1,2,0\n3,4,1\n")
    (tmp_path / "csvs" / "b.csv").write_text("y, b, a\n0, 20, 10\n1, 40, 30\n")
    store = str(tmp_path / "store")
    call = [str(tmp_path / "csvs"), store, "--label=y", "--test_fraction=0.5"]
    assert convert.main(call) == 0
    data = leaf_data.open_store(store)
    assert data.input_names == ("a", "b")
    examples = data.train_examples, data.test_examples
    rows = {(*part.x[k].tolist(), int(part.y[k])) for part in examples for k in (0, 1)}
    assert rows == {(1, 2, 0), (3, 4, 1), (10, 20, 0), (30, 40, 1)}


def test_clients_named_as_missing_values_are_reported(tmp_path, caplog):
    """The rows of all users whose id is missing would be one client."""
    (tmp_path / "csvs").mkdir()
    rows = "".join(
        f"{u},{k},{k % 2}\n" for u in ("ann", "nan", "NA") for k in (7, 2, 5)
    )
    (tmp_path / "csvs" / "a.csv").write_text(f"u,a,y\n{rows}")
    call = [str(tmp_path / "csvs"), str(tmp_path / "store"), "--label=y", "--client=u"]
    assert convert.main([*call, "--test_fraction=0.4"]) == 0
    lines = [
        r.getMessage() for r in caplog.records if "client: is it" in r.getMessage()
    ]
    assert [line[line.index("line") :][:17] for line in lines] == [
        "line 5: u is 'nan",
        "line 8: u is 'NA'",
    ]


@pytest.mark.parametrize(
    ("options", "labels", "kind", "want"),
    [
        # FedProx's generator writes classes as floats.
        ("", [0.0, 2.0], "3 classes", [0, 2]),
        ("", [0, 2], "3 classes", [0, 2]),
        ("--label_type=number", [0.5, 2.0], "float32 labels", [0.5, 2]),
        ("--label_type=number", [0, 2], "float32 labels", [0, 2]),
        (
            "",
            [0.0, 2.5],
            "y has 2.5: labels must be whole numbers, 0 or more; --la",
            (),
        ),
        ("", [float("nan"), 1], "y has nan: labels must be whole numbers", ()),
        *(
            ("--label_type=number", [1, bad], "user u: y has a value that is", ())
            for bad in (10**400, 1e39, float("nan"))
        ),
    ],
)
def test_leafs_labels_are_classes_unless_numbers_are_requested(
    tmp_path, capsys, options, labels, kind, want
):
    leaf_file(tmp_path, "train", {"u": ([[1], [2]], labels)})
    leaf_file(tmp_path, "test", {"u": ([[3]], labels[:1])})
    call = [str(tmp_path), str(tmp_path / "store"), *options.split()]
    assert convert.main(call) == (0 if want else 2)
    printed = capsys.readouterr()
    assert kind in printed.out + printed.err
    if want:
        data = leaf_data.open_store(tmp_path / "store")
        assert data.train_examples.y.tolist() == want


def test_missing_arguments_are_named(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n")
    call = [str(tmp_path), str(tmp_path / "store")]
    for options, says in (
        ("", "a.csv is a CSV: --label="),
        ("--client=a", "needs --la"),
    ):
        assert convert.main([*call, *options.split()]) == 2
        assert says in capsys.readouterr().err


def test_leafs_times_that_float32_rounds_are_rejected(tmp_path, capsys):
    leaf_file(tmp_path, "train", {"u": ([[1700000013.5]], [0])})
    leaf_file(tmp_path, "test", {"u": ([[1]], [1])})
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 2
    assert (
        "have 1700000013.5: float32 would turn it into 1700000000"
        in capsys.readouterr().err
    )


def test_a_first_line_of_numbers_is_rejected(tmp_path, capsys):
    """It would be lost; the digits that pandas writes are names."""
    rows = "5.1,0\n4.9,0\n6.3,0\n5.9,0\n"
    (tmp_path / "a.csv").write_text(rows)
    call = [str(tmp_path), str(tmp_path / "store"), "--label=0", "--test_fraction=0.5"]
    assert convert.main(call) == 2
    assert "a.csv: line 1 has numbers alone, ['5.1', '0']" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text(f"1,0\n{rows}")
    assert convert.main(call) == 0


def text_files(folder):
    verse = (
        "Now is the winter of our discontent made glorious summer by this sun of York;"
    )
    windows = ([(verse + " ")[k:] + verse[: k + 2] for k in (0, 1)], ["w", " "])
    for part, users in (("train", {"KENT": ([], []), "FOOL": windows}),
                        ("test", {"KENT": windows, "FOOL": windows})):  # fmt: skip
        leaf_file(folder, part, {name: data for name, data in users.items()})


def test_a_store_of_text_has_the_vocabulary(tmp_path, capsys):
    text_files(tmp_path / "leaf")
    store = str(tmp_path / "store")
    assert convert.main([str(tmp_path / "leaf"), store]) == 0
    assert "vocabulary: 80 letters" in capsys.readouterr().out
    data = leaf_data.open_store(store)
    assert data.vocabulary.decode(data.test_examples.x[3]).startswith(
        "ow is the winter"
    )
    assert data.train_examples.sizes.tolist() == [0, 2]
    assert sorted(os.listdir(tmp_path / "leaf")) == ["test", "train"]  # And no cache.
    for option in ("--label_type=number", "--test_fraction=0.5"):
        arguments = [str(tmp_path / "leaf"), f"{store}2", option]
        assert convert.main(arguments) == 2
        words = "no effect on LEAF's shakespeare"
        assert words in capsys.readouterr().err.replace("\n", " ")


def test_tweets_and_comments_are_converted(tmp_path, capsys):
    row = ["1", "2", "3", "ann", "it rains", "training"]
    sequences = [["<BOS>", "it"], ["rains", "<EOS>"]]
    for part in ("train", "test"):
        leaf_file(
            tmp_path / "tweets", part, {"u": ([row] * 2, [0, int(part == "test")])}
        )
        label = {
            "target_tokens": [["it", "rains"], ["<EOS>", "<PAD>"]],
            "count_tokens": [[1.0, 1.0], [1.0, 1.0]],
            "score": part,
        }
        leaf_file(tmp_path / "comments", part, {"1": ([sequences], [label])})
    for name, words in (
        ("tweets", "vocabulary: 3 words"),
        ("comments", "vocabulary: 5 tokens"),
    ):
        store = str(tmp_path / f"store_{name}")
        assert convert.main([str(tmp_path / name), store]) == 0
        assert words in capsys.readouterr().out
    comments = leaf_data.open_store(store)
    assert comments.train_examples.label_counts.tolist() == [3]
    assert "one for each of 2 positions; 3 of 4 in train count" in comments.describe()


def test_labels_of_positions_are_converted(tmp_path, capsys):
    """As whole numbers, also as 1.0, with -1 where a position does not count."""
    for part, labels in (("train", [[0, 2, -1], [1.0, -1, -1]]), ("test", [[2, 1, 0]])):
        x = [[1, 2, 3]] * len(labels)
        leaf_file(tmp_path / "leaf", part, {"u": (x, labels)})
    store = str(tmp_path / "store")
    assert convert.main([str(tmp_path / "leaf"), store]) == 0
    assert (
        "one for each of 3 positions; 3 of 6 in train count" in capsys.readouterr().out
    )
    data = leaf_data.open_store(store)
    assert data.num_classes == 3
    assert data.train_examples.y.tolist() == [[0, 2, -1], [1, -1, -1]]
