"""Checks, before a run's folder is created, that its settings fit its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import leaf_data
from declared_settings import SettingError
from leaf_data.errors import error_summary, shorten
from leaf_data.formats.data_files import expand_path
from tff_pmc import criteria as criteria_lib
from tff_pmc._lazy import tf
from tff_pmc.models.model_folder import read_vocabulary
from tff_pmc.selections import CohortSampler, LossFn
from tff_pmc.selections.stragglers import count_stragglers
from tff_pmc.settings.flag_values import call_naming_flag
from tff_pmc.settings.run_settings import RunSettings

_METRIC_CHECK_EXAMPLES = 32  # On these the model's metrics are checked.
_MASK_CHECK_EXAMPLES = 1024  # Among these a row with few positions is looked for.
MAX_RECORDED_CLASSES = 255
"""The largest number of classes of `--predictions`: a byte per label, and
255 means no class."""


def check_run(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    build_model: Callable[[], Any],
) -> None:
    """Raises a `SettingError` if the settings of a run do not fit the data.

    Checks that need no model come first, because building it takes time.
    """
    from tff_pmc.models.tff_types.packed_model import split_batch
    from tff_pmc.processes.evaluation import num_output_classes
    from tff_pmc.record.tables import COHORT

    sampler = build_cohort_sampler(settings, data)
    size = cohort_size(settings, sampler)
    sampler.check(size)
    share = settings.training.stragglers
    drops = share > 0 and not settings.keeps_stragglers
    if drops and count_stragglers(size, share) == size:
        raise SettingError(
            f"--stragglers={share:g} excludes all clients of a round, {size}, with "
            f"--algorithms={settings.algorithm_name}: give a smaller share, more "
            "--clients_per_round, or --straggler_work=keep"
        )
    parts = {"train": data.train_examples, "test": data.test_examples}
    for part, examples in parts.items():
        if not examples.num_examples:
            raise SettingError(f"no client of {data.name} has {part} examples")
        if not examples.num_labels:
            raise SettingError(
                f"no client of {data.name} has a {part} label that counts: all are "
                f"{leaf_data.MASKED}"
            )
    if data.train_examples.store_part is None:
        _check_bytes(settings, data.train_examples)
    for code in settings.criterion_codes:
        if code in COHORT.reserved:  # Plugins may add columns.
            raise SettingError(
                f"--criteria: {code} is a column of cohort.csv: choose another code"
            )
    available = data.train_examples.attributes
    for criterion in settings.measured_criteria:
        for name in criteria_lib.example_attributes([criterion]):
            if name not in available:
                raise SettingError(
                    f"--criteria: {criterion.code} needs the example attribute {name}, "
                    f"which {data.name} does not provide: remove the criterion"
                )
    server_examples = data.server_examples
    if settings.uses_server_examples and not (
        server_examples and server_examples.num_labels
    ):
        raise SettingError(
            "the run evaluates models on server examples, and "
            f"{data.name} has none: choose another data set, algorithm or --judge_on"
        )
    model = settings.model
    expected_inputs = f"{model.element_shape} {model.element_dtype}"
    data_inputs = f"{data.element_shape} {data.train_examples.x.dtype}"
    if expected_inputs != data_inputs:
        raise SettingError(
            f"--model={settings.model_name} expects inputs of {expected_inputs}, and "
            f"{data.name} provides {data_inputs}"
        )
    if model.num_ids:
        _check_ids(settings, data)
    if settings.training.initial_weights:
        build_model()
        _check_vocabulary(settings.training.initial_weights[0], data)
    labels = data.train_examples.y
    label_spec = split_batch(build_model().input_spec)[1]
    data_spec = tf.TensorSpec([None, *labels.shape[1:]], labels.dtype)
    # A model of several labels is refused where its process is built.
    if isinstance(label_spec, tf.TensorSpec) and not label_spec.is_compatible_with(
        data_spec
    ):
        regression = "" if data.has_classes else " (a regression data set)"
        shape = f"[n, {labels.shape[1]}] " if data.train_examples.has_positions else ""
        raise SettingError(
            f"--model={settings.model_name} expects labels of "
            f"{label_spec.shape} {label_spec.dtype.name}, and {data.name} "
            f"provides {shape}{labels.dtype}{regression}"
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
            "--keep_own_model needs the client attribute `adversary`: add a column of "
            "that name to --client_table"
        )
    num_classes = max(classes, data.num_classes)
    if settings.record.predictions and num_classes > MAX_RECORDED_CLASSES:
        raise SettingError(
            f"--predictions records labels of at most {MAX_RECORDED_CLASSES} classes, "
            f"and --model={settings.model_name} or {data.name} has {num_classes}"
        )
    if not data.has_classes:
        _check_without_classes(settings, data.name)
    if data.train_examples.has_positions:
        _check_positions(flag, data, build_model())
    _check_metrics(settings, data, build_model())


def _check_ids(settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
    """Raises a `SettingError` if inputs, or a vocabulary, have ids beyond a model's."""
    parts = [data.train_examples, data.test_examples]
    parts += filter(None, (data.server_examples, data.central_test))
    inputs = [part.x for part in parts]
    lowest = min(int(x.min(initial=0)) for x in inputs)
    highest = max(int(x.max(initial=0)) for x in inputs)
    if data.vocabulary is not None:
        highest = len(data.vocabulary.tokens) - 1
    count = settings.model.num_ids
    if lowest < 0 or highest >= count:
        raise SettingError(
            f"--model={settings.model_name} takes the ids 0 to {count - 1}, and "
            f"{data.name} has {lowest} to {highest}: the model needs one for each"
        )


