"""A run's settings (no TensorFlow)."""

from __future__ import annotations

import dataclasses
import fractions
import math
from typing import Any

from tff_pmc import criteria as criteria_lib
from tff_pmc import models, scores, search

JUDGES = ("test", "local_validation")
"""On which of the clients' examples candidates are judged."""

RESERVED = ("all", "round", "client", "weight", "excluded")
"""What an attribute cannot be called: a flag's word, or a column of the record."""


class ConfigError(ValueError):
    """A setting that cannot be run; the message names the flag."""


def _require(name: str, holds: bool, what: str, config: RunConfig) -> None:
    if not holds:
        raise ConfigError(f"--{name} must be {what}, got {getattr(config, name)}")


_PARTITIONED = {"partition": "partition", "seed": "partition_seed"}
DATA_OPTIONS: dict[str, dict[str, str]] = {
    "digits5k": _PARTITIONED,
    "mnist": _PARTITIONED,
    "femnist": {
        "source": "femnist_source",
        "sample_fraction": "sample_fraction",
        "min_samples": "min_samples",
        "seed": "partition_seed",
    },
}
"""For each data set, its loader's options and the settings that fill them."""


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything that decides what a run computes.

    Attributes:
        experiment: the named experiment it started from.
        dataset: a name `leaf_data.load` knows.
        model: a name in `models.MODELS`.
        partition: `iid` or `noniid`; for data sets that are partitioned here.
        priority: the ordering, codes of criteria, most important first.
        criteria: the criteria measured, in the order of the columns.
        rounds: number of rounds.
        clients_per_round: cohort size; below 1, the fraction of the clients
            (rounded up).
        local_epochs: E.
        batch_size: B; 0 is full batch.
        learning_rate: of the clients' SGD.
        server_learning_rate: PMC eq. 2; 1 takes the weighted mean as it is.
        conv_activation: `relu` or `none`; see `models.mnist_cnn`.
        initializer: of the kernels; see `models.mnist_cnn`.
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
            paper's), or a `local_validation` part of its training examples, which it
            then does not train on.
        validation_fraction: that part.
        femnist_source: `leaf` or `tff`; see `leaf_data.femnist`.
        sample_fraction: of FEMNIST, by LEAF's `niid` rule.
        min_samples: writers with fewer samples are left out.
        targets: target accuracies of the tables, percent.
        num_shards: placements the cohort is packed into; changes results only
            in the order of float32 sums.
    """

    experiment: str
    dataset: str
    model: str = "mnist_cnn"
    partition: str = "iid"
    priority: tuple[str, ...] = ("DS",)
    criteria: tuple[str, ...] = ("DS", "LD", "MD")
    rounds: int = 100
    clients_per_round: float = 0.1
    local_epochs: int = 5
    batch_size: int = 0
    learning_rate: float = 0.1
    server_learning_rate: float = 1.0
    conv_activation: str = "relu"
    initializer: str = "glorot_uniform"
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
    validation_fraction: float = 0.2
    femnist_source: str = "leaf"
    sample_fraction: float = 1.0
    min_samples: int = 0
    targets: tuple[int, ...] = (70, 80, 90, 95)
    num_shards: int = 2

    def __post_init__(self) -> None:
        for name in ("rounds", "local_epochs", "num_shards"):
            _require(name, getattr(self, name) >= 1, "at least 1", self)
        for name in ("batch_size", "min_samples"):
            _require(name, getattr(self, name) >= 0, "0 or more", self)
        finite = math.isfinite(self.clip_norm) and self.clip_norm >= 0
        _require("clip_norm", finite, "0 (no clipping) or more", self)
        for name in ("learning_rate", "server_learning_rate"):
            value = getattr(self, name)
            _require(name, math.isfinite(value) and value > 0, "above 0", self)
        for name in ("partition_seed", "model_seed", "cohort_seed", "batch_seed"):
            _require(name, 0 <= getattr(self, name) < 2**31, "in [0, 2^31)", self)
        fraction = self.validation_fraction
        _require("validation_fraction", 0 < fraction < 1, "between 0 and 1", self)
        fraction = self.sample_fraction
        _require("sample_fraction", 0 < fraction <= 1, "above 0, at most 1", self)
        size = self.clients_per_round
        whole_or_fraction = 0 < size < 1 or (1 <= size < math.inf and size % 1 == 0)
        _require(
            "clients_per_round",
            whole_or_fraction,
            "a number of clients, or a fraction between 0 and 1",
            self,
        )
        if self.normalization == "range" and not self.criteria_ranges:
            raise ConfigError("--normalization=range needs --criteria_ranges")
        for name in self.client_attributes:
            taken = {*criteria_lib.REGISTRY, *criteria_lib.ALIASES, *RESERVED}
            if name in taken or not name.isidentifier():
                raise ConfigError(
                    f"--client_table: an attribute cannot be called {name!r}: it must "
                    "be a word, and no criterion's code or column of the record"
                )
        for flag, check in (
            ("criteria", self.resolve_criteria),
            ("priority", lambda: scores.prioritized(self.priority, self.criteria)),
            ("normalization", lambda: self.scores_normalization),
        ):
            try:
                check()
            except ValueError as error:
                raise ConfigError(f"--{flag}: {error}") from error
        if self.adjustment != "fixed" and len(self.priority) > search.MAX_CRITERIA:
            raise ConfigError(
                f"--adjustment={self.adjustment} searches the orderings of at most "
                f"{search.MAX_CRITERIA} criteria, got {len(self.priority)}"
            )
        for name, choices in (
            ("conv_activation", models.CONV_ACTIVATIONS),
            ("initializer", models.INITIALIZERS),
            ("model", tuple(models.MODELS)),
            ("adjustment", search.POLICIES),
            ("judge_on", JUDGES),
            ("femnist_source", ("leaf", "tff")),
        ):
            try:
                models.check_choice(f"--{name}", getattr(self, name), choices)
            except ValueError as error:
                raise ConfigError(str(error)) from error

    def resolve_criteria(self) -> tuple[criteria_lib.Criterion, ...]:
        """The criteria, those that are client attributes among them."""
        return criteria_lib.resolve(
            [
                criteria_lib.attribute(code) if code in self.client_attributes else code
                for code in self.criteria
            ]
        )

    @property
    def scores_normalization(self) -> scores.Normalization:
        """The normalization, as the scores take it."""
        if self.criteria_ranges and len(self.criteria_ranges) != len(self.criteria):
            raise ValueError("there must be one range for each criterion")
        return scores.Normalization(self.normalization, self.criteria_ranges)

    @property
    def label(self) -> str:
        """What tables call this run: `LD,DS,MD`, or `LD,DS,MD (backtracking)`."""
        adjusted = "" if self.adjustment == "fixed" else f" ({self.adjustment})"
        return ",".join(self.priority) + adjusted

    @property
    def folder(self) -> str:
        """The run's folder: `LD-DS-MD`, or `LD-DS-MD_backtracking`."""
        adjusted = "" if self.adjustment == "fixed" else f"_{self.adjustment}"
        return "-".join(self.priority) + adjusted

    @property
    def data_options(self) -> dict[str, Any]:
        """What `leaf_data.load` is given for this data set."""
        return {
            option: getattr(self, field)
            for option, field in DATA_OPTIONS[self.dataset].items()
        }

    def cohort_size(self, num_clients: int) -> int:
        """Clients in a round.

        Raises:
            ConfigError: more are asked for than there are.
        """
        size = self.clients_per_round
        # As written in decimals: in floats 0.07 * 100 is above 7.
        share = fractions.Fraction(repr(size))
        count = math.ceil(share * num_clients) if size < 1 else int(size)
        if count > num_clients:
            raise ConfigError(
                f"--clients_per_round={count}, but {self.dataset} has {num_clients} "
                "clients"
            )
        return count
