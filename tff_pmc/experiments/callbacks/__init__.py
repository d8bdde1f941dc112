"""What is called as a run goes along; each module has callbacks of one purpose."""

from tff_pmc.experiments.callbacks.callback import (
    CALLBACKS,
    Callback,
    FinishedRound,
    Run,
)

__all__ = ["CALLBACKS", "Callback", "FinishedRound", "Run"]
