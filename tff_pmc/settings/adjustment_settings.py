"""Settings of the models judged in a round: candidates and counterfactuals."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from declared_settings import Needs, Range, SettingError, Settings, setting
from tff_pmc import search
from tff_pmc.settings import flag_values
from tff_pmc.settings.flag_values import NON_NEGATIVE_INT, POSITIVE_INT

_COUNTERFACTUALS = Needs("--counterfactuals", lambda on: bool(on.kinds))


@dataclasses.dataclass(frozen=True)
class AdjustmentSettings(Settings):
    """The online adjustment: the search over candidates in each round."""

    title: ClassVar[str] = "Online adjustment (DA's Algorithm 1; Dual's lambda)"

    policy: str = setting(
        "fixed",
        "How the ordering is chosen in each round: fixed, backtracking or best_of_all. "
        "Backtracking (DA's Algorithm 1) tests orderings until one is as good as the "
        "previous round. Several values, for example fixed,backtracking, are combined "
        "with every --priority. DS alone has nothing to adjust. The algorithm dual "
        "searches its lambda: by best_of_all, or by the first value that searches.",
        flag="adjustment",
        choices=search.POLICIES,
        repeated=True,
    )
    judge_on: str = setting(
        "test",
        "The examples on which --adjustment's candidates are judged: every client's "
        "test set (DA's; together they are Dual's validation set, which it reports), a "
        "local_validation part of its training examples, which is then excluded from "
        "training, or the server's examples (Dual's evaluation set).",
        choices=("test", "local_validation", "server"),
    )
    validation_fraction: float = setting(
        0.2,
        "With --judge_on=local_validation or --experiment=lr_search, the part of the "
        "training examples that is held out.",
        within=Range(lambda x: 0 < x < 1, "between 0 and 1"),
    )

    @property
    def searches(self) -> bool:
        """Whether each round tests candidates."""
        return self.policy != "fixed"


@dataclasses.dataclass(frozen=True)
class CounterfactualSettings(Settings):
    """Which models that other weightings would give in a round are judged, too."""

    title: ClassVar[str] = "Counterfactuals of a round"

    kinds: tuple[str, ...] = setting(
        (),
        "Other weightings whose models are judged in each round but not used: "
        "orderings (each criterion alone and every ordering), averages:STEP "
        "(weighted averages, in steps such as 0.25), or ranges (OWA by every "
        "quantifier, with --normalization=range); or several, for example "
        "orderings,averages:0.5.",
        flag="counterfactuals",
        parse=flag_values.parse_words,
    )
    rates: tuple[float, ...] = setting(
        (),
        "Server learning rates with which each counterfactual model is judged, besides "
        "the run's rate, for example 0.5,2.",
        flag="counterfactual_rates",
        parse=flag_values.parse_rates,
        needs=_COUNTERFACTUALS,
    )
    every: int = setting(
        1,
        "Judge counterfactuals after the first round, then every N rounds.",
        flag="counterfactual_every",
        within=POSITIVE_INT,
        needs=_COUNTERFACTUALS,
    )
    clients: int = setting(
        0,
        "The number of clients that judge counterfactuals, one random sample for all "
        "runs; 0 is all. --judge_on selects the examples.",
        flag="counterfactual_clients",
        within=NON_NEGATIVE_INT,
        needs=_COUNTERFACTUALS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # The range of float32.
        if not all(1e-30 < rate < 1e30 for rate in self.rates):
            raise SettingError("--counterfactual_rates must be above 0, and finite")

    def is_judged_round(self, round_num: int) -> bool:
        """Returns whether counterfactuals are judged after a round, counted from 1."""
        return bool(self.kinds) and (round_num == 1 or round_num % self.every == 0)
