"""The groups of settings that every run has, whatever it trains on what.

Data sets (`leaf_data.datasets`), models (`tff_pmc.models`) and algorithms
(`tff_pmc.algorithms`) have further groups, each in its module.
"""

from __future__ import annotations

import dataclasses
import fractions
import math
import os
from typing import ClassVar

from declared_settings import (
    ABOVE_0,
    ABOVE_0_TO_1,
    SEED,
    Needs,
    Range,
    SettingError,
    Settings,
    setting,
)
from tff_pmc import search
from tff_pmc.optimizers import CLIENT_OPTIMIZERS
from tff_pmc.settings import flag_values

_A_COHORT = Range(
    lambda size: 0 <= size < 1 or (1 <= size < math.inf and size % 1 == 0),
    "a number of clients, a fraction between 0 and 1, or 0 for all",
)
# Numbers that TensorFlow counts in 32 bits.
_COUNT = Range(lambda n: 0 <= n < 2**31, "0 or more, below 2^31")
_FINITE = Range(lambda x: 0 <= x < math.inf, "0 or more, finite")
_SOME = Range(lambda n: 1 <= n < 2**31, "at least 1, below 2^31")
_COUNTERFACTUALS = Needs("--counterfactuals", lambda on: bool(on.kinds))


@dataclasses.dataclass(frozen=True)
class LocalTraining(Settings):
    """A client's training: flags of the command, and arguments of the builders.

    An option that is a field here has its flag, range, help and place in `run.json`,
    and is an argument of each builder in `tff_pmc.processes`, which hands it to the
    loops over a client's batches in `tff_pmc.clients` (docs/extend.md).
    """

    local_epochs: int = setting(5, "Local epochs, E.", within=_SOME)
    batch_size: int = setting(0, "Local batch size, B; 0 is full batch.", within=_COUNT)
    seed: int = setting(
        0,
        "Seed of the order of the examples in the local batches, and of what layers of "
        "a model draw in training.",
        flag="batch_seed",
        within=SEED,
    )
    prox_mu: float = setting(
        0.0,
        "FedProx's mu: clients train on their loss + mu/2 ||w - w_received||^2 (Li et "
        "al. 2020, arXiv 1812.06127, eq. 2), which holds them near the model that they "
        "received; 0 leaves it out.",
        within=_FINITE,
        omit_default=True,
    )


