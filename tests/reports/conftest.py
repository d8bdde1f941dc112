"""Run folders of ours, written by hand."""

import functools

import numpy as np
import pytest
from folders import write_folder

from tff_pmc.record.record_error import RecordError

Y, SPLITS = (0, 1, 0, 1, 1, 0), (0, 2, 4, 6)  # Three clients, two examples each.


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
