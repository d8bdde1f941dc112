"""The settings of a run: groups, ranges, labels, and which can be combined."""

import pytest

from declared_settings import SettingError
from tff_pmc.experiments.experiment import settings
from tff_pmc.settings import RunSettings, flag_values, run_settings


def mnist(**changes):
    return settings("mnist_noniid", changes)


def test_cohort_sizes_are_rounded_up():
    for size, clients, expected in ((0.1, 100, 10), (0.1, 371, 38), (7, 100, 7)):
        training = mnist(clients_per_round=size).training
        assert training.cohort_size(clients, "mnist") == expected
    for percent in range(1, 100):  # 0.07 * 100 is 7.000000000000001.
        training = mnist(clients_per_round=percent / 100).training
        assert training.cohort_size(100, "mnist") == percent


def test_cohort_sizes_are_rounded_to_nearest_as_in_the_published_code():
    training = mnist(clients_per_round=0.1, cohort_rounding="nearest").training
    assert [training.cohort_size(k, "mnist") for k in (14, 16, 4)] == [1, 2, 1]


def test_only_flags_that_a_user_sets_must_have_an_effect():
    """What an experiment or an earlier run sets may lose its effect."""
    nearest = mnist(cohort_rounding="nearest")
    assert nearest.with_changes(clients_per_round=10).training.clients_per_round == 10
    dirichlet = mnist(partition="dirichlet", dirichlet_alpha=0.3)
    assert dirichlet.with_changes(partition="iid").data.partition == "iid"
    with pytest.raises(SettingError, match="--cohort_rounding needs a fraction"):
        mnist(cohort_rounding="nearest", clients_per_round=10)


def test_a_cohort_larger_than_the_federation_is_rejected():
    with pytest.raises(SettingError, match="mnist has 100 clients"):
        mnist(clients_per_round=101).training.cohort_size(100, "mnist")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": True}, "--rounds must be a whole number"),
        ({"learning_rate": float("nan")}, "--learning_rate"),
        ({"clients_per_round": 1.5}, "--clients_per_round"),
        ({"client_attributes": ("DS",)}, "'DS' is not a valid attribute name"),
        *(
            ({"client_attributes": (name,)}, f"--client_table: '{name}' is not a valid")
            for name in ("all", "round", "seed", "label", "seed_3", "a b")
        ),
        ({"priority": ()}, "--priority.*empty"),
        ({"conv_activation": "tanh"}, "--conv_activation.*relu"),
        ({"initializer": "zeros"}, "--initializer.*glorot_uniform"),
        ({"criteria": ("DS", "DS")}, "--criteria.*twice"),
        ({"validation_fraction": 1.0}, "--validation_fraction.*between"),
        ({"algorithm": "momentum", "momentum_beta": 1.0}, "--momentum_beta must be"),
        ({"algorithm": "momentum", "adjustment": "backtracking"}, "has none: use"),
    ],
)
def test_the_error_for_a_value_out_of_range_names_its_flag(change, message):
    with pytest.raises(SettingError, match=message):
        mnist(**change)


def test_labels_and_folders_tell_adjusted_runs_apart():
    fixed = mnist(priority=("MD", "DS", "LD"))
    adjusted = fixed.with_changes(adjustment="backtracking")
    assert (fixed.label, fixed.folder_name) == ("MD,DS,LD", "MD-DS-LD")
    assert adjusted.label == "MD,DS,LD (backtracking)"
    assert adjusted.folder_name == "MD-DS-LD_backtracking"


def test_labels_and_folders_of_algorithms_name_differing_data_settings():
    other = settings("adafed_1", {"algorithm": "fedavg", "adafed_reading": "a_class"})
    assert other.label == "FedAvg, 5,500 a class"
    assert other.folder_name == "fedavg_5_500_a_class"
    four = settings("dual_criterion", {"algorithm": "momentum", "num_clients": 4})
    assert (four.label, four.folder_name) == (
        "Momentum, 4 clients",
        "momentum_4_clients",
    )
    weights = settings("adafed_2", {"algorithm": "adafed_weights_only"})
    assert weights.label == "AdaFed, weights only"
    assert weights.folder_name == "adafed_weights_only"


def test_a_rate_that_decays_is_in_label_folder_and_record():
    decay = {"client_rate_decay": 0.5, "client_rate_decay_every": 10}
    config = mnist(priority=("DS",), prox_mu=0.1, **decay)
    assert config.label == "DS, prox 0.1, rate times 0.5 every 10 rounds"
    assert config.folder_name == "DS_prox_0_1_rate_times_0_5_every_10_rounds"
    record = config.to_record()["training"]
    assert {flag: record[flag] for flag in decay} == decay
    config = mnist(priority=("DS",), client_rate_decay=0.9)
    assert config.label == "DS, rate times 0.9 a round"
    assert "client_rate_decay_every" not in config.to_record()["training"]


def test_the_file_of_initial_weights_is_in_label_and_record():
    file = ("/somewhere/start.npz", "9f")
    config = mnist(priority=("DS",), initial_weights=file)
    assert (config.label, config.folder_name) == (
        "DS, from start.npz",
        "DS_from_start_npz",
    )
    assert config.to_record()["training"]["initial_weights"] == file


