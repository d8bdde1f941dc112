"""TFF processes composed from criteria, scores, client work and aggregation."""

from tff_pmc.processes.adafed import build_adafed
from tff_pmc.processes.evaluation import (
    build_federated_evaluation,
    build_federated_prediction,
    evaluation_shards,
    prediction_shards,
)
from tff_pmc.processes.online_adjusted import (
    OnlineAdjustedFedAvg,
    build_online_adjusted_fed_avg,
)
from tff_pmc.processes.online_iterative import (
    build_online_adjusted_iterative_process,
    pair_shards,
)
from tff_pmc.processes.prioritized_fed_avg import (
    build_prioritized_fed_avg,
    with_score,
)
from tff_pmc.processes.server_set import build_server_judge
from tff_pmc.processes.two_stage import build_two_stage_fed_avg

__all__ = [
    "OnlineAdjustedFedAvg",
    "build_adafed",
    "build_federated_evaluation",
    "build_federated_prediction",
    "build_online_adjusted_fed_avg",
    "build_online_adjusted_iterative_process",
    "build_prioritized_fed_avg",
    "build_server_judge",
    "build_two_stage_fed_avg",
    "evaluation_shards",
    "pair_shards",
    "prediction_shards",
    "with_score",
]
