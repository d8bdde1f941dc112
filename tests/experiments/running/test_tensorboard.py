"""`--tensorboard`: what TensorBoard is given is what the record says."""

import asyncio
import collections
import types

import numpy as np
import pytest
from cli import SMALL, restarted, run, table

FLAGS = [
    *SMALL,
    "--priority=LD,DS,MD",
    "--tensorboard",
]


def events(folder):
    """Reads the events of a run: lists of values by tag and step, in their order."""
    import tensorflow as tf

    found = collections.defaultdict(list)
    for path in sorted((folder / "tensorboard").iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found[value.tag, event.step].append(tf.make_ndarray(value.tensor))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorboard") / "out"
    done = run(*FLAGS, f"--output_dir={folder}")
    (line,) = [one for one in done.stdout.splitlines() if "TensorBoard" in one]
    assert line.endswith(f"-m tensorboard.main --logdir={folder}")
    return folder


def test_the_scalars_are_the_records_numbers(made):
    folder = made / "LD-DS-MD"
    found = events(folder)
    for row in table(folder / "rounds.csv"):
        step = int(row["round"])
        for name in ("accuracy", "train_loss", "p10", "clients", "excluded"):
            (value,) = found[f"rounds/{name}", step]
            assert value == np.float32(row[name]), name
    for row in table(folder / "weights.csv"):
        tag = f"weights_effective_clients/{row['ordering']}", int(row["round"])
        (value,) = found[tag]
        assert value == np.float32(row["effective_clients"])
    rows = table(made / "results.csv")
    results = {row["quantity"]: row["value"] for row in rows}
    for name in ("p10", "worst_tenth", "standard_deviation", "jain_index"):
        (value,) = found[f"fairness/{name}", 2]
        assert float(value) == pytest.approx(float(results[f"last_{name}"]), abs=2e-6)


def test_the_histograms_are_of_clients_and_weights(made):
    folder = made / "LD-DS-MD"
    found = events(folder)
    cohort = [row for row in table(folder / "cohort.csv") if row["round"] == "2"]
    for tag, count in (
        ("clients/accuracy", 100),
        ("cohort/weight", len(cohort)),
        ("cohort/LD", len(cohort)),
        ("model/00", 3 * 3 * 32),
    ):
        (buckets,) = found[tag, 2]
        assert buckets[:, 2].sum() == count, tag
    (weights,) = found["cohort/weight", 2]
    recorded = [float(row["weight"]) for row in cohort]
    assert weights[0, 0] == pytest.approx(min(recorded))
    assert weights[-1, 1] == pytest.approx(max(recorded))


def test_a_resumed_run_goes_on(made):
    """As if killed before its last checkpoint: round 2 is made, and said, again."""
    folder = made / "LD-DS-MD"
    before = events(folder)
    restarted(folder)
    (folder / "checkpoints" / "round_2.state").unlink()
    run(*FLAGS, f"--output_dir={made}", "--resume")
    after = events(folder)
    assert after.keys() == before.keys()
    for (tag, step), values in after.items():
        assert len(values) == step, tag
        for value in values:
            np.testing.assert_array_equal(value, before[tag, step][0])


@pytest.fixture
def of_a_round():
    """The rows of a round of two clients, one of whom was left out, and a model."""
    tables = {
        "rounds": [{"round": 3, "accuracy": 0.5, "ordering": "DS"}],
        "clients": [{"correct": 1, "examples": 2}, {"correct": 0, "examples": 0}],
        "cohort": [
            {"round": 3, "client": "a", "DS": 4.0, "excluded": 0, "weight": 1.0},
            {"round": 3, "client": "b", "DS": 5.0, "excluded": 1, "weight": np.nan},
        ],
        "weights": [],
    }
    return tables, types.SimpleNamespace(trainable=[np.zeros((2, 3))])


def test_a_rounds_events_are_on_disk_when_it_is_released(tmp_path, of_a_round):
    """And from a thread that runs an event loop, as that of a notebook does.

    A client that was left out has no weight.
    """
    from tff_pmc.experiments.running import callbacks, tensorboard_events

    open_ones = tensorboard_events.TensorBoardEvents(str(tmp_path))

    async def cell():
        open_ones.after_round(callbacks.RoundDone(3, *of_a_round, None, None, {}))

    asyncio.run(cell())
    assert events(tmp_path)["rounds/accuracy", 3] == [0.5]
    found = tensorboard_events.values(*of_a_round)
    assert found["cohort"]["weight"].tolist() == [1.0]
    assert found["cohort"]["DS"].tolist() == [4.0, 5.0]
    assert found["clients"]["accuracy"].tolist() == [0.5]
    assert found["rounds"] == {"accuracy": 0.5}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "tensorboard").write_text("no folder")
    with pytest.raises(OSError, match=f"{tmp_path}/b/tensorboard"):
        tensorboard_events.TensorBoardEvents(str(tmp_path / "b"))
