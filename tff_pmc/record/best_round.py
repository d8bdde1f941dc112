"""The best round of a run, by the accuracy or loss that judges its models."""

from __future__ import annotations

import pandas as pd

from tff_pmc.record.tables import CANDIDATES, ROUNDS


def round_quality(folder: str) -> tuple[pd.Series[float], str]:
    """Returns a quality of each round's model, larger for better, and its name.

    It is the accuracy by which the run chose among candidates, if it did; else the
    accuracy on those server examples on which nothing else is reported, if there are
    any; else the accuracy on the clients' test sets. For a regression it is the
    negative test loss.

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
    # From sums: means are rounded to six decimals, where late losses become equal.
    if "correct" in rounds:
        return rounds["correct"] / rounds["examples"], "test accuracy"
    return -rounds["loss_sum"] / rounds["examples"], "test loss"


def best_round(folder: str) -> tuple[int, str]:
    """Returns the first round with the best quality, and the name of the quality.

    The round is 0 if no model was tested. See `round_quality` for arguments and errors.
    """
    quality_by_round, name = round_quality(folder)
    return (
        int(quality_by_round.idxmax()) if quality_by_round.notna().any() else 0
    ), name
