"""Callbacks: the base class, and those that `--callbacks` names."""

from tff_pmc.experiments.callbacks.callback import (
    CALLBACKS,
    Callback,
    FinishedRound,
    Run,
)

__all__ = ["CALLBACKS", "Callback", "FinishedRound", "Run"]
