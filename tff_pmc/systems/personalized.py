"""Mixing with the old model, or local tuning: a baseline of Dual's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from leaf_data.declare import BELOW_1, setting
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings
    from tff_pmc.systems.setup import Setup


@dataclasses.dataclass(frozen=True)
class Personalized(FactorySystem):
    """The personalized baseline of Dual's Table I, by its formula or by its text."""

    name = "Personalized"
    weighs_equally = True

    alpha: float = setting(
        0.5,
        "By the formula: the part of the old global model, beside 1 - alpha of the "
        "simple mean of the new models. The paper does not print it.",
        flag="personalized_alpha",
        within=BELOW_1,
    )
    form: str = setting(
        "formula",
        "By the formula of the paper, or by its text (each client tunes the model).",
        flag="personalized_form",
        choices=("formula", "text"),
    )

    @property
    def needs_classes(self) -> bool:
        """By the text, labels that clients' own models predict are compared."""
        return self.form == "text"

    def factory(self, settings: RunSettings) -> Any:
        """The simple mean, mixed with the old model by the formula."""
        from tff_pmc.aggregation import baselines

        return baselines.personalized(alpha=self.alpha, form=self.form)

    def own_answers(self, setup: Setup) -> Any:
        """By the text, each client answers with its own tuned model."""
        if self.form != "text":
            return None
        from tff_pmc.systems.tuned_answers import TunedAnswers

        return TunedAnswers(setup)


SYSTEMS.register("personalized", Personalized)
