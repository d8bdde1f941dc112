"""The examples in docstrings run, and return the results that they show."""

import doctest
import importlib

import numpy as np
import pytest

import leaf_data

MODULES = (
    "leaf_data.dataset",
    "tff_pmc.criteria.criterion",
    "tff_pmc.scores.choquet",
    "tff_pmc.scores.polynomial",
    "tff_pmc.scores.weights",
    "tff_pmc.search",
)

# In this order: later examples use names of earlier ones.
WITH_TENSORFLOW = (
    "processes.prioritized_fed_avg.build_prioritized_fed_avg",
    "runtime.runtime.Runtime",
    "processes.evaluation.build_federated_evaluation",
    "clients.packing.pack",
    "clients.cohort_source.data_source",
    "processes.online_adjusted.build_online_adjusted_fed_avg",
    "processes.counterfactuals.counterfactuals",
    "processes.adafed_process.build_adafed",
    "criteria.server_criteria.server_metric",
    "aggregation.prioritized_mean.PrioritizedMeanFactory",
    "aggregation.baselines",
    "aggregation.sum_options.DeclaredSumFactory",
    "record.results.results_of_counts",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_show(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted and not results.failed


def examples_of(name):
    """Returns the examples of a module, class or function of `tff_pmc`, as code."""
    try:
        documented = importlib.import_module(f"tff_pmc.{name}")
    except ModuleNotFoundError:
        module, _, member = name.rpartition(".")
        documented = getattr(importlib.import_module(f"tff_pmc.{module}"), member)
    examples = doctest.DocTestParser().get_examples(documented.__doc__)
    return "".join(example.source for example in examples)


@pytest.mark.slow
def test_examples_of_training_run(tf, tff):
    import tff_pmc
    from tff_pmc import models, processes
    from tff_pmc.aggregation import baseline_factories
    from tff_pmc.criteria.server_criteria import server_metric
    from tff_pmc.reports.figures.accuracy_plot import accuracy_plot

    data = leaf_data.load("digits5k")
    x, y = data.test_examples.x[:20], data.test_examples.y[:20]
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy
    names = {
        **{name: getattr(processes, name) for name in processes.__all__},
        **{name: getattr(tff_pmc, name) for name in tff_pmc.__all__},
        **dict(tf=tf, tff=tff, tff_pmc=tff_pmc, baseline_factories=baseline_factories),
        **dict(server_metric=server_metric, accuracy_plot=accuracy_plot),
        "data": data,
        "datasets": [tf.data.Dataset.from_tensor_slices((x, y)).batch(10)] * 2,
        "clients": tff_pmc.pack(data.train_examples, data.client_ids[:2]),
        **dict(x=x, y=y, x_test=x, y_test=y, model=models.mnist_cnn()),
        "model_fn": lambda: tff.learning.models.model_from_functional(
            models.mnist_cnn(), [accuracy]
        ),
        "update_type": tff.TensorType(np.float32, (2,)),
        "updates": [np.ones(2, np.float32)] * 2,
        "MySumFactory": tff.aggregators.SumFactory,
    }
    with tff_pmc.Runtime():
        for name in WITH_TENSORFLOW:
            exec(examples_of(name), names)