def test_femnist_has_the_settings_of_the_device_aware_paper():
    femnist = settings("femnist")
    training = femnist.training
    assert (training.rounds, training.batch_size) == (1000, 10)
    assert (training.local_epochs, training.learning_rate) == (5, 0.01)
    assert training.clients_per_round == 0.1
    assert femnist.record.targets == (75, 80)


def test_another_model_keeps_shared_settings_and_drops_the_rest():
    adafed = settings("adafed_1", {"algorithm": "adafed"})
    other = adafed.with_changes(model="mnist_cnn", model_seed=3)
    assert "keras_dense_dropout" not in other.by_flag()
    assert other.model.seed == 3
    with pytest.raises(SettingError, match="--keras_dense_dropout is not a setting of"):
        adafed.with_changes(model="mnist_cnn", keras_dense_dropout=0.1)


@pytest.mark.parametrize(
    ("data", "flag", "meant"),
    [
        # A number of clients is not a share of examples, and sizes are not a rule.
        ("femnist", "num_clients", ""),
        ("celeba", "client_sizes", ""),
        ("cifar10", "wrong_clients", ""),
        ("femnist", "image_fraction", "sample_fraction"),
        ("mnist", "partitions", "partition"),  # A slip: there is no such flag.
    ],
)
def test_a_hint_is_a_flag_of_the_same_kind(data, flag, meant):
    with pytest.raises(SettingError, match=f"--{flag} is not a setting of") as raised:
        settings("mnist_iid", {"dataset": data, flag: 1})
    assert str(raised.value).partition("did you mean --")[2].rstrip("?") == meant


@pytest.mark.parametrize("data", ["mnist", "digits5k", "cifar10_dealt"])
def test_a_number_of_clients_is_in_the_label_and_in_the_record(data):
    """And none is as it was before there was the flag."""
    before = settings("mnist_iid", {"dataset": data})
    config = settings("mnist_iid", {"dataset": data, "num_clients": 20})
    assert "num_clients" not in before.to_record()["data"]
    assert config.to_record()["data"]["num_clients"] == 20
    assert config.label == f"{before.label}, 20 clients"
    assert config.folder_name != before.folder_name


def test_the_record_has_every_setting_once_by_its_flag():
    config = settings("dual_criterion", {"algorithm": "momentum", "momentum_beta": 0.5})
    record = config.to_record()
    assert record["algorithm"] == {
        "algorithm": "momentum", "momentum_beta": 0.5, "momentum_eta": 1.0,
    }  # fmt: skip
    flags = [flag for group in record.values() if isinstance(group, dict)
             for flag in group]  # fmt: skip
    assert len(flags) == len(set(flags))
    assert record["data"]["dataset"] == "cifar10"
    again = RunSettings.from_flag_values({}, inherited=config.by_flag())
    assert again == config


def test_settings_newer_than_old_records_are_recorded_only_if_they_differ():
    """So that a run of before there was the setting is resumed, and read, as it is."""
    record = mnist().to_record()
    assert "server" not in record and "selection" not in record
    assert "prox_mu" not in record["training"]
    changed = {"prox_mu": 0.1, "selection": "by_size", "server_optimizer": "momentum"}
    record = mnist(**changed, server_momentum=0.9).to_record()
    assert record["training"]["prox_mu"] == 0.1
    assert record["selection"] == {"selection": "by_size"}
    assert record["server"] == {"server_optimizer": "momentum", "server_momentum": 0.9}


def test_with_seed_replaces_all_seeds_except_some():
    names = {"partition_seed", "model_seed", "cohort_seed", "batch_seed"}
    values = mnist().with_seed(7, but_for=["batch_seed"]).by_flag()
    seeds = {flag: values[flag] for flag in values if flag.endswith("_seed")}
    assert seeds == {**dict.fromkeys(names, 7), "batch_seed": 0}


def test_the_papers_name_of_the_model_divergence_is_accepted():
    assert flag_values.parse_codes("MW,DS") == ("MD", "DS")


def test_ranges_belong_to_the_criteria_that_are_measured():
    ranges = flag_values.parse_ranges("DS=0:600,LD=0:10,MD=0:1")
    config = mnist(normalization="range", criteria_ranges=ranges)
    normalization = config.aggregation.scores_normalization
    assert normalization.ranges == ((0, 600), (0, 10), (0, 1))
    with pytest.raises(SettingError, match="--criteria_ranges.*needs a range for MD"):
        mnist(normalization="range", criteria_ranges=ranges[:2])
    with pytest.raises(ValueError, match="is not CODE=LOW:HIGH"):
        flag_values.parse_ranges("DS=0-600")


def test_without_the_algorithms_the_error_says_what_to_import(monkeypatch):
    monkeypatch.setitem(run_settings.COMPONENTS, "algorithm", {})
    chosen = {"dataset": "mnist", "model": "mnist_cnn", "algorithm": "fedavg"}
    with pytest.raises(SettingError, match="import tff_pmc.algorithms first"):
        RunSettings.from_flag_values({"experiment": "mnist_noniid", **chosen})
