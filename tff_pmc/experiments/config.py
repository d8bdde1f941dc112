"""A run's settings (no TensorFlow)."""

from __future__ import annotations

import dataclasses
import fractions
import math
import re
from typing import Any

from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc.experiments import checks
from tff_pmc.experiments.checks import ConfigError
from tff_pmc.experiments.choices import DATA_OPTIONS


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything that decides what a run computes.

    Attributes:
        experiment: the named experiment it started from.
        dataset: a name `leaf_data.load` knows.
        model: a name in `models.MODELS`.
        partition: `iid` or `noniid`; for data sets that are partitioned here.
        priority: the ordering, codes of criteria, most important first; of scores
            other than `prioritized`, the criteria that take part.
        score: one of `scores.SCORES`, in which one criterion alone is the same; or
            Dual's, `dual`.
        score_weights: of `weighted_average`, in the order of `priority`; or of `owa`.
        quantifier: of `owa`, in the place of weights; see `scores.owa_weights`.
        capacity: of `choquet`: (`DS+LD`, value) for each set of criteria.
        criteria: the criteria measured, in the order of the columns.
        rounds: number of rounds.
        clients_per_round: cohort size; below 1, the fraction of the clients; 0 is all.
        cohort_rounding: of that fraction: `up` (DA: 0.2 x 371 = 75), or to the
            `nearest` number, as the published code has it.
        local_epochs: E.
        batch_size: B; 0 is full batch.
        learning_rate: of the clients' optimizer.
        client_optimizer: `sgd` or `adam`, whose state begins anew in every round.
        server_learning_rate: PMC eq. 2; 1 takes the weighted mean as it is.
        conv_activation: `relu` or `none`; see `models.mnist_cnn`.
        initializer: of the kernels; see `models.mnist_cnn`.
        batch_norm: of `celeba_reference_cnn`; see there.
        dropout: of the models in `DROPOUT_MODELS`.
        model_divergence: what MD is: of the `whole` model (the papers), or the mean
            over the layers' kernels, `by_layer` (the published code).
        partition_seed: of the partition of the data into clients.
        model_seed: of the initial weights.
        cohort_seed: of the choice of clients in each round.
        batch_seed: of the order of the examples in the local batches.
        normalization: of the criteria: `sum` (the papers'), `max` or `range`.
        criteria_ranges: (low, high) of each criterion in the order of the
            columns; for the normalization `range`.
        client_attributes: names of the attributes in the clients' table, each of
            which may be a criterion.
        clip_norm: the L2 norm to which clients clip their updates; 0 does not.
        adjustment: of the ordering in each round: `fixed`, `backtracking` (DA's
            Algorithm 1) or `best_of_all`; see `search.POLICIES`. An ordering of one
            criterion leaves nothing to adjust.
        judge_on: what candidates are judged on: every client's `test` set (the
            paper's), a `local_validation` part of its training examples, which it
            then does not train on, or the `server`'s own examples.
        validation_fraction: that part.
        predictions: record each test example's predicted label in every round.
        femnist_source: `leaf` or `tff`; see `leaf_data.femnist`.
        sample_fraction: of FEMNIST, by LEAF's `niid` rule.
        min_samples: writers with fewer samples are left out.
        celeba_source: `raw`, `leaf` or `tff`; see `leaf_data.celeba`.
        client_rule: which of CelebA's identities are clients; see there.
        missing_images: of CelebA: `skip` or `refuse`.
        reach: a device reaches a target at an accuracy of `at_least` it (the papers),
            or `above` it (the published code).
        protocol: `paper` or `reference_code`, which settings it started from.
        targets: target accuracies of the tables, percent.
        num_shards: placements the cohort is packed into; changes results only
            in the order of float32 sums.
        lambda_steps: how many lambdas the search of `dual` tries, from 0 to 1.
        dual_lambda: the one in force; of a run's record, not its settings.
        system: what the run is called where an experiment compares systems; see
            `systems`.
        aggregator: `criteria`, or a name in `aggregation.baselines.BASELINES`.
        adapt_loss: AdaFed's class weights, sent with the model.
        accuracy_power: of the criterion ACC; see `server_criteria.server_accuracy`.
        keep_own_model: clients whose attribute `adversary` is 1 ignore the server's
            model and go on with their own.
        alpha: of the aggregator `personalized`.
        personalized_form: see `baselines.personalized`.
        beta: of `momentum`.
        eta: of `momentum`.
        epsilon: of `laplace`.
        quantization_levels: of `quantized`.
        num_clients: of `mnist_adafed` and `cifar10`; 0 is the data set's own.
        simulation: of `mnist_adafed`, AdaFed's simulation 1, 2 or 3.
        mislabeled_fraction: of its adversaries' labels.
        num_adversaries: how many of its clients are.
        images_per_client: of its simulation 3.
        server_set: what its server measures models on: the `reported` images (the
            paper), or images kept `apart` from these.
        image_fraction: of `cifar10`, for quick trials.
    """

    experiment: str
    dataset: str
    model: str = "mnist_cnn"
    partition: str = "iid"
    priority: tuple[str, ...] = ("DS",)
    score: str = "prioritized"
    score_weights: tuple[float, ...] = ()
    quantifier: str = ""
    capacity: tuple[tuple[str, float], ...] = ()
    criteria: tuple[str, ...] = ("DS", "LD", "MD")
    rounds: int = 100
    clients_per_round: float = 0.1
    cohort_rounding: str = "up"
    local_epochs: int = 5
    batch_size: int = 0
    learning_rate: float = 0.1
    server_learning_rate: float = 1.0
    conv_activation: str = "relu"
    initializer: str = "glorot_uniform"
    batch_norm: str = "frozen"
    dropout: float = 0.3
    model_divergence: str = "whole"
    partition_seed: int = 0
    model_seed: int = 0
    cohort_seed: int = 0
    batch_seed: int = 0
    normalization: str = "sum"
    criteria_ranges: tuple[tuple[float, float], ...] = ()
    client_attributes: tuple[str, ...] = ()
    clip_norm: float = 0.0
    adjustment: str = "fixed"
    judge_on: str = "test"
    predictions: bool = False
    validation_fraction: float = 0.2
    femnist_source: str = "leaf"
    sample_fraction: float = 1.0
    min_samples: int = 0
    celeba_source: str = "raw"
    client_rule: str = "paper"
    missing_images: str = "skip"
    protocol: str = "paper"
    reach: str = "at_least"
    targets: tuple[int, ...] = (70, 80, 90, 95)
    num_shards: int = 2
    lambda_steps: int = 11
    dual_lambda: float = 0.0
    system: str = ""
    aggregator: str = "criteria"
    client_optimizer: str = "sgd"
    adapt_loss: bool = False
    accuracy_power: float = 1.0
    keep_own_model: bool = False
    alpha: float = 0.5
    personalized_form: str = "formula"
    beta: float = 0.9
    eta: float = 1.0
    epsilon: float = 1.0
    quantization_levels: int = 256
    num_clients: int = 0
    simulation: str = "1"
    mislabeled_fraction: float = 0.0
    num_adversaries: int = 2
    images_per_client: int = 7500
    server_set: str = "reported"
    image_fraction: float = 1.0

    def __post_init__(self) -> None:
        """Raises a `ConfigError` for settings that cannot be run."""
        checks.check_ranges(self)
        checks.check_words(self)
        for flag, resolve in (
            ("criteria", self.resolve_criteria),
            ("priority", lambda: scores.prioritized(self.priority, self.criteria)),
            ("normalization", lambda: self.scores_normalization),
            (f"score={self.score}", self.resolve_score),
        ):
            try:
                resolve()
            except ValueError as error:
                raise ConfigError(f"--{flag}: {error}") from error
        checks.check_adjustment(self)

    def resolve_criteria(self) -> tuple[criteria_lib.Criterion, ...]:
        """The criteria; MD as the settings want it, client attributes among them."""
        return criteria_lib.resolve([self._criterion(code) for code in self.criteria])

    def _criterion(self, code: str) -> criteria_lib.Criterion:
        if code in self.client_attributes:
            return criteria_lib.attribute(code)
        found = criteria_lib.REGISTRY[criteria_lib.canonical(code)]
        if found.code == "MD" and self.model_divergence == "by_layer":
            return dataclasses.replace(criteria_lib.REGISTRY["MD_layers"], code="MD")
        return found

    def resolve_score(self) -> scores.Score:
        """The score of the settings; of Dual's, with the lambda in force."""
        if self.score == "dual":
            return scores.dual(self.dual_lambda, criteria=self.criteria)
        return scores.named(
            self.score,
            self.priority,
            self.criteria,
            score_weights=self.score_weights,
            quantifier=self.quantifier,
            capacity=self.capacity,
        )

    @property
    def two_stage(self) -> bool:
        """Whether a client cannot score itself before the cohort's totals."""
        return self.normalization != "range" and bool(self.resolve_score().minima)

    @property
    def scores_normalization(self) -> scores.Normalization:
        """The normalization, as the scores take it."""
        if self.criteria_ranges and len(self.criteria_ranges) != len(self.criteria):
            raise ValueError("there must be one range for each criterion")
        return scores.Normalization(self.normalization, self.criteria_ranges)

    @property
    def label(self) -> str:
        """What tables call this run: `LD,DS,MD`, or `LD,DS,MD (backtracking)`.

        Where systems are compared, the system and what its data differs in.
        """
        if self.system:
            return self._system_label
        adjusted = "" if self.adjustment == "fixed" else f" ({self.adjustment})"
        return self.resolve_score().label + adjusted

    @property
    def folder(self) -> str:
        """The run's folder: `LD-DS-MD`, or `LD-DS-MD_backtracking`."""
        if self.system:
            return re.sub(r"[^a-z0-9]+", "_", self._system_label.lower()).strip("_")
        adjusted = "" if self.adjustment == "fixed" else f"_{self.adjustment}"
        words = re.findall(r"[\w.]+", self.resolve_score().label)
        return "-".join(words) + adjusted

    @property
    def _system_label(self) -> str:
        wrong = f", {self.mislabeled_fraction:.0%} mislabeled"
        clients = f", {self.num_clients} clients" if self.num_clients else ""
        return self.system + clients + (wrong if self.mislabeled_fraction else "")

    @property
    def tunes_locally(self) -> bool:
        """Whether what is tested is not the server's model but the clients' own."""
        return self.aggregator == "personalized" and self.personalized_form == "text"

    @property
    def measures_at_server(self) -> bool:
        """Whether the server's own examples take part in the training."""
        return "ACC" in self.criteria or self.adapt_loss or self.judge_on == "server"

    @property
    def data_options(self) -> dict[str, Any]:
        """What `leaf_data.load` is given for this data set."""
        return {
            option: getattr(self, field)
            for option, field in DATA_OPTIONS[self.dataset].items()
            if not (field == "num_clients" and self.num_clients == 0)
        }

    def cohort_size(self, num_clients: int) -> int:
        """Clients in a round.

        Raises:
            ConfigError: more are asked for than there are.
        """
        size = self.clients_per_round
        # As written in decimals: in floats 0.07 * 100 is above 7.
        share = fractions.Fraction(repr(size))
        if size == 0:
            count = num_clients
        elif size >= 1:
            count = int(size)
        elif self.cohort_rounding == "up":
            count = math.ceil(share * num_clients)
        else:  # Of the product in floats, as the published code has it.
            count = max(round(size * num_clients), 1)
        if count > num_clients:
            raise ConfigError(
                f"--clients_per_round={count}, but {self.dataset} has {num_clients} "
                "clients"
            )
        return count
