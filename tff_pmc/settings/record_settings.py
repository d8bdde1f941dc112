"""The settings of a run's record and of the tables that are computed from it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from declared_settings import SettingError, Settings, setting
from tff_pmc.settings import flag_values
from tff_pmc.settings.flag_values import NON_NEGATIVE_INT, POSITIVE_INT


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
        "Test the model after the first round, then every N rounds; in between, tables "
        "and plots repeat the last test.",
        within=POSITIVE_INT,
    )
    evaluate_clients: int = setting(
        0,
        "Test on this many clients, one random sample for all runs; only they are "
        "recorded. 0 is all.",
        within=NON_NEGATIVE_INT,
    )
    record_clients: str = setting(
        "all",
        "Whether the results of each client that tests the model are recorded. With "
        "none, there is no clients.csv and no table of clients' accuracies.",
        choices=("all", "none"),
        omit_default=True,
    )
    global_train_loss: bool = setting(
        False,
        "Record the loss of each tested model on the training examples of all clients, "
        "the objective of FedProx's figures. train_loss is that of the round's clients "
        "while they train.",
        omit_default=True,
    )
    reach: str = setting(
        "at_least",
        "Whether a device reaches a target with an accuracy of at least the target "
        "(papers) or above it (published code).",
        choices=("at_least", "above"),
    )
    targets: tuple[int, ...] = setting(
        (70, 80, 90, 95),
        "The target accuracies of the tables, percent, for example 70,80,90.",
        parse=flag_values.parse_percentages,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = [t for t in self.targets if isinstance(t, int) and 0 < t <= 100]
        if len({*whole}) < len(self.targets):
            words = ",".join(map(str, self.targets))
            raise SettingError(f"--targets={words}: {flag_values.PERCENTAGES}")

    def is_test_round(self, round_num: int) -> bool:
        """Returns whether the model is tested after a round, counted from 1."""
        return round_num == 1 or round_num % self.evaluate_every == 0
