"""Runs of arrays in memory, so that plots need no run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.measures import PERCENTILES, client_means, percentile
from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError

Counts = Union[npt.NDArray[Any], Sequence[Any]]


def run_of_arrays(
    label: str,
    correct: Counts,
    examples: Counts,
    *,
    candidates: Optional[pd.DataFrame] = None,
    settings: Optional[Mapping[str, Any]] = None,
) -> Run:
    """Makes a run of each client's correct examples, for plots of a loop of one's own.

        run = run_of_arrays("LD,DS,MD", correct=[[3, 1], [4, 2]], examples=[5, 5])
        figure = accuracy_plot([run])

    The counts are what `build_federated_evaluation(model, num_clients)` returns, after
    each round.

    Args:
        label: an ordering such as `LD,DS,MD`, or any other name; plots have its color.
        correct: the number of correctly classified test examples, int
            [rounds, clients].
        examples: the number of test examples of each client, int [clients].
        candidates: of an adjusted run, the candidates that were tested, a row each in
            the order of the tests, for `adjustment_plot`. The columns are `round` (from
            1), `ordering`, `accuracy` and `kept` (1 or 0).
        settings: settings by flag. `{"judge_on": "local_validation"}` says that the
            candidates were not judged on the test examples.

    Raises:
        RecordError: the arrays do not go together, there is no test example, or the
            candidates lack a column.
    """
    counts, sizes = np.asarray(correct), np.asarray(examples)
    if counts.ndim != 2 or not len(counts) or sizes.shape != counts.shape[1:]:
        raise RecordError(
            "correct must be [rounds, clients], with a round at least, and examples "
            f"[clients]; got {list(counts.shape)} and {list(sizes.shape)}"
        )
    if not all(np.issubdtype(array.dtype, np.integer) for array in (counts, sizes)):
        raise RecordError(
            f"correct and examples must be integers, got {counts.dtype} and "
            f"{sizes.dtype}"
        )
    if (counts < 0).any() or (counts > sizes).any() or not sizes.any():
        raise RecordError(
            "a client must have from 0 to all of its test examples right, and a client "
            "must have some"
        )
    for name in ("round", "ordering", "accuracy", "kept"):
        if candidates is not None and name not in candidates:
            raise RecordError(f"candidates lack the column {name!r}")
    data = {"name": "", "clients": len(sizes)}
    info = {"settings": dict(settings or {}), "data": data}
    return Run(
        label=label,
        info=info,
        rounds=rounds_table(counts, sizes),
        weights=pd.DataFrame(),
        correct=counts.astype(np.int64),
        examples=sizes.astype(np.int64),
        candidates=candidates,
        reach=str(info["settings"].get("reach", "at_least")),
    )


def rounds_table(
    correct: npt.NDArray[np.int64], examples: npt.NDArray[np.int64]
) -> pd.DataFrame:
    """Returns what `rounds.csv` has of accuracies: over all clients, and percentiles.

    Of counts int [rounds, clients] and [clients], the columns `round` (from 1),
    `accuracy`, `p10`, `p50` and `p90`.
    """
    found = client_means(correct, examples)
    columns = {
        "round": range(1, len(correct) + 1),
        "accuracy": correct.sum(axis=1) / examples.sum(),
        **{f"p{percent}": percentile(found, percent) for percent in PERCENTILES},
    }
    return pd.DataFrame(columns)
