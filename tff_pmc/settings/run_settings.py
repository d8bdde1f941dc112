"""The settings of one run, including those of its algorithm.

A run's settings contain those of its algorithm, and an algorithm checks a run's
settings: so both classes are here. `tff_pmc.algorithms`, which this module does not
import, builds the processes.
"""

from __future__ import annotations

import abc
import dataclasses
import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Optional

from declared_settings import SEED, SettingError, Settings
from leaf_data.dataset import DATASETS, Dataset
from tff_pmc.criteria import Criterion
from tff_pmc.models import MODELS, ModelSettings, fitting_model
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
"""The groups of settings that every run has, by attribute of `RunSettings`."""


@dataclasses.dataclass(frozen=True)
class AlgorithmSettings(Settings, abc.ABC):
    """The settings of an algorithm, and its properties in a run with these settings.

    Each algorithm is a subclass of `tff_pmc.algorithms.Algorithm`, which adds how its
    process is built.

    Attributes:
        name: its name in tables.
        weighs_equally: whether all clients have the same weight, whatever their
            criteria.
        keeps_stragglers: whether it keeps the work of `--stragglers` by default; other
            algorithms exclude these clients.
        one_client_per_pack: whether its process must see each client by itself.
        needs_server_examples: whether it evaluates models on the server's examples.
    """

    name: ClassVar[str] = ""
    weighs_equally: ClassVar[bool] = False
    keeps_stragglers: ClassVar[bool] = False
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
        """Returns the criteria that it adds to `--criteria`; by default none."""
        return ()

    def label(self, settings: RunSettings) -> str:
        """Returns the name of a run of it in tables."""
        return self.name

    def folder_name(self, settings: RunSettings) -> str:
        """Returns the name of a run's folder: the label in lower case."""
        return slug(settings.label)

    @abc.abstractmethod
    def score(self, settings: RunSettings) -> Score:
        """Returns the current score; a `ValueError` if it does not fit the criteria."""


def slug(label: str) -> str:
    """Converts a label to a folder name, such as `adafed_weights_only`."""
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


COMPONENTS: dict[str, Mapping[str, type[Any]]] = {
    "algorithm": {},  # `tff_pmc.algorithms` puts its registry here.
    "dataset": DATASETS,
    "model": MODELS,
    "selection": SELECTIONS,
}
"""Components that are chosen by name and have settings of their own, by flag."""


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


