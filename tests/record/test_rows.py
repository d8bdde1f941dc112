"""From a round's outcome to the rows of its record, without TensorFlow."""

import numpy as np
import pytest

from tff_pmc import scores
from tff_pmc.experiments.experiment import settings
from tff_pmc.record import rows, weight_rows
from tff_pmc.record.measures import LOSS
from tff_pmc.systems import rounds

MNIST = settings("mnist_noniid")
RAW = np.array([[40, 1, 0.7], [40, 3, 0.6], [40, 2, 0.8]])
METRICS = {
    "client_work": {
        "train": {"examples": 8, "loss_sum": 4.0, "clients": 2, "excluded": 1}
    },
    "finalizer": {"update_rejected": 0},
}


def weights(*priority):
    made = MNIST.replaced(priority=priority)
    return weight_rows.weight_rows(made, made.system.score(made), RAW)


def test_accuracy_is_weighted_by_local_test_size():
    """5 of 10 and 30 of 30: 35 of 40, and no device counts twice."""
    row = rows.round_row(np.array([5, 30, 0]), np.array([10, 30, 0]), METRICS)
    assert (row["accuracy"], row["correct"], row["examples"]) == (0.875, 35, 40)
    assert (row["p10"], row["p50"], row["p90"]) == (0.55, 0.75, 0.95)
    assert row["train_loss"] == 0.5


def test_every_ordering_is_held_against_the_one_in_force():
    found = {row["ordering"]: row for row in weights("LD", "DS", "MD")}
    assert len(found) == 9
    assert [o for o, row in found.items() if row["in_force"]] == ["LD,DS,MD"]
    assert found["LD,DS,MD"]["total_variation"] == 0
    assert found["DS"]["effective_clients"] == pytest.approx(3)
    # DS weighs all alike; LD alone gives 1/6, 3/6, 2/6.
    assert found["LD"]["effective_clients"] == pytest.approx(36 / 14)
    p = scores.participant_weights(RAW, scores.prioritized((1, 0, 2)))
    expected = 0.5 * np.abs(p - 1 / 3).sum()
    assert found["DS"]["total_variation"] == pytest.approx(expected, rel=1e-6)
    # One in force that is none of them is recorded, too.
    found = weights("LD", "DS")
    assert [row["ordering"] for row in found if row["in_force"]] == ["LD,DS"]
    assert len(found) == 10


@pytest.mark.parametrize(
    ("system", "cohort", "excluded", "shares"),
    [
        ("prioritized", [2, 0, 1], [0, 0, 0], [1 / 3] * 3),
        # Who is left out keeps its criteria and has no weight.
        ("prioritized", [0, 1, 2], [0, 1, 0], [0.5, 0, 0.5]),
        # Where all count alike, so says the record.
        ("median", [0, 1, 2], [0, 1, 0], [0.5, 0, 0.5]),
    ],
)
def test_the_cohorts_weights_sum_to_one(system, cohort, excluded, shares):
    made, raw = MNIST.replaced(system=system), RAW.copy()
    if system == "median":
        raw[:, 0] = 1, 9, 5
    in_force = made.system.score(made)
    out = np.array(excluded, bool)
    found = weight_rows.cohort_rows(made, in_force, "abc", cohort, raw, out)
    assert [row["client"] for row in found] == ["abc"[k] for k in cohort]
    assert [row["weight"] for row in found] == pytest.approx(shares)
    assert [row["excluded"] for row in found] == excluded and found[1]["LD"] == 3


def test_of_many_criteria_the_orderings_are_not_recorded():
    assert len(weight_rows.recorded_orderings(("DS", "LD", "MD", "CB"))) == 4 + 24
    assert len(weight_rows.recorded_orderings(("DS", "LD", "MD", "a", "b"))) == 5


def test_where_nothing_is_right_or_wrong_the_loss_is_recorded():
    """A client without test examples counts in no percentile; 12 over 4 is 3."""
    losses, sizes = np.array([10.0, 2.0, 0.0]), np.array([2, 2, 0])
    row = rows.round_row(losses, sizes, METRICS, LOSS)
    assert (row["test_loss"], row["loss_sum"], row["examples"]) == (3, 12, 4)
    assert (row["loss_p10"], row["loss_p50"], row["loss_p90"]) == (1.4, 3, 4.6)
    assert not {"accuracy", "correct", "p10"} & set(row)
    last = rows.client_rows("abc", losses, sizes, LOSS)[0]
    assert last == {"client": "a", "loss_sum": 10.0, "examples": 2}
    groups = {"new": np.array([1.0, 0.0, 0.0], np.float32)}
    old, new = rows.group_rows(groups, losses, sizes, LOSS)
    assert (old["test_loss"], new["test_loss"]) == (1, 5)


def test_candidates_are_in_the_order_of_their_tests():
    tested = [rounds.Tested("LD,DS", 3, 8, False), rounds.Tested("DS", 6, 8, True)]
    columns = ("trial", "ordering", "correct", "examples", "accuracy", "kept")
    assert rows.candidate_rows(tested) == [
        dict(zip(columns, row))
        for row in ((1, "LD,DS", 3, 8, 0.375, 0), (2, "DS", 6, 8, 0.75, 1))
    ]
