"""How tables of runs are made, by what the runs themselves have on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leaf_data import DataError
from tff_pmc.reports.pmc_paper import PAPER
from tff_pmc.reports.read import Run


def strictly_above(runs: Mapping[str, Run]) -> bool:
    """Whether a target is reached only above it, by the runs' own `reach`.

    Runs of the published code have no such setting, and do not count; nor had ours
    before there was a choice: they are `at_least`. Without any, it is that, too.

    Args:
        runs: run folder -> run, as `compare.read_runs` gives them.

    Raises:
        DataError: two runs have different settings.
    """
    found = {
        folder: run.info["settings"].get("reach", "at_least")
        for folder, run in runs.items()
        if "settings" in run.info
    }
    return bool(_common(found, "reach", "at_least", "--reach") == "above")


def targets(runs: Mapping[str, Run]) -> tuple[int, ...]:
    """The target accuracies of runs, percent.

    Those that runs of ours have on record; without any, those of PMC's tables on the
    runs' data set, which are MNIST's unless all are of CelebA.

    Args:
        runs: run folder -> run, as `compare.read_runs` gives them.

    Raises:
        DataError: two runs have different ones.
    """
    found = {
        folder: tuple(run.info["settings"]["targets"])
        for folder, run in runs.items()
        if "targets" in run.info.get("settings", {})
    }
    names = {run.info["data"]["name"] for run in runs.values()}
    paper = PAPER["celeba" if names == {"celeba"} else "mnist_noniid"]
    common: tuple[int, ...] = _common(found, "targets", paper.targets, "--experiment")
    return common


def _common(found: Mapping[str, Any], name: str, default: Any, flag: str) -> Any:
    """What all have, by their folders."""
    if not found:
        return default
    first, value = next(iter(found.items()))
    for folder, other in found.items():
        if other != value:
            raise DataError(
                f"{first} has {name} {_text(value)} and {folder} has {_text(other)}: "
                f"choose by {flag}"
            )
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(map(str, value))
