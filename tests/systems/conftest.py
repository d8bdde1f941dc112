"""A federation of four clients, and short runs of an experiment's systems on it."""

import dataclasses

import numpy as np
import pytest

import leaf_data
from tff_pmc.experiments.experiment import EXPERIMENTS, settings


@pytest.fixture(scope="session")
def federation():
    """Four clients of real digits, the last an adversary, and a set of the server's."""
    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    train, test = data.train_examples, data.test_examples

    def of(examples, parts, names):
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
        train_examples=of(train, parts, names),
        test_examples=of(test, np.split(np.arange(80), 4), names),
        server_examples=of(test, [np.arange(100, 160)], ("server",)),
        client_table=table,
    )


@pytest.fixture(scope="session")
def runs_of():
    """Gives the settings of an experiment's rows, or of those of the systems named."""

    def runs(experiment, *wanted, **changes):
        found = EXPERIMENTS[experiment]
        rows = [r for r in (*found.rows, *found.on_demand) if r.system in wanted]
        short = {"rounds": 2, "local_epochs": 1, **changes}
        return [
            settings(experiment, {**row.values, **short}) for row in rows or found.rows
        ]

    return runs


@pytest.fixture(scope="session")
def run_all():
    """Runs all of some settings on the same data."""

    def run(runs, data, folder):
        from tff_pmc.experiments.running import suite

        return suite.run_all(runs, lambda settings: data, str(folder))

    return run


@pytest.fixture(scope="session")
def built():
    """Builds the rounds of a run's system."""

    def build(one, data):
        from tff_pmc.systems.setup import Setup

        return one.system.build(Setup.of(one, data))

    return build
