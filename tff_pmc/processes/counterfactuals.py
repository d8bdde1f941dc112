"""A round's models under other weightings, which are judged but not used.

The sums of a round determine the model of every score over the basis and every server
learning rate. So a cohort trains once, and the server computes and judges the models
one after another. No client's update is revealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from declared_settings import require_sequence
from tff_pmc.processes.online_adjusted import OnlineAdjustedFedAvg, OnlineState
from tff_pmc.scores import Score

if TYPE_CHECKING:
    import pandas as pd


class Counterfactual(NamedTuple):
    """The judge's counts for one score and one server learning rate."""

    score: Score
    rate: Optional[float]  # None for that of the process.
    correct: npt.NDArray[np.int64]  # [], or [K] for each client.


def judge_all(
    online: OnlineAdjustedFedAvg,
    state: OnlineState,
    trained: Any,
    judges: Sequence[Any],
    scores: Iterable[Score],
    rates: Sequence[Optional[float]] = (None,),
) -> list[Counterfactual]:
    """Judges the model of each score and rate, computed from a round's training.

    `trained` is the result of `parts.train`; errors are those of
    `OnlineAdjustedFedAvg.step`.
    """
    results = []
    for score in scores:
        for rate in rates:
            candidate = online.step(state, trained, score, rate)
            correct = online.count_correct(candidate["weights"], judges)
            results.append(Counterfactual(score, rate, correct))
    return results


def counterfactuals(
    online: OnlineAdjustedFedAvg,
    state: OnlineState,
    clients: Sequence[Any],
    judges: Sequence[Any],
    scores: Optional[Sequence[Score]] = None,
    rates: Sequence[float] = (),
) -> pd.DataFrame:
    """Judges the models that a round would have under other weightings.

    The cohort trains once, and the state does not change: a later `online.next` with it
    is not affected.

    Args:
        online: the process of `build_online_adjusted_fed_avg`, whose judge is used.
        state: its state before the round.
        clients: the cohort's data, as for `online.next`.
        judges: the data of the judging clients, as for `online.next`.
        scores: the scores, over codes of the process's criteria or over its columns;
            by default its candidates. The process's sums cover these and its `others`.
        rates: the server's learning rates; by default that of the process.

    Returns:
        A data frame with one row per score and rate: `score` (its label), `rate`
        (NaN for that of the process) and `correct`, the number of examples that the
        model classifies correctly, over all judging clients.

    Raises:
        ValueError: there are no judges, the sums of the process do not cover a score, a
            score weighs by a criterion that is not measured, or rates are given for a
            server optimizer without a learning rate.

    Examples:
        >>> tests = tff_pmc.evaluation_packs(data.test_examples)
        >>> tff_pmc.counterfactuals(online, online.initialize(), clients, tests)
    """
    import pandas as pd

    online.check_judges(judges)
    weightings = (
        online.candidates if scores is None else require_sequence("scores", scores)
    )
    for score in weightings:
        online.parts.basis.coefficients(score)  # Raises before the training.
    rates = require_sequence("rates", rates)
    trained = online.parts.train(state.learning, clients)
    results = judge_all(online, state, trained, judges, weightings, rates or (None,))
    columns = {
        "score": [result.score.label for result in results],
        "rate": np.array([result.rate for result in results], float),
        "correct": [int(result.correct.sum()) for result in results],
    }
    return pd.DataFrame(columns)
