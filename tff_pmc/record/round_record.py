"""The results of a round, from which the columns of `tables` are computed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from declared_settings import require_sequence
from tff_pmc import scores
from tff_pmc.record.client_statistics import (
    Floats,
    client_means,
    jain_index,
    percentile,
    worst_tenth,
)
from tff_pmc.record.metric import Metric, float32_digits
from tff_pmc.scores.basis import decode_name
from tff_pmc.scores.score import unaliased

if TYPE_CHECKING:
    import pandas as pd

    import leaf_data
    from tff_pmc.processes.counterfactuals import Counterfactual
    from tff_pmc.settings import RunSettings


class RecordedTrial(NamedTuple):
    """A candidate that a search tested."""

    label: str  # Of its score.
    correct: int  # The number of judging examples classified correctly.
    examples: int  # The number of judging examples.
    chosen: bool  # Whether its model became the round's.


class RoundResult(NamedTuple):
    """The result of a round."""

    state: Any  # Of the process, for the next round and the checkpoint.
    metrics: Any  # `<client_work, aggregator, finalizer>`.
    in_force: scores.Score  # The score of the round's model.
    trials: tuple[RecordedTrial, ...] = ()  # In the order of testing.
    # The number of correct test examples of each client, if a judge counted them.
    correct_by_client: Optional[npt.NDArray[np.int64]] = None
    train_seconds: Optional[float] = None  # Of training alone, in a search.
    counterfactuals: Sequence[Counterfactual] = ()  # In order.
    counterfactual_examples: Optional[leaf_data.Examples] = None


class Candidate(NamedTuple):
    """A model that was judged in a round."""

    kind: str  # `trial`, of a search, or `counterfactual`.
    trial: int  # Its number among the models of its kind, from 1.
    label: str  # Of its score.
    rate: float  # The server's learning rate.
    correct: int  # The number of judging examples classified correctly.
    examples: int  # The number of judging examples.
    kept: bool  # Whether it became the round's model.
    worst_tenth: Optional[float] = None  # If the judge counted by client.
    jain_index: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class RoundRecord:
    """The results of a round, and the values that its record has.

    Attributes:
        round_num: the round, from 1.
        settings: the settings of the run.
        outcome: the result of the process.
        cohort: the names of the clients that trained.
        clients: the names of the clients that test, [E].
        sizes: the number of test examples of each of these clients, [E]; with a label
            per position, of the positions that count, as all numbers of examples here.
        metric: accuracy or loss, by which the model is measured.
        measured: the sum of the metric over each client's test examples, [E]: the
            number of correct examples, or the loss sum. None in a round without a test.
        model_metrics: the model's own metrics (such as those of Keras) over all test
            examples, by name; each is None in a round without a test.
        central: the sum of the metric over the central test set, if there is one.
        central_examples: the size of the central test set; 0 without one.
        global_train_loss: the mean loss of the model over the training examples of all
            clients; None unless the settings record it, and in a round without a test.
        f1: the F1 of each class on the server's examples; empty without these.
        validation_correct: the number of correct examples of the server, if accuracy is
            not reported on the same examples.
        train_bytes, test_bytes: the bytes that were sent for training and for tests.
        seconds: the duration of the training, `train`, and of the tests, `test`.
    """

    round_num: int
    settings: RunSettings
    outcome: RoundResult
    cohort: Sequence[str]
    clients: Sequence[str]
    sizes: npt.NDArray[np.int64]
    metric: Metric
    measured: Optional[npt.NDArray[Any]] = None
    model_metrics: Mapping[str, Optional[float]] = dataclasses.field(
        default_factory=dict
    )
    central: Optional[float] = None
    central_examples: int = 0
    global_train_loss: Optional[float] = None
    f1: npt.NDArray[np.float64] = dataclasses.field(default_factory=lambda: np.empty(0))
    validation_correct: Optional[int] = None
    train_bytes: int = 0
    test_bytes: int = 0
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def tested(self) -> bool:
        """Whether the model was tested after this round."""
        return self.measured is not None

    @property
    def total(self) -> int | float:
        """The sum of the metric over all test examples."""
        return self.metric.value(np.asarray(self.measured).sum())

    @property
    def mean(self) -> float:
        """The mean of the metric over all test examples (PMC eq. 10)."""
        return round(self.total / int(self.sizes.sum()), 6)

    @property
    def central_correct(self) -> int:
        """The number of correctly classified examples of the central test set."""
        assert self.central is not None  # The round was tested.
        return int(self.central)

    @property
    def central_mean(self) -> float:
        """The mean of the metric over the central test set."""
        assert self.central is not None  # The round was tested.
        return round(self.central / self.central_examples, 6)

    def percentile(self, percent: int) -> float:
        """Returns a percentile of the metric over the clients with test examples."""
        local = client_means(np.asarray(self.measured), self.sizes)
        return float(percentile(local, percent))

    @property
    def train(self) -> Mapping[str, Any]:
        """The training metrics that the clients reported."""
        report: Mapping[str, Any] = self.outcome.metrics["client_work"]["train"]
        return report

    @property
    def train_loss(self) -> Optional[float]:
        """The mean loss over the training examples, or None if all are excluded."""
        examples = int(self.train["examples"])
        return round(float(self.train["loss_sum"]) / examples, 6) if examples else None

    @property
    def update_rejected(self) -> int:
        """Whether the server rejected the update and kept the model, 0 or 1."""
        return int(self.outcome.metrics["finalizer"]["update_rejected"])

    @property
    def _records_clients(self) -> bool:
        return self.tested and self.settings.record.record_clients == "all"

    @property
    def test_clients(self) -> Sequence[str]:
        """The names of the clients whose test results are recorded."""
        return self.clients if self._records_clients else ()

    @property
    def client_totals(self) -> list[int | float]:
        """The sum of the metric over the test examples of each of `test_clients`."""
        if not self._records_clients:
            return []
        return [self.metric.value(total) for total in np.asarray(self.measured)]

    @property
    def client_sizes(self) -> list[int]:
        """The number of test examples of each of `test_clients`."""
        return [int(size) for size in self.sizes] if self._records_clients else []

    @property
    def codes(self) -> Sequence[str]:
        """The codes of the criteria."""
        return self.settings.criterion_codes

    @property
    def raw(self) -> Floats:
        """The raw criteria that the cohort's clients reported, [clients, m]."""
        return np.asarray(self.train["criteria_by_client"], float)

    @property
    def excluded(self) -> npt.NDArray[np.bool_]:
        """A mask of the excluded clients of the cohort, [clients]."""
        mask: npt.NDArray[np.bool_] = np.asarray(self.train["excluded_by_client"]) > 0
        return mask

    @property
    def counted(self) -> Floats:
        """The raw criteria, NaN for excluded clients, which have no weight."""
        return mask_excluded(self.raw, self.excluded)

    @functools.cached_property
    def shares(self) -> Floats:
        """The weights of the cohort's clients as shares of their sum, [clients]."""
        return weight_shares(self.settings, self.outcome.in_force, self.counted)

    @property
    def weights(self) -> Floats:
        """The factors of the cohort's updates, [clients].

        They sum to 1, or to a step length; see `Algorithm.has_step_length`.
        """
        totals = np.nansum(self.counted, axis=0)
        return self.shares * self.outcome.in_force.step_length(totals)

    @functools.cached_property
    def candidates(self) -> list[Candidate]:
        """The judged models: first those of a search, then the counterfactuals."""
        return [*self._trials(), *self._counterfactuals()]

    def _trials(self) -> Iterator[Candidate]:
        rate = self.settings.training.server_learning_rate
        for number, candidate in enumerate(self.outcome.trials, 1):
            yield Candidate(
                kind="trial",
                trial=number,
                label=candidate.label,
                rate=rate,
                correct=candidate.correct,
                examples=candidate.examples,
                kept=candidate.chosen,
            )

    def _counterfactuals(self) -> Iterator[Candidate]:
        outcome = self.outcome
        if outcome.counterfactual_examples is None:
            return
        sizes = outcome.counterfactual_examples.label_counts
        server_rate = self.settings.training.server_learning_rate
        for number, counterfactual in enumerate(outcome.counterfactuals, 1):
            worst = jain = None
            if counterfactual.correct.ndim:
                local = client_means(counterfactual.correct[: len(sizes)], sizes)
                worst, jain = float32_digits([worst_tenth(local), jain_index(local)])
            yield Candidate(
                kind="counterfactual",
                trial=number,
                label=counterfactual.score.label,
                rate=server_rate
                if counterfactual.rate is None
                else counterfactual.rate,
                correct=int(counterfactual.correct.sum()),
                examples=int(sizes.sum()),
                kept=counterfactual.score == outcome.in_force
                and counterfactual.rate is None,
                worst_tenth=worst,
                jain_index=jain,
            )


