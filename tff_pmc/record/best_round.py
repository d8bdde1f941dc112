"""The best round of a run, by what its models were judged on."""

from __future__ import annotations

import pandas as pd

from tff_pmc.record.tables import CANDIDATES, ROUNDS


def round_quality(folder: str) -> tuple[pd.Series[float], str]:
    """Returns a number for each round, larger for a better model, and its name.

    It is the accuracy by which the run chose among candidates, where it did; else the
    accuracy on the examples of the server that nothing else is reported on; else the
    accuracy on the clients' test sets. Of a regression it is the negative test loss.

    Args:
        folder: the run's folder.

    Raises:
        RecordError: a table is missing or broken.
    """
    rounds = ROUNDS.read(folder).set_index("round")
    if CANDIDATES.path(folder):
        candidates = CANDIDATES.read(folder)
        kept = candidates[(candidates["kind"] == "trial") & (candidates["kept"] == 1)]
        if len(kept):
            kept = kept.set_index("round")
            return kept["correct"] / kept["examples"], "judged accuracy"
    if "validation_correct" in rounds:
        return rounds["validation_correct"].astype(float), "accuracy at the server"
    # Of the sums: the means have six decimals, by which late losses are equal.
    if "correct" in rounds:
        return rounds["correct"] / rounds["examples"], "test accuracy"
    return -rounds["loss_sum"] / rounds["examples"], "test loss"


def best_round(folder: str) -> tuple[int, str]:
    """Returns the first round with the best value, 0 if no model was tested; its name.

    See `round_quality` for the arguments and errors.
    """
    quality_by_round, name = round_quality(folder)
    return (
        int(quality_by_round.idxmax()) if quality_by_round.notna().any() else 0
    ), name
