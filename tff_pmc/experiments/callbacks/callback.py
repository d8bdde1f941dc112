"""The base class of callbacks, what they are called with, and their registry."""

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
        context: what is built of settings and data: the model, the cohorts.
        trainer: trains the rounds.
        state: the state of the process before the next round.
        folder: the run's folder.
        rounds_before: the number of rounds that were recorded before; 0 for a new run.
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
        """The federation; what is held out of training is not in it."""
        return self.context.data

    @property
    def weights(self) -> Any:
        """The `ModelWeights` before the next round."""
        return self.trainer.get_model_weights(self.state)

    @property
    def rounds(self) -> pd.DataFrame:
        """All rows of `rounds.csv` up to now, those before a resume among them.

        A callback that decides by the past reads it here: a resumed run then decides
        as one that was not interrupted. Rounds without a test have the values of the
        last test. No row is there before the first round.
        """
        from tff_pmc.record.tables import ROUNDS  # It imports pandas.

        return ROUNDS.read(self.folder)


@dataclasses.dataclass(frozen=True)
class FinishedRound:
    """A round that was trained and tested.

    Attributes:
        record: what the round came to; the rows of all tables are made of it.
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
        """The round's row of `rounds.csv`; "" for what was not tested."""
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
    """Base class of what is called as a run goes along; its fields are its settings.

    A subclass is a dataclass with the hooks that it needs, registered by name
    (docs/extend.md). Without settings it need not be a dataclass.

    One object serves the runs of a command one after another: what it keeps of a run,
    it sets in `on_start`. On a cluster that spreads runs, each has a copy.

    Attributes:
        reads_past: whether it needs no call in the rounds before a resume, because it
            reads them in the record. A resume that adds another one warns.
    """

    reads_past: ClassVar[bool] = False

    def check(self, settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
        """Raises a `SettingError` if it cannot serve a run, before it has a folder."""

    def on_start(self, run: Run) -> None:
        """Runs once, before the first round, or before the next one on a resume.

        A finished run that is resumed has no further round, and calls nothing.
        """

    def after_round(self, round: FinishedRound) -> Union[bool, str, None]:
        """Runs after each round: returning True, or the reason in words, ends the run.

        The round's rows are on disk then. Its checkpoint is saved when all callbacks
        were called: a run that is killed in between calls them for the round again.
        """

    def on_end(self, status: str) -> None:
        """Runs once, after the last round or an error, if `on_start` was called.

        `status` is `FINISHED` or `INTERRUPTED` of `record.files`. The last callback is
        called first.
        """


CALLBACKS: Registry[type[Callback]] = Registry(
    "callback", "tff_pmc.experiments.callbacks"
)
"""The callbacks that `--callbacks` names."""
