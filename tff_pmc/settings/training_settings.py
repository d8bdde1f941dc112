"""The settings of a run's rounds, cohorts and local training."""

from __future__ import annotations

import dataclasses
import fractions
import math
import os
from typing import ClassVar

from declared_settings import (
    ABOVE_0,
    ABOVE_0_TO_1,
    FROM_0_TO_1,
    SEED,
    Needs,
    Range,
    SettingError,
    Settings,
    setting,
)
from tff_pmc.optimizers import CLIENT_OPTIMIZERS
from tff_pmc.settings import flag_values
from tff_pmc.settings.flag_values import NON_NEGATIVE_INT, POSITIVE_INT

_COHORT_SIZE = Range(
    lambda size: 0 <= size < 1 or (1 <= size < math.inf and size % 1 == 0),
    "a number of clients, a fraction between 0 and 1, or 0 for all",
)
_FINITE = Range(lambda x: 0 <= x < math.inf, "0 or more, finite")


@dataclasses.dataclass(frozen=True)
class LocalTraining(Settings):
    """A client's training: flags of the command, and arguments of the builders.

    An option that is a field here has its flag, range, help and place in `run.json`,
    and is an argument of each builder in `tff_pmc.processes`, which hands it to the
    loops over a client's batches in `tff_pmc.clients` (docs/extend.md).
    """

    local_epochs: int = setting(5, "Local epochs, E.", within=POSITIVE_INT)
    batch_size: int = setting(
        0, "Local batch size, B; 0 is full batch.", within=NON_NEGATIVE_INT
    )
    seed: int = setting(
        0,
        "Seed of the order of the examples in the local batches, and of the random "
        "draws of layers in training.",
        flag="batch_seed",
        within=SEED,
    )
    prox_mu: float = setting(
        0.0,
        "FedProx's mu: clients train on their loss + mu/2 ||w - w_received||^2 (Li et "
        "al. 2020, arXiv 1812.06127, eq. 2), which holds them near the model that they "
        "received; 0 omits the term.",
        within=_FINITE,
        omit_default=True,
    )


@dataclasses.dataclass(frozen=True)
class TrainingSettings(LocalTraining):
    """The rounds, the cohorts and the clients' local training."""

    title: ClassVar[str] = "Training, of every run"

    rounds: int = setting(100, "Communication rounds.", within=POSITIVE_INT)
    clients_per_round: float = setting(
        0.1,
        "Clients in a round; below 1, a fraction of all; 0 is all.",
        within=_COHORT_SIZE,
    )
    cohort_rounding: str = setting(
        "up",
        "How a fractional --clients_per_round is rounded: up, or to the nearest number "
        "of clients, as in PMC's published code. No paper gives a rule: 10 % of DA's "
        "371 clients are 38 or 37.",
        choices=("up", "nearest"),
        needs=Needs(
            "a fraction of the clients as --clients_per_round",
            lambda on: 0 < on.clients_per_round < 1,
        ),
    )
    cohort_seed: int = setting(
        0, "Seed of the selection of clients in each round.", within=SEED
    )
    stragglers: float = setting(
        0.0,
        "The share of a round's clients that have no time for all local epochs: each "
        "has time for 1 to E, drawn by --cohort_seed (FedProx, section 5.2). See "
        "--straggler_work.",
        within=FROM_0_TO_1,
        omit_default=True,
    )
    straggler_work: str = setting(
        "by_algorithm",
        "Whether the epochs that --stragglers have run count (keep), or these clients "
        "are excluded from the round (drop). by_algorithm keeps them with fedprox and "
        "fednova, which are made for it, and drops them with the others, as FedProx's "
        "authors do for FedAvg.",
        choices=("by_algorithm", "keep", "drop"),
        omit_default=True,
        needs=Needs("--stragglers", lambda on: on.stragglers > 0),
    )
    learning_rate: float = setting(0.1, "The clients' learning rate.", within=ABOVE_0)
    client_rate_decay: float = setting(
        1.0,
        "The factor by which the clients' learning rate is multiplied after every "
        "--client_rate_decay_every rounds; 1 keeps the rate constant.",
        within=ABOVE_0_TO_1,
        omit_default=True,
    )
    client_rate_decay_every: int = setting(
        1,
        "The number of rounds between two multiplications by --client_rate_decay.",
        within=POSITIVE_INT,
        omit_default=True,
        needs=Needs("--client_rate_decay", lambda on: on.client_rate_decay != 1),
    )
    client_optimizer: str = setting(
        "sgd",
        "The clients' optimizer, whose state is reset in every round.",
        choices=lambda: tuple(CLIENT_OPTIMIZERS),
    )
    initial_weights: tuple[str, ...] = setting(
        (),
        "Initial weights instead of those of --model_seed: a file of arrays, trainable "
        "ones first, as np.savez(FILE, *weights.trainable, *weights.non_trainable) "
        "writes it.",
        parse=flag_values.parse_file_and_sha256,
        omit_default=True,
    )
    server_learning_rate: float = setting(
        1.0,
        "The server's learning rate (PMC eq. 2); with 1 the new model is the weighted "
        "mean.",
        within=ABOVE_0,
    )
    keep_own_model: bool = setting(
        False,
        "Clients whose attribute `adversary` is 1 ignore the server's model and "
        "continue with the one they trained (AdaFed's simulation 3).",
    )
    most_lost_rounds: int = setting(
        3,
        "End the run after this many consecutive rounds in which no client was "
        "included and the model did not change; 0 never does.",
        within=NON_NEGATIVE_INT,
    )
    num_packs: int = setting(
        2,
        "The number of packs in which a cohort is sent; it affects only the order of "
        "floating-point sums.",
        within=POSITIVE_INT,
    )
    max_pack_bytes: int = setting(
        500_000_000,
        "The largest size of a pack's inputs in bytes. A larger client is an error, "
        "unless its examples are memory-mapped. TFF's worker accepts at most 2 GB.",
        within=POSITIVE_INT,
    )

    @property
    def note(self) -> str:
        """Initial weights, stragglers, FedProx's mu and the rate decay, if set."""
        start = [f"from {os.path.basename(path)}" for path in self.initial_weights[:1]]
        slow = f"stragglers {self.stragglers:g}" if self.stragglers else ""
        work = {"keep": "kept", "drop": "dropped"}.get(self.straggler_work, "")
        prox = f"prox {self.prox_mu:g}" if self.prox_mu else ""
        interval, decay = self.client_rate_decay_every, f"{self.client_rate_decay:g}"
        rounds = f"every {interval} rounds" if interval > 1 else "a round"
        decays = "" if self.client_rate_decay == 1 else f"rate times {decay} {rounds}"
        stragglers = " ".join(filter(None, (slow, work)))
        return ", ".join(filter(None, (*start, stragglers, prox, decays)))

    def cohort_size(self, num_clients: int, name: str) -> int:
        """Returns the number of clients in a round.

        Raises:
            SettingError: more clients than have training examples.
        """
        size = self.clients_per_round
        # The decimal number: in floats 0.07 * 100 is above 7.
        share = fractions.Fraction(repr(size))
        if size == 0:
            count = num_clients
        elif size >= 1:
            count = int(size)
        elif self.cohort_rounding == "up":
            count = math.ceil(share * num_clients)
        else:  # The rounded float product, as in the published code.
            count = max(round(size * num_clients), 1)
        if count > num_clients:
            raise SettingError(
                f"--clients_per_round={count}, but {name} has {num_clients} clients "
                "with training examples"
            )
        return count
