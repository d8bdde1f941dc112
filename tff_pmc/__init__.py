"""Prioritized multi-criteria federated learning on TensorFlow Federated.

The server's weighted mean is replaced by criteria, a score over them and a
search over scores; see `docs/architecture.md`.

    import tff_pmc

    process = tff_pmc.build_prioritized_fed_avg(
        tff_pmc.models.mnist_cnn(), priority=("LD", "DS", "MD"), client_optimizer_fn=...
    )
    with tff_pmc.Runtime():
        state = process.initialize()
        state, metrics = process.next(state, tff_pmc.pack(examples, range(10)))

Everything here is imported when it is first used: `import tff_pmc` does not import
TensorFlow, and neither do `scores`, `criteria`, `search` and `models`.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_MODULES = ("aggregation", "criteria", "models", "processes", "scores", "search")
_PLACES = {
    "BASELINES": "aggregation",
    "Criterion": "criteria",
    "DeclaredSumFactory": "aggregation",
    "GaussianSums": "aggregation",
    "PackedModel": "models",
    "PrioritizedMeanFactory": "aggregation",
    "Runtime": "runtime",
    "SumOptions": "aggregation",
    "attribute": "criteria",
    "build_adafed": "processes",
    "build_federated_evaluation": "processes",
    "build_online_adjusted_fed_avg": "processes",
    "build_online_adjusted_iterative_process": "processes",
    "build_prioritized_fed_avg": "processes",
    "build_server_judge": "processes",
    "cohort_weights": "record.round_record",
    "counterfactuals": "processes",
    "data_source": "clients",
    "effect": "reports.tables.effect",
    "evaluation_packs": "processes",
    "load_model": "experiments.load_model",
    "pack": "clients",
    "pack_client_data": "clients",
    "pair_packs": "processes",
    "read_results": "record.results",
    "results_of_counts": "record.results",
    "with_attributes": "clients",
    "with_client_number": "processes",
    "with_score": "processes",
}

__all__ = [*_MODULES, *_PLACES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tff_pmc.{name}")
    if name in _PLACES:
        return getattr(importlib.import_module(f"tff_pmc.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'tff_pmc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
