"""`shakespeare`: LEAF's files split or not, TFF's database, unknown letters, errors."""

import numpy as np
import pytest
from leaf_documents import write_leaf
from made_up import assert_not_loaded

import leaf_data
from leaf_data.datasets import shakespeare
from leaf_data.text import LETTERS

pytestmark = pytest.mark.usefixtures("empty_home")

VERSES = (
    "Now is the winter of our discontent made glorious summer by this sun of York; "
)


def windows(text):
    """A role's examples as LEAF writes them."""
    starts = range(len(text) - 80)
    return {
        "x": [text[k : k + 80] for k in starts],
        "y": [text[k + 80] for k in starts],
    }


def write_split(folder, *, train=None, test=None, counts=None):
    """Files of two roles, of which the second has no test examples."""
    text = VERSES * 2
    parts = {
        "train": train or {"KENT": windows(text[:100]), "FOOL": windows(text[7:90])},
        "test": test or {"KENT": windows(text[3:90]), "FOOL": windows("")},
    }
    for part, users in parts.items():
        write_leaf(folder / part / f"all_data_niid_1_keep_0_{part}_8.json", users)
    return parts


def read_back(examples, client):
    arrays = examples.client(client)
    texts = ["".join(LETTERS[k] for k in row) for row in arrays["x"]]
    return {"x": texts, "y": [LETTERS[k] for k in arrays["y"]]}


def test_leafs_text_becomes_ids_of_its_letters(tmp_path, caplog):
    parts = write_split(tmp_path)
    data = leaf_data.load("shakespeare", tmp_path)
    for part, examples in (
        ("train", data.train_examples),
        ("test", data.test_examples),
    ):
        assert (examples.x.dtype, examples.x.shape[1:]) == (np.int32, (80,))
        for client, expected in parts[part].items():
            assert read_back(examples, client) == expected
    assert data.client_ids == ("KENT", "FOOL") and data.num_classes == 80
    assert data.vocabulary.tokens == tuple(LETTERS)
    assert data.class_names[:2] == ("\\n", " ") and data.class_names[-1] == "}"
    assert "vocabulary: 80 letters" in data.describe() and not caplog.text
    assert "classes: " not in data.describe()


def test_files_with_the_wrong_counts_of_leafs_script_are_read(tmp_path):
    """`split_data.py` writes 79 as many test examples too few for its `num_samples`."""
    write_split(tmp_path)
    path = tmp_path / "test" / "all_data_niid_1_keep_0_test_8.json"
    path.write_text(path.read_text().replace('"num_samples": [7', '"num_samples": [86'))
    assert '"num_samples": [86' in path.read_text()
    assert leaf_data.load("shakespeare", tmp_path).test_examples.num_examples == 7


def test_text_that_is_not_split_is_split_as_leaf_does(tmp_path):
    """The windows between the two parts overlap the training text."""
    long, short = (VERSES * 20)[:1080], (VERSES * 2)[:120]
    users = {"KENT": windows(long), "FOOL": windows(short)}
    write_leaf(tmp_path / "all_data" / "all_data.json", users)
    data = leaf_data.load("shakespeare", tmp_path)
    assert data.client_ids == ("KENT",)  # FOOL has no test window.
    for examples, rows in ((data.train_examples, slice(900)),
                           (data.test_examples, slice(979, None))):  # fmt: skip
        expected = {name: values[rows] for name, values in users["KENT"].items()}
        assert read_back(examples, "KENT") == expected
    assert "LEAF JSON (all_data, split here)" in data.origin.source


@pytest.mark.parametrize("source", ["first load", "cache"])
def test_examples_with_unknown_letters_are_excluded_and_counted(
    tmp_path, caplog, source
):
    text = VERSES[:60] + "\xe9" + VERSES[:60]  # 41 windows, all with the letter ...
    train = {"KENT": windows(text + VERSES), "FOOL": windows(VERSES[5:] * 2)}
    test = {"KENT": windows(VERSES + "yes.{"), "FOOL": windows(VERSES * 2)}
    write_split(tmp_path, train=train, test=test)
    for _ in range(1 if source == "first load" else 2):
        caplog.clear()
        data = leaf_data.load("shakespeare", tmp_path)
    total = sum(len(user["y"]) for part in (train, test) for user in part.values())
    # ... until the window begins behind it; in the test the brace is one's y.
    line = (
        f"excluded 62 of {total:,} examples with letters that are not among LEAF's 80: "
        "'\\xe9' '{'"
    )
    assert line in caplog.text and line in data.origin.source
    kept = {name: values[61:] for name, values in train["KENT"].items()}
    assert read_back(data.train_examples, "KENT") == kept
    assert read_back(data.train_examples, "FOOL") == train["FOOL"]
    kept = {name: values[:-1] for name, values in test["KENT"].items()}
    assert read_back(data.test_examples, "KENT") == kept
    assert read_back(data.test_examples, "FOOL") == test["FOOL"]


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"x": ["a" * 79], "y": ["b"]}, "x[0] has 79 letters, but needs 80"),
        ({"x": ["a" * 80] * 2, "y": ["b", "bc"]}, "y[1] has 2 letters, but needs 1"),
        ({"x": ["a" * 80], "y": [5]}, "y[0] is 5, not a text"),
        ({"x": [[1, 2]], "y": ["b"]}, "x[0] is [1, 2], not a text"),
        ({"x": ["a" * 80, ""], "y": ["b"] * 2}, "x[1] has 0 letters, but needs 80"),
        ({"x": "a" * 80, "y": ["b"]}, "user KENT: x is 'aaaa"),
        ({"x": ["a" * 80], "y": []}, "x has 1 examples, but y has 0 labels"),
        ({"x": [], "y": []}, "no user has examples"),
        ({"x": ["\xe9" * 80], "y": ["b"]}, "has 0 usable training and 0 usable test"),
    ],
)
def test_damaged_files_are_rejected(tmp_path, user, message):
    write_split(tmp_path, train={"KENT": user}, test={"KENT": {**user, "z": 0}})
    assert_not_loaded("shakespeare", tmp_path, message)


def test_windows_of_tffs_passages(monkeypatch):
    features = {"snippets": np.array([b"Hark!\n When?", VERSES.encode()], object)}
    arrays = shakespeare.DATABASE.convert(features)
    expected = windows("Hark! When? " + VERSES)
    assert arrays["y"].tolist() == [LETTERS.index(letter) for letter in expected["y"]]
    texts = ["".join(LETTERS[k] for k in row) for row in arrays["x"]]
    assert texts == expected["x"]