@dataclasses.dataclass(frozen=True)
class TrainingSettings(LocalTraining):
    """The rounds, the cohorts and the clients' local training."""

    title: ClassVar[str] = "Training, of every run"

    rounds: int = setting(100, "Communication rounds.", within=_SOME)
    clients_per_round: float = setting(
        0.1,
        "Clients in a round; below 1, a fraction of all; 0 is all.",
        within=_A_COHORT,
    )
    cohort_rounding: str = setting(
        "up",
        "How the fraction --clients_per_round is made a number of clients: up, or to "
        "the nearest, as PMC's published code has it. No paper gives a rule: 10 % of "
        "DA's 371 clients are 38 or 37.",
        choices=("up", "nearest"),
        needs=Needs(
            "a fraction of the clients as --clients_per_round",
            lambda on: 0 < on.clients_per_round < 1,
        ),
    )
    cohort_seed: int = setting(
        0, "Seed of the choice of clients in each round.", within=SEED
    )
    learning_rate: float = setting(0.1, "The clients' learning rate.", within=ABOVE_0)
    client_rate_decay: float = setting(
        1.0,
        "What the clients' learning rate is multiplied by after every "
        "--client_rate_decay_every rounds; 1 keeps it as it is.",
        within=ABOVE_0_TO_1,
        omit_default=True,
    )
    client_rate_decay_every: int = setting(
        1,
        "The rounds after which the clients' rate changes by --client_rate_decay.",
        within=_SOME,
        omit_default=True,
        needs=Needs("--client_rate_decay", lambda on: on.client_rate_decay != 1),
    )
    client_optimizer: str = setting(
        "sgd",
        "The clients' optimizer, whose state begins anew in every round.",
        choices=lambda: tuple(CLIENT_OPTIMIZERS),
    )
    initial_weights: tuple[str, ...] = setting(
        (),
        "A file of the arrays that the model begins with, in the place of those of "
        "--model_seed: those that are trained first, then the others, as "
        "np.savez(FILE, *weights.trainable, *weights.non_trainable) writes them.",
        parse=flag_values.file_and_sha256,
        omit_default=True,
    )
    server_learning_rate: float = setting(
        1.0,
        "The server's learning rate (PMC eq. 2); 1 takes the weighted mean as it is.",
        within=ABOVE_0,
    )
    keep_own_model: bool = setting(
        False,
        "Clients whose attribute `adversary` is 1 ignore the server's model and "
        "continue with the one they trained (AdaFed's simulation 3).",
    )
    most_lost_rounds: int = setting(
        3,
        "The run ends after so many rounds in a row in which no client counts and the "
        "model stays as it is; 0 runs all rounds.",
        within=_COUNT,
    )
    num_packs: int = setting(
        2,
        "Packs that a cohort's clients are sent in. Another number changes the order "
        "of float sums and nothing else.",
        within=_SOME,
    )
    max_pack_bytes: int = setting(
        500_000_000,
        "The most bytes of inputs in a pack. A client with more is refused, unless its "
        "examples are mapped from the disk. TFF's worker takes 2 GB at most.",
        within=_SOME,
    )

    @property
    def note(self) -> str:
        """The file of initial weights, FedProx's mu, the decay of the clients' rate."""
        start = [f"from {os.path.basename(path)}" for path in self.initial_weights[:1]]
        prox = f"prox {self.prox_mu:g}" if self.prox_mu else ""
        every, decay = self.client_rate_decay_every, f"{self.client_rate_decay:g}"
        rounds = f"every {every} rounds" if every > 1 else "a round"
        decays = "" if self.client_rate_decay == 1 else f"rate times {decay} {rounds}"
        return ", ".join(filter(None, (*start, prox, decays)))

    def cohort_size(self, num_clients: int, name: str) -> int:
        """Returns the clients in a round: never more than can train."""
        size = self.clients_per_round
        # As written in decimals: in floats 0.07 * 100 is above 7.
        share = fractions.Fraction(repr(size))
        if size == 0:
            count = num_clients
        elif size >= 1:
            count = int(size)
        elif self.cohort_rounding == "up":
            count = math.ceil(share * num_clients)
        else:  # Of the product in floats, as in the published code.
            count = max(round(size * num_clients), 1)
        if count > num_clients:
            raise SettingError(
                f"--clients_per_round={count}, but {name} has {num_clients} clients "
                "with training examples"
            )
        return count


@dataclasses.dataclass(frozen=True)
class AdjustmentSettings(Settings):
    """The online adjustment: the search over candidates in each round."""

    title: ClassVar[str] = "Online adjustment (DA's Algorithm 1; Dual's lambda)"

    adjustment: str = setting(
        "fixed",
        "How the ordering is chosen in each round: fixed, backtracking or best_of_all. "
        "Backtracking (DA's Algorithm 1) tests orderings until one is as good as the "
        "round before. Several values, for example fixed,backtracking, are combined "
        "with every --priority. DS alone has nothing to adjust. The algorithm dual "
        "searches its lambda: by best_of_all, or by the first value that searches.",
        choices=search.POLICIES,
        repeated=True,
    )
    judge_on: str = setting(
        "test",
        "What --adjustment's candidates are judged on. It is every client's test set "
        "(DA's; together they are Dual's validation set, which it reports), a "
        "local_validation part of its training examples, which are then not trained "
        "on, or examples of the server (Dual's evaluation set).",
        choices=("test", "local_validation", "server"),
    )
    validation_fraction: float = setting(
        0.2,
        "With --judge_on=local_validation or --experiment=lr_search, the part of the "
        "training examples that is held out.",
        within=Range(lambda x: 0 < x < 1, "between 0 and 1"),
    )

    @property
    def searches(self) -> bool:
        """Whether candidates are tested at all."""
        return self.adjustment != "fixed"