# The attributes of `RunSettings` with their settings, in the same order.
_COMPONENT_GROUPS = ("algorithm", "data", "model", "selection")
# Not recorded, so that runs from before the flag can be resumed.
_COMPONENT_DEFAULTS = {"selection": "uniform"}


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """The settings of one run, one field per group; see `from_flag_values`.

    Attributes:
        experiment: the named experiment it started from.
        protocol: `paper` or `reference_code`, whose settings it started from.
        component_names: the names of algorithm, data set, model and selection, by flag.
        row_notes: what the run's row of a comparison sets, in words that its label
            adds; None where the run is of no `--rows`.
        is_default_experiment: whether nobody named the experiment.
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
    row_notes: Optional[tuple[str, ...]] = None
    is_default_experiment: bool = False

    @classmethod
    def from_flag_values(
        cls, values: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
    ) -> RunSettings:
        """Builds the settings from values by flag; the others have their defaults.

        Args:
            values: by flag, those of `CHOSEN` but the selection here or inherited.
            inherited: values to start from; those that another data set, model or
                algorithm than the chosen one has are passed over. With another data set
                in `values` the model is that of `fitting_model`, if none is chosen.

        Raises:
            SettingError: a value is out of range or not one of the choices; a flag in
                `values` is in none of the groups; or values cannot be combined.
        """
        values_by_flag = {
            "protocol": "paper",
            **_COMPONENT_DEFAULTS,
            **(inherited or {}),
            **values,
        }
        names = {flag: values_by_flag[flag] for flag in COMPONENTS}
        inherited_dataset = (inherited or {}).get("dataset")
        if "model" not in values and names["dataset"] != inherited_dataset:
            names["model"] = fitting_model(names["dataset"], names["model"])
        if not COMPONENTS["algorithm"]:
            raise SettingError(
                f"unknown algorithm {names['algorithm']!r}: import "
                "tff_pmc.algorithms first, which registers the algorithms"
            )
        components = [
            call_naming_flag(f"--{flag}={name}", COMPONENTS[flag].__getitem__, name)
            for flag, name in names.items()
        ]
        groups: dict[str, Any] = {**dict(zip(_COMPONENT_GROUPS, components)), **GROUPS}
        known_flags = {"experiment", "protocol", *COMPONENTS}
        known_flags.update(flag for group in groups.values() for flag in group.flags())
        for flag in (flag for flag in values if flag not in known_flags):
            kinds = (
                kind for registry in COMPONENTS.values() for kind in registry.values()
            )
            declarations = [
                s for kind in kinds for s in kind.declared() if s.flag == flag
            ]
            data = groups["data"].declared()
            similar_flags = [
                s.flag for s in data if all(map(s.accepts_same_values, declarations))
            ]
            closest = difflib.get_close_matches(flag, similar_flags, 1)
            raise SettingError(
                f"--{flag} is not a setting of the data set {names['dataset']}, the "
                f"model {names['model']}, the algorithm {names['algorithm']} or the "
                f"selection {names['selection']}"
                + "".join(f": did you mean --{name}?" for name in closest)
                + ("" if closest else owners_clause(flag))
            )
        built = {
            name: group.from_flag_values(values_by_flag)
            for name, group in groups.items()
        }
        for group in built.values():
            group.check_given(values)
        settings = cls(
            values_by_flag["experiment"], values_by_flag["protocol"], names, **built
        )
        settings.algorithm.check(settings)
        return settings

    def with_changes(self, **changes: Any) -> RunSettings:
        """Returns a copy with other values, by flag; see `from_flag_values`."""
        changed = RunSettings.from_flag_values(changes, inherited=self.by_flag())
        return dataclasses.replace(
            changed,
            row_notes=self.row_notes,
            is_default_experiment=self.is_default_experiment,
        )

    def by_flag(self) -> dict[str, Any]:
        """Returns all values by flag."""
        values = dict(
            self.component_names, experiment=self.experiment, protocol=self.protocol
        )
        groups = self.groups().values()
        return {**values, **{f: v for g in groups for f, v in g.by_flag().items()}}

    @property
    def seed_flags(self) -> tuple[str, ...]:
        """The flags of the run's seeds, from all groups."""
        groups = self.groups().values()
        declared = (setting for group in groups for setting in group.declared())
        return tuple(setting.flag for setting in declared if setting.within is SEED)

    def with_seed(self, seed: int, *, but_for: Collection[str] = ()) -> RunSettings:
        """Returns a copy with this seed as all seeds, except those of some flags."""
        flags = [flag for flag in self.seed_flags if flag not in but_for]
        return self.with_changes(**dict.fromkeys(flags, seed))

    def groups(self) -> dict[str, Settings]:
        """Returns all groups by their names in the record."""
        return {name: getattr(self, name) for name in (*_COMPONENT_GROUPS, *GROUPS)}

    def to_record(self) -> dict[str, Any]:
        """Returns the settings in the form of `run.json`: one table per group."""
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
    def keeps_stragglers(self) -> bool:
        """Whether the work of `--stragglers` counts; else they are excluded."""
        work = self.training.straggler_work
        return (
            self.algorithm.keeps_stragglers
            if work == "by_algorithm"
            else work == "keep"
        )

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
        """The name of the run in tables: the algorithm's label, and the notes."""
        return ", ".join((self.algorithm.label(self), *self.notes))

    @property
    def notes(self) -> tuple[str, ...]:
        """How it differs from other runs of its algorithm; that of its data is last."""
        groups = (self.selection, self.training, self.server)
        notes = [group.note for group in groups]
        notes += [*(self.row_notes or ()), self.data.note]
        return tuple(filter(None, notes))

    @property
    def folder_name(self) -> str:
        """The name of the run's folder."""
        return self.algorithm.folder_name(self)

    @property
    def measured_criteria(self) -> tuple[Criterion, ...]:
        """The criteria that clients measure: `--criteria`, then the algorithm's own."""
        codes = self.aggregation.criteria
        own_criteria = self.algorithm.own_criteria(self)
        added = (c for c in own_criteria if c.code not in codes)
        return (*self.aggregation.resolve_criteria(), *added)

    @property
    def criterion_codes(self) -> tuple[str, ...]:
        """The codes of the criteria that clients measure."""
        return tuple(criterion.code for criterion in self.measured_criteria)

    @property
    def two_stage(self) -> bool:
        """Whether clients need the cohort's totals before they can compute a score."""
        basis = Basis.of(self.criterion_codes, [self.algorithm.score(self)])
        return basis.needs_totals(self.aggregation.normalization)

    @property
    def uses_server_examples(self) -> bool:
        """Whether the training uses the server's examples."""
        return (
            self.adjustment.judge_on == "server"
            or self.algorithm.needs_server_examples
            or any(c.needs_server_examples for c in self.measured_criteria)
        )
