"""What is checked before a run's folder is made: that settings and data fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import leaf_data
from declared_settings import SettingError
from leaf_data.errors import error_summary, shorten
from tff_pmc import criteria as criteria_lib
from tff_pmc.selections import CohortSampler, LossFn
from tff_pmc.settings.flag_values import call_naming_flag
from tff_pmc.settings.run_settings import RunSettings

_METRIC_CHECK_EXAMPLES = 32  # Test examples on which the model's metrics are tried.
MAX_RECORDED_CLASSES = 255
"""The most classes whose labels `--predictions` records: a byte, and 255 is none."""


def check_run(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    build_model: Callable[[], Any],
) -> None:
    """Raises a `SettingError` if the settings of a run do not fit the data.

    What needs no model is checked before the model is built.
    """
    from tff_pmc.models.tff_types.packed_model import split_batch
    from tff_pmc.processes.evaluation import num_output_classes
    from tff_pmc.record.tables import COHORT

    sampler = build_cohort_sampler(settings, data)
    sampler.check(cohort_size(settings, sampler))
    parts = {"train": data.train_examples, "test": data.test_examples}
    for part, examples in parts.items():
        if not examples.num_examples:
            raise SettingError(f"no client of {data.name} has {part} examples")
    if data.train_examples.store_part is None:
        _check_bytes(settings, data.train_examples)
    for code in settings.criterion_codes:
        if code in COHORT.reserved:  # A plugin may have added a column.
            raise SettingError(
                f"--criteria: {code} is a column of cohort.csv: choose another code"
            )
    known = data.train_examples.attributes
    for criterion in settings.measured_criteria:
        for name in criteria_lib.example_attributes([criterion]):
            if name not in known:
                raise SettingError(
                    f"--criteria: {criterion.code} needs the attribute {name} of each "
                    f"example, which {data.name} does not have: leave the criterion "
                    "out"
                )
    of_server = data.server_examples
    if settings.uses_server_examples and not (of_server and of_server.num_examples):
        raise SettingError(
            f"--experiment={settings.experiment} measures models on examples of the "
            f"server, which {data.name} does not have"
        )
    model = settings.model
    wanted = f"{model.element_shape} {model.element_dtype}"
    given = f"{data.element_shape} {data.train_examples.x.dtype}"
    if wanted != given:
        raise SettingError(
            f"--model={settings.model_name} takes inputs of {wanted}, and those of "
            f"{data.name} are {given}"
        )
    if settings.training.initial_weights:
        build_model()
    labels = data.train_examples.y
    if not (model.num_classes and data.has_classes):
        takes = split_batch(build_model().input_spec)[1]
        if (takes.dtype.as_numpy_dtype, takes.shape.rank) != (
            labels.dtype,
            labels.ndim,
        ):
            raise SettingError(
                f"--model={settings.model_name} takes labels of "
                f"{takes.shape} {takes.dtype.name}, and {data.name} has "
                f"{labels.dtype}{'' if data.has_classes else ', numbers and no class'}"
            )
    classes, flag = model.num_classes, f"--model={settings.model_name}"
    if not classes and data.has_classes:
        classes = call_naming_flag(flag, num_output_classes, build_model())
    if 0 < classes < data.num_classes:
        raise SettingError(
            f"--model={settings.model_name} has {classes} classes, and "
            f"{data.name} has {data.num_classes}, 0 to {data.num_classes - 1}"
        )
    if settings.training.keep_own_model and "adversary" not in data.client_table.values:
        raise SettingError(
            "--keep_own_model needs the attribute adversary of the clients: see "
            "--client_table"
        )
    most = max(classes, data.num_classes)
    if settings.record.predictions and most > MAX_RECORDED_CLASSES:
        raise SettingError(
            f"--predictions records labels of at most {MAX_RECORDED_CLASSES} classes, "
            f"and --model={settings.model_name} or {data.name} has {most}"
        )
    if not data.has_classes:
        _check_without_classes(settings, data.name)
    _check_metrics(settings, data, build_model())


def _check_metrics(
    settings: RunSettings, data: leaf_data.FederatedDataset, model: Any
) -> None:
    """Refuses metrics of the model that a record of the data cannot have."""
    from tff_pmc.clients.client_work import MEASURED
    from tff_pmc.clients.model_metrics import build_aggregation, metrics_on
    from tff_pmc.models.tff_types.keras_metrics import check_metric_names
    from tff_pmc.record.tables import ROUNDS

    rows = slice(_METRIC_CHECK_EXAMPLES)
    x, y = np.asarray(data.test_examples.x[rows]), data.test_examples.y[rows]
    flag = f"--model={settings.model_name}"
    try:
        found = metrics_on(model, x, np.asarray(y))
    except Exception as error:  # Whatever a metric raises.
        words = str(getattr(error, "message", error)).strip()
        if words.startswith("in user code"):  # And the calls, before what was raised.
            words = words.splitlines()[-1]
        raise SettingError(
            f"{flag}: its metrics cannot be computed of its outputs and the labels of "
            f"{data.name}: {shorten(words)}"
        ) from error
    call_naming_flag(flag, check_metric_names, found)
    for name, value in found.items():
        if isinstance(value, Mapping) or np.shape(value):
            shape = [*value] if isinstance(value, Mapping) else np.shape(value)
            raise SettingError(
                f"{flag}: its metric {name!r} is no single number, and a column of "
                f"rounds.csv takes one: its shape is {shape}"
            )
        if name.lower() in {*ROUNDS.reserved, *MEASURED}:
            raise SettingError(
                f"{flag}: its metric {name!r} has the name of a column of rounds.csv, "
                "or of a measurement of the round: give it another name"
            )
    if found:
        try:  # As a round does, which has more conditions.
            build_aggregation(model)
        except (TypeError, ValueError) as error:
            raise SettingError(
                f"{flag}: its metrics cannot be aggregated: {error_summary(error)}"
            ) from error


def _check_bytes(settings: RunSettings, examples: leaf_data.Examples) -> None:
    """Refuses a client that no pack can hold, before the first round."""
    from tff_pmc.clients.packing import check_bytes

    sizes = (examples.sizes * examples.x[:1].nbytes).tolist()
    limit, flag = settings.training.max_pack_bytes, "--max_pack_bytes"
    given = sizes, examples.client_ids, limit, flag
    call_naming_flag(f"{flag}={limit}", check_bytes, *given)


def _check_without_classes(settings: RunSettings, name: str) -> None:
    """Refuses what needs accuracy, or classes, of a regression."""
    why = f"which {name} does not have: its labels are numbers"
    for criterion in settings.measured_criteria:
        if criterion.needs_classes:
            raise SettingError(f"--criteria: {criterion.code} needs classes, {why}")
    if settings.counterfactual.kinds:
        raise SettingError(f"--counterfactuals compares accuracies, {why}")
    if settings.adjustment.searches:
        policy = settings.adjustment.policy
        raise SettingError(f"--adjustment={policy} compares accuracies, {why}")
    if settings.record.predictions:
        raise SettingError(f"--predictions records labels of classes, {why}")
    if settings.record.record_clients == "none":
        raise SettingError(f"--record_clients=none leaves accuracies alone, {why}")
    if settings.adjustment.judge_on == "server" or settings.algorithm.needs_classes:
        raise SettingError(
            f"--algorithms={settings.algorithm_name} compares labels of classes, {why}"
        )


def build_cohort_sampler(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    loss_fn: LossFn | None = None,
) -> CohortSampler:
    """Returns the sampler of a run's cohorts, by its selection and `cohort_seed`."""
    return CohortSampler(
        data.train_examples.sizes,
        settings.training.cohort_seed,
        settings.selection,
        name=settings.component_names["selection"],
        attributes=data.client_table.values,
        loss_fn=loss_fn,
    )


def cohort_size(settings: RunSettings, sampler: CohortSampler) -> int:
    """Returns the number of clients in a round."""
    return settings.training.cohort_size(len(sampler.trainable), settings.dataset)