def mask_excluded(raw: Floats, excluded: npt.NDArray[np.bool_]) -> Floats:
    """Returns raw criteria [clients, m] with NaN for excluded clients."""
    return np.where(excluded[:, np.newaxis], np.nan, raw)


def cohort_weights(
    metrics: Mapping[str, Any],
    criteria: Optional[Sequence[str]] = None,
    *,
    score: Optional[scores.Score] = None,
    normalization: Optional[scores.Normalization] = None,
    clients: Optional[Sequence[Any]] = None,
) -> pd.DataFrame:
    """Returns which client had which weight in a round of a process.

    The metrics contain the measured criteria, their normalization and the score by
    which the round's model was weighted.

    Args:
        metrics: the metrics of a round of a process with `report_cohort`.
        criteria: the codes of the criteria in the order of the table's columns; by
            default the order of the process.
        score: a score whose weights to compute instead of those of the round. A process
            with an `aggregator` has no score, and needs one here.
        normalization: a normalization instead of that of the round.
        clients: the names of the cohort's clients, in order; by default their indices.

    Returns:
        One row per client, with the columns of `cohort.csv`: `client`, the raw criteria
        by their codes, `excluded`, and `weight`, whose sum is 1.

    Raises:
        ValueError: the metrics are not those of a round; they have no criteria, or not
            these; `clients` has another length or no order; the metrics have no score,
            and none is given.

    Examples:
        >>> state, metrics = process.next(state, datasets)
        >>> table = tff_pmc.cohort_weights(metrics, clients=names)
    """
    import pandas as pd

    try:
        train, aggregator = metrics["client_work"]["train"], metrics["aggregator"]
    except (KeyError, TypeError) as error:
        raise ValueError(
            "metrics are not those of a round, the second value that next() of a "
            "learning process returns"
        ) from error
    if "criteria_by_client" not in train:
        raise ValueError(
            "the metrics have no clients: build the process with report_cohort=True"
        )
    if "totals_by_code" not in train:
        raise ValueError(
            "the metrics do not name their criteria: another version wrote them"
        )
    rows = slice(int(train["clients"]))  # Packs may have room for more clients.
    raw = np.asarray(train["criteria_by_client"], float)[rows]
    excluded = np.asarray(train["excluded_by_client"])[rows] > 0
    codes = tuple(map(decode_name, train["totals_by_code"]))
    shown = codes if criteria is None else require_sequence("criteria", criteria)
    column = {unaliased(code): values for code, values in zip(codes, raw.T)}
    if {*map(unaliased, shown)} != {*column} or len(shown) != len(codes):
        raise ValueError(
            f"criteria has the codes {', '.join(shown)}, but the metrics have "
            f"{', '.join(codes)}"
        )
    names = range(len(raw)) if clients is None else require_sequence("clients", clients)
    if len(names) != len(raw):
        raise ValueError(
            f"clients has {len(names)} names, but the cohort has {len(raw)} clients"
        )
    weighing: Callable[[Floats], Any] = score or _round_score(aggregator, codes)
    if normalization is None:
        normalization = _round_normalization(aggregator)
    counted = pd.DataFrame(mask_excluded(raw, excluded), columns=codes)
    weights = scores.participant_weights(counted, weighing, normalization)
    table = {"client": [*names]}
    table |= {code: column[unaliased(code)] for code in shown}
    return pd.DataFrame(table).assign(excluded=excluded.astype(int), weight=weights)


