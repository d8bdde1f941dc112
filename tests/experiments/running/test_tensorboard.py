"""`--tensorboard`: what TensorBoard shows is what is recorded."""

import asyncio
import collections
import types

import numpy as np
import pytest
from cli import SMALL, mark_as_running, run, table

from tff_pmc.experiments import experiment as experiments
from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.results import read_results
from tff_pmc.record.round_record import RoundRecord
from tff_pmc.reports.statistics.weight_statistics import weight_figures

FLAGS = [
    *SMALL,
    "--priority=LD,DS,MD",
    "--tensorboard",
]


def events(folder):
    """Reads the events of a run: lists of values by tag and step, in their order."""
    import tensorflow as tf

    values = collections.defaultdict(list)
    for path in sorted((folder / "tensorboard").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                values[value.tag, event.step].append(tf.make_ndarray(value.tensor))
    return values


@pytest.fixture(scope="module")
def resumed_run(tmp_path_factory):
    """A run that was resumed as if it had been killed before its last checkpoint."""
    folder = tmp_path_factory.mktemp("tensorboard") / "out"
    done = run(*FLAGS, "--rounds=1", f"--output_dir={folder}")
    (line,) = [line for line in done.stdout.splitlines() if "TensorBoard" in line]
    assert line.endswith(f"-m tensorboard.main --logdir={folder}")
    checkpoint = folder / "LD-DS-MD" / "checkpoint.npz"
    after_one = checkpoint.read_bytes()
    for _ in range(2):
        run(*FLAGS, f"--output_dir={folder}", "--resume")
        checkpoint.write_bytes(after_one)
        mark_as_running(checkpoint.parent)
    return folder


def test_the_scalars_equal_the_record(resumed_run):
    folder = resumed_run / "LD-DS-MD"
    logged = events(folder)
    for row in table(folder / "rounds.csv"):
        step = int(row["round"])
        for name in ("accuracy", "train_loss", "p10", "clients", "excluded"):
            value, *_ = logged[f"rounds/{name}", step]
            assert value == np.float32(row[name]), name
        weights = [
            float(client["weight"])
            for client in table(folder / "cohort.csv")
            if client["round"] == row["round"]
        ]
        for name, extreme in (("largest", max), ("smallest", min)):
            value, *_ = logged[f"rounds/weight_{name}", step]
            assert value == np.float32(extreme(weights)), name
    for _, row in weight_figures(read_results(str(folder))).iterrows():
        value, *_ = logged[f"weights_effective_clients/{row['ordering']}", row["round"]]
        assert value == pytest.approx(row["effective_clients"], rel=1e-6)
    rows = table(resumed_run / "results.csv")
    results = {row["quantity"]: row["value"] for row in rows}
    for name in ("p10", "worst_tenth", "standard_deviation", "jain_index"):
        value, *_ = logged[f"fairness/{name}", 2]
        assert float(value) == pytest.approx(float(results[f"last_{name}"]), abs=2e-6)


def test_the_histograms_cover_clients_and_weights(resumed_run):
    folder = resumed_run / "LD-DS-MD"
    logged = events(folder)
    cohort = [row for row in table(folder / "cohort.csv") if row["round"] == "2"]
    for tag, count in (
        ("clients/accuracy", 100),
        ("cohort/weight", len(cohort)),
        ("cohort/LD", len(cohort)),
        ("model/00", 784 * 10),
    ):
        buckets, *_ = logged[tag, 2]
        assert buckets[:, 2].sum() == count, tag
    weights, *_ = logged["cohort/weight", 2]
    recorded = [float(row["weight"]) for row in cohort]
    assert weights[0, 0] == pytest.approx(min(recorded))
    assert weights[-1, 1] == pytest.approx(max(recorded))


def test_a_repeated_round_has_the_same_values(resumed_run):
    for (tag, step), values in events(resumed_run / "LD-DS-MD").items():
        assert len(values) == step, tag
        for value in values:
            np.testing.assert_array_equal(value, values[0])


@pytest.fixture
def tested_round():
    """A round of two clients, one of whom was excluded, and its model."""
    settings = experiments.settings("quickstart")
    reported = {
        "criteria_by_client": np.array([[4.0, 1, 1], [5.0, 1, 1]]),
        "excluded_by_client": np.array([0, 1]),
        **{"clients": 2, "excluded": 1, "examples": 4, "loss_sum": 2.0},
    }
    outcome = types.SimpleNamespace(
        in_force=settings.algorithm.score(settings),
        trials=(),
        metrics={
            "client_work": {"train": reported},
            "finalizer": {"update_rejected": 0},
        },
    )
    record = RoundRecord(
        round_num=3,
        settings=settings,
        outcome=outcome,
        cohort="ab",
        clients="ab",
        sizes=np.array([2, 0]),
        metric=ACCURACY,
        measured=np.array([1, 0]),
    )
    return record, types.SimpleNamespace(trainable=[np.zeros((2, 3))])


def test_a_rounds_events_are_on_disk_when_it_is_released(tmp_path, tested_round):
    """And from a thread that runs an event loop, as that of a notebook does."""
    from tff_pmc.experiments.callbacks import FinishedRound, tensorboard_events

    record, weights = tested_round
    callback = tensorboard_events.TensorBoard()
    callback.on_start(types.SimpleNamespace(folder=str(tmp_path)))

    async def cell():
        callback.after_round(FinishedRound(record, None, weights))

    asyncio.run(cell())
    assert events(tmp_path)["rounds/accuracy", 3] == [0.5]
    logged = tensorboard_events.scalars_and_arrays(FinishedRound(record, None, weights))
    assert logged["cohort"]["weight"].tolist() == [1.0, 0.0]
    assert logged["cohort"]["DS"].tolist() == [4.0, 5.0]
    assert logged["clients"]["accuracy"].tolist() == [0.5]
    assert logged["rounds"]["train_loss"] == 0.5 and "ordering" not in logged["rounds"]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "tensorboard").write_text("no folder")
    with pytest.raises(OSError, match=f"{tmp_path}/b/tensorboard"):
        callback.on_start(types.SimpleNamespace(folder=str(tmp_path / "b")))
