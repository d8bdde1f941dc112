"""Runs on a label for each position: Reddit from LEAF's files, resumed and loaded."""

import json
import random

import numpy as np
import pytest
from cli import records, run, table
from leaf_documents import reddit_comments, write_leaf

import leaf_data
from tff_pmc._lazy import tf

WORDS = "it is so and rains snows".split()


@pytest.fixture(scope="module")
def comments(tmp_path_factory):
    """Four accounts with comments of 2 to 14 words, in sequences of 10 tokens."""
    folder, generator = tmp_path_factory.mktemp("reddit"), random.Random(3)
    for part, count in (("train", 4), ("test", 2)):
        users = {
            name: reddit_comments(
                [
                    " ".join(generator.choices(WORDS, k=generator.randint(2, 14)))
                    for _ in range(count + int(name))
                ],
                10,
            )
            for name in "1234"
        }
        write_leaf(folder / part / f"reddit_0_{part}.json", users)
    return folder


@pytest.fixture(scope="module")
def whole(comments, tmp_path_factory):
    """A run of four rounds by one command; the embedding has few words."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    run(*flags(comments, folder), "--rounds=4")
    return folder


def flags(comments, folder):
    return [
        *("--dataset=reddit", f"--data_dir={comments}", f"--output_dir={folder}"),
        *("--vocabulary_size=8", "--clients_per_round=2", "--local_epochs=1"),
        *("--batch_size=4", "--learning_rate=1", "--criteria=DS,NP,LD,MD"),
        *("--priority=NP,LD,DS,MD", "--predictions"),
    ]


def test_reddit_trains_and_resumes_to_the_byte(comments, whole, tmp_path):
    folder = tmp_path / "out"
    run(*flags(comments, folder), "--rounds=2")
    run(*flags(comments, folder), "--rounds=4", "--resume")
    assert records(folder, states=True) == records(whole, states=True)


def test_the_tables_count_positions(comments, whole):
    data = leaf_data.load("reddit", comments, vocabulary_size=8)
    counts = dict(zip(data.client_ids, data.test_examples.label_counts.tolist()))
    (of_run,) = [path.parent for path in whole.glob("*/rounds.csv")]
    for row in table(of_run / "clients.csv"):
        assert int(row["examples"]) == counts[row["client"]]
    train = data.train_examples
    sizes = dict(zip(train.client_ids, zip(train.sizes, train.label_counts)))
    for row in table(of_run / "cohort.csv"):
        measured = float(row["DS"]), float(row["NP"])
        assert measured == sizes[row["client"]]
    with np.load(of_run / "predictions" / "labels.npz") as labels:
        y, splits = labels["y"], labels["row_splits"]
    np.testing.assert_array_equal(y, data.test_examples.counted_labels()[0])
    assert np.diff(splits).tolist() == [*counts.values()]
    with np.load(of_run / "predictions" / "round_0004.npz") as archive:
        correct = int((archive["predicted"] == y).sum())
    assert correct == int(table(of_run / "rounds.csv")[-1]["correct"])


def test_classes_are_named_by_their_tokens(whole):
    """Ids are known to nobody: they follow from the vocabulary of these examples."""
    rows = table(whole / "classes.csv")
    assert {"snows", "<EOS>"} <= {row["name"] for row in rows}


def test_the_trained_model_continues_a_comment(whole):
    (folder,) = [path for path in whole.glob("*/model")]
    about = json.loads((folder / "model.json").read_text())
    vocabulary = leaf_data.Vocabulary.from_dict(about["vocabulary"])
    served = tf.saved_model.load(str(folder / "saved_model"))
    x = vocabulary.encode("<BOS> it rains", 10)
    scores = served.signatures["serving_default"](x=tf.constant([x]))["scores"]
    assert scores.shape == (1, 10, 8)
    after = vocabulary.encode("<BOS> it rains and it", 10)
    others = served.signatures["serving_default"](x=tf.constant([after]))["scores"]
    # A prediction depends on the tokens up to its position alone.
    np.testing.assert_allclose(scores[0, :3], others[0, :3], rtol=1e-5)
    assert np.abs(scores[0, 3] - others[0, 3]).max() > 1e-6
