"""Settings, cohorts and rows of the record, without TensorFlow."""

import dataclasses
import importlib
import inspect
import itertools

import numpy as np
import pytest

from leaf_data import registry
from tff_pmc import scores
from tff_pmc.experiments import choices, files, named, parsing, rows, run_folder
from tff_pmc.experiments import config as config_lib
from tff_pmc.experiments.cohorts import cohort

CONFIG = named.EXPERIMENTS["mnist_noniid"]


class TestCohort:
    def test_it_is_a_pure_function_of_seed_and_round(self):
        first = [cohort(3, r, 100, 10) for r in range(1, 6)]
        assert first == [cohort(3, r, 100, 10) for r in range(1, 6)]
        assert cohort(3, 4, 100, 10) == first[3]  # Whatever came before.
        assert len({tuple(c) for c in first}) == 5
        assert cohort(4, 1, 100, 10) != first[0]

    def test_clients_are_different_and_each_comes_equally_often(self):
        counts = np.zeros(20)
        for r in range(2000):
            chosen = cohort(0, r, 20, 5)
            assert len(set(chosen)) == 5
            counts[chosen] += 1
        # 500 expected, standard deviation 19: five of them are 97.
        assert np.abs(counts - 500).max() < 97


class TestConfig:
    def test_all_is_the_nine_rows_of_pmcs_tables(self):
        found = parsing.parse_priorities(["all"], ("DS", "LD", "MD"))
        assert found[:3] == [("DS",), ("LD",), ("MD",)]
        assert set(found[3:]) == set(itertools.permutations(("DS", "LD", "MD")))
        assert len(found) == 9

    def test_the_papers_name_of_the_model_divergence_is_accepted(self):
        assert parsing.parse_priorities(["MW,DS"], ()) == [("MD", "DS")]

    def test_cohort_sizes_are_rounded_up(self):
        for size, clients, expected in ((0.1, 100, 10), (0.2, 371, 75), (7, 100, 7)):
            config = dataclasses.replace(CONFIG, clients_per_round=size)
            assert config.cohort_size(clients) == expected
        for percent in range(1, 100):  # 0.07 * 100 is 7.000000000000001.
            config = dataclasses.replace(CONFIG, clients_per_round=percent / 100)
            assert config.cohort_size(100) == percent

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"rounds": 0}, "--rounds must be at least 1"),
            ({"batch_size": -1}, "--batch_size"),
            ({"learning_rate": 0.0}, "--learning_rate"),
            ({"learning_rate": float("nan")}, "--learning_rate"),
            ({"clients_per_round": 1.5}, "--clients_per_round"),
            ({"clients_per_round": float("inf")}, "--clients_per_round"),
            ({"normalization": "range"}, "needs --criteria_ranges"),
            ({"client_attributes": ("DS",)}, "cannot be called 'DS'"),
            ({"client_attributes": ("round",)}, "cannot be called 'round'"),
            ({"cohort_seed": -1}, "--cohort_seed"),
            ({"priority": ("DS", "DS")}, "--priority.*twice"),
            ({"priority": ()}, "--priority.*empty"),
            ({"conv_activation": "tanh"}, "--conv_activation.*relu"),
            ({"initializer": "zeros"}, "--initializer.*glorot_uniform"),
            ({"criteria": ("DS", "DS")}, "--criteria.*twice"),
            ({"adjustment": "greedy"}, "--adjustment.*backtracking"),
            ({"judge_on": "train"}, "--judge_on.*local_validation"),
            ({"validation_fraction": 1.0}, "--validation_fraction.*between"),
            ({"sample_fraction": 0.0}, "--sample_fraction"),
            ({"min_samples": -1}, "--min_samples"),
            ({"model": "resnet"}, "--model.*femnist_cnn"),
        ],
    )
    def test_values_out_of_range_are_refused_by_flag(self, change, message):
        with pytest.raises(config_lib.ConfigError, match=message):
            dataclasses.replace(CONFIG, **change)

    def test_labels_and_folders_tell_adjusted_runs_apart(self):
        fixed = dataclasses.replace(CONFIG, priority=("MD", "DS", "LD"))
        adjusted = dataclasses.replace(fixed, adjustment="backtracking")
        assert (fixed.label, fixed.folder) == ("MD,DS,LD", "MD-DS-LD")
        assert adjusted.label == "MD,DS,LD (backtracking)"
        assert adjusted.folder == "MD-DS-LD_backtracking"

    def test_femnist_is_as_the_device_aware_paper_prints_it(self):
        femnist = named.EXPERIMENTS["femnist"]
        printed = (femnist.rounds, femnist.batch_size, femnist.local_epochs)
        assert printed == (1000, 10, 5)
        assert (femnist.learning_rate, femnist.clients_per_round) == (0.01, 0.1)
        assert femnist.targets == (75, 80)

    def test_each_data_set_is_given_options_it_knows(self):
        for name, options in choices.DATA_OPTIONS.items():
            loader = importlib.import_module(registry._LOADERS[name]).load
            assert set(options) <= set(inspect.signature(loader).parameters)

    def test_a_cohort_larger_than_the_federation_is_refused(self):
        config = dataclasses.replace(CONFIG, clients_per_round=101)
        with pytest.raises(config_lib.ConfigError, match="has 100 clients"):
            config.cohort_size(100)

    @pytest.mark.parametrize("values", [["DS", "DS"], ["all", "DS"], ["XX"]])
    def test_orderings_named_twice_or_unknown_are_refused(self, values):
        with pytest.raises(config_lib.ConfigError, match="--priority"):
            parsing.parse_priorities(values, ("DS", "LD", "MD"))


