"""From the outcome of a round to the rows of its record, without TensorFlow."""

import types

import numpy as np
import pytest

from tff_pmc import scores
from tff_pmc.record.metric import LOSS
from tff_pmc.record.round_record import RecordedTrial
from tff_pmc.record.tables import (
    CANDIDATES,
    CLASS_F1,
    CLIENTS,
    COHORT,
    ROUNDS,
    TIMING,
)


def test_accuracy_is_weighted_by_local_test_size(record_of):
    """5 of 10 and 30 of 30: 35 of 40, and no device counts twice."""
    (row,) = ROUNDS.rows(record_of(7, train_bytes=9, test_bytes=4))
    assert row == {
        **{"round": 7, "accuracy": 0.875, "correct": 35, "examples": 40},
        **{"p10": 0.55, "p50": 0.75, "p90": 0.95, "train_loss": 0.5},
        **{"clients": 3, "excluded": 0, "update_rejected": 0, "ordering": "DS"},
        **{"testing_rounds": 0, "train_bytes": 9, "test_bytes": 4},
    }


def test_without_correct_counts_the_loss_is_recorded(record_of):
    """A client without test examples counts in no percentile; 12 over 4 is 3."""
    losses = {"metric": LOSS, "measured": np.array([10.0, 2.0, 0.0])}
    record = record_of(sizes=np.array([2, 2, 0]), **losses)
    (row,) = ROUNDS.rows(record)
    assert (row["test_loss"], row["loss_sum"], row["examples"]) == (3, 12, 4)
    assert (row["loss_p10"], row["loss_p50"], row["loss_p90"]) == (1.4, 3, 4.6)
    assert not {"accuracy", "correct", "p10"} & {*row}
    first = CLIENTS.rows(record)[0]
    assert first == {"round": 1, "client": "a\nb", "loss_sum": 10.0, "examples": 2}


def test_values_that_only_some_rounds_have(record_of):
    """A test of the model, examples of the server, clients that counted."""
    (row,) = ROUNDS.rows(record_of(measured=None, train={"examples": 0}))
    empty = ("accuracy", "correct", "examples", "p10", "p50", "p90")
    assert [row[name] for name in empty] == [""] * 6 and row["train_loss"] is None
    assert CLIENTS.rows(record_of(measured=None)) == []
    assert CLIENTS.rows(record_of(changes={"record_clients": "none"})) == []
    assert CLASS_F1.rows(record_of()) == [] and CANDIDATES.rows(record_of()) == []
    record = record_of(f1=np.array([0.5, 1 / 3]), validation_correct=4)
    (row,) = ROUNDS.rows(record)
    assert (row["macro_f1"], row["validation_correct"]) == (0.416667, 4)
    assert CLASS_F1.rows(record)[1] == {"round": 1, "class": 1, "f1": 0.3333333}
    (row,) = ROUNDS.rows(record_of(f1=np.array([np.nan, 0.5, 0.0, 1.0])))
    assert row["macro_f1"] == 0.5  # Of the three classes that are there or predicted.
    assert TIMING.rows(record) == [{"round": 1, "train": 0.1, "test": 0.25}]


@pytest.mark.parametrize(
    ("algorithm", "algorithm_criteria", "excluded", "weights"),
    [
        ("prioritized", [], [0, 0, 0], [1 / 3] * 3),
        # An excluded client keeps its criteria and has no weight.
        ("prioritized", [], [0, 1, 0], [0.5, 0, 0.5]),
        # All count alike, whatever their criteria.
        ("median", [], [0, 1, 0], [0.5, 0, 0.5]),
        # The first of its own criteria over the total of the second.
        ("q_fedavg", [[2, 3], [4, 3], [6, 4]], [0, 0, 0], [0.2, 0.4, 0.6]),
        ("q_fedavg", [[2, 3], [4, 3], [6, 4]], [0, 1, 0], [2 / 7, 0, 6 / 7]),
    ],
)
def test_the_weights_of_the_cohort(
    record_of, algorithm, algorithm_criteria, excluded, weights
):
    sizes = [1, 9, 5] if algorithm == "median" else [40, 40, 40]
    raw = np.column_stack(
        [sizes, [1, 3, 2], [0.7, 0.6, 0.8], *np.transpose(algorithm_criteria)]
    )
    record = record_of(changes={"algorithm": algorithm}, raw=raw, excluded=excluded)
    rows = COHORT.rows(record)
    assert [*rows[0]] == ["round", "client", *record.codes, "excluded", "weight"]
    assert [row["excluded"] for row in rows] == excluded and rows[1]["LD"] == 3
    assert [row["weight"] for row in rows] == pytest.approx(weights)


def test_candidates_are_in_the_order_of_their_tests(record_of):
    """Those of a search, then those of other weightings, each numbered from 1."""
    tried = (RecordedTrial("LD,DS", 3, 8, False), RecordedTrial("DS", 6, 8, True))
    ld, ds = (scores.prioritized((code,)) for code in ("LD", "DS"))
    judged_scores = [
        types.SimpleNamespace(score=score, rate=rate, correct=np.array(correct))
        for score, rate, correct in ((ds, None, [4, 0, 2]), (ld, 0.5, 5))
    ]
    judged = types.SimpleNamespace(label_counts=np.array([4, 4, 0]))
    record = record_of(
        outcome={
            **{"in_force": ds, "trials": tried},
            **{"counterfactuals": judged_scores, "counterfactual_examples": judged},
        }
    )
    names = ("kind", "trial", "ordering", "rate", "correct", "examples", "kept")
    rows = CANDIDATES.rows(record)
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("trial", 1, "LD,DS", 1.0, 3, 8, 0),
        ("trial", 2, "DS", 1.0, 6, 8, 1),
        ("counterfactual", 1, "DS", 1.0, 6, 8, 1),
        ("counterfactual", 2, "LD", 0.5, 5, 8, 0),
    ]
    # 1 and 0 of two clients; without counts per client there is none.
    spread = [(row["worst_tenth"], row["jain_index"]) for row in rows]
    assert spread == [(None, None), (None, None), (0.0, 0.5), (None, None)]
