"""A round's models under other weightings, judged and not taken.

A round's sums hold the model of every score over the basis, and of every learning rate
of the server: so a cohort trains once, and the models are made and judged one after
another. Nobody sees a client's update for it.
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
    """A weighting that was judged: by score and server's rate what the judge found."""

    score: Score
    rate: Optional[float]  # None for that of the process.
    correct: npt.NDArray[np.int64]  # [], or [K] by client.


def judge_all(
    online: OnlineAdjustedFedAvg,
    state: OnlineState,
    trained: Any,
    judges: Sequence[Any],
    scores: Iterable[Score],
    rates: Sequence[Optional[float]] = (None,),
) -> list[Counterfactual]:
    """Judges the models of scores, and of rates, on what `parts.train` gave.

    The errors are those of `OnlineAdjustedFedAvg.step`.
    """
    found = []
    for score in scores:
        for rate in rates:
            stepped = online.step(state, trained, score, rate)
            correct = online.correct(stepped["weights"], judges)
            found.append(Counterfactual(score, rate, correct))
    return found


def counterfactuals(
    online: OnlineAdjustedFedAvg,
    state: OnlineState,
    clients: Sequence[Any],
    judges: Sequence[Any],
    scores: Optional[Sequence[Score]] = None,
    rates: Sequence[float] = (),
) -> pd.DataFrame:
    """Asks what a round would become under each of several weightings.

    The cohort trains once, and the state stays as it is: `online.next` may be called
    with it as if this had not been called.

    Args:
        online: the process, of `build_online_adjusted_fed_avg`; its judge judges.
        state: its state before the round.
        clients: the cohort's data, as of `online.next`.
        judges: the data of the judging clients, as of `online.next`.
        scores: the weightings, by codes of the process's criteria or by its columns;
            by default its candidates. Its `others` may be among them.
        rates: the server's learning rates; by default that of the process.

    Returns:
        A data frame with a row for each score and rate: `score` (its label), `rate`
        (NaN for that of the process) and `correct`, the examples that the model gets
        right, of all judging clients together.

    Raises:
        ValueError: there are no judges, the sums of the process do not cover a score,
            it weighs by a criterion that is not measured, or rates are given and the
            server's optimizer has none.

    Examples:
        >>> tests = tff_pmc.evaluation_packs(data.test_examples)
        >>> tff_pmc.counterfactuals(online, online.initialize(), clients, tests)
    """
    import pandas as pd

    online.check_judges(judges)
    wanted = online.candidates if scores is None else require_sequence("scores", scores)
    for score in wanted:
        online.parts.basis.coefficients(score)  # Or it is refused.
    rates = require_sequence("rates", rates)
    trained = online.parts.train(state.learning, clients)
    found = judge_all(online, state, trained, judges, wanted, rates or (None,))
    columns = {
        "score": [one.score.label for one in found],
        "rate": np.array([one.rate for one in found], float),
        "correct": [int(one.correct.sum()) for one in found],
    }
    return pd.DataFrame(columns)
