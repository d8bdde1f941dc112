"""What an algorithm builds its process from: model, criteria, cohorts, options."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import leaf_data
from declared_settings import SettingError
from leaf_data.client_ids import ClientNumber
from tff_pmc import criteria as criteria_lib
from tff_pmc._lazy import tf
from tff_pmc.algorithms.run_checks import build_cohort_sampler, check_run, cohort_size
from tff_pmc.models import ModelSettings
from tff_pmc.models.weights_file import load_initial_weights
from tff_pmc.optimizers import CLIENT_OPTIMIZERS, SERVER_OPTIMIZERS
from tff_pmc.selections import CohortSampler, draw_local_epochs
from tff_pmc.settings.aggregation_settings import SumSettings
from tff_pmc.settings.flag_values import call_naming_flag
from tff_pmc.settings.run_settings import RunSettings
from tff_pmc.settings.training_settings import LocalTraining

if TYPE_CHECKING:
    from tff_pmc.aggregation import SumOptions
    from tff_pmc.clients.training_options import Training

_SAMPLING_STREAM = 82  # Separate from other random streams.


@dataclasses.dataclass(frozen=True)
class RunContext:
    """Settings and data, and the parts that are built from them on first use."""

    settings: RunSettings
    data: leaf_data.FederatedDataset  # For training.
    judging_examples: leaf_data.Examples  # For judging candidates, if there are any.

    @classmethod
    def from_settings(
        cls, settings: RunSettings, data: leaf_data.FederatedDataset
    ) -> RunContext:
        """Splits the data into training examples and judging examples.

        Held-out examples are excluded from training also with a fixed score, which
        judges nothing: the runs of one command stay comparable.

        Raises:
            SettingError: the settings do not fit the data.
        """
        check_run(settings, data, functools.partial(_model, settings))
        judge_on, judging = settings.adjustment.judge_on, data.test_examples
        if judge_on == "server":
            assert data.server_examples is not None  # See `check_run`.
            judging = data.server_examples
        elif judge_on == "local_validation":
            fraction = settings.adjustment.validation_fraction
            data, judging = data.hold_out(fraction, settings.data.seed)
        if not judging.num_labels:
            raise SettingError(f"no client of {data.name} has validation examples")
        return cls(settings, data, judging)

    @functools.cached_property
    def cohort_sampler(self) -> CohortSampler:
        """The sampler of each round's clients."""
        return build_cohort_sampler(self.settings, self.data, self.client_losses)

    @functools.cached_property
    def cohort_size(self) -> int:
        """The number of clients in a round."""
        return cohort_size(self.settings, self.cohort_sampler)

    def client_losses(
        self, clients: npt.NDArray[np.int64], weights: Any
    ) -> npt.NDArray[np.float64]:
        """Computes the mean loss of a model on each client's training examples."""
        from tff_pmc.processes import build_loss_sums, evaluation_packs

        examples = self.data.train_examples.subset(map(ClientNumber, clients))
        packs = evaluation_packs(examples, num_packs=self.settings.training.num_packs)
        sums = trace_once(build_loss_sums, self.model, len(clients))(weights, packs)
        means: npt.NDArray[np.float64] = (
            np.asarray(sums, np.float64) / examples.label_counts
        )
        return means

    def pack(self, chosen: Sequence[int], round_num: int) -> list[Any]:
        """Packs the cohort of a round, counted from 1; see `packing.pack`."""
        from tff_pmc.clients import packing

        settings, table = self.settings, self.data.client_table.values
        single = settings.algorithm.one_client_per_pack
        return packing.pack(
            self.data.train_examples,
            [ClientNumber(k) for k in chosen],
            num_packs=len(chosen) if single else settings.training.num_packs,
            max_bytes=settings.training.max_pack_bytes,
            attributes={
                name: table[name] for name in settings.aggregation.client_attributes
            },
            example_attributes=criteria_lib.example_attributes(self.criteria),
            local_epochs=self._local_epochs(round_num, len(chosen)),
        )

    def _local_epochs(
        self, round_num: int, num_clients: int
    ) -> npt.NDArray[np.int32] | None:
        """Returns each client's epochs in a round with stragglers, else None."""
        training = self.settings.training
        if not training.stragglers:
            return None
        return draw_local_epochs(
            training.cohort_seed,
            round_num,
            num_clients,
            training.local_epochs,
            training.stragglers,
            keeps_work=self.settings.keeps_stragglers,
        )

    @functools.cached_property
    def model(self) -> Any:
        """The model, a `tff.learning.models.FunctionalModel`."""
        return _model(self.settings)

    @functools.cached_property
    def criteria(self) -> tuple[criteria_lib.Criterion, ...]:
        """The criteria, bound to the server's examples if they need them."""
        criteria = self.settings.measured_criteria
        if not any(criterion.needs_server_examples for criterion in criteria):
            return criteria
        x, y = self.server_examples
        bind = criteria_lib.bind_to_server
        return call_naming_flag("--criteria", bind, criteria, self.model, x, y)

    @property
    def server_examples(self) -> tuple[Any, Any]:
        """The inputs and labels of the server's examples."""
        assert self.data.server_examples is not None  # See `check_run`.
        examples = self.data.server_examples
        return np.asarray(examples.x), np.asarray(examples.y)

    @property
    def client_optimizer(self) -> Any:
        """The clients' optimizer, one of `CLIENT_OPTIMIZERS`."""
        training = self.settings.training
        optimizer = CLIENT_OPTIMIZERS[training.client_optimizer]
        return optimizer.build(training.learning_rate)

    def client_rate(self, round_num: Any) -> Any:
        """Returns the clients' learning rate in a round, an integer tensor from 0."""
        training = self.settings.training
        steps = tf.cast(round_num // training.client_rate_decay_every, tf.float32)
        return training.learning_rate * training.client_rate_decay**steps

    @property
    def server_optimizer(self) -> Any:
        """The server's optimizer, one of `SERVER_OPTIMIZERS`; see `ServerSettings`."""
        server, rate = self.settings.server, self.settings.training.server_learning_rate
        return SERVER_OPTIMIZERS[server.optimizer].build(rate, **server.parameters)

    @property
    def training(self) -> Training:
        """The options of the clients' training; see `Algorithm.training`."""
        from tff_pmc.clients.training_options import Training

        training = self.settings.training
        adversaries: Any = ()
        if training.keep_own_model:
            adversaries = self.data.client_table.values.get("adversary", ())
        decays = training.client_rate_decay < 1
        return Training(
            **training.values_of(LocalTraining),
            client_learning_rate_fn=self.client_rate if decays else None,
            client_attributes=self.settings.aggregation.client_attributes,
            epochs_by_client=training.stragglers > 0,
            report_cohort=self.cohort_size,
            keep_own_model=[int(client) for client in np.flatnonzero(adversaries)],
        )

    @property
    def sums(self) -> SumOptions:
        """The options of the aggregation."""
        from tff_pmc.aggregation import SumOptions

        return SumOptions(**self.settings.aggregation.values_of(SumSettings))


def _model(settings: RunSettings) -> Any:
    """Builds the model of a run; a `SettingError` names weights that do not fit."""
    name, file = settings.model_name, settings.training.initial_weights
    model = call_naming_flag(f"--model={name}", _build_model_once, settings.model)
    return (
        call_naming_flag("--initial_weights", _with_initial_weights, model, *file)
        if file
        else model
    )


def build_model(settings: ModelSettings) -> Any:
    """Builds a functional model, whose layer names do not depend on earlier models.

    Keras would name the layers and metrics of a process's second model `dense_1` and
    `auc_1`.
    """
    from tff_pmc.models.tff_types.keras_models import as_functional

    tf.keras.backend.reset_uids()
    return as_functional(settings.build())


# Runs of equal settings share the model and its traced computations.
_build_model_once = functools.lru_cache(maxsize=1)(build_model)
_with_initial_weights = functools.lru_cache(maxsize=1)(load_initial_weights)


@functools.lru_cache(maxsize=4)
def trace_once(build: Callable[..., Any], model: Any, *num_clients: int) -> Any:
    """Traces a computation once for all runs of an equal model."""
    return build(model, *num_clients)


def sample_clients(examples: leaf_data.Examples, count: int) -> npt.NDArray[np.int64]:
    """Samples `count` clients with examples, ascending indices; 0 returns all clients.

    The sample depends on the federation alone, so it is the same under all seeds.
    """
    clients = np.arange(examples.num_clients)
    trainable = np.flatnonzero(examples.label_counts)
    if not count or count >= len(trainable):
        return clients
    return np.sort(
        np.random.default_rng([_SAMPLING_STREAM, count]).choice(trainable, count, False)
    )
