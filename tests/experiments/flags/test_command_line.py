"""Which runs the flags ask for."""

import pathlib

import pytest


def test_an_experiment_runs_its_baseline_or_the_systems_it_compares(labels):
    assert labels("--experiment=mnist_iid") == ["DS"]
    assert labels("--experiment=adafed_2") == [
        "FedAvg", "AdaFed, weights only", "AdaFed",
    ]  # fmt: skip
    assert labels("--experiment=adafed_1") == [
        "FedAvg", "AdaFed, weights only, times samples",
    ]  # fmt: skip
    assert labels("--experiment=adafed_3") == ["FedAvg", "AdaFed"]


def test_the_quickstart_is_what_its_flagfile_and_make_run(labels):
    root = pathlib.Path(__file__).resolve().parents[3]
    flagfile = "experiments/quickstart.flags"
    assert f"--flagfile={flagfile}" in (root / "Makefile").read_text()
    both = ["DS", "LD,DS,MD"]
    assert labels() == labels("--experiment=quickstart") == both
    assert labels(f"--flagfile={root / flagfile}") == both


def test_an_experiments_own_orderings_give_way_to_those_asked_for(labels):
    assert labels("--priority=MD") == ["MD"]
    assert labels("--criteria=DS,LD") == ["DS"]
    assert labels("--systems=product,fedavg") == ["product:DS,LD,MD", "FedAvg"]
    assert labels("--adjustment=backtracking") == ["DS,LD,MD (backtracking)"]


def test_dual_has_eight_algorithms_with_three_and_four_clients(labels):
    found = labels("--experiment=dual_criterion")
    assert len(set(found)) == 16
    assert found[:2] == ["Dual-criterion, 3 clients", "Simple average, 3 clients"]
    assert found[-1] == "Quantized, 4 clients"
    four = labels("--experiment=dual_criterion", "--num_clients=4")
    assert four == found[8:]


def test_systems_are_named_as_people_type_them(labels):
    flags = ("--experiment=adafed_2", "--systems=fedavg,AdaFed weights-only")
    assert labels(*flags) == ["FedAvg", "AdaFed, weights only"]
    times = labels("--experiment=adafed_1", "--systems=adafed_times_samples")
    assert times == ["AdaFed, times samples"]


def test_any_system_runs_in_any_experiment_it_fits(labels):
    found = labels("--experiment=mnist_noniid", "--systems=momentum,prioritized")
    assert found == ["Momentum", "DS"]
    found = labels("--experiment=adafed_1", "--systems=fedavg,median")
    assert found == ["FedAvg", "Median"]


def test_each_priority_runs_with_each_adjustment(labels):
    found = labels(
        *("--priority=MD,DS,LD", "--priority=DS"),
        *("--adjustment=fixed", "--adjustment=backtracking"),
    )
    # DS alone has nothing to adjust, and is one run.
    assert found == ["MD,DS,LD", "DS", "MD,DS,LD (backtracking)"]


def test_all_is_every_criterion_and_every_ordering(labels):
    found = labels("--priority=all")
    assert found[:3] == ["DS", "LD", "MD"] and len(set(found)) == 9


def test_to_some_systems_all_orderings_are_one(labels):
    flags = ("--systems=product", "--priority=DS,LD;LD,DS")
    assert labels(*flags) == ["product:DS,LD"]


def test_attributes_of_clients_are_criteria(labels):
    flags = ("--criteria=DS,trusted", "--priority=trusted,DS")
    assert labels(*flags, attributes=("trusted",)) == ["trusted,DS"]


@pytest.mark.parametrize("rates", ["0.5,0.1", "0.2"])
def test_a_search_is_a_run_of_ds_with_each_rate(labels, rates):
    found = labels("--experiment=lr_search", f"--learning_rates={rates}")
    assert found == ["DS"] * len(rates.split(","))


def test_the_protocol_sets_what_the_published_code_does_otherwise(labels):
    from tff_pmc.experiments.flags import command_line, flag_definitions

    def parsed(*arguments):
        given = flag_definitions.parse(["--experiment=celeba", *arguments])
        (settings,) = command_line.runs_of(given)
        return settings.by_flag()

    paper, theirs = parsed(), parsed("--protocol=reference_code")
    assert {flag for flag in theirs if theirs[flag] != paper.get(flag)} >= {
        "protocol", "model", "client_rule", "reach", "cohort_rounding", "initializer",
        "model_divergence",
    }  # fmt: skip
    assert theirs["model"] == "celeba_reference_cnn"
    own = parsed("--protocol=reference_code", "--reach=at_least")
    assert own["reach"] == "at_least" and own["client_rule"] == "reference_code"
