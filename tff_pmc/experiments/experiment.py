"""The class of named experiments, and their registry (no TensorFlow)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tff_pmc.algorithms  # noqa: F401 - `RunSettings` takes one by name.
from declared_settings import Registry
from tff_pmc.reports.paper import PAPERS
from tff_pmc.settings import RunSettings, SettingError
from tff_pmc.settings.flag_values import call_naming_flag


@dataclasses.dataclass(frozen=True)
class Variant:
    """A run of an experiment, by what sets it apart from the others.

    Attributes:
        algorithm: the name of the algorithm.
        changes: the other values that differ from the experiment's settings, by flag.
    """

    algorithm: str
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

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
        title: a sentence for the help.
        settings: values by flag that differ from the defaults of `RunSettings`.
        orderings: the orderings that it compares where neither `--priority` nor
            another choice of criteria names any; empty for the `priority` of its
            settings, else the first criterion alone, or all of them where the algorithm
            combines or adjusts them.
        rows: the algorithms that it compares; empty where it compares orderings.
        on_demand: further algorithms, which run where `--algorithms` names them.
        reports: the names in `reports.REPORTS` of the reports on its runs, in order,
            under one seed and under several.
        baseline: the name of the algorithm, or the ordering, that the others are
            compared with.
        protocols: values by flag that `--protocol=NAME` sets, by name.
        paper: the short name of the paper that it is of, one of `PAPERS`; by which the
            help groups flags. Empty for one beyond the papers.

    Raises:
        ValueError: (constructor) there is no such paper.
    """

    title: str
    settings: Mapping[str, Any]
    orderings: Sequence[tuple[str, ...]] = ()
    rows: Sequence[Variant] = ()
    on_demand: Sequence[Variant] = ()
    reports: Sequence[str] = ("rounds_to_target", "ordering_effect")
    baseline: str = "DS"
    protocols: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    paper: str = ""

    def __post_init__(self) -> None:
        if self.paper and self.paper not in PAPERS:
            papers = ", ".join(PAPERS)
            raise ValueError(f"unknown paper {self.paper!r}; known: {papers}")

    @property
    def compares_algorithms(self) -> bool:
        """Whether its runs differ in the algorithm and not in the ordering."""
        return bool(self.rows)


EXPERIMENTS: Registry[Experiment] = Registry(
    "experiment", "tff_pmc.experiments.catalog"
)
"""The named experiments."""


def check_baseline(names: Sequence[str], baseline: str) -> None:
    """Refuses a baseline that is none of the runs under several seeds.

    `names` are those of the runs' algorithms where these are compared, else the runs'
    labels. The `SettingError` names the flag.
    """
    if baseline and baseline not in names:
        run_names = "; ".join(dict.fromkeys(names))
        raise SettingError(f"--baseline={baseline} is not one of the runs: {run_names}")


def get_experiment(name: str) -> Experiment:
    """Returns the experiment of a name.

    Raises:
        SettingError: no experiment has the name.
    """
    return call_naming_flag(f"--experiment={name}", EXPERIMENTS.__getitem__, name)


def experiment_values(name: str, protocol: str = "paper") -> dict[str, Any]:
    """Returns the values by flag that an experiment starts from.

    Args:
        name: the experiment.
        protocol: `paper`, or one of the experiment's.

    Raises:
        SettingError: there is no such experiment or protocol.
    """
    experiment = get_experiment(name)
    if protocol != "paper" and protocol not in experiment.protocols:
        raise SettingError(
            f"--protocol={protocol}: there is no such protocol of {name}"
        )
    return {
        **{"model": "mnist_cnn", "algorithm": "prioritized"},  # If it names no other.
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
        SettingError: the experiment or protocol is unknown, a value out of range, or a
            flag of no use with the chosen data set, model or algorithm.
    """
    return RunSettings.from_flag_values(
        changes or {}, inherited=experiment_values(name, protocol)
    )
