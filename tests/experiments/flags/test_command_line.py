"""Which runs the flags ask for."""

import dataclasses

import pytest
from cli import ROOT, labels, parse_settings

from tff_pmc.experiments.experiment import EXPERIMENTS

QUICKSTART = f"--flagfile={ROOT / 'experiments' / 'quickstart.flags'}"
# The flags, and the runs that they ask for.
ASKED = """
# The baseline, or the algorithms that an experiment compares.
--experiment=mnist_iid => DS
--experiment=adafed_2 => FedAvg / AdaFed, weights only / AdaFed
--experiment=adafed_1 => FedAvg / AdaFed, weights only, times samples
--experiment=adafed_3 => FedAvg / AdaFed
# The quickstart is what its flag file says.
 => DS / LD,DS,MD
--experiment=quickstart => DS / LD,DS,MD
QUICKSTART => DS / LD,DS,MD
# An experiment's own orderings give way to those asked for.
--priority=MD => MD
--criteria=DS,LD => DS
--algorithms=product,fedavg => product:DS,LD,MD / FedAvg
--adjustment=backtracking => DS,LD,MD (backtracking)
# Algorithms are named as people type them, and run wherever they fit.
--experiment=adafed_2|--algorithms=fedavg,AdaFed weights-only => FedAvg / AdaFed, weights only
--experiment=adafed_1|--algorithms=adafed_times_samples => AdaFed, times samples
--experiment=mnist_noniid|--algorithms=momentum,prioritized => Momentum / DS
--experiment=adafed_1|--algorithms=fedavg,median => FedAvg / Median
# Each ordering with each adjustment. DS has nothing to adjust: it is one run.
BOTH|--priority=MD,DS,LD;DS => MD,DS,LD / DS / MD,DS,LD (backtracking)
--priority=all => DS / LD / MD / DS,LD,MD / DS,MD,LD / LD,DS,MD / LD,MD,DS / MD,DS,LD / MD,LD,DS
# To some algorithms all orderings are one.
--algorithms=product|--priority=DS,LD;LD,DS => product:DS,LD
--experiment=lr_search|--learning_rates=0.5,0.1 => DS / DS
--experiment=lr_search|--learning_rates=0.2 => DS
"""  # noqa: E501


@pytest.mark.parametrize("case", [line for line in ASKED.splitlines() if "=>" in line])
def test_the_requested_runs_are_built(case):
    flags, expected = case.split(" => ")
    flags = flags.replace("QUICKSTART", QUICKSTART)
    flags = flags.replace("BOTH", "--adjustment=fixed,backtracking")
    assert labels(*filter(None, flags.split("|"))) == expected.split(" / ")


def test_dual_has_eight_algorithms_with_three_and_four_clients():
    run_labels = labels("--experiment=dual_criterion")
    assert len(set(run_labels)) == 16
    assert run_labels[:2] == ["Dual-criterion, 3 clients", "Simple average, 3 clients"]
    assert run_labels[-1] == "Quantized, 4 clients"
    four = labels("--experiment=dual_criterion", "--num_clients=4")
    assert four == run_labels[8:]


@pytest.mark.parametrize(
    ("flag", "policies"),
    [
        ([], ["fixed", "best_of_all", "fixed"]),
        (["--adjustment=fixed"], ["fixed"] * 3),
        (["--adjustment=backtracking"], ["backtracking", "backtracking", "fixed"]),
        (["--adjustment=fixed,best_of_all"],
         ["fixed", "best_of_all", "best_of_all", "fixed"]),
    ],
)  # fmt: skip
def test_dual_searches_its_lambda(flag, policies):
    """Without the search it would be FedAvg under another name."""
    flags = ["--criteria=ACC,DS", "--algorithms=prioritized,dual,median", *flag]
    runs = parse_settings("--experiment=quickstart", *flags)
    assert [run.adjustment.policy for run in runs] == policies
    assert "Dual-criterion" in [run.label for run in runs]
    (run,) = parse_settings("--experiment=adafed_2", "--algorithms=dual")
    assert run.adjustment.policy == "best_of_all"


def test_an_experiment_may_set_an_adjustment_or_a_priority(monkeypatch):
    quickstart, name = EXPERIMENTS["quickstart"], "--experiment=toy"
    searched = {**quickstart.settings, "adjustment": "backtracking"}
    first = {**quickstart.settings, "priority": ("LD", "MD")}
    for settings, orderings, expected in [
        (searched, quickstart.orderings, ["DS", "LD,DS,MD (backtracking)"]),
        (searched, (), ["DS,LD,MD (backtracking)"]),
        (first, (), ["LD,MD"]),
    ]:
        toy = dataclasses.replace(quickstart, settings=settings, orderings=orderings)
        monkeypatch.setitem(EXPERIMENTS._things, "toy", toy)
        assert labels(name) == expected
        assert labels(name, "--priority=DS") == ["DS"]
    assert labels(name, "--priority=MD") == ["MD"]
    assert labels(name, "--criteria=DS,LD") == ["DS"]


def test_a_cluster_is_requested_by_engine_or_by_address():
    from tff_pmc.experiments.flags.command import Command
    from tff_pmc.experiments.flags.command_line import cluster_options

    def options_from(**flag_values):
        return cluster_options(Command.from_flag_values(flag_values), flag_values)

    assert options_from() is None and options_from(engine="worker") is None
    assert options_from(engine="cluster").address == "local"
    assert options_from(cluster="local").address == "local"
    tcp = dict(cluster="tcp://127.0.0.1:1", insecure_cluster=True)
    options = options_from(**tcp, spread="runs", cluster_threads=3)
    values = (options.address, options.spread, options.threads)
    assert values == ("tcp://127.0.0.1:1", "runs", 3)


def test_paths_in_flags_may_start_with_a_tilde(monkeypatch):
    """Which a shell leaves as it is behind `=`."""
    from tff_pmc.experiments.flags.flag_definitions import parse

    monkeypatch.setenv("HOME", "/h")
    values = parse(["--output_dir=~/a", "--compare=~/b,c", "--tls_key=~/d"])
    paths = [values[flag] for flag in ("output_dir", "compare", "tls_key")]
    assert paths == ["/h/a", ("/h/b", "c"), "/h/d"]


@pytest.mark.parametrize(
    ("spread", "runs", "workers", "unit"),
    [
        ("auto", 1, 1, "clients"),
        ("auto", 2, 2, "runs"),
        ("auto", 9, 2, "runs"),
        ("auto", 9, 10, "clients"),
        ("clients", 9, 2, "clients"),
        ("runs", 1, 4, "runs"),
    ],
)
def test_the_size_decides_whether_runs_or_clients_are_spread(
    spread, runs, workers, unit
):
    from tff_pmc.cluster.options import ClusterOptions

    options = ClusterOptions(spread=spread)
    assert options.spreads_runs(runs, workers) == (unit == "runs")


@pytest.mark.parametrize(
    ("flags", "model"),
    [
        ("--dataset=synthetic", "softmax_regression"),
        ("--dataset=shakespeare", "stacked_lstm"),
        ("--dataset=sent140 --max_words=5", "bag_of_words"),
        ("--dataset=synthetic --model=mnist_cnn", "mnist_cnn"),
        ("--dataset=femnist", "mnist_cnn"),
    ],
)
def test_a_data_set_may_have_a_default_model(flags, model):
    runs = parse_settings("--experiment=quickstart", *flags.split())
    assert {run.model_name for run in runs} == {model}
