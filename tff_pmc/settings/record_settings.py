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
        "The model is tested after the first round, and after every so many rounds. "
        "Where there is no test, tables and plots have the figures of the last one.",
        within=POSITIVE_INT,
    )
    evaluate_clients: int = setting(
        0,
        "How many clients test the model, drawn once and the same in all runs; they "
        "alone are on record. 0 is all.",
        within=NON_NEGATIVE_INT,
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