@dataclasses.dataclass(frozen=True)
class CounterfactualSettings(Settings):
    """The models that other weightings would have given in a round, judged as well."""

    title: ClassVar[str] = "Counterfactuals of a round"

    kinds: tuple[str, ...] = setting(
        (),
        "The weightings of which each round's model is also judged, though it is not "
        "taken: orderings (each criterion alone and every ordering), averages:STEP "
        "(weighted averages, in steps such as 0.25), or ranges (OWA by every "
        "quantifier, with --normalization=range); or several, for example "
        "orderings,averages:0.5.",
        flag="counterfactuals",
        parse=flag_values.words,
    )
    rates: tuple[float, ...] = setting(
        (),
        "Server learning rates with which each of these is judged besides the "
        "run's rate, for example 0.5,2.",
        flag="counterfactual_rates",
        parse=flag_values.rates,
        needs=_COUNTERFACTUALS,
    )
    every: int = setting(
        1,
        "They are judged after the first round, and after every so many rounds.",
        flag="counterfactual_every",
        within=_SOME,
        needs=_COUNTERFACTUALS,
    )
    clients: int = setting(
        0,
        "How many clients judge them, drawn once and the same in all runs; 0 is all. "
        "--judge_on sets on which examples.",
        flag="counterfactual_clients",
        within=_COUNT,
        needs=_COUNTERFACTUALS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # What a float32 holds.
        if not all(1e-30 < rate < 1e30 for rate in self.rates):
            raise SettingError("--counterfactual_rates must be above 0, and finite")

    def judges(self, round_num: int) -> bool:
        """Returns whether judges judge after this round, counted from 1."""
        return bool(self.kinds) and (round_num == 1 or round_num % self.every == 0)


@dataclasses.dataclass(frozen=True)
class RecordSettings(Settings):
    """The record of a run, and the rule by which tables read it."""

    title: ClassVar[str] = "Record and tables, of every run"

    predictions: bool = setting(
        False,
        "Record the predicted label of every test example in every round. PMC's "
        "Tables 3, 5 and 7, Dual's tables and the export to the published code's form "
        "need it.",
    )
    evaluate_every: int = setting(
        1,
        "The model is tested after the first round, and after every so many rounds. "
        "Where there is no test, tables and plots have the figures of the last one.",
        within=_SOME,
    )
    evaluate_clients: int = setting(
        0,
        "How many clients test the model, drawn once and the same in all runs; they "
        "alone are on record. 0 is all.",
        within=_COUNT,
    )
    record_clients: str = setting(
        "all",
        "Whether the figures of each client that tests the model are on record. With "
        "none there is no clients.csv, and no table of clients' accuracies.",
        choices=("all", "none"),
        omit_default=True,
    )
    reach: str = setting(
        "at_least",
        "A device reaches a target at an accuracy of at least it (the papers), or "
        "above it (the published code).",
        choices=("at_least", "above"),
    )
    targets: tuple[int, ...] = setting(
        (70, 80, 90, 95),
        "The target accuracies of the tables, percent, for example 70,80,90.",
        parse=flag_values.percentages,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = [t for t in self.targets if isinstance(t, int) and 0 < t <= 100]
        if len({*whole}) < len(self.targets):
            words = ",".join(map(str, self.targets))
            raise SettingError(f"--targets={words}: {flag_values.PERCENTAGES}")

    def tests(self, round_num: int) -> bool:
        """Returns whether the model is tested after a round, counted from 1."""
        return round_num == 1 or round_num % self.evaluate_every == 0
