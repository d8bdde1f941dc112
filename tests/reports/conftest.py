"""Run folders of ours, written by hand."""

import functools
import shutil

import numpy as np
import pytest
from folders import write_folder

from tff_pmc.record.record_error import RecordError

WRONG = 3  # A label that none of the clients has.
Y, SPLITS = (0, 1, 0, 1, 1, 0), (0, 2, 4, 6)  # Three clients, two examples each.
SETTINGS = dict(partition="noniid", priority=["LD", "DS", "MD"], clients_per_round=0.1)
SETTINGS.update(local_epochs=5, batch_size=0, learning_rate=0.1)
SETTINGS.update(normalization="sum", system="prioritized")


def answers(labels, num_right):
    """(prediction, label) pairs: so many are right, or the predictions are given."""
    if isinstance(num_right, tuple):
        return zip(num_right, labels)
    return [(y if i < num_right else WRONG, y) for i, y in enumerate(labels)]


@pytest.fixture
def write_ours():
    """A function that writes a run folder of ours.

    Its clients are tuples of labels, its rounds lists of how many each has right.
    """

    def write(folder, clients, rounds, data="mnist", predictions=True, **settings):
        info = {"settings": {**SETTINGS, **settings}, "data": {"name": data}}
        info["label"] = ",".join(info["settings"]["priority"])
        predicted = [
            [p for y, n in zip(clients, counts) for p, _ in answers(y, n)]
            for counts in rounds
        ]
        y, splits = np.concatenate(clients), np.cumsum([0, *map(len, clients)])
        write_folder(folder, info, y, splits, predicted, p10=0.4, p90=0.6)
        if not predictions:
            shutil.rmtree(folder / "predictions")
        return folder

    return write


@pytest.fixture
def write_run():
    """A function that writes a run folder with predictions, a list for each round.

    A round says which examples are right (1) and wrong (0); `splits` says whose.
    """

    def write(folder, label, rounds, y=Y, splits=SPLITS, clients=None, data=None):
        info = {"label": label, "settings": {"priority": label.split(",")}}
        info["data"] = data or {"name": "mnist"}
        predicted = [np.where(right, y, 9) for right in rounds]
        return write_folder(folder, info, y, splits, predicted, clients)

    return write


@pytest.fixture
def fails(assert_one_line):
    """A function that checks that a call is a `RecordError` of one line with words."""
    return functools.partial(assert_one_line, RecordError)
