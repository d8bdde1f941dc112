"""The settings of one run, including those of its algorithm.

A run's settings have an algorithm, and an algorithm checks a run's settings: so both
stand here. How an algorithm is built is said in `tff_pmc.algorithms`, which this module
does not import.
"""

from __future__ import annotations

import abc
import dataclasses
import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from declared_settings import SEED, SettingError, Settings
from leaf_data.dataset import DATASETS, Dataset
from tff_pmc.criteria import Criterion
from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.scores import Basis, Score
from tff_pmc.selections import SELECTIONS, Selection
from tff_pmc.settings.adjustment_settings import (
    AdjustmentSettings,
    CounterfactualSettings,
)
from tff_pmc.settings.aggregation_settings import AggregationSettings
from tff_pmc.settings.flag_values import call_naming_flag
from tff_pmc.settings.record_settings import RecordSettings
from tff_pmc.settings.server_settings import ServerSettings
from tff_pmc.settings.training_settings import TrainingSettings

GROUPS: dict[str, type[Settings]] = {
    "training": TrainingSettings,
    "server": ServerSettings,
    "aggregation": AggregationSettings,
    "adjustment": AdjustmentSettings,
    "counterfactual": CounterfactualSettings,
    "record": RecordSettings,
}
"""The groups that every run has, by the names of `RunSettings`'s attributes."""


