"""The base class of callbacks, the arguments of their hooks, and their registry."""

from __future__ import annotations

import dataclasses
import functools
import numbers
from typing import TYPE_CHECKING, Any, ClassVar, Optional, Union

import numpy.typing as npt

from declared_settings import Declared, Registry

if TYPE_CHECKING:
    import pandas as pd

    import leaf_data
    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.algorithms.trainer import Trainer
    from tff_pmc.record.round_record import RoundRecord
    from tff_pmc.settings import RunSettings


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that starts, or is resumed.

    Attributes:
        settings: the run's settings; `settings.label` is its name in tables.
        context: what is built from the settings and the data: the model, the criteria,
            the cohorts.
        trainer: trains the rounds.
        state: the state of the process before the next round.
        folder: the run's folder.
        rounds_before: the number of rounds that are already recorded; 0 for a new run.
        test_examples: the test examples of the clients that test the model.
    """

    settings: RunSettings
    context: RunContext
    trainer: Trainer
    state: Any
    folder: str
    rounds_before: int
    test_examples: leaf_data.Examples

    @property
    def data(self) -> leaf_data.FederatedDataset:
        """The federation, without the examples that are held out of training."""
        return self.context.data

    @property
    def weights(self) -> Any:
        """The `ModelWeights` before the next round."""
        return self.trainer.get_model_weights(self.state)

    @property
    def rounds(self) -> pd.DataFrame:
        """All rows of `rounds.csv` so far, including those before a resume.

        A callback whose decisions depend on past rounds reads them here, so that a
        resumed run decides as one without interruption. Rounds without a test have the
        values of the last test. Before the first round there are no rows.
        """
        from tff_pmc.record.tables import ROUNDS  # It imports pandas.

        return ROUNDS.read(self.folder)

    def write_reports(self, folder: str) -> None:
        """Writes the experiment's reports on this run alone into a folder.

        They are those that `--tables` writes: tables, figures and `report.html`. In
        `on_end` they are on all rounds.
        """
        from tff_pmc.experiments import experiment_reports
        from tff_pmc.experiments.experiment import EXPERIMENTS
        from tff_pmc.record.results import read_results

        experiment = EXPERIMENTS[self.settings.experiment]
        experiment_reports.write(experiment, read_results(self.folder), folder)


@dataclasses.dataclass(frozen=True)
class FinishedRound:
    """A round that was trained and tested.

    Attributes:
        record: the results of the round, from which the rows of all tables come.
        state: the state of the process after the round.
        weights: the model's `ModelWeights` after the round.
        predicted: the predicted label of each test example, with `--predictions` in
            rounds that were tested; else None.
    """

    record: RoundRecord
    state: Any
    weights: Any
    predicted: Optional[npt.NDArray[Any]] = None

    @property
    def round_num(self) -> int:
        """The round, from 1."""
        return self.record.round_num

    @functools.cached_property
    def row(self) -> dict[str, Any]:
        """The round's row of `rounds.csv`; values of a test that did not run are ""."""
        from tff_pmc.record.tables import ROUNDS

        return ROUNDS.rows(self.record)[0]

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of `row`, and the largest and smallest weight in the cohort."""
        from tff_pmc.record.tables import WEIGHT_BOUNDS

        result: dict[str, Any] = {
            name: value
            for name, value in self.row.items()
            if name != "round" and isinstance(value, numbers.Real)
        }
        weights = [row["weight"] for row in self.cohort if not row["excluded"]]
        if weights:
            result.update(zip(WEIGHT_BOUNDS, (max(weights), min(weights))))
        return result

    @functools.cached_property
    def cohort(self) -> list[dict[str, Any]]:
        """The round's rows of `cohort.csv`."""
        from tff_pmc.record.tables import COHORT

        return COHORT.rows(self.record)


@dataclasses.dataclass
class Callback(Declared):
    """Base class of callbacks, which are called during a run; fields are settings.

    A subclass is a dataclass that overrides the hooks that it needs, and is registered
    by name (docs/extend.md). Without settings it need not be a dataclass.

    One object serves the runs of a command one after another, so it must reset its
    attributes in `on_start`. On a cluster that spreads runs, each run has a copy.

    Attributes:
        reads_past: whether the callback reads the rounds before a resume in the record,
            and so may be added on a resume. Adding any other callback logs a warning.
    """

    reads_past: ClassVar[bool] = False

    def check(self, settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
        """Raises a `SettingError` if it cannot serve a run, which has no folder yet."""

    def on_start(self, run: Run) -> None:
        """Runs once, before the first round, or before the next one on a resume.

        Resuming a finished run, which has no further round, calls no hook.
        """

    def after_round(self, round: FinishedRound) -> Union[bool, str, None]:
        """Runs after each round; a returned True, or a reason in words, ends the run.

        The round's rows are already on disk. The checkpoint is saved after all
        callbacks: a run that is killed before repeats the round, and calls them again.
        """

    def on_end(self, status: str) -> None:
        """Runs once, after the last round or an error, if `on_start` was called.

        `status` is `FINISHED` or `INTERRUPTED` of `record.files`. Callbacks are called
        in reverse order. The model of a finished run is on disk (`model/`).
        """


CALLBACKS: Registry[type[Callback]] = Registry(
    "callback", "tff_pmc.experiments.callbacks"
)
"""The callbacks that `--callbacks` names."""
