# What type checkers and editors see: `__init__.py` imports each of these when it is
# first used. tests/project/test_types.py holds the two equal.

from tff_pmc import aggregation, criteria, models, processes, scores, search
from tff_pmc.aggregation import (
    BASELINES,
    DeclaredSumFactory,
    GaussianSums,
    PrioritizedMeanFactory,
    SumOptions,
)
from tff_pmc.clients import data_source, pack, pack_client_data, with_attributes
from tff_pmc.criteria import Criterion, attribute
from tff_pmc.experiments.load_model import load_model
from tff_pmc.models import PackedModel
from tff_pmc.processes import (
    build_adafed,
    build_federated_evaluation,
    build_online_adjusted_fed_avg,
    build_online_adjusted_iterative_process,
    build_prioritized_fed_avg,
    build_server_judge,
    counterfactuals,
    evaluation_packs,
    pair_packs,
    with_client_number,
    with_score,
)
from tff_pmc.record.results import read_results, results_of_counts
from tff_pmc.record.round_record import cohort_weights
from tff_pmc.reports.tables.effect import effect
from tff_pmc.runtime import Runtime

__version__: str

__all__ = [
    "aggregation",
    "criteria",
    "models",
    "processes",
    "scores",
    "search",
    "BASELINES",
    "Criterion",
    "DeclaredSumFactory",
    "GaussianSums",
    "PackedModel",
    "PrioritizedMeanFactory",
    "Runtime",
    "SumOptions",
    "attribute",
    "build_adafed",
    "build_federated_evaluation",
    "build_online_adjusted_fed_avg",
    "build_online_adjusted_iterative_process",
    "build_prioritized_fed_avg",
    "build_server_judge",
    "cohort_weights",
    "counterfactuals",
    "data_source",
    "effect",
    "evaluation_packs",
    "load_model",
    "pack",
    "pack_client_data",
    "pair_packs",
    "read_results",
    "results_of_counts",
    "with_attributes",
    "with_client_number",
    "with_score",
]
