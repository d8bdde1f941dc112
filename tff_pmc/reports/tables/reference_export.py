"""Export of a run in the form that the authors' evaluation script reads.

`record.reference_code` has the form. The clients keep the federation's order in every
round, where the published code shuffles them: the script's tables do not depend on it.
"""

from __future__ import annotations

import pathlib
from typing import Any

import pandas as pd

from tff_pmc.record import reference_code
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import read_results

_FORMS = {"mnist": "mnist", "digits5k": "mnist", "celeba": "celeba"}


def write(run_folder: str, output: str) -> None:
    """Writes one of our runs, made with `--predictions`, in the published code's form.

    `output` is the new folder of the run; `evaluation.py` takes the folder above it.

    Raises:
        RecordError: the run's ordering has no index in the published code, its
            predictions were not recorded, or `output` is there already.
    """
    results, goal = read_results(run_folder), pathlib.Path(output)
    if len(results.runs) != 1:
        raise RecordError(f"{run_folder} holds several runs: name the folder of one")
    if goal.exists():
        raise RecordError(f"{output} already exists: choose a new folder")
    run = results.runs.iloc[0]
    lines = [f"{reference_code.PERMUTATION}: {ordering_index(run)}"]
    all_predictions = [
        results.predictions(run["seed"], run["label"], round_num)
        for round_num in results.rounds["round"]
    ]
    lines.insert(
        0, f"{reference_code.NUM_CLIENTS}: {len(all_predictions[0].client_ids)}"
    )
    is_mnist = _FORMS[run["data_name"]] == "mnist"
    if is_mnist:
        kind = "iid" if run["partition"] == "iid" else "non-iid"
        lines.insert(0, f"{reference_code.LOCAL_DATA}: {kind}")
    goal.mkdir(parents=True)
    (goal / reference_code.PARAMETERS).write_bytes("\r\n".join(lines).encode())
    for round_num, predictions in enumerate(all_predictions, start=1):
        # Of CelebA the sigmoid's output is rounded in place there, and stays a float.
        predicted = predictions.predicted.astype(int if is_mnist else float)
        answers = pd.DataFrame({"y_pred": predicted, "y_true": predictions.y})
        folder = goal / f"round_{round_num}"
        folder.mkdir()
        splits = predictions.row_splits.tolist()
        for place, (start, end) in enumerate(zip(splits, splits[1:]), start=1):
            answers[start:end].to_csv(folder / f"client_{place}.csv", index=False)


def ordering_index(run: pd.Series[Any]) -> int:
    """Returns the index 0 to 8 of a run's ordering, by the meaning of its criteria.

    A run with another label, as an adjusted one, is a `RecordError`.
    """
    if run["data_name"] not in _FORMS:
        raise RecordError(f"the published code has no data set {run['data_name']}")
    orderings = reference_code.orderings(_FORMS[run["data_name"]])
    order = tuple(reference_code.published_label(run["label"]).split(","))
    if order not in orderings:
        raise RecordError(
            f"{run['path']}: {run['label']} has no index in the published code, which "
            f"has only the orderings {', '.join(map('>'.join, orderings))}"
        )
    return orderings.index(order)