def _check_vocabulary(path: str, data: leaf_data.FederatedDataset) -> None:
    """Raises a `SettingError` if weights were trained with another vocabulary."""
    recorded = read_vocabulary(expand_path(path))
    if data.vocabulary is None or recorded in (None, data.vocabulary.to_dict()):
        return
    raise SettingError(
        f"--initial_weights={path}: its model has another vocabulary than {data.name}, "
        "so that ids are other tokens: give weights of the same data"
    )


def _check_positions(flag: str, data: leaf_data.FederatedDataset, model: Any) -> None:
    """Raises a `SettingError` if a model's output or loss ignores the positions."""
    from tff_pmc.models.positions import weighs_counted
    from tff_pmc.models.tff_types.packed_model import (
        evaluate_initial_model,
        predicts_positions,
    )

    examples = data.train_examples
    if not predicts_positions(model):
        raise SettingError(
            f"{flag} must return scores [n, {examples.y.shape[1]}, classes] for "
            f"{data.name}, whose labels are one for each position"
        )
    num_counted = np.count_nonzero(examples.y[:_MASK_CHECK_EXAMPLES] >= 0, axis=1)
    order = np.argsort(-num_counted, kind="stable")
    # One row of many positions that count and one of few, if possible.
    rows = [order[0], order[num_counted[order] > 0][-1]] if num_counted.any() else []
    if not np.any(examples.y[rows] < 0):
        return
    try:
        (is_mean,) = evaluate_initial_model(
            model,
            np.asarray(examples.x[rows]),
            np.asarray(examples.y[rows]),
            output_fn=lambda output, labels: weighs_counted(model, output, labels),
        )
    except Exception:  # TensorFlow's loss raises an error for the label -1.
        is_mean = False
    if not is_mean:
        raise SettingError(
            f"{flag}: its loss must be the mean over the positions whose label is not "
            f"{leaf_data.MASKED}: call tff_pmc.models.select_counted(output, labels) "
            "in it"
        )