def _round_score(
    aggregator: Mapping[str, Any], codes: Sequence[str]
) -> Callable[[Floats], Floats]:
    """Returns the score that weighted a round, from its metrics."""
    if not isinstance(aggregator, Mapping) or "coefficients" not in aggregator:
        raise ValueError(
            "the metrics have no score, because the process has another aggregator: "
            'give the score of its weights, as score=scores.single("DS")'
        )
    coefficients = aggregator["coefficients"]
    basis = scores.Basis.of_names(codes, coefficients)
    values = np.array([a for kind in coefficients.values() for a in kind.values()])
    return lambda c: basis.combined(c, values)


def _round_normalization(aggregator: Mapping[str, Any]) -> scores.Normalization:
    """Returns the normalization of a round; sums if another factory aggregated."""
    if not isinstance(aggregator, Mapping):
        return scores.SUM
    for method, values in aggregator.get("normalization", {}).items():
        if method == "range":
            return scores.Normalization(method, tuple(map(tuple, values.tolist())))
        return scores.Normalization(method)
    return scores.SUM


def weight_shares(settings: RunSettings, in_force: scores.Score, raw: Floats) -> Floats:
    """Returns the clients' shares of the weight in a run's aggregation, [clients]."""
    if settings.algorithm.weighs_equally:
        included = np.isfinite(raw).all(axis=1)
        return np.asarray(included / max(int(included.sum()), 1))
    normalization = settings.aggregation.scores_normalization
    score = in_force.over(settings.criterion_codes)
    return scores.participant_weights(raw, score, normalization)
