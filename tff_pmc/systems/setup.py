"""The parts of which a system makes its process, each made once a run."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

import leaf_data
from leaf_data.declare import SettingError
from tff_pmc import criteria as criteria_lib
from tff_pmc._lazy import tff
from tff_pmc.settings.run_settings import RunSettings

MOST_RECORDED_CLASSES = 256
"""The most classes whose labels `--predictions` records, as bytes."""


@dataclasses.dataclass(frozen=True)
class Setup:
    """Settings and data, and what is built of them the first time it is asked for.

    Attributes:
        settings: of the run.
        data: the federation to train on.
        judged: the examples that candidates are judged on, where any are.
    """

    settings: RunSettings
    data: leaf_data.FederatedDataset
    judged: leaf_data.Examples

    @classmethod
    def of(cls, settings: RunSettings, data: leaf_data.FederatedDataset) -> Setup:
        """Divides the data into what is trained and what is judged on.

        With a fixed score nothing is judged, but what is held out is not trained on
        there either: the runs of one command stay comparable.
        """
        judge_on = settings.adjustment.judge_on
        if judge_on == "test":
            return cls(settings, data, data.test_examples)
        if judge_on == "server":
            assert data.server_examples is not None  # `check_data` has refused it.
            return cls(settings, data, data.server_examples)
        fraction = settings.adjustment.validation_fraction
        return cls(settings, *data.hold_out(fraction, settings.data.seed))

    @functools.cached_property
    def model(self) -> Any:
        """The model, a `tff.learning.models.FunctionalModel`."""
        return self.settings.model.build()

    @functools.cached_property
    def criteria(self) -> tuple[criteria_lib.Criterion, ...]:
        """The criteria; those of the server's examples know the model and these."""
        found = self.settings.aggregation.resolve_criteria()
        if not any(criterion.needs_server_examples for criterion in found):
            return found
        x, y = self.server_examples
        return criteria_lib.bind_to_server(found, self.model, x, y)

    @property
    def server_examples(self) -> tuple[Any, Any]:
        """The inputs and labels of the server's own examples."""
        assert self.data.server_examples is not None  # `check_data` has refused it.
        examples = self.data.server_examples
        return np.asarray(examples.x), np.asarray(examples.y)

    @property
    def client_optimizer(self) -> Any:
        """The clients' optimizer."""
        from tff_pmc.clients.adadelta import build_adadelta

        training, optimizers = self.settings.training, tff.learning.optimizers
        builders = {
            "sgd": optimizers.build_sgdm,
            "adam": optimizers.build_adam,
            "adadelta": build_adadelta,
        }
        return builders[training.client_optimizer](training.learning_rate)

    @property
    def training_options(self) -> dict[str, Any]:
        """The options of training, with which every process is built."""
        training = self.settings.training
        return dict(
            client_optimizer_fn=self.client_optimizer,
            server_optimizer_fn=tff.learning.optimizers.build_sgdm(
                training.server_learning_rate
            ),
            local_epochs=training.local_epochs,
            batch_size=training.batch_size,
            seed=training.batch_seed,
            client_attributes=self.settings.aggregation.client_attributes,
            keep_own_model=self._own_models(),
            report_num_clients=len(self.data.client_ids),
        )

    @property
    def process_options(self) -> dict[str, Any]:
        """The options of training and of sums, of every process that sums."""
        from tff_pmc.aggregation import SumOptions

        aggregation = self.settings.aggregation
        return dict(
            **self.training_options,
            sums=SumOptions(
                normalization=aggregation.normalization,
                criteria_ranges=aggregation.ranges,
                **self.norms,
            ),
        )

    @property
    def norms(self) -> dict[str, Any]:
        """The bounds of an update's norm, as `SumOptions` takes them."""
        aggregation = self.settings.aggregation
        return dict(
            clip_norm=aggregation.clip_norm or None,
            max_update_norm=aggregation.max_update_norm,
        )

    def _own_models(self) -> list[int]:
        """The clients that ignore the server's model."""
        if not self.settings.training.keep_own_model:
            return []
        adversary = self.data.client_table.values.get("adversary", ())
        return [int(client) for client in np.flatnonzero(adversary)]


def check_data(settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
    """Refuses settings that do not fit the data."""
    known = data.train_examples.attributes
    for criterion in settings.aggregation.resolve_criteria():
        for name in criteria_lib.example_attributes([criterion]):
            if name not in known:
                raise SettingError(
                    f"--criteria: {criterion.code} needs to know of each example "
                    f"whether it is {name}, which {data.name} does not say"
                )
    if settings.measures_at_server and data.server_examples is None:
        raise SettingError(
            f"--experiment={settings.experiment} measures models on examples of the "
            f"server's own, which {data.name} does not have"
        )
    model = settings.model
    wanted = f"{model.element_shape} {model.element_dtype}"
    given = f"{data.element_shape} {data.train_examples.x.dtype}"
    if wanted != given:
        raise SettingError(
            f"--model={settings.names['model']} takes inputs of {wanted}, and those of "
            f"{data.name} are {given}"
        )
    if settings.record.predictions and data.num_classes > MOST_RECORDED_CLASSES:
        raise SettingError(
            f"--predictions records labels of at most {MOST_RECORDED_CLASSES} classes, "
            f"and {data.name} has {data.num_classes}"
        )
    if not data.has_classes:
        _check_without_classes(settings, data.name)


def _check_without_classes(settings: RunSettings, name: str) -> None:
    """Refuses what needs accuracy, or classes, of a regression."""
    why = f"which {name} does not have: its labels are numbers"
    criteria = settings.aggregation.resolve_criteria()
    for criterion in criteria:
        if criterion.needs_classes or criterion.needs_server_examples:
            raise SettingError(f"--criteria: {criterion.code} needs classes, {why}")
    if settings.adjustment.searches:
        policy = settings.adjustment.adjustment
        raise SettingError(f"--adjustment={policy} compares accuracies, {why}")
    if settings.record.predictions:
        raise SettingError(f"--predictions records labels of classes, {why}")
    if settings.measures_at_server or settings.system.needs_classes:
        raise SettingError(
            f"--systems={settings.names['system']} compares labels of classes, {why}"
        )