@dataclasses.dataclass(frozen=True)
class AlgorithmSettings(Settings, abc.ABC):
    """The settings of an algorithm, and what follows from them and the run's others.

    Each algorithm is a subclass of `tff_pmc.algorithms.Algorithm`, which adds how its
    process is built.

    Attributes:
        name: what tables call it.
        weighs_equally: whether all clients count alike, whatever their criteria.
        one_client_per_pack: whether its process must see each client by itself.
        needs_server_examples: whether it measures models on examples of the server.
    """

    name: ClassVar[str] = ""
    weighs_equally: ClassVar[bool] = False
    one_client_per_pack: ClassVar[bool] = False
    needs_server_examples: ClassVar[bool] = False

    @property
    def needs_classes(self) -> bool:
        """Whether it compares predicted labels, which a regression does not have."""
        return False

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` if its score does not fit the settings of a run."""
        flag = f"--algorithms={settings.algorithm_name}"
        score = call_naming_flag(flag, self.score, settings)
        call_naming_flag(flag, score.over, settings.criterion_codes)

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns the criteria it needs with those of `--criteria`; none by default."""
        return ()

    def label(self, settings: RunSettings) -> str:
        """Returns the name that tables give to a run of it."""
        return self.name

    def folder_name(self, settings: RunSettings) -> str:
        """Returns the name of a run's folder: the label in small letters."""
        return slug(settings.label)

    @abc.abstractmethod
    def score(self, settings: RunSettings) -> Score:
        """Returns the score in force; a `ValueError` if it misfits the criteria."""


def slug(label: str) -> str:
    """Makes the name of a folder of a label: `adafed_weights_only`."""
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


COMPONENTS: dict[str, Mapping[str, type[Any]]] = {
    "algorithm": {},  # `tff_pmc.algorithms` puts its registry here.
    "dataset": DATASETS,
    "model": MODELS,
    "selection": SELECTIONS,
}
"""What is chosen by name and has further settings, by the flag that chooses."""


def owners_clause(flag: str) -> str:
    """Returns `: it is a setting of the algorithm fedprox`, or "" without an owner."""
    owners = []
    for what, registry in COMPONENTS.items():
        names = sorted(name for name, kind in registry.items() if flag in kind.flags())
        if names:
            plural = "s" if len(names) > 1 else ""
            noun = {"dataset": "data set"}.get(what, what)
            owners.append(f"the {noun}{plural} {', '.join(names)}")
    return f": it is a setting of {' and of '.join(owners)}" if owners else ""


_COMPONENT_GROUPS = (
    "algorithm",
    "data",
    "model",
    "selection",
)  # The groups of these settings.
_COMPONENT_DEFAULTS = {"selection": "uniform"}  # Not on record: it was before the flag.


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """The settings of one run, made by `of` from values by flag: a group a field.

    Attributes:
        experiment: the named experiment it started from.
        protocol: `paper` or `reference_code`, whose settings it started from.
        component_names: the names of algorithm, data set, model and selection, by flag.
    """

    experiment: str
    protocol: str
    component_names: Mapping[str, str]
    algorithm: AlgorithmSettings
    data: Dataset
    model: ModelSettings
    selection: Selection
    training: TrainingSettings
    server: ServerSettings
    aggregation: AggregationSettings
    adjustment: AdjustmentSettings
    counterfactual: CounterfactualSettings
    record: RecordSettings

    @classmethod
    def from_flag_values(
        cls, values: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
    ) -> RunSettings:
        """Builds the settings from values by flag; the others have their defaults.

        Args:
            values: by flag, those of `CHOSEN` but the selection here or inherited.
            inherited: values to start from; those that another data set, model or
                algorithm than the chosen one has are passed over.

        Raises:
            SettingError: a value is out of range or not one of the choices; a flag in
                `values` is in none of the groups; or values cannot be combined.
        """
        both = {
            "protocol": "paper",
            **_COMPONENT_DEFAULTS,
            **(inherited or {}),
            **values,
        }
        names = {flag: both[flag] for flag in COMPONENTS}
        if not COMPONENTS["algorithm"]:
            raise SettingError(
                f"there is no algorithm {names['algorithm']!r} yet: import "
                "tff_pmc.algorithms, which registers the algorithms"
            )
        chosen = [
            call_naming_flag(f"--{flag}={name}", COMPONENTS[flag].__getitem__, name)
            for flag, name in names.items()
        ]
        groups: dict[str, Any] = {**dict(zip(_COMPONENT_GROUPS, chosen)), **GROUPS}
        known = {"experiment", "protocol", *COMPONENTS}
        known.update(flag for group in groups.values() for flag in group.flags())
        for flag in (flag for flag in values if flag not in known):
            kinds = (
                kind for registry in COMPONENTS.values() for kind in registry.values()
            )
            same = [s for kind in kinds for s in kind.declared() if s.flag == flag]
            data = groups["data"].declared()
            meant = [s.flag for s in data if all(map(s.accepts_same_values, same))]
            near = difflib.get_close_matches(flag, meant, 1)
            raise SettingError(
                f"--{flag} is not a setting of the data set {names['dataset']}, the "
                f"model {names['model']}, the algorithm {names['algorithm']} or the "
                f"selection {names['selection']}"
                + "".join(f": did you mean --{one}?" for one in near)
                + ("" if near else owners_clause(flag))
            )
        made = {name: group.from_flag_values(both) for name, group in groups.items()}
        for group in made.values():
            group.check_given(values)
        settings = cls(both["experiment"], both["protocol"], names, **made)
        settings.algorithm.check(settings)
        return settings

    def with_changes(self, **changes: Any) -> RunSettings:
        """Returns the same with other values, by flag; the errors are those of `of`."""
        return RunSettings.from_flag_values(changes, inherited=self.by_flag())

    def by_flag(self) -> dict[str, Any]:
        """Returns all values by flag."""
        found = dict(
            self.component_names, experiment=self.experiment, protocol=self.protocol
        )
        groups = self.groups().values()
        return {**found, **{f: v for one in groups for f, v in one.by_flag().items()}}

    @property
    def seed_flags(self) -> tuple[str, ...]:
        """The flags of the run's seeds, whichever of its groups declares them."""
        every = (one for group in self.groups().values() for one in group.declared())
        return tuple(one.flag for one in every if one.within is SEED)

    def with_seed(self, seed: int, *, but_for: Collection[str] = ()) -> RunSettings:
        """Returns the same with this seed for all seeds, except those of some flags."""
        flags = [flag for flag in self.seed_flags if flag not in but_for]
        return self.with_changes(**dict.fromkeys(flags, seed))

    def groups(self) -> dict[str, Settings]:
        """Returns the groups by their names in the record."""
        return {name: getattr(self, name) for name in (*_COMPONENT_GROUPS, *GROUPS)}

    def to_record(self) -> dict[str, Any]:
        """Returns the settings as `run.json` has them: a table for each group."""
        groups = {name: group.to_record() for name, group in self.groups().items()}
        for group, flag in zip(_COMPONENT_GROUPS, COMPONENTS):
            if self.component_names[flag] != _COMPONENT_DEFAULTS.get(flag):
                groups[group] = {flag: self.component_names[flag], **groups[group]}
        named = {name: values for name, values in groups.items() if values}
        return {"experiment": self.experiment, "protocol": self.protocol, **named}

    @property
    def algorithm_name(self) -> str:
        """The name of the algorithm, which `--algorithms` takes; not that in tables."""
        return self.component_names["algorithm"]

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return self.component_names["model"]

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return self.component_names["dataset"]

    @property
    def label(self) -> str:
        """The name of the run in tables: the algorithm, and what sets it apart."""
        return ", ".join((self.algorithm.label(self), *self.notes))

    @property
    def notes(self) -> tuple[str, ...]:
        """What sets it apart from runs of its algorithm, that of its data last."""
        every = (self.selection, self.training, self.server, self.data)
        return tuple(one.note for one in every if one.note)

    @property
    def folder_name(self) -> str:
        """The name of the run's folder."""
        return self.algorithm.folder_name(self)

    @property
    def measured_criteria(self) -> tuple[Criterion, ...]:
        """What the clients measure: `--criteria`, and what the algorithm adds to it."""
        on, own = self.aggregation, self.algorithm.own_criteria(self)
        more = (one for one in own if one.code not in on.criteria)
        return (*on.resolve_criteria(), *more)

    @property
    def criterion_codes(self) -> tuple[str, ...]:
        """The codes of what the clients measure."""
        return tuple(one.code for one in self.measured_criteria)

    @property
    def two_stage(self) -> bool:
        """Whether a client cannot score itself before the cohort's totals."""
        basis = Basis.of(self.criterion_codes, [self.algorithm.score(self)])
        return basis.needs_totals(self.aggregation.normalization)

    @property
    def uses_server_examples(self) -> bool:
        """Whether the server's examples take part in the training."""
        judged = self.adjustment.judge_on == "server"
        own = judged or self.algorithm.needs_server_examples
        return own or any(one.needs_server_examples for one in self.measured_criteria)
