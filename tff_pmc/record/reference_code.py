"""Reads result folders of the authors' published code, `sisinflab/ClientAware-FL`.

    params.txt            the settings; the last line is `Permutation: INDEX`
    accuracy.csv          n_round, %_clients, aggr_accuracy
    round_N/client_P.csv  y_pred, y_true of one client's test examples

An experiments folder contains one such folder per run. INDEX is the ordering. P is the
client's position in a list that the code shuffles in each round, so that the same P is
a different client in another round or run.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tff_pmc.record.predictions import Predictions
from tff_pmc.record.record_error import RecordError

PARAMETERS = "params.txt"
LOCAL_DATA = "Local dataset type"
NUM_CLIENTS = "K (number of clients)"
PERMUTATION = "Permutation"
HEADER = "y_pred,y_true"

CRITERIA = {"mnist": ("DS", "LD", "MD"), "celeba": ("DS", "CB", "IS")}
"""The criteria c1, c2, c3 of each data set, as the code computes them: on CelebA c2
is the class balance, which its evaluation script calls IS."""

TARGETS = {"mnist": (70, 80, 90, 95), "celeba": (70, 80, 85)}
"""The target accuracies of the published tables on each data set, percent."""

_ORDERING_INDICES = ("0", "1", "2", "012", "021", "102", "201", "120", "210")


def orderings(data_set: str) -> list[tuple[str, ...]]:
    """Returns the orderings of the indices 0 to 8 on `mnist` or `celeba`."""
    criteria = CRITERIA[data_set]
    return [
        tuple(criteria[int(place)] for place in places) for places in _ORDERING_INDICES
    ]


def published_label(label: str) -> str:
    """Returns an ordering's label with the codes of the published code.

    Its model divergence is the mean over the layers, `MD_layers` among our criteria.
    """
    return label.replace("MD_layers", "MD")


def holds_runs(path: str) -> bool:
    """Returns whether a folder is, or contains, runs of the published code."""
    return bool(_run_folders(path))


class ReferenceRun(NamedTuple):
    """A run of the published code.

    Attributes:
        folder: its folder.
        label: its ordering, `LD,DS,MD`.
        data_set: `mnist` or `celeba`.
        correct: the correct test examples of each client after each round, int
            [rounds, clients].
        examples: the test examples of each client, int [clients].
    """

    folder: str
    label: str
    data_set: str
    correct: npt.NDArray[np.int64]
    examples: npt.NDArray[np.int64]


def read_runs(path: str) -> list[ReferenceRun]:
    """Reads a run of the published code, or a folder of such runs.

    Accuracies are computed from the predictions, as integers over integers. A client is
    identified by its test labels. Clients with the same labels cannot be distinguished:
    in each round the one with fewer correct examples comes first, so that counts of
    clients are right, but single clients cannot be followed through the rounds.

    Raises:
        RecordError: a file is missing or not in the code's format; one line names it.
    """
    folders: dict[str, str] = {}
    runs = []
    for parameters, folder in sorted(
        ((_read_parameters(folder), folder) for folder in _run_folders(path)),
        key=lambda run: int(run[0][PERMUTATION]),
    ):
        run = _read_folder(folder, parameters)
        other = folders.setdefault(run.label, folder)
        if other != folder:
            raise RecordError(f"{other} and {folder} are both runs of {run.label}")
        runs.append(run)
    return runs


def read_predictions(folder: str, round_num: int) -> Predictions:
    """Reads a round's predictions, in the order of the clients of `read_runs`.

    Raises:
        RecordError: two clients have the same test labels.
    """
    predictions = _sort_clients(read_shuffled_predictions(folder, round_num))
    if len(set(predictions.client_ids)) < len(predictions.client_ids):
        raise RecordError(
            f"{folder}: two clients have the same test labels, so the clients of two "
            "rounds cannot be aligned"
        )
    return predictions


def read_shuffled_predictions(folder: str, round_num: int) -> Predictions:
    """Returns a round's predictions in the order of the round's shuffled list."""
    place = os.path.join(folder, f"round_{round_num}")
    numbers = range(1, len(os.listdir(place)) + 1)
    pairs = [_read_client(os.path.join(place, f"client_{k}.csv")) for k in numbers]
    table = np.concatenate(pairs)
    return Predictions(
        client_ids=tuple(" ".join(map(str, pair[:, 1])) for pair in pairs),
        row_splits=np.cumsum([0, *map(len, pairs)]),
        y=table[:, 1],
        predicted=table[:, 0],
    )


def _run_folders(path: str) -> list[str]:
    if os.path.exists(os.path.join(path, PARAMETERS)):
        return [path]
    places = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    return [
        place for place in places if os.path.exists(os.path.join(place, PARAMETERS))
    ]


def _read_folder(path: str, parameters: dict[str, str]) -> ReferenceRun:
    num_rounds = sum(name.startswith("round_") for name in os.listdir(path))
    rounds = []
    for round_num in range(1, num_rounds + 1):
        if not os.path.isdir(os.path.join(path, f"round_{round_num}")):
            raise RecordError(f"{path} has no round_{round_num}")
        rounds.append(_sort_clients(read_shuffled_predictions(path, round_num)))
        if rounds[-1].client_ids != rounds[0].client_ids:
            raise RecordError(
                f"{path}: round_{round_num} has other test labels than round_1: if the "
                "run was cut off, remove its last round"
            )
    if not rounds:
        raise RecordError(f"{path} has no round_1")
    data_set = "mnist" if LOCAL_DATA in parameters else "celeba"
    return ReferenceRun(
        folder=path,
        label=",".join(orderings(data_set)[int(parameters[PERMUTATION])]),
        data_set=data_set,
        correct=np.array([predictions.correct for predictions in rounds]),
        examples=np.diff(rounds[0].row_splits),
    )


def _sort_clients(predictions: Predictions) -> Predictions:
    """Sorts the clients by their labels, then by the number of correct examples."""
    keys = list(zip(predictions.client_ids, predictions.correct.tolist()))
    return predictions.reorder(sorted(range(len(keys)), key=keys.__getitem__))


def _read_parameters(path: str) -> dict[str, str]:
    """Returns the parameters of a run, including the index of its ordering."""
    name = os.path.join(path, PARAMETERS)
    try:
        with open(name, encoding="utf-8") as file:
            parts = [line.partition(": ") for line in file.read().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{name} cannot be read: {error}") from error
    parameters = {key: value for key, _, value in parts}
    if parameters.get(PERMUTATION) not in [*map(str, range(len(_ORDERING_INDICES)))]:
        raise RecordError(f"{name}: {PERMUTATION} must be a number from 0 to 8")
    return parameters


def _read_client(name: str) -> npt.NDArray[Any]:
    """Reads a client's file as int [n, 2]; CelebA's predictions are 0.0 and 1.0.

    A run has a hundred thousand such files: pandas would take minutes.
    """
    with contextlib.suppress(ValueError, OSError):
        with open(name, encoding="ascii") as file:
            header, *rows = file.readlines()
        if header.strip() == HEADER and rows:
            cells = np.loadtxt(rows, delimiter=",", ndmin=2)
            classes = np.where(np.isfinite(cells), cells, -1).astype(int)
            if cells.shape[1:] == (2,) and (classes == cells).all():
                return classes
    raise RecordError(f"{name} must have the header {HEADER} and rows of class numbers")
