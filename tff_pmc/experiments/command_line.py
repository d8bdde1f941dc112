"""The settings of the runs that the flags ask for.

Imports no TensorFlow, so that a wrong flag is named at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tff_pmc.experiments import choices, named, parsing, systems
from tff_pmc.experiments import config as config_lib
from tff_pmc.experiments.flag_definitions import FLAGS, SEARCH, WORDS


def parse(attributes: Sequence[str] = ()) -> list[config_lib.RunConfig]:
    """The settings of each run that the flags ask for."""
    experiment = FLAGS.experiment
    searching = experiment == SEARCH
    if searching:
        experiment = FLAGS.search_for
        if experiment in systems.SYSTEMS:
            raise config_lib.ConfigError(
                f"--search_for={experiment} compares systems; the search runs DS"
            )
        for name in ("priority", "score", "adjustment", "learning_rate", "judge_on"):
            if FLAGS[name].value:
                raise config_lib.ConfigError(
                    f"--{name} does not go with --experiment={SEARCH}, which runs DS "
                    "with each of --learning_rates"
                )
    names = (
        *("rounds", "clients_per_round", "local_epochs", "batch_size"),
        *("learning_rate", "server_learning_rate", "num_shards"),
        *("normalization", "clip_norm", "validation_fraction", "predictions"),
        *("sample_fraction", "min_samples", "dropout", *WORDS),
        *("accuracy_power", "alpha", "beta", "eta", "epsilon", "quantization_levels"),
        "lambda_steps",
        *("num_clients", "num_adversaries", "images_per_client", "image_fraction"),
        *("score", "quantifier"),
    )
    overrides = {name: FLAGS[name].value for name in names}
    _check_flags_of_data(named.experiment(experiment).dataset)
    seeds = [FLAGS[name].value for name in choices.SEEDS]
    for name, own in zip(choices.SEEDS, seeds):
        overrides[name] = FLAGS.seed if own is None else own
    if FLAGS.seeds is not None:
        parsing.parse_seeds(FLAGS.seeds)
        if searching or any(value is not None for value in (FLAGS.seed, *seeds)):
            raise config_lib.ConfigError(
                "--seeds sets all seeds of several runs: it goes neither with another "
                f"flag of a seed nor with --experiment={SEARCH}"
            )
    if FLAGS.seed is not None and not 0 <= FLAGS.seed < 2**31:
        raise config_lib.ConfigError(f"--seed must be in [0, 2^31), got {FLAGS.seed}")
    overrides["client_attributes"] = attributes
    if FLAGS.score_weights is not None:
        overrides["score_weights"] = parsing.parse_weights(FLAGS.score_weights)
    if FLAGS.capacity is not None:
        overrides["capacity"] = parsing.parse_capacity(FLAGS.capacity, attributes)
    start = functools.partial(
        named.settings, experiment, protocol=FLAGS.protocol or "paper"
    )
    criteria = start({}).criteria
    if FLAGS.criteria is not None:
        criteria = parsing.parse_codes("criteria", FLAGS.criteria, attributes)
        overrides["criteria"] = criteria
        overrides["priority"] = criteria[:1]
    if FLAGS.criteria_ranges is not None:
        overrides["criteria_ranges"] = parsing.parse_ranges(
            FLAGS.criteria_ranges, criteria
        )
    if searching:
        overrides["priority"] = ("DS",)
        return [
            start({**overrides, "learning_rate": rate})
            for rate in parsing.parse_rates(FLAGS.learning_rates)
        ]
    if experiment in systems.SYSTEMS:
        return _systems(experiment, start, overrides)
    if FLAGS.systems is not None:
        raise config_lib.ConfigError(f"--systems is of no use with {experiment}")
    config = start(overrides)
    policies = FLAGS.adjustment or [config.adjustment]
    adjusted = any(policy != "fixed" for policy in policies)
    combined = config.score != "prioritized"
    orders = [criteria if adjusted or combined else config.priority]
    if FLAGS.priority is not None:
        orders = parsing.parse_priorities(FLAGS.priority, criteria, attributes)
    if adjusted and all(len(order) == 1 for order in orders):
        raise config_lib.ConfigError(
            f"--adjustment={','.join(policies)} has nothing to adjust: no --priority "
            "has two criteria"
        )
    if combined and all(len(order) == 1 for order in orders):
        raise config_lib.ConfigError(
            f"--score={config.score} has nothing to combine: no --priority has two "
            "criteria"
        )
    pairs = [  # An ordering of one criterion leaves nothing to adjust.
        (order, policy if len(order) > 1 else "fixed")
        for policy in policies
        for order in orders
    ]
    if FLAGS.seeds is not None and ("DS",) not in orders:
        raise config_lib.ConfigError(
            "--seeds holds every ordering against DS: name --priority=DS, too"
        )
    _check_flags_of_model(config.model)
    _check_flags_of_systems([config])
    configs = [  # Each is checked before the first one runs.
        start({**overrides, "priority": order, "adjustment": policy})
        for order, policy in dict.fromkeys(pairs)
    ]
    # To OWA, Choquet and the product all orderings of the same criteria are one.
    return list({config.label: config for config in reversed(configs)}.values())[::-1]


def _systems(
    experiment: str,
    start: Callable[[dict[str, Any]], config_lib.RunConfig],
    overrides: dict[str, Any],
) -> list[config_lib.RunConfig]:
    """The runs of an experiment that compares systems."""
    refused = (
        *("priority", "adjustment", "inspect", "criteria", "score", "score_weights"),
        *("quantifier", "capacity", "normalization", "criteria_ranges"),
    )
    for name in refused:
        if FLAGS[name].value:
            raise config_lib.ConfigError(
                f"--{name} does not go with {experiment}, which compares systems: "
                "see --systems"
            )
    given = {key: value for key, value in overrides.items() if value is not None}
    wanted = given.get("num_clients")
    found = [
        start({**row, **given})
        for row in systems.rows_of(experiment, FLAGS.systems)
        if wanted is None or row.get("num_clients", wanted) == wanted
    ]
    if not found:
        raise config_lib.ConfigError(
            f"--num_clients={wanted}: {experiment} has no run of so many"
        )
    if FLAGS.seeds is not None:
        systems.check_baselines(found)
    _check_flags_of_model(found[0].model)
    _check_flags_of_systems(found)
    return found


def _check_flags_of_model(model: str) -> None:
    """Refuses flags of another model."""
    takes = {
        "dropout": choices.DROPOUT_MODELS,
        "batch_norm": ("celeba_reference_cnn",),
    }
    for name, models in takes.items():
        if FLAGS[name].value is not None and model not in models:
            raise config_lib.ConfigError(f"--{name} is of no use with {model}")


def _check_flags_of_systems(configs: Sequence[config_lib.RunConfig]) -> None:
    """Refuses flags of AdaFed's or Dual's that none of the runs looks at."""
    aggregators = {config.aggregator for config in configs}
    used = {
        "alpha": "personalized" in aggregators,
        "personalized_form": "personalized" in aggregators,
        "beta": "momentum" in aggregators,
        "eta": "momentum" in aggregators,
        "epsilon": "laplace" in aggregators,
        "quantization_levels": "quantized" in aggregators,
        "lambda_steps": any(config.score == "dual" for config in configs),
        "accuracy_power": any("ACC" in config.criteria for config in configs),
        "judge_on": any(not c.system or c.adjustment != "fixed" for c in configs),
    }
    for name, is_used in used.items():
        if FLAGS[name].value is not None and not is_used:
            raise config_lib.ConfigError(
                f"--{name} is of no use with the runs of --experiment="
                f"{configs[0].experiment} that are asked for"
            )
    simulation = configs[0].simulation
    if configs[0].dataset == "mnist_adafed" and simulation != "3":
        for name in ("num_adversaries", "images_per_client"):
            if FLAGS[name].value is not None:
                raise config_lib.ConfigError(f"--{name} is of adafed_3")


def _check_flags_of_data(dataset: str) -> None:
    """Refuses flags of another data set, which would do nothing."""
    own = {*choices.DATA_OPTIONS[dataset].values()}
    for options in choices.DATA_OPTIONS.values():
        for name in options.values():
            given = name in FLAGS and FLAGS[name].value is not None
            if given and name not in own and not name.endswith("_seed"):
                raise config_lib.ConfigError(f"--{name} is of no use with {dataset}")
    if FLAGS.cache_dir is not None and dataset not in choices.CACHED:
        raise config_lib.ConfigError(
            f"--cache_dir is of no use with {dataset}, which needs no cache"
        )
    if FLAGS.validation_fraction is not None and not (
        FLAGS.judge_on == "local_validation" or FLAGS.experiment == SEARCH
    ):
        raise config_lib.ConfigError(
            "--validation_fraction goes with --judge_on=local_validation or "
            f"--experiment={SEARCH}"
        )
