"""The callbacks that end a run early: `early_stopping`, `until`, and lost rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from absl import logging

from declared_settings import AT_LEAST_0, SettingError, setting
from tff_pmc.experiments.callbacks.callback import (
    CALLBACKS,
    Callback,
    FinishedRound,
    Run,
)
from tff_pmc.record import files
from tff_pmc.record.record_error import LostRunError
from tff_pmc.runtime import lost_round_warnings

if TYPE_CHECKING:
    import leaf_data
    from tff_pmc.settings import RecordSettings, RunSettings


@dataclasses.dataclass
class EarlyStopping(Callback):
    """Ends a run whose model has stopped improving."""

    reads_past: ClassVar[bool] = True

    patience: int = setting(
        0,
        "End a run after this many consecutive rounds without a better model, by the "
        "judged accuracy if candidates are judged, else by the test accuracy (or "
        "loss); rounds without a test do not end it. 0 never ends it.",
        within=AT_LEAST_0,
    )

    def on_start(self, run: Run) -> None:
        """Stores the folder, whose tables have the previous rounds."""
        self._folder = run.folder

    def after_round(self, round: FinishedRound) -> Optional[str]:
        """Ends the run if the best round was `patience` rounds ago."""
        from tff_pmc.record.best_round import best_round

        if not self.patience:
            return None
        best, name = best_round(self._folder)
        # A round without a test, as with --evaluate_every, does not end the run.
        decides = round.record.tested or not name.startswith("test")
        if not decides or round.round_num - best < self.patience:
            return None
        return f"no better {name} since round {best} (--patience={self.patience})"


@dataclasses.dataclass
class Until(Callback):
    """Ends a run when its devices have reached all targets."""

    reads_past: ClassVar[bool] = True

    until: str = setting(
        "",
        "Whether a run ends before its last round. targets: as soon as 10, 20, ..., "
        "90 % of the devices have reached each of the --targets.",
        choices=("", "targets"),
    )

    def check(self, settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
        """Raises a `SettingError` for runs that record no accuracies of devices."""
        if self.until and not data.has_classes:
            raise SettingError(
                f"--until={self.until} needs accuracies, and {data.name} is a "
                "regression data set, which has losses: remove the flag"
            )
        if self.until and settings.record.record_clients == "none":
            raise SettingError(
                f"--until={self.until} counts the devices that reach a target: remove "
                "--record_clients=none"
            )

    def on_start(self, run: Run) -> None:
        """Counts the devices that reached each target in the rounds before a resume."""
        from tff_pmc.record.results import read_results
        from tff_pmc.reports.statistics.rounds_to_target import (
            DEVICES,
            rounds_to_target,
        )

        record, sizes = run.settings.record, run.test_examples.label_counts
        self._needed = -(-max(DEVICES) * len(sizes) // 100)
        self._warn_if_endless(record, sizes)
        self._targets, self._rule = record.targets, record.reach
        self._max_devices = dict.fromkeys(self._targets, 0)
        if self.until and run.rounds_before:
            results = read_results(run.folder)
            reached = rounds_to_target(results, self._targets).dropna()
            number = run.test_examples.num_clients
            for target, share in zip(reached["target"], reached["devices"]):
                needed = -(-int(share) * number // 100)
                self._max_devices[target] = max(self._max_devices[target], needed)

    def after_round(self, round: FinishedRound) -> Optional[str]:
        """Ends the run if enough devices have reached each target."""
        from tff_pmc.reports.statistics.rounds_to_target import count_devices

        correct, sizes = round.record.measured, round.record.sizes
        if not self.until or correct is None:
            return None
        for target in self._targets:
            count = int(count_devices(correct, sizes, target, self._rule))
            self._max_devices[target] = max(self._max_devices[target], count)
        if min(self._max_devices.values()) < self._needed:
            return None
        return f"all targets are reached (--until={self.until})"

    def _warn_if_endless(self, record: RecordSettings, sizes: Any) -> None:
        """Warns before the first round if no round can reach all targets."""
        tested = int((sizes > 0).sum())
        why = ""
        if tested < self._needed:
            why = (
                f"{self._needed} of {len(sizes)} clients would have to reach each "
                f"target, and {tested} have test examples"
            )
        elif record.reach == "above" and 100 in record.targets:
            why = "no client is above 100 % (--targets, --reach=above)"
        if self.until and why:
            logging.warning(
                "--until=%s will not end the run early: %s.", self.until, why
            )


class StopOnLostRounds(Callback):
    """Ends a run with too many lost rounds, which did not change the model.

    Too many are `--most_lost_rounds` consecutive rounds, or all rounds of a shorter
    run. Rounds before a resume count. The first of several lost rounds logs a warning.
    """

    def on_start(self, run: Run) -> None:
        """Counts the rounds before; raises a `LostRunError` if the run is lost."""
        self._label = run.settings.label
        self._max_lost = run.settings.training.most_lost_rounds
        self._rounds = self._lost = 0
        self._reason = ""
        if run.rounds_before:
            for row in run.rounds.to_dict("records"):
                self._count(row)
        self._check(self._max_lost)

    def after_round(self, round: FinishedRound) -> bool:
        """Counts the round, and ends the run after too many."""
        self._count(round.row, round.cohort)
        if self._lost == 1:
            logging.warning("%s: round %d: %s", self._label, self._rounds, self._reason)
        return 0 < self._max_lost <= self._lost

    def on_end(self, status: str) -> None:
        """Raises a `LostRunError` if too many rounds, or all, were lost."""
        if status == files.FINISHED:
            self._check(min(self._max_lost, self._rounds))

    def _check(self, max_lost: int) -> None:
        if 0 < max_lost <= self._lost:
            raise LostRunError(
                f"{self._label}: the model did not change in rounds "
                f"{self._rounds - self._lost + 1} to {self._rounds}: {self._reason} "
                "(--most_lost_rounds)"
            )

    def _count(
        self, row: Mapping[str, Any], cohort: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._rounds += 1
        example = ""
        if cohort:
            first = dict(cohort[0])  # Shown only if all are excluded, hence the first.
            name, *_ = map(first.pop, ("client", "round", "excluded", "weight"))
            values = ", ".join(f"{code} {value}" for code, value in first.items())
            example = f"client {name} has {values}"
        names = "--max_update_norm", "--learning_rate"
        self._reason = lost_round_warnings.reason(row, *names, example) or ""
        self._lost = self._lost + 1 if self._reason else 0


CALLBACKS.register("early_stopping", EarlyStopping)
CALLBACKS.register("until", Until)
