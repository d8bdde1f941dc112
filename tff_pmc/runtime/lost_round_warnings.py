"""Warnings about rounds that did not change the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from absl import logging

_WARNED = "_tff_pmc_lost_rounds"  # An attribute of a computation: its past warnings.
_REJECTED = "no client's score was above 0, or the new model was not finite"


def reason(
    counts: Mapping[str, Any], norm: str, rate: str, example: str = ""
) -> Optional[str]:
    """Returns why the model did not change, or None if it did.

    `norm` and `rate` are the user's names of the largest norm of an update and of the
    clients' learning rate; `example` gives details of an excluded client.
    """
    clients = int(counts["clients"])
    if clients != counts.get("excluded"):
        return _REJECTED if counts["update_rejected"] else None
    if not clients:
        return "there were no clients"
    return (
        f"all {clients} clients were excluded: for each the update or a criterion was "
        f"not finite or out of range, the update was above {norm}, or the client had "
        f"no examples or ran no epoch; a smaller {rate} may help"
        f"{example and f' ({example})'}"
    )


def leave_to_caller(computation: Any) -> None:
    """Leaves warnings about a computation's lost rounds to its caller."""
    setattr(computation, _WARNED, None)


def _part(metrics: Any, name: str) -> Mapping[str, Any]:
    """Returns the metrics of this name, or {} if there are none."""
    part = metrics.get(name) if isinstance(metrics, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def warn_if_lost(computation: Any, metrics: Any) -> None:
    """Warns if the metrics report a lost round: once per computation and reason."""
    warned = vars(computation).setdefault(_WARNED, set())
    work, finalizer = _part(metrics, "client_work"), _part(metrics, "finalizer")
    train = _part(work, "train")
    if "clients" not in train or "update_rejected" not in finalizer:
        return  # Other computations have other metrics.
    counts = {**train, "update_rejected": finalizer["update_rejected"]}
    example = "report_cohort shows each client's criteria"
    if len(by_client := train.get("criteria_by_client", ())):
        # Shown only if all are excluded, hence the first.
        values = ", ".join(f"{v:g}" for v in by_client[0])
        example = f"the client at position 0 has the criteria {values}"
    by_round = "client_learning_rate" in work
    rate = "client_learning_rate_fn" if by_round else "client_optimizer_fn"
    names = "max_update_norm", f"learning rate of {rate}"
    explanation = reason(counts, *names, example)
    if explanation and warned is not None and explanation.split(":")[0] not in warned:
        warned.add(explanation.split(":")[0])
        logging.warning("the round did not change the model: %s", explanation)
