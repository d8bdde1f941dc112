"""Right and wrong against the baseline, at each run's best round (PMC Tables 3, 5, 7).

For each ordering, every test example is counted by whether the model of DS and the
model of the ordering classify it correctly. The two are paired in two ways:

* `aligned`: the same example of the same client.
* `shuffled`: the same row, when each round's files are put one after another in the
  order of their numbers. The authors' published code numbers them by place in a list
  of clients that it shuffles in place every round, so the answer for one client
  meets that for another, and the cells are what independence would give. The
  published tables look like this: in 3 and 5, at most 4 of 10,000 examples are
  wrong in both. (The script that made them is not published. In a folder that
  `reference_export` wrote, the order is fixed, and the two pairings are the same.)

The margins, each model's own counts of right and wrong, are the same in both.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_pmc.record.predictions import Predictions, read_predictions
from tff_pmc.record.read import BASELINE, Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.kept import totals
from tff_pmc.reports.reference_code import ReferenceRun

PAIRINGS = ("aligned", "shuffled")
WRONG, RIGHT = "X", "✓"
OUTCOMES = ((WRONG, WRONG), (WRONG, RIGHT), (RIGHT, WRONG), (RIGHT, RIGHT))
"""(DS, the ordering), in the order of the published rows."""


def best_round(run: Run) -> int:
    """Returns the first round of the highest accuracy over all test examples."""
    return int(totals(run)[0].argmax()) + 1


def joint_rows(
    runs: Sequence[Run], pairing: str = "aligned", seed: int = 0
) -> pd.DataFrame:
    """Counts test examples by the outcomes of DS and of each other ordering.

    Args:
        runs: the runs, DS among them. Runs of ours need their record of predictions.
        pairing: `aligned` or `shuffled`.
        seed: for `shuffled` runs of ours, whose clients have no list that is
            shuffled: the list starts in the federation's order and is shuffled
            once a round, up to the best round, by Python's
            `random.Random("<seed>/<the run's label>")`.

    Returns:
        The columns of the published tables' CSV (experiment, ds_outcome,
        experiment_outcome, value in examples; X is wrong, ✓ right), and pairing,
        ds_round, experiment_round.

    Raises:
        RecordError: there is not one run of DS, predictions are missing, the runs
            were tested on other examples, or the clients of published runs cannot
            be told apart, which `aligned` needs.
        ValueError: `pairing` is neither of the two.
    """
    if pairing not in PAIRINGS:
        raise ValueError(f"pairing must be one of {PAIRINGS}, got {pairing!r}")
    baselines = [run for run in runs if run.label == BASELINE]
    if len(baselines) != 1:
        raise RecordError(
            f"the joint tables need one run of {BASELINE}, and there are "
            f"{len(baselines)} {' '.join(run.path for run in baselines)}".rstrip()
        )
    (baseline,) = baselines
    base = _at_best_round(baseline, pairing, seed)
    rows: list[dict[str, Any]] = []
    for run in runs:
        if run is baseline:
            continue
        other = _at_best_round(run, pairing, seed)
        _check_same_examples(pairing, baseline.path, base, run.path, other)
        for (ds, own), count in zip(OUTCOMES, _counts(base, other)):
            rows.append(
                {
                    "experiment": run.label,
                    "ds_outcome": ds,
                    "experiment_outcome": own,
                    "value": count,
                    "pairing": pairing,
                    "ds_round": best_round(baseline),
                    "experiment_round": best_round(run),
                }
            )
    return pd.DataFrame(rows)


def _at_best_round(run: Run, pairing: str, seed: int) -> Predictions:
    number = best_round(run)
    if isinstance(run, ReferenceRun):
        return run.predictions(number) if pairing == "aligned" else run.listed(number)
    predictions = read_predictions(run.path, number)
    if pairing == "aligned":
        return predictions
    places = list(range(len(predictions.client_ids)))
    generator = random.Random(f"{seed}/{run.label}")
    for _ in range(number):
        generator.shuffle(places)
    return predictions.reordered(places)


def _check_same_examples(
    pairing: str, base_folder: str, base: Predictions, folder: str, other: Predictions
) -> None:
    same = len(base.y) == len(other.y)
    if pairing == "aligned":
        same = (
            base.client_ids == other.client_ids
            and np.array_equal(base.row_splits, other.row_splits)
            and np.array_equal(base.y, other.y)
        )
    if not same:
        raise RecordError(
            f"{base_folder} and {folder} were tested on other clients or examples"
        )


def _counts(base: Predictions, other: Predictions) -> list[int]:
    cells = 2 * base.right.astype(np.int64) + other.right
    counts: list[int] = np.bincount(cells, minlength=4).tolist()
    return counts
