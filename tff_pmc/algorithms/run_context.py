"""The parts of which an algorithm makes its process, each made once a run."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import leaf_data
from declared_settings import SettingError
from leaf_data.client_ids import ClientNumber
from leaf_data.errors import one_line
from tff_pmc import criteria as criteria_lib
from tff_pmc._lazy import tf, tff
from tff_pmc.models import ModelSettings
from tff_pmc.models.weights_file import with_weights_of
from tff_pmc.selections import CohortSampler, LossFn
from tff_pmc.settings.aggregation_settings import SumSettings
from tff_pmc.settings.flag_values import prefix_errors
from tff_pmc.settings.groups import LocalTraining
from tff_pmc.settings.run_settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.aggregation import SumOptions
    from tff_pmc.clients.training_options import Training

_SAMPLE = 82  # A separate stream of random numbers.
_TRIED = 32  # Test examples on which the model's metrics are tried.
MOST_RECORDED_CLASSES = 255
"""The most classes whose labels `--predictions` records: a byte, and 255 is none."""


@dataclasses.dataclass(frozen=True)
class RunContext:
    """Settings and data, and what is built of them the first time it is used."""

    settings: RunSettings
    data: leaf_data.FederatedDataset  # To train on.
    judged: leaf_data.Examples  # What candidates are judged on, where there are any.

    @classmethod
    def of(cls, settings: RunSettings, data: leaf_data.FederatedDataset) -> RunContext:
        """Divides the data into what is trained and what is judged on.

        With a fixed score nothing is judged, but what is held out is not trained on
        there either: the runs of one command stay comparable. A `SettingError` says
        what of the settings does not fit the data.
        """
        _check(settings, data)
        judge_on, judged = settings.adjustment.judge_on, data.test_examples
        if judge_on == "server":
            assert data.server_examples is not None  # `_check` has refused it.
            judged = data.server_examples
        elif judge_on == "local_validation":
            fraction = settings.adjustment.validation_fraction
            data, judged = data.hold_out(fraction, settings.data.seed)
        if not judged.num_examples:
            raise SettingError(f"no client of {data.name} has validation examples")
        return cls(settings, data, judged)

    @functools.cached_property
    def cohorts(self) -> CohortSampler:
        """The sampler of each round's clients."""
        return _cohort_sampler(self.settings, self.data, self.losses)

    @functools.cached_property
    def cohort_size(self) -> int:
        """The number of clients in a round."""
        return _cohort_size(self.settings, self.cohorts)

    def losses(
        self, clients: npt.NDArray[np.int64], weights: Any
    ) -> npt.NDArray[np.float64]:
        """Computes the mean loss of a model on each client's training examples."""
        from tff_pmc.processes import build_loss_sums, evaluation_packs

        examples = self.data.train_examples.subset(map(ClientNumber, clients))
        packs = evaluation_packs(examples, num_packs=self.settings.training.num_packs)
        sums = traced(build_loss_sums, self.model, len(clients))(weights, packs)
        means: npt.NDArray[np.float64] = np.asarray(sums, np.float64) / examples.sizes
        return means

    def pack(self, chosen: Sequence[int]) -> list[Any]:
        """Packs a cohort; see `packing.pack`."""
        from tff_pmc.clients import packing

        settings, table = self.settings, self.data.client_table.values
        alone = settings.algorithm.one_client_per_pack
        return packing.pack(
            self.data.train_examples,
            [ClientNumber(k) for k in chosen],
            num_packs=len(chosen) if alone else settings.training.num_packs,
            max_bytes=settings.training.max_pack_bytes,
            attributes={
                name: table[name] for name in settings.aggregation.client_attributes
            },
            example_attributes=criteria_lib.example_attributes(self.criteria),
        )

    @functools.cached_property
    def model(self) -> Any:
        """The model, a `tff.learning.models.FunctionalModel`."""
        return _model(self.settings)

    @functools.cached_property
    def criteria(self) -> tuple[criteria_lib.Criterion, ...]:
        """The criteria; those on the server's examples are bound to these."""
        found = self.settings.measured
        if not any(criterion.needs_server_examples for criterion in found):
            return found
        x, y = self.server_examples
        bind = criteria_lib.bind_to_server
        return prefix_errors("--criteria", bind, found, self.model, x, y)

    @property
    def server_examples(self) -> tuple[Any, Any]:
        """The inputs and labels of the server's examples."""
        assert self.data.server_examples is not None  # `_check` has refused it.
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

    def client_rate(self, round_num: Any) -> Any:
        """Returns the clients' learning rate in a round, a tensor counted from 0."""
        training = self.settings.training
        steps = tf.cast(round_num // training.client_rate_decay_every, tf.float32)
        return training.learning_rate * training.client_rate_decay**steps

    @property
    def server_optimizer(self) -> Any:
        """The server's optimizer, one of TFF's; see `ServerSettings`."""
        server, optimizers = self.settings.server, tff.learning.optimizers
        rate = self.settings.training.server_learning_rate
        own = server.parameters.get
        betas, floor = (own("beta1"), own("beta2")), own("epsilon", 0.0)
        build, *more = {
            "sgd": (optimizers.build_sgdm,),
            "momentum": (optimizers.build_sgdm, own("momentum")),
            "adam": (optimizers.build_adam, *betas, floor),
            "yogi": (optimizers.build_yogi, *betas, floor, floor**2),
            "adagrad": (optimizers.build_adagrad, 0.0, floor**2),
        }[server.optimizer]
        return build(rate, *more)

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
            report_cohort=self.cohort_size,
            keep_own_model=[int(client) for client in np.flatnonzero(adversaries)],
        )

    @property
    def sums(self) -> SumOptions:
        """The options of the sums."""
        from tff_pmc.aggregation import SumOptions

        return SumOptions(**self.settings.aggregation.values_of(SumSettings))


