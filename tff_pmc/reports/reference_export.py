"""Export of a run in the form that the authors' evaluation script reads.

`record.reference_code` has the form. The clients keep the federation's order in every
round, where the published code shuffles them: the script's tables do not depend on it.
"""

from __future__ import annotations

import os
from typing import Any

import pandas as pd

from tff_pmc.record import reference_code
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import read_results

_FORMS = {"mnist": "mnist", "digits5k": "mnist", "celeba": "celeba"}
# What the published code cannot be told: it always has these.
_FIXED = {
    **{"adjustment": "fixed", "system": "prioritized", "normalization": "sum"},
    **{"server_optimizer": "sgd", "server_learning_rate": 1, "clip_norm": 0},
    **{"client_optimizer": "sgd", "prox_mu": 0, "selection": "uniform"},
    **{"client_rate_decay": 1},
    **{"keep_own_model": False, "evaluate_every": 1, "evaluate_clients": 0},
}


def write(run_folder: str, output: str) -> None:
    """Writes one of our runs, made with `--predictions`, in the published code's form.

    `output` is the new folder of the run; `evaluation.py` takes the folder above it.

    Raises:
        RecordError: the published code cannot have made such a run, its predictions
            were not recorded, or `output` is there already.
    """
    results = read_results(run_folder)
    if len(results.runs) != 1:
        raise RecordError(f"{run_folder} holds several runs: name the folder of one")
    if os.path.exists(output):
        raise RecordError(f"{output} is there already; nothing is overwritten")
    run = results.runs.iloc[0]
    index = index_of(run)
    every = [
        results.predictions(run["seed"], run["label"], round_num)
        for round_num in results.rounds["round"]
    ]
    lines = [
        f"{reference_code.NUM_CLIENTS}: {len(every[0].client_ids)}",
        f"{reference_code.PERMUTATION}: {index}",
    ]
    is_mnist = _FORMS[run["data_name"]] == "mnist"
    if is_mnist:
        kind = "iid" if run["partition"] == "iid" else "non-iid"
        lines.insert(0, f"{reference_code.LOCAL_DATA}: {kind}")
    os.makedirs(output)
    _write(os.path.join(output, reference_code.PARAMETERS), "\r\n".join(lines))
    for round_num, found in enumerate(every, start=1):
        folder = os.path.join(output, f"round_{round_num}")
        os.makedirs(folder)
        # Of CelebA the sigmoid's output is rounded in place there, and stays a float.
        predicted = found.predicted.astype(int if is_mnist else float).tolist()
        pairs = [f"{one},{y}" for one, y in zip(predicted, found.y.tolist())]
        splits = found.row_splits.tolist()
        for place, (start, end) in enumerate(zip(splits, splits[1:]), start=1):
            text = "\n".join([reference_code.HEADER, *pairs[start:end], ""])
            _write(os.path.join(folder, f"client_{place}.csv"), text)


def index_of(run: pd.Series[Any]) -> int:
    """Returns the index 0 to 8 of a run's ordering, by the meaning of its criteria.

    A run that the published code cannot have made is a `RecordError`.
    """
    if run["data_name"] not in _FORMS:
        raise RecordError(f"the published code has no data set {run['data_name']}")
    for name, value in _FIXED.items():
        own = run.get(name, value)
        if pd.notna(own) and own != value:
            raise RecordError(
                f"{run['path']}: the published code always has {name}={value}, and "
                f"this run has {own}"
            )
    known = reference_code.orderings(_FORMS[run["data_name"]])
    order = tuple(map(reference_code.by_meaning, run["priority"]))
    if order not in known:
        raise RecordError(
            f"{run['path']}: the ordering {'>'.join(order)} has no index in the "
            f"published code, which has only {', '.join(map('>'.join, known))}"
        )
    return known.index(order)


def _write(path: str, text: str) -> None:
    with open(path, "w", newline="") as file:
        file.write(text)
