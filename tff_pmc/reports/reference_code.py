"""Result folders of the authors' published code, `sisinflab/ClientAware-FL`.

    params.txt            the settings; the last line is `Permutation: INDEX`
    accuracy.csv          n_round, %_clients, aggr_accuracy
    round_N/client_P.csv  y_pred, y_true of one client's test examples

An experiments folder holds one such folder a run. INDEX is the ordering; P is the
client's place in a list that the code shuffles in place every round, so the same P
is another client in another round, or in another run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
from collections.abc import Iterable
from typing import Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from leaf_data.formats import places
from tff_pmc.record import read
from tff_pmc.record.plain_files import MOST_UNPACKED, names_in, open_plain
from tff_pmc.record.predictions import Predictions
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import in_memory

PARAMETERS = "params.txt"
LOCAL_DATA = "Local dataset type"
NUM_CLIENTS = "K (number of clients)"
PERMUTATION = "Permutation"
CRITERIA = {"mnist": ("DS", "LD", "MD"), "celeba": ("DS", "CB", "IS")}
"""The criteria c1, c2, c3 of each data set, as the code computes them: on CelebA c2
is the class balance, which its evaluation script calls IS."""

TARGETS = {"mnist": (70, 80, 90, 95), "celeba": (70, 80, 85)}
"""The target accuracies of the published tables on each data set, percent."""

HEADER = "y_pred,y_true"
_LARGEST_PARAMETERS = 1 << 20
_LARGEST_CLIENT = 1 << 20  # All of MNIST's test set has 40,000 bytes.
_MOST_CLASSES = 256
_PLACES = ("0", "1", "2", "012", "021", "102", "201", "120", "210")


def orderings(data_set: str) -> tuple[tuple[str, ...], ...]:
    """Returns the orderings of the indices 0 to 8 on `mnist` or `celeba`."""
    criteria = CRITERIA[data_set]
    return tuple(tuple(criteria[int(i)] for i in places) for places in _PLACES)


def targets(runs: Iterable[read.Run]) -> tuple[int, ...]:
    """Returns the published tables' targets: MNIST's unless all runs are of CelebA."""
    names = {run.data["name"] for run in runs}
    return TARGETS["celeba" if names == {"celeba"} else "mnist"]


def by_meaning(label: str) -> str:
    """Returns an ordering's label with the codes that the published code has.

    Its model divergence is the mean over the layers, `MD_layers` among our criteria.
    """
    return label.replace("MD_layers", "MD")


@dataclasses.dataclass(frozen=True)
class ReferenceRun(read.Run):
    """One run of the published code; tables take it like a run of ours.

    The clients are put into one order for all rounds: that of their `y_true`
    columns, which name them in `client_ids`. Where two clients have the same column,
    they cannot be told apart, and `client_ids` is None; the one with fewer correct
    examples then comes first, and `correct` counts the devices of each round but does
    not follow a device through the rounds. `index` is that of the ordering, 0 to 8.
    """

    index: int = 0
    client_ids: Optional[tuple[str, ...]] = None

    def predictions(self, round_num: int) -> Predictions:
        """Returns one round's predictions, client after client as in `correct`."""
        if self.client_ids is None:
            raise RecordError(
                f"{self.path}: two clients have the same test labels, so the clients "
                "of two rounds cannot be aligned"
            )
        return _in_order(self.listed(round_num))

    def listed(self, round_num: int) -> Predictions:
        """Returns one round's predictions in the order of the round's shuffled list."""
        return _read_round(self.path, round_num, len(self.examples))


def is_run(path: str) -> bool:
    """Returns whether a folder looks like a run of the published code."""
    here = os.path.join(path, "")
    return os.path.exists(here + PARAMETERS) or os.path.exists(here + "round_1")


