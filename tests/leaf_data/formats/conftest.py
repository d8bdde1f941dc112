"""An end for what hangs, peaks of memory, and TFF's databases, made up."""

from __future__ import annotations

import collections
import signal
import sqlite3

import numpy as np
import pytest

NAME = "emnist_all.sqlite"


@pytest.fixture
def no_hang():
    """Ends a test that waits, after a time that nothing here needs."""
    hung = []

    def give_up(number, frame):
        hung.append(True)
        raise AssertionError("it hangs")  # SQLite takes it for the end of a query.

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    assert not hung, "it hangs"


@pytest.fixture(scope="session")
def statements():
    """Makes the statements of TFF's tables, of columns of two types."""

    def of(text, integer):
        return [
            f"CREATE TABLE examples (split_name {text}, client_id {text}, "
            "serialized_example_proto BLOB)",
            f"CREATE TABLE client_metadata (client_id {text}, split_name {text}, "
            f"num_examples {integer})",
        ]

    return of


@pytest.fixture(scope="module")
def example(tf):
    """Makes a serialized example of lists of floats or integers, by TensorFlow."""

    def feature(values):
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def make(**values):
        features = {name: feature(value) for name, value in values.items()}
        made = tf.train.Features(feature=features)
        return tf.train.Example(features=made).SerializeToString()

    return make


@pytest.fixture
def write(tmp_path, statements):
    """Writes a database of rows of client, split and example; all may be changed."""

    def write(rows, counts=None, types=("TEXT", "INTEGER"), after=(), name=NAME):
        path = tmp_path / "data" / name
        path.parent.mkdir(exist_ok=True)
        if counts is None:
            sizes = collections.Counter((client, split) for client, split, _ in rows)
            counts = [(*key, size) for key, size in sizes.items()]
        database = sqlite3.connect(path)
        for statement in statements(*types):
            database.execute(statement)
        database.executemany(
            "INSERT INTO examples VALUES (?, ?, ?)", [(s, c, p) for c, s, p in rows]
        )
        database.executemany("INSERT INTO client_metadata VALUES (?, ?, ?)", counts)
        for statement in after:
            database.execute(statement)
        database.commit()
        database.close()
        return path

    return write


@pytest.fixture
def database(write, example):
    """Rows in mixed order; "b" is in the test split alone."""
    random, rows = np.random.RandomState(0), []
    for client, split, count in (
        *(("c", "all_train", 4), ("a", "all_train", 3), ("c", "all_test", 2)),
        *(("b", "all_test", 1), ("a", "digits_only_train", 2)),
    ):
        for _ in range(count):
            pixels = (random.randint(0, 256, 784) / 255).tolist()
            proto = example(pixels=pixels, label=[int(random.randint(62))])
            rows.append((client, split, proto))
    return write([rows[k] for k in random.permutation(len(rows))])
