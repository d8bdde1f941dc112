"""The class of named experiments, and their registry (no TensorFlow)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tff_pmc.algorithms  # noqa: F401 - `RunSettings` takes one by name.
from declared_settings import Registry
from tff_pmc.models import fitting_model
from tff_pmc.reports.paper import PAPERS
from tff_pmc.settings import RunSettings, SettingError
from tff_pmc.settings.flag_values import call_naming_flag


@dataclasses.dataclass(frozen=True)
class Variant:
    """One run of an experiment: its algorithm, and the settings in which it differs.

    Attributes:
        algorithm: the name of the algorithm.
        changes: the other values that differ from the experiment's settings, by flag.
        text: the row as `--rows` takes it, if it was written so; `changes` are then
            texts, too, and what the run differs in is part of its label.
    """

    algorithm: str
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    text: str = ""

    @classmethod
    def from_text(cls, text: str) -> Variant:
        """Reads a row of `--rows`: an algorithm, and settings as `flag=value`.

        >>> Variant.from_text("fedavg local_epochs=1").changes
        {'local_epochs': '1'}

        Raises:
            SettingError: the row is empty, or a word after the algorithm is not a
                setting.
        """
        algorithm, *words = text.split() or [""]
        if not algorithm or "=" in algorithm:
            raise SettingError(
                f"--rows: {text.strip()!r} does not begin with an algorithm: write a "
                "row as fedavg local_epochs=1"
            )
        changes: dict[str, str] = {}
        for word in words:
            flag, equals, value = word.lstrip("-").partition("=")
            if not (flag and equals and value):
                raise SettingError(
                    f"--rows: {text.strip()}: {word!r} is not a setting: write "
                    "FLAG=VALUE, without spaces, and ; between rows"
                )
            if flag in changes:
                raise SettingError(f"--rows: {text.strip()}: {flag} is given twice")
            changes[flag] = value
        return cls(algorithm, changes, " ".join([algorithm, *words]))

    @property
    def values(self) -> dict[str, Any]:
        """The values that differ from the experiment's settings, by flag."""
        return {"algorithm": self.algorithm, **self.changes}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A starting point for settings, what it compares, and how it is reported.

    A new one is a module that registers it:

        EXPERIMENTS.register("mine", Experiment(
            "Digits with more local epochs.",
            settings={"dataset": "digits5k", "local_epochs": 10},
            reports=("rounds_to_target", "ordering_effect"),
        ))

    Attributes:
        title: one sentence, which the help shows.
        settings: values by flag that differ from the defaults of `RunSettings`.
        orderings: the orderings that it compares if neither `--priority` nor
            `--criteria` is given. If empty: the `priority` of its settings, else the
            first criterion alone, or all criteria if the algorithm combines or adjusts
            them.
        rows: the variants that it compares; empty if it compares orderings. They are
            `Variant`s, or texts as the flag `--rows` takes them, such as
            `"fedavg local_epochs=1"`.
        on_demand: further variants, which run if `--algorithms` names their algorithm.
        reports: the names in `reports.REPORTS` of the reports on its runs, in order,
            under one seed and under several.
        baseline: the name of the algorithm, or the ordering, that the others are
            compared with.
        protocols: values by flag that `--protocol=NAME` sets, by name.
        paper: the short name of its paper, one of `PAPERS`, by which the help groups
            flags; empty for an experiment beyond the papers.

    Raises:
        ValueError: (constructor) the paper is unknown.
    """

    title: str
    settings: Mapping[str, Any]
    orderings: Sequence[tuple[str, ...]] = ()
    rows: Sequence[Any] = ()
    on_demand: Sequence[Variant] = ()
    reports: Sequence[str] = ("rounds_to_target", "ordering_effect")
    baseline: str = "DS"
    protocols: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    paper: str = ""

    def __post_init__(self) -> None:
        if self.paper and self.paper not in PAPERS:
            papers = ", ".join(PAPERS)
            raise ValueError(f"unknown paper {self.paper!r}; known: {papers}")
        variants = [
            Variant.from_text(row) if isinstance(row, str) else row for row in self.rows
        ]
        object.__setattr__(self, "rows", tuple(variants))

    def with_rows(self, rows: Sequence[Any]) -> Experiment:
        """Returns it with rows as `--rows` takes them, and reports that fit any."""
        return dataclasses.replace(
            self,
            rows=rows,
            on_demand=(),
            reports=("rounds_to_target", "algorithm_effect"),
            baseline="FedAvg",
        )

    @property
    def compares_algorithms(self) -> bool:
        """Whether its runs differ in the algorithm instead of the ordering."""
        return bool(self.rows)


EXPERIMENTS: Registry[Experiment] = Registry(
    "experiment", "tff_pmc.experiments.catalog"
)
"""The named experiments."""


def get_experiment(name: str) -> Experiment:
    """Returns the experiment with this name.

    Raises:
        SettingError: the name is unknown.
    """
    return call_naming_flag(f"--experiment={name}", EXPERIMENTS.__getitem__, name)


def experiment_values(name: str, protocol: str = "paper") -> dict[str, Any]:
    """Returns the values by flag that an experiment starts from.

    Args:
        name: the experiment.
        protocol: `paper`, or one of the experiment's.

    Raises:
        SettingError: the experiment or the protocol is unknown.
    """
    experiment = get_experiment(name)
    if protocol != "paper" and protocol not in experiment.protocols:
        raise SettingError(
            f"--protocol={protocol}: the experiment {name} does not have it; it has "
            f"{', '.join(['paper', *experiment.protocols])}"
        )
    model = fitting_model(experiment.settings.get("dataset", ""), "mnist_cnn")
    return {
        **{"model": model, "algorithm": "prioritized"},  # If it names no other.
        **experiment.settings,
        **experiment.protocols.get(protocol, {}),
        "experiment": name,
        "protocol": protocol,
    }


def settings(
    name: str, changes: Mapping[str, Any] | None = None, protocol: str = "paper"
) -> RunSettings:
    """Returns a named experiment's settings with some replaced.

    Raises:
        SettingError: the experiment or protocol is unknown, a value is out of range, or
            a flag is not a setting of the chosen data set, model or algorithm.
    """
    return RunSettings.from_flag_values(
        changes or {}, inherited=experiment_values(name, protocol)
    )