def read_run(path: str) -> ReferenceRun:
    """Reads one run.

    Accuracies are computed from the predictions, as integers over integers:
    `accuracy.csv` holds the same in Keras's float32.
    """
    parameters = _read_parameters(path)
    index = _number(path, parameters, PERMUTATION, 0, 8)
    clients = _number(path, parameters, NUM_CLIENTS, 1, 10**6)
    rounds = _round_numbers(path)
    first = _in_order(_read_round(path, 1, clients))
    if LOCAL_DATA not in parameters and first.y.max() > 1:
        raise RecordError(f"{path} is a run on neither MNIST nor CelebA")
    data_set = "mnist" if LOCAL_DATA in parameters else "celeba"
    correct = [first.correct]
    for round_num in rounds[1:]:
        found = _in_order(_read_round(path, round_num, clients))
        if found.client_ids != first.client_ids:
            raise RecordError(
                f"{path}: round_{round_num} has other test labels than round_1"
            )
        correct.append(found.correct)
    counts, examples = np.array(correct), np.diff(first.row_splits)
    unique = len(set(first.client_ids)) == clients
    return ReferenceRun(
        label=",".join(orderings(data_set)[index]),
        info={"data": {"name": data_set, "clients": clients}, "params": parameters},
        rounds=in_memory.rounds_table(counts, examples),
        weights=pd.DataFrame(),
        correct=counts,
        examples=examples,
        path=path,
        reach="",
        index=index,
        client_ids=first.client_ids if unique else None,
    )


def _in_order(listed: Predictions) -> Predictions:
    """Returns predictions by the clients' labels, then by correct counts."""
    keys = list(zip(listed.client_ids, listed.correct.tolist()))
    return listed.reordered(sorted(range(len(keys)), key=keys.__getitem__))


def _read_parameters(path: str) -> dict[str, str]:
    name = os.path.join(path, PARAMETERS)
    try:
        with open_plain(name, at_most=_LARGEST_PARAMETERS) as file:
            lines = file.read().decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise RecordError(f"{name} cannot be read: {error}") from error
    parts = [line.partition(": ") for line in lines]
    return {key: value for key, separator, value in parts if separator}


def _number(
    path: str, parameters: dict[str, str], name: str, lowest: int, highest: int
) -> int:
    value = parameters.get(name, "")
    short = re.fullmatch("[0-9]{1,9}", value)
    if not (short and lowest <= int(value) <= highest):
        raise RecordError(
            f"{os.path.join(path, PARAMETERS)}: {name} has to be a number from "
            f"{lowest} to {highest}, got {value[:80]!r}"
        )
    return int(value)


def _round_numbers(path: str) -> list[int]:
    # Nobody's round has more digits, and Python refuses very many.
    names = [re.fullmatch(r"round_([0-9]+)", name) for name in names_in(path)]
    numbers = sorted(int(match[1][:9]) for match in names if match)
    for expected, number in enumerate(numbers or [0], start=1):
        if number != expected:
            raise RecordError(f"{path} has no round_{expected}")
    return numbers


@places.budget(MOST_UNPACKED)
def _read_round(path: str, round_num: int, clients: int) -> Predictions:
    """Returns a round in the order of its files; a client is named by its labels."""
    folder = os.path.join(path, f"round_{round_num}")
    found = set(names_in(folder))
    files = [f"client_{place}.csv" for place in range(1, clients + 1)]
    if found != set(files):
        odd = sorted(found.symmetric_difference(files))[0]
        raise RecordError(
            f"{folder} has to hold client_1.csv to client_{clients}.csv and nothing "
            f"else ({odd}); a run that was cut off can be read without its last round"
        )
    pairs = [_read_client(os.path.join(folder, name)) for name in files]
    table = np.concatenate(pairs)
    return Predictions(
        client_ids=tuple(" ".join(map(str, pair[:, 1])) for pair in pairs),
        row_splits=np.cumsum([0, *map(len, pairs)]),
        y=table[:, 1],
        predicted=table[:, 0],
    )


def _read_client(name: str) -> npt.NDArray[np.int64]:
    """Returns a client's file as int [n, 2]; CelebA's predictions are 0.0 and 1.0.

    There are a hundred thousand of them in a run: pandas would take minutes.
    """
    with open_plain(name, at_most=_LARGEST_CLIENT) as file:
        header = file.readline(len(HEADER) + 2)
        content = file.read()
    with contextlib.suppress(ValueError):
        if header.decode("ascii").strip() == HEADER and content.strip():
            # Chunk by chunk: as lists of words it would be fifty times its bytes.
            rows = io.BytesIO(content)
            cells = np.loadtxt(rows, delimiter=",", comments=None, ndmin=2)
            within = (cells >= 0) & (cells < _MOST_CLASSES)
            found = np.where(within, cells, -1).astype(np.int64)
            if cells.shape[1] == 2 and (found == cells).all():
                return found
    raise RecordError(f"{name} is not {HEADER} and the numbers of classes below it")