def _model(settings: RunSettings) -> Any:
    """Builds the model of a run; a `SettingError` names weights that do not fit."""
    name, file = settings.names["model"], settings.training.initial_weights
    model = prefix_errors(f"--model={name}", _built, settings.model)
    return prefix_errors("--initial_weights", _begun, model, *file) if file else model


@functools.lru_cache(maxsize=1)
def _built(settings: ModelSettings) -> Any:
    """Builds the model once for runs of equal settings, which share what is traced."""
    from tff_pmc.models.tff_types.keras_models import built

    return built(settings)


_begun = functools.lru_cache(maxsize=1)(with_weights_of)


def _num_scores(settings: RunSettings) -> int:
    """Counts the classes that a run's model distinguishes."""
    from tff_pmc.processes.evaluation import num_scores

    return prefix_errors(
        f"--model={settings.names['model']}", num_scores, _model(settings)
    )


@functools.lru_cache(maxsize=3)
def traced(build: Callable[..., Any], model: Any, *num_clients: int) -> Any:
    """Traces a computation once for all runs of an equal model."""
    return build(model, *num_clients)


def drawn_clients(examples: leaf_data.Examples, count: int) -> npt.NDArray[np.int64]:
    """Draws the numbers of so many clients that have examples; 0 draws all of them.

    They are ascending, and depend on the examples' federation alone, so that they are
    the same under all seeds.
    """
    clients = np.arange(examples.num_clients)
    able = np.flatnonzero(examples.sizes)
    if not count or count >= len(able):
        return clients
    return np.sort(np.random.default_rng([_SAMPLE, count]).choice(able, count, False))


def _cohort_sampler(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    loss_fn: LossFn | None = None,
) -> CohortSampler:
    """Returns the sampler of a run's cohorts, by its selection and `cohort_seed`."""
    return CohortSampler(
        data.train_examples.sizes,
        settings.training.cohort_seed,
        settings.selection,
        name=settings.names["selection"],
        attributes=data.client_table.values,
        loss_fn=loss_fn,
    )


def _cohort_size(settings: RunSettings, sampler: CohortSampler) -> int:
    """Returns the number of clients in a round."""
    return settings.training.cohort_size(len(sampler.trainable), settings.dataset)


