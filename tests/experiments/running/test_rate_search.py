"""The search for a learning rate on four clients of ten images."""

import json
import operator
import types

import numpy as np
import pytest
from cli import MODEL, federation, parse_settings, table

import leaf_data
from tff_pmc.experiments.callbacks import Callback
from tff_pmc.experiments.experiment import settings
from tff_pmc.record.record_error import RecordError

ROUNDS = 3
RATES = (0.05, 1e-6, 0.3)


@pytest.fixture(scope="module")
def data():
    """Four clients of ten images: a white stripe, whose place is the label."""
    y = np.tile(np.arange(5, dtype=np.int32), 8)
    x = np.zeros((40, 28, 28), np.uint8)
    for image, label in zip(x, y):
        image[5 * label : 5 * label + 5] = 255
    examples = leaf_data.Examples(x, y, np.arange(0, 41, 10), tuple("abcd"))
    return federation("stripes", examples, 10)


def runs(*rates, **changes):
    base = {
        "model": MODEL,
        "rounds": ROUNDS,
        "local_epochs": 1,
        "targets": (50, 90),
        "num_packs": 1,
        "clients_per_round": 2,
        **changes,
    }
    return [settings("quickstart", {**base, "learning_rate": rate}) for rate in rates]


def first_round_by_hand(folder, target=90, reaches=operator.ge):
    """The first round in which two of the four have at least the target."""
    rounds = {}
    for row in table(folder / "clients.csv"):
        good = reaches(100 * int(row["correct"]), target * int(row["examples"]))
        rounds.setdefault(int(row["round"]), []).append(good)
    return next((number for number, good in rounds.items() if sum(good) >= 2), None)


@pytest.fixture(scope="module")
def rate_search():
    from tff_pmc.experiments.running import rate_search

    return rate_search


@pytest.fixture(scope="module")
def searched(rate_search, data, runtime, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "out"
    return folder, rate_search.search(runs(*RATES), data, str(folder))


def test_each_rate_ends_at_the_target_and_the_fastest_is_reported(searched):
    folder, text = searched
    rows = table(folder / "rates.csv")
    assert [float(row["learning_rate"]) for row in rows] == list(RATES)
    first = [first_round_by_hand(folder / f"rate_{rate:g}") for rate in RATES]
    assert [row["rounds"] for row in rows] == [str(n or "") for n in first]
    assert [int(row["rounds_run"]) for row in rows] == [n or ROUNDS for n in first]
    # One never arrives, and the one that arrives first is not the first searched.
    slow, never, best = first
    assert never is None and best < slow < ROUNDS
    assert text.endswith(f"First: {RATES[2]:g}, in round {best}")
    assert "reach 90 %" in text  # The highest of the targets.
    assert "20% of all devices' training examples" in text
    for rate in RATES:  # A fifth of ten, on which nobody trains.
        tested = table(folder / f"rate_{rate:g}" / "clients.csv")
        trained = table(folder / f"rate_{rate:g}" / "cohort.csv")
        assert {row["examples"] for row in tested} == {"2"}
        assert {float(row["DS"]) for row in trained} == {8}


def test_the_target_is_reached_by_the_rule_that_is_recorded(
    rate_search, data, runtime, tmp_path
):
    """A device has two examples: above 50 % are both, and one is not enough."""
    correct, sizes = np.array([[1, 1, 1, 1], [2, 2, 1, 1]]), np.full(4, 2)
    for rule, first in (("at_least", 1), ("above", 2)):
        assert rate_search._first_round(correct, sizes, 50, rule) == first
        tested = types.SimpleNamespace(measured=correct[0], sizes=sizes)
        ends = rate_search.TargetReached(50, rule).after_round(
            types.SimpleNamespace(record=tested)
        )
        assert ends == (rule == "at_least")
    run_settings = runs(RATES[2], targets=(50,), reach="above")
    text = rate_search.search(run_settings, data, str(tmp_path / "out"))
    folder = tmp_path / "out" / f"rate_{RATES[2]:g}"
    above = first_round_by_hand(folder, 50, operator.gt)
    assert "devices are above 50 % on" in text and f"in round {above}" in text
    search = ("--experiment=lr_search", "--search_for=mnist_noniid")
    for flags, rule in (
        ([], "at_least"),
        (["--reach=above"], "above"),
        # The published scripts that search differ from those that evaluate.
        (["--protocol=reference_code"], "at_least"),
    ):
        assert {
            run_settings.record.reach
            for run_settings in parse_settings(*search, *flags)
        } == {rule}


@pytest.mark.slow
def test_a_rate_that_breaks_every_client_is_not_the_best(
    rate_search, data, runtime, tmp_path
):
    from tff_pmc.record.record_error import LostRunError

    cnn = {"model": "keras_simple_convnet"}  # A linear model takes any rate.
    text = rate_search.search(runs(1e10, 1e-6, **cnn), data, str(tmp_path / "one"))
    assert "1e-06" in text.splitlines()[-1]
    lost, _ = table(tmp_path / "one" / "rates.csv")
    assert lost["best_accuracy"] == ""
    with pytest.raises(LostRunError):
        rate_search.search(runs(1e10, 1e11, **cnn), data, str(tmp_path / "both"))


@pytest.mark.slow
def test_a_half_done_search_is_resumed(rate_search, data, searched, tmp_path):
    folder = tmp_path / "out"

    class Stop(Callback):
        def after_round(self, round):
            if round.record.settings.training.learning_rate == RATES[1]:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rate_search.search(runs(*RATES), data, str(folder), callbacks=[Stop()])
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    assert names == sorted(f"rate_{rate:g}" for rate in RATES[:2])
    assert not (folder / "rates.csv").exists()
    done = folder / f"rate_{RATES[0]:g}"
    before = {path: path.read_bytes() for path in done.glob("*.*")}

    text = rate_search.search(runs(*RATES), data, str(folder), resume=True)
    assert text == searched[1]
    assert (folder / "rates.csv").read_bytes() == (
        (searched[0] / "rates.csv").read_bytes()
    )
    info = json.loads((folder / f"rate_{RATES[1]:g}" / "run.json").read_text())
    assert len(info["resumed"]) == 1  # It was not begun again.
    assert {path: path.read_bytes() for path in done.glob("*.*")} == before
    # More rounds are for the rates that did not arrive.
    rate_search.search(runs(*RATES, rounds=ROUNDS + 1), data, str(folder), resume=True)
    assert {path: path.read_bytes() for path in done.glob("*.*")} == before
    rounds = [int(row["rounds_run"]) for row in table(folder / "rates.csv")]
    assert rounds[0] < ROUNDS and rounds[1] == ROUNDS + 1
    for other, how, flag in (
        (runs(0.3), {}, "learning_rates"),
        (runs(*RATES), {"held_out": "own"}, "held_out"),
    ):
        with pytest.raises(RecordError, match=flag):
            rate_search.search(other, data, str(folder), resume=True, **how)
