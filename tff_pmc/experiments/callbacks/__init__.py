"""What is called as a run goes along: the base class, and what `--callbacks` names."""

from tff_pmc.experiments.callbacks.callback import (
    CALLBACKS,
    Callback,
    FinishedRound,
    Run,
)

__all__ = ["CALLBACKS", "Callback", "FinishedRound", "Run"]
