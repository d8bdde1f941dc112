"""Rounds to target, on numbers worked by hand, and the rule that runs have for them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from reported import write

from tff_pmc.reports import (
    compare,
    reference_code,
    rounds_to_target,
    summary,
    weight_distances,
)

# Three rounds of four devices with 10 test examples each.
CORRECT, TEN, AT = [[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]], [10] * 4, "at_least"


@pytest.mark.parametrize(
    ("correct", "examples", "target", "reach", "reached"),
    [
        # 70 %: one device in round 1, two in round 2, all four in round 3.
        (CORRECT, TEN, 70, AT, {10: 1, 25: 1, 30: 2, 50: 2, 60: 3, 75: 3, 90: 3}),
        # Above it, as the published script has it, is one in round 2.
        (CORRECT, TEN, 70, "above", {10: 2, 25: 2, 30: 3, 75: 3, 80: None}),
        # ceil(2.8) = 3 of the 4 devices have 90 %, and ceil(3.2) = 4 have not.
        (CORRECT, TEN, 90, AT, {70: 3, 80: None}),
        # 0.29 * 100 is 28.999999999999996.
        ([[29]], [100], 29, AT, {50: 1}),
        # A device without test examples never reaches a target.
        ([[0, 5]], [0, 5], 70, AT, {50: 1, 90: None}),
    ],
)
def test_the_first_round_in_which_enough_devices_are_there(
    correct, examples, target, reach, reached
):
    counts = np.array(correct), np.array(examples)
    found = rounds_to_target.rounds_to_target(*counts, [target], list(reached), reach)
    assert found == {(target, share): at for share, at in reached.items()}


@pytest.fixture
def runs(run_of):
    """A function that makes runs from their settings; None: the published code's."""

    def make(*settings):
        made = [
            run_of("DS", [[1]], [1], f"run_{k}", settings=own or {})
            for k, own in enumerate(settings)
        ]
        return [
            dataclasses.replace(run, reach="") if own is None else run
            for run, own in zip(made, settings)
        ]

    return make


@pytest.mark.parametrize(
    ("settings", "reach"),
    [
        ([{"reach": "above"}, {"reach": "above"}], "above"),
        ([{"reach": "at_least"}], "at_least"),
        ([{"rounds": 1}, {"reach": "at_least"}], "at_least"),
        ([{"reach": "above"}, None], "above"),
        ([None], "at_least"),
    ],
)
def test_the_rule_is_that_of_the_runs(runs, settings, reach):
    assert rounds_to_target.reach_of(runs(*settings)) == reach
    for given in ("", "at_least", "above"):
        for run in rounds_to_target.by_one_rule(runs(*settings), given):
            assert run.reach == (given or reach)


@pytest.mark.parametrize(
    ("settings", "targets"),
    [
        ([{"targets": [60, 65]}, {"targets": [60, 65]}], (60, 65)),
        ([{"targets": [60]}, None], (60,)),
        ([{"record": {"targets": [60]}}, {"targets": [60]}], (60,)),
        ([{"rounds": 1}, None], ()),
    ],
)
def test_the_targets_are_those_of_the_runs(runs, settings, targets):
    assert rounds_to_target.targets_of(runs(*settings)) == targets


@pytest.mark.parametrize(
    ("names", "last"),
    [(["celeba", "celeba"], 85), (["mnist", "celeba"], 95), (["mnist"], 95)],
)
def test_without_any_they_are_those_of_the_published_tables(run_of, names, last):
    runs = [run_of("DS", [[1]], [1], data={"name": name}) for name in names]
    assert reference_code.targets(runs)[-1] == last


@pytest.mark.parametrize(
    ("of", "settings", "words"),
    [
        (rounds_to_target.reach_of, [{"reach": "above"}, {}],
         "run_0 has reach above and run_1 has at_least: choose by --reach"),
        (rounds_to_target.targets_of, [{"targets": [70, 80]}, {"targets": [75]}],
         "run_0 has targets 70,80 and run_1 has 75: choose by --experiment"),
    ],
)  # fmt: skip
def test_runs_that_differ_are_refused_in_one_line(runs, fails, of, settings, words):
    fails(lambda: of(runs(*settings)), words)


def with_weights(run, seed=0):
    """The run with what tables of several runs or seeds read of its record."""
    names = ["ordering", *weight_distances.FIGURES]
    rows = [(name, 0.1 * k, 3.0, 0.0) for k, name in enumerate(("DS", "LD", "MD"))]
    data = {"name": "mnist", "clients": 4, "options": {}, "origin": {"source": "a"}}
    settings = dict(experiment="mnist_iid", model="m", client_optimizer="sgd", rounds=3,
                    learning_rate=0.1, local_epochs=1, batch_size=0, batch_seed=seed,
                    targets=[80], partition="iid")  # fmt: skip
    info = {**run.info, "data": data, "settings": settings, "system": "prioritized"}
    weights = pd.DataFrame(rows, columns=names)
    return dataclasses.replace(run, info=info, weights=weights)


TABLES = ["rounds_to_target", "pmc_table2", "pmc_variance", "da_table1"]
OVER_SEEDS = ["seed_table", "ordering_effect", "spread_effect"]


@pytest.mark.parametrize("none", [0, 1])
@pytest.mark.parametrize("name", [*TABLES, *OVER_SEEDS, "compare"])
def test_tables_that_count_devices_say_how_many_have_no_tests(
    run_of, tmp_path, monkeypatch, name, none
):
    sizes = [10, 10, 10, 10 * (not none)]
    counts = np.array([[9, 1, 1, 0], [9, 9, 1, 0], [9, 9, 9, 0]])
    runs = [with_weights(run_of(one, counts, sizes)) for one in ("DS", "LD", "MD")]
    if name in OVER_SEEDS:
        # Whose clients differ: of one seed all have tests.
        full = [run_of(one, counts, [10] * 4) for one in ("DS", "LD", "MD")]
        by_seed = {0: [with_weights(run) for run in full]}
        by_seed[1] = [with_weights(run, 1) for run in runs]
        baseline = "prioritized" if name == "spread_effect" else "DS"
        text = write(name, by_seed, tmp_path, baseline=baseline)
    elif name == "compare":
        monkeypatch.setattr(compare, "read_runs", lambda path: runs)
        text = compare.comparison_text(compare.compare("a", "b"))
    else:
        text = write(name, runs, tmp_path)
    pages = "".join(path.read_text() for path in tmp_path.glob("*.md"))
    assert "Data: mnist ()" not in pages  # It has no options.
    number = "0 or 1" if name in OVER_SEEDS else "1"
    says = f"Clients without test examples: {number}. They count among the devices"
    for whole in [text, pages] if name == "rounds_to_target" else [text + pages]:
        assert (says in whole) == bool(none)
        assert whole.count("without test examples") in (0, 1, 2)


@pytest.mark.parametrize(
    ("sizes", "says"), [([10, 10], "(2)"), ([10, 0], "(1 of 2, who have tests)")]
)
def test_the_spread_over_clients_is_of_those_that_have_tests(run_of, sizes, says):
    run = run_of("DS", [[9, 0]], sizes)
    assert summary.text([run]).splitlines()[0].endswith(f"over the clients {says}")
