"""A federation of four clients."""

import dataclasses

import numpy as np
import pytest
from cli import MODEL, quick_runs

import leaf_data


@pytest.fixture
def small():
    """The settings of a model that is built at once, and what else is short."""
    with quick_runs():
        yield {"model": MODEL, "batch_size": 16}


@pytest.fixture(scope="session")
def federation():
    """Four clients of real digits, the last an adversary, and a set of the server's."""
    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    train, test = data.train_examples, data.test_examples

    def examples_of(examples, parts, names):
        return leaf_data.Examples.from_parts(examples.x, examples.y, parts, names)

    names = ("a", "b", "c", "d")
    rows = np.arange(train.num_examples)
    parts = [rows[start : start + 30 + 5 * start % 7] for start in (0, 900, 1800, 2700)]
    table = leaf_data.ClientTable(
        names, {"adversary": np.array([0, 0, 0, 1], np.float32)}, "made up"
    )
    return dataclasses.replace(
        data,
        name="four",
        train_examples=examples_of(train, parts, names),
        test_examples=examples_of(test, np.split(np.arange(80), 4), names),
        server_examples=examples_of(test, [np.arange(100, 160)], ("server",)),
        client_table=table,
    )
