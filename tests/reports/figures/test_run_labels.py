"""Names of runs in figures: labels, titles, parts of file names."""

import numpy as np
import pandas as pd
import pytest

from tff_pmc.record.results import results_of_counts
from tff_pmc.reports.figures import plots, run_labels

TRAINED = dict(experiment="mine", local_epochs=5, batch_size=0, learning_rate=0.1)


@pytest.mark.parametrize(
    ("label", "note", "group"),
    [
        ("MD,DS,LD (backtracking)", "", ("MD,DS,LD", "backtracking")),
        ("Median, 3 clients", "3 clients", ("Median", "3 clients")),
        ("AdaFed, weights only", "", ("AdaFed, weights only", "")),
    ],
)
def test_a_label_is_split_into_its_ordering_or_algorithm_and_the_rest(
    label, note, group
):
    assert run_labels.group_of(pd.Series({"label": label, "note": note})) == group


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("MD,DS,LD (backtracking)", "MD-DS-LD_backtracking"),
        ("DS^0.5,LD", "DS_0_5-LD"),
        ("Dual-criterion, 3 clients", "dual_criterion_3_clients"),
    ],
)
def test_a_file_is_named_by_its_run(label, name):
    assert run_labels.file_name(label) == name


@pytest.mark.parametrize(
    ("columns", "settings", "title"),
    [
        ({}, {}, "mine: m, 2 clients, E = 5, B = all, rate 0.1"),
        ({}, {"normalization": "max"}, "mine: m, 2 clients, E = 5, B = all, rate 0.1, "
         "normalization max"),
        ({"data_clients": [3, 4]}, {}, "mine: m, 3 or 4 clients, E = 5, B = all, rate "
         "0.1"),
        ({"data_options": [{"partition": "noniid", "image_fraction": 0.5}] * 2}, {},
         "mine: m, 0.5 of the images, 2 clients, noniid, E = 5, B = all, rate 0.1"),
        ({"data_source": "Files, INCOMPLETE: 8 of 9"}, {},
         "mine: m, 2 clients, E = 5, B = all, rate 0.1\n(Files, INCOMPLETE: 8 of 9)"),
    ],
)  # fmt: skip
def test_a_plots_title_has_the_experiment_and_its_settings(columns, settings, title):
    results = results_of_counts(
        {"DS": [[1, 2]], "LD": [[2, 3]]}, [5, 5], settings={**TRAINED, **settings}
    )
    defaults = {"data_name": "m", "data_source": "", "data_options": [{}, {}]}
    for name, value in {**defaults, **columns}.items():
        results.runs[name] = value
    assert run_labels.title_of(results) == title


def test_runs_in_memory_have_no_settings_in_their_title():
    assert run_labels.title_of(results_of_counts({"DS": np.array([[1]])}, [2])) == ""


def test_the_title_is_still_found_in_its_old_module():
    assert plots.title_of is run_labels.title_of