def _check_metrics(
    settings: RunSettings, data: leaf_data.FederatedDataset, model: Any
) -> None:
    """Raises a `SettingError` for metrics of the model that cannot be recorded."""
    from tff_pmc.clients.client_work import MEASURED
    from tff_pmc.clients.model_metrics import build_aggregation, metrics_on
    from tff_pmc.models.tff_types.keras_metrics import check_metric_names
    from tff_pmc.record.tables import ROUNDS

    rows = slice(_METRIC_CHECK_EXAMPLES)
    x, y = np.asarray(data.test_examples.x[rows]), data.test_examples.y[rows]
    flag = f"--model={settings.model_name}"
    try:
        metric_values = metrics_on(model, x, np.asarray(y))
    except Exception as error:  # A metric may raise anything.
        words = str(getattr(error, "message", error)).strip()
        if words.startswith("in user code"):  # A traceback precedes the error.
            words = words.splitlines()[-1]
        raise SettingError(
            f"{flag}: computing its metrics on its outputs and the labels of "
            f"{data.name} failed: {shorten(words)}"
        ) from error
    call_naming_flag(flag, check_metric_names, metric_values)
    for name, value in metric_values.items():
        if isinstance(value, Mapping) or np.shape(value):
            shape = [*value] if isinstance(value, Mapping) else np.shape(value)
            raise SettingError(
                f"{flag}: the metric {name!r} returns an array of shape {shape}; "
                "rounds.csv needs one number: reduce it"
            )
        if name.lower() in {*ROUNDS.reserved, *MEASURED}:
            raise SettingError(
                f"{flag}: rounds.csv already has a column {name!r}, or a round "
                "measures it: rename the metric"
            )
    if metric_values:
        try:  # A round has more conditions.
            build_aggregation(model)
        except (TypeError, ValueError) as error:
            raise SettingError(
                f"{flag}: its metrics cannot be aggregated: {error_summary(error)}"
            ) from error


def _check_bytes(settings: RunSettings, examples: leaf_data.Examples) -> None:
    """Raises a `SettingError` if a client is too large for a pack."""
    from tff_pmc.clients.packing import check_bytes

    sizes = (examples.sizes * examples.x[:1].nbytes).tolist()
    limit, flag = settings.training.max_pack_bytes, "--max_pack_bytes"
    arguments = sizes, examples.client_ids, limit, flag
    call_naming_flag(f"{flag}={limit}", check_bytes, *arguments)


def _check_without_classes(settings: RunSettings, name: str) -> None:
    """Raises a `SettingError` for options that need classes, for a regression."""
    reason = f"and {name} is a regression data set, whose labels are numbers"
    for criterion in settings.measured_criteria:
        if criterion.needs_classes:
            raise SettingError(f"--criteria: {criterion.code} needs classes, {reason}")
    if settings.counterfactual.kinds:
        raise SettingError(f"--counterfactuals compares accuracies, {reason}")
    if settings.adjustment.searches:
        policy = settings.adjustment.policy
        raise SettingError(f"--adjustment={policy} compares accuracies, {reason}")
    if settings.record.predictions:
        raise SettingError(f"--predictions records labels of classes, {reason}")
    if settings.record.record_clients == "none":
        raise SettingError(f"--record_clients=none records accuracies only, {reason}")
    if settings.adjustment.judge_on == "server" or settings.algorithm.needs_classes:
        raise SettingError(
            f"--algorithms={settings.algorithm_name} compares labels of classes, "
            f"{reason}"
        )


def build_cohort_sampler(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    loss_fn: LossFn | None = None,
) -> CohortSampler:
    """Builds the sampler of a run's cohorts from its selection and `cohort_seed`."""
    examples = data.train_examples
    return CohortSampler(
        # Clients without a label that counts do not train.
        np.where(examples.label_counts > 0, examples.sizes, 0),
        settings.training.cohort_seed,
        settings.selection,
        name=settings.component_names["selection"],
        attributes=data.client_table.values,
        loss_fn=loss_fn,
    )


def cohort_size(settings: RunSettings, sampler: CohortSampler) -> int:
    """Returns the number of clients in a round."""
    return settings.training.cohort_size(len(sampler.trainable), settings.dataset)
