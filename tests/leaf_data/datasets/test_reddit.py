"""`reddit`: LEAF's sequences of tokens, and the next word of each position."""

import numpy as np
import pytest
from leaf_documents import reddit_comments, write_leaf
from made_up import assert_not_loaded

import leaf_data

pytestmark = pytest.mark.usefixtures("empty_home")

LENGTH = 4
TRAIN = {"1": ["it rains and rains", "it is so"], "2": ["so it is"], "3": ["it"]}
TEST = {"1": ["it snows so it is so"], "2": [], "3": ["so"]}


def make_comments(texts):
    return reddit_comments(texts, LENGTH)


def write(folder, train=TRAIN, test=TEST):
    for part, users in (("train", train), ("val", test), ("test", test)):
        data = {user: make_comments(texts) for user, texts in users.items()}
        path = write_leaf(folder / part / f"reddit_0_{part}.json", data)
        # LEAF writes the numbers of comments of all parts.
        path.write_text(
            path.read_text().replace('"num_samples": [', '"num_samples": [9')
        )


def pairs(examples, vocabulary, client):
    """A client's inputs and labels as words; `-` is a position that does not count."""
    arrays = examples.client(client)
    tokens = (*vocabulary.tokens, "-")  # The last has the index -1.
    labels = [" ".join(tokens[k] for k in row) for row in arrays["y"]]
    return list(zip(map(vocabulary.decode, arrays["x"]), labels))


def test_each_position_has_a_label(tmp_path):
    write(tmp_path)
    data = leaf_data.load("reddit", tmp_path)
    # Occurrences: <BOS>, <EOS> and "it" four, "is", "rains" and "so" two, "and" one.
    tokens = "<BOS>", "<EOS>", "it", "is", "rains", "so", "and", "<UNK>"
    assert data.vocabulary.tokens == tokens and data.num_classes == 8
    pad = "<UNK>"
    assert pairs(data.train_examples, data.vocabulary, "1") == [
        ("<BOS> it rains and", "it rains and rains"),
        (f"rains <EOS> {pad} {pad}", "<EOS> - - -"),
        ("<BOS> it is so", "it is so <EOS>"),  # The next has <EOS> alone: excluded.
    ]
    # The label "snows" is not in the vocabulary.
    assert pairs(data.test_examples, data.vocabulary, "1") == [
        (f"<BOS> it {pad} so", "it - so it"),
        ("it is so <EOS>", "is so <EOS> -"),
    ]
    assert data.test_examples.sizes.tolist() == [2, 0, 1]
    assert data.test_examples.label_counts.tolist() == [6, 0, 2]
    line = "without 1 of 24 positions whose next word is not in the vocabulary"
    assert line in data.origin.source
    assert "one for each of 4 positions; 15 of 20 in train count" in data.describe()
    context = data.vocabulary.encode("rains <EOS>", LENGTH)
    np.testing.assert_array_equal(context, data.train_examples.x[1])


def test_a_small_vocabulary_masks_more(tmp_path):
    write(tmp_path)
    data = leaf_data.load("reddit", tmp_path, vocabulary_size=4)
    assert data.vocabulary.tokens == ("<BOS>", "<EOS>", "it", "<UNK>")
    labels, _ = data.train_examples.counted_labels()
    assert {data.vocabulary.tokens[k] for k in labels} == {"<EOS>", "it"}


def test_positions_that_do_not_count_are_masked_without_a_line(tmp_path):
    write(tmp_path)
    account = make_comments(["it rains"])
    account["y"][0]["count_tokens"][0][1] = 0
    write_leaf(
        tmp_path / "train" / "reddit_0_train.json", dict.fromkeys("123", account)
    )
    data = leaf_data.load("reddit", tmp_path)
    assert pairs(data.train_examples, data.vocabulary, "3") == [
        ("<BOS> it rains <EOS>", "it - <EOS> -")
    ]
    write(tmp_path, test={user: texts[:1] for user, texts in TRAIN.items()})
    assert "without" not in leaf_data.load("reddit", tmp_path).origin.source


def changed(part, change):
    """The comments of one account with a change of its first comment."""
    account = make_comments(["it rains and rains"])
    change(account["x"][0], account["y"][0])
    return {"1": {**account, part: 0}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: y.pop("count_tokens"), "y[0] is {'subreddit"),
        (lambda x, y: y.pop("count_tokens"), "not an object with count_tokens"),
        (
            lambda x, y: x.pop(),
            "y[0]: target_tokens has 2 sequences, but x[0] has 1",
        ),
        (
            lambda x, y: x[0].pop(),
            "x[0] has a sequence of another length than those before: 3 and 4 tokens",
        ),
        (lambda x, y: x[0].__setitem__(1, ""), "x[0] has '', not a token"),
        (lambda x, y: x.__setitem__(0, "it"), "x[0] is ['it', "),
        (
            lambda x, y: x.__setitem__(0, []),
            "x[0] has a sequence of 0 tokens, not 1 to",
        ),
        (lambda x, y: x[0].__setitem__(1, 5), "x[0] has 5, not a token"),
        (lambda x, y: x[0].__setitem__(1, "a\nb"), "x[0] has 'a\\nb', not a token"),
        (lambda x, y: y["count_tokens"][0].__setitem__(0, 2), "has 2, not 0 or 1"),
        (
            lambda x, y: y["count_tokens"][0].__setitem__(0, True),
            "has True, not 0 or 1",
        ),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, message):
    for part in ("train", "test"):
        write_leaf(tmp_path / part / f"my{part}.json", changed(part, change))
    words = f"{tmp_path / 'train' / 'mytrain.json'}: user 1: "
    assert_not_loaded("reddit", tmp_path, words, message)


@pytest.mark.parametrize(
    ("options", "part", "counts"),
    [({"vocabulary_size": 2}, "", (0, 0)), ({}, "train", (0, 0)), ({}, "test", (3, 0))],
)
def test_a_part_without_a_position_that_counts_is_refused(
    tmp_path, options, part, counts
):
    train = {"1": ["it rains so", "so"], "2": ["it"]}
    write(tmp_path, train, {"1": ["it"], "2": ["so"]})
    path = tmp_path / part / f"reddit_0_{part}.json"
    if part:
        path.write_text(path.read_text().replace("1.0", "0"))
    words = "has {} usable training and {} usable test examples".format(*counts)
    assert_not_loaded("reddit", tmp_path, words, **options)


def test_files_that_are_not_split_are_refused(tmp_path):
    write_leaf(
        tmp_path / "all_data" / "all_data.json", {"1": make_comments(["it rains"])}
    )
    assert_not_loaded("reddit", tmp_path, "its files are not split: run all of LEAF's")
