"""`sent140`: words of tweets, a vocabulary of the training examples, errors."""

import numpy as np
import pytest
from leaf_documents import write_leaf
from made_up import assert_not_loaded

import leaf_data

pytestmark = pytest.mark.usefixtures("empty_home")

TRAIN = {
    "ann": (["I love it, love it!", "so bad..."], [4, 0]),
    "bob": (["love", "I don't"], ["4", "0"]),
}
TEST = {"ann": (["love the rain"], [1]), "bob": (["I it bad never"], [2])}


def tweets(texts, labels):
    rows = [["1", "Sat May 16", "NO_QUERY", "ann", text, "training"] for text in texts]
    return {"x": rows, "y": labels}


def write(folder, train=None, test=None):
    for part, users in (("train", train or TRAIN), ("test", test or TEST)):
        data = {user: tweets(*values) for user, values in users.items()}
        write_leaf(folder / part / f"all_data_niid_1_keep_3_{part}_9.json", data)


def decode(examples, vocabulary):
    """The words of each example without what pads."""
    last = len(vocabulary.tokens) - 1
    return [vocabulary.decode(k for k in row if k != last) for row in examples.x]


def test_tweets_become_ids_of_frequent_words(tmp_path):
    write(tmp_path)
    data = leaf_data.load("sent140", tmp_path, max_words=6)
    # Three times, twice, once; the exclamation mark is the seventh word.
    tokens = *(".", "love"), *("I", "it"), *(",", "bad", "don't", "so"), "<UNK>"
    assert data.vocabulary.tokens == tokens
    assert data.train_examples.x.shape == (4, 6) and data.train_examples.x.dtype == "i4"
    texts = decode(data.train_examples, data.vocabulary)
    assert texts == ["I love it , love it", "so bad . . .", "love", "I don't"]
    assert decode(data.test_examples, data.vocabulary) == ["love", "I it bad"]
    assert data.train_examples.y.tolist() == [1, 0, 1, 0]
    assert data.test_examples.y.tolist() == [1, 0]  # Neutral is 0, as in LEAF.
    assert data.num_classes == 2 and data.class_names == ("negative", "positive")
    assert "classes: negative, positive\nvocabulary: 9 words" in data.describe()
    for text, x in zip(TRAIN["ann"][0], data.train_examples.client("ann")["x"]):
        np.testing.assert_array_equal(data.vocabulary.encode(text, 6), x)


def test_the_vocabulary_comes_from_the_training_examples_only(tmp_path, monkeypatch):
    write(tmp_path)
    data = leaf_data.load("sent140", tmp_path)
    write(tmp_path / "other", test={user: (["rain rain"], [0]) for user in TEST})
    other = leaf_data.load("sent140", tmp_path / "other")
    assert other.vocabulary == data.vocabulary and "rain" not in data.vocabulary.tokens
    limited = leaf_data.load("sent140", tmp_path, max_client_examples=1)
    assert limited.vocabulary == data.vocabulary
    assert limited.train_examples.sizes.tolist() == [1, 1]
    # From the cache, with another size.
    assert leaf_data.load("sent140", tmp_path, max_words=2).element_shape == (2,)
    small = leaf_data.load("sent140", tmp_path, vocabulary_size=3)
    assert small.vocabulary.tokens == (*data.vocabulary.tokens[:2], "<UNK>")
    np.testing.assert_array_equal(
        small.train_examples.x, np.minimum(data.train_examples.x, 2)
    )


def test_files_that_are_not_split(tmp_path):
    texts = [f"word{k} again" for k in range(20)]
    users = {"ann": tweets(texts, [0, 4] * 10), "bob": tweets(["alone"], [0])}
    write_leaf(tmp_path / "all_data" / "all_data.json", users)
    data = leaf_data.load("sent140", tmp_path)
    assert data.client_ids == ("ann",)
    sizes = data.train_examples.sizes.tolist(), data.test_examples.sizes.tolist()
    assert sizes == ([18], [2])
    assert len(data.vocabulary.tokens) == 18 + 2  # Neither the test's nor bob's words.
    other = leaf_data.load("sent140", tmp_path, seed=1)
    assert other.vocabulary != data.vocabulary


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            {"x": ["text"], "y": [0]},
            "user ann: x[0] is 'text', not a list of a tweet's",
        ),
        ({"x": [["1", "2"]], "y": [0]}, "user ann: x[0] is ['1', '2'], not a list"),
        ({"x": [[0] * 6], "y": [0]}, "user ann: x[0] is [0, 0, 0, 0, 0, 0], not a"),
        ({"x": ["so it rains all day".split()], "y": [0]}, "x[0] is ['so', 'it', 'rai"),
        (
            {"x": [["1", "2", 3, "4", "5"]], "y": [0]},
            "number, date, query, user and te",
        ),
        ({**tweets(["a"], [0]), "y": [3]}, "user ann: y[0] is 3, not 0, 1, 2 or 4"),
        ({**tweets(["a"], [0]), "y": [True]}, "user ann: y[0] is True, not 0, 1"),
        ({**tweets(["a"], [0]), "y": [[]]}, "user ann: y[0] is [], not 0, 1"),
        (tweets([], []), "no user has examples"),
    ],
)
def test_damaged_files_are_rejected(tmp_path, user, message):
    for part in ("train", "test"):
        write_leaf(tmp_path / part / f"my{part}.json", {"ann": {**user, part: 0}})
    assert_not_loaded("sent140", tmp_path, message)


def test_tweets_without_words_are_unknown(tmp_path):
    write(tmp_path, *({"ann": ([":-)", "", "\ud800"], [0, 0, 4])} for _ in "ab"))
    path = tmp_path / "test" / "all_data_niid_1_keep_3_test_9.json"
    path.write_text(path.read_text() + " ")
    data = leaf_data.load("sent140", tmp_path)
    assert data.vocabulary.tokens == ("<UNK>",) and not data.train_examples.x.any()