def _check(settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
    """Refuses settings that do not fit the data."""
    from tff_pmc.models.tff_types.packed_model import split_batch
    from tff_pmc.record.tables import COHORT

    sampler = _cohort_sampler(settings, data)
    sampler.check(_cohort_size(settings, sampler))
    parts = {"train": data.train_examples, "test": data.test_examples}
    for part, examples in parts.items():
        if not examples.num_examples:
            raise SettingError(f"no client of {data.name} has {part} examples")
    if data.train_examples.stored is None:
        _check_bytes(settings, data.train_examples)
    for code in settings.columns:
        if code in COHORT.reserved:  # A plugin may have added a column.
            raise SettingError(
                f"--criteria: {code} is a column of cohort.csv: choose another code"
            )
    known = data.train_examples.attributes
    for criterion in settings.measured:
        for name in criteria_lib.example_attributes([criterion]):
            if name not in known:
                raise SettingError(
                    f"--criteria: {criterion.code} needs the attribute {name} of each "
                    f"example, which {data.name} does not have: leave the criterion "
                    "out"
                )
    of_server = data.server_examples
    if settings.measures_at_server and not (of_server and of_server.num_examples):
        raise SettingError(
            f"--experiment={settings.experiment} measures models on examples of the "
            f"server, which {data.name} does not have"
        )
    model = settings.model
    wanted = f"{model.element_shape} {model.element_dtype}"
    given = f"{data.element_shape} {data.train_examples.x.dtype}"
    if wanted != given:
        raise SettingError(
            f"--model={settings.names['model']} takes inputs of {wanted}, and those of "
            f"{data.name} are {given}"
        )
    if settings.training.initial_weights:
        _model(settings)
    labels = data.train_examples.y
    if not (model.num_classes and data.has_classes):
        takes = split_batch(_model(settings).input_spec)[1]
        if (takes.dtype.as_numpy_dtype, takes.shape.rank) != (
            labels.dtype,
            labels.ndim,
        ):
            raise SettingError(
                f"--model={settings.names['model']} takes labels of "
                f"{takes.shape} {takes.dtype.name}, and {data.name} has "
                f"{labels.dtype}{'' if data.has_classes else ', numbers and no class'}"
            )
    classes = model.num_classes or (data.has_classes and _num_scores(settings))
    if 0 < classes < data.num_classes:
        raise SettingError(
            f"--model={settings.names['model']} has {classes} classes, and "
            f"{data.name} has {data.num_classes}, 0 to {data.num_classes - 1}"
        )
    if settings.training.keep_own_model and "adversary" not in data.client_table.values:
        raise SettingError(
            "--keep_own_model needs the attribute adversary of the clients: see "
            "--client_table"
        )
    most = max(classes, data.num_classes)
    if settings.record.predictions and most > MOST_RECORDED_CLASSES:
        raise SettingError(
            f"--predictions records labels of at most {MOST_RECORDED_CLASSES} classes, "
            f"and --model={settings.names['model']} or {data.name} has {most}"
        )
    if not data.has_classes:
        _check_without_classes(settings, data.name)
    _check_metrics(settings, data)


def _check_metrics(settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
    """Refuses metrics of the model that a record of the data cannot have."""
    from tff_pmc.clients.client_work import MEASURED
    from tff_pmc.clients.model_metrics import build_aggregation, metrics_on
    from tff_pmc.models.tff_types.keras_metrics import check_metric_names
    from tff_pmc.record.tables import ROUNDS

    model, rows = _model(settings), slice(_TRIED)
    x, y = np.asarray(data.test_examples.x[rows]), data.test_examples.y[rows]
    flag = f"--model={settings.names['model']}"
    try:
        found = metrics_on(model, x, np.asarray(y))
    except Exception as error:  # Whatever a metric raises.
        words = str(getattr(error, "message", error)).strip()
        if words.startswith("in user code"):  # And the calls, before what was raised.
            words = words.splitlines()[-1]
        raise SettingError(
            f"{flag}: its metrics cannot be computed of its outputs and the labels of "
            f"{data.name}: {one_line(words)}"
        ) from error
    prefix_errors(flag, check_metric_names, found)
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
                f"{flag}: its metrics cannot be aggregated: {one_line(error)}"
            ) from error


def _check_bytes(settings: RunSettings, examples: leaf_data.Examples) -> None:
    """Refuses a client that no pack can hold, before the first round."""
    from tff_pmc.clients.packing import check_bytes

    sizes = (examples.sizes * examples.x[:1].nbytes).tolist()
    limit, flag = settings.training.max_pack_bytes, "--max_pack_bytes"
    given = sizes, examples.client_ids, limit, flag
    prefix_errors(f"{flag}={limit}", check_bytes, *given)


def _check_without_classes(settings: RunSettings, name: str) -> None:
    """Refuses what needs accuracy, or classes, of a regression."""
    why = f"which {name} does not have: its labels are numbers"
    for criterion in settings.measured:
        if criterion.needs_classes:
            raise SettingError(f"--criteria: {criterion.code} needs classes, {why}")
    if settings.counterfactual.kinds:
        raise SettingError(f"--counterfactuals compares accuracies, {why}")
    if settings.adjustment.searches:
        policy = settings.adjustment.adjustment
        raise SettingError(f"--adjustment={policy} compares accuracies, {why}")
    if settings.record.predictions:
        raise SettingError(f"--predictions records labels of classes, {why}")
    if settings.record.record_clients == "none":
        raise SettingError(f"--record_clients=none leaves accuracies alone, {why}")
    if settings.adjustment.judge_on == "server" or settings.algorithm.needs_classes:
        raise SettingError(
            f"--algorithms={settings.names['algorithm']} compares labels of classes, "
            f"{why}"
        )