class TestRows:
    raw = np.array([[40, 1, 0.7], [40, 3, 0.6], [40, 2, 0.8]])

    def test_accuracy_is_weighted_by_local_test_size(self):
        """5 of 10 and 30 of 30: 35 of 40, and no device counts twice."""
        metrics = {
            "client_work": {
                "train": {"examples": 8, "loss_sum": 4.0, "clients": 2, "excluded": 1}
            },
            "finalizer": {"update_rejected": 0},
        }
        row = rows.round_row(3, np.array([5, 30, 0]), np.array([10, 30, 0]), metrics)
        assert row["accuracy"] == 0.875
        assert (row["correct"], row["examples"]) == (35, 40)
        assert (row["p10"], row["p50"], row["p90"]) == (0.55, 0.75, 0.95)
        assert row["train_loss"] == 0.5

    def test_every_ordering_is_held_against_the_one_in_force(self):
        config = dataclasses.replace(CONFIG, priority=("LD", "DS", "MD"))
        found = {row["ordering"]: row for row in rows.weight_rows(1, config, self.raw)}
        assert len(found) == 9
        in_force = [row for row in found.values() if row["in_force"]]
        assert [row["ordering"] for row in in_force] == ["LD,DS,MD"]
        assert found["LD,DS,MD"]["total_variation"] == 0
        assert found["DS"]["effective_clients"] == pytest.approx(3)
        # DS weighs all alike; LD alone gives 1/6, 3/6, 2/6.
        assert found["LD"]["effective_clients"] == pytest.approx(36 / 14)
        p = scores.participant_weights(self.raw, scores.prioritized((1, 0, 2)))
        expected = 0.5 * np.abs(p - 1 / 3).sum()
        assert found["DS"]["total_variation"] == pytest.approx(expected, rel=1e-6)

    def test_the_cohorts_weights_sum_to_one(self):
        found = rows.cohort_rows(
            1, CONFIG, ["a", "b", "c"], [2, 0, 1], self.raw, np.zeros(3, bool)
        )
        assert [row["client"] for row in found] == ["c", "a", "b"]
        assert sum(row["weight"] for row in found) == pytest.approx(1)
        assert found[1]["LD"] == 3

    def test_a_client_left_out_keeps_its_criteria_and_has_no_weight(self):
        found = rows.cohort_rows(
            1, CONFIG, ["a", "b", "c"], [0, 1, 2], self.raw, np.array([0, 1, 0], bool)
        )
        assert [row["weight"] for row in found] == [0.5, 0, 0.5]
        assert [row["excluded"] for row in found] == [0, 1, 0]
        assert found[1]["LD"] == 3

    def test_the_ordering_in_force_is_always_recorded(self):
        config = dataclasses.replace(CONFIG, priority=("LD", "DS"))
        found = rows.weight_rows(1, config, self.raw)
        assert [row["ordering"] for row in found if row["in_force"]] == ["LD,DS"]
        many = dataclasses.replace(
            CONFIG,
            criteria=("DS", "LD", "MD", "a", "b", "c"),
            client_attributes=("a", "b", "c"),
            priority=("c", "DS"),
        )
        assert len(rows.recorded_orderings(many)) == 7


class TestRunFolder:
    def test_rows_are_on_disk_as_soon_as_they_are_appended(self, tmp_path):
        folder = run_folder.RunFolder(str(tmp_path / "run"), {"settings": {}})
        folder.append("rounds", [{"round": 1, "accuracy": 0.5}])
        path = tmp_path / "run" / "rounds.csv"
        assert path.read_text() == "round,accuracy\n1,0.5\n"
        folder.finish("finished")
        text = (tmp_path / "run" / "run.json").read_text()
        assert '"status": "finished"' in text
        assert "tensorflow-federated" in text

    def test_results_are_never_overwritten(self, tmp_path):
        (tmp_path / "precious.csv").write_text("1")
        with pytest.raises(config_lib.ConfigError, match="precious.csv"):
            run_folder.RunFolder(str(tmp_path), {})

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(config_lib.ConfigError, match="--output_dir"):
            files.make_empty_folder(str(tmp_path / "file" / "below"))
