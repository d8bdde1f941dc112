"""TFF processes composed from criteria, scores, client work and aggregation.

The learning processes are `build_prioritized_fed_avg` and, for scores that need the
totals first, `build_two_stage_fed_avg`; `build_adafed`, whose server measures clients'
models; and `build_factory_fed_avg` around any TFF aggregation factory, such as the
baselines of `tff_pmc.aggregation`. `TrainingOptions` has the keyword arguments that
they share. Online adjustment is `build_online_adjusted_fed_avg`, or as one pure process
`build_online_adjusted_iterative_process`. The others evaluate, or make their data.
"""

from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.processes.adaptive_fed_avg import build_adafed
from tff_pmc.processes.counterfactuals import counterfactuals
from tff_pmc.processes.dataset_evaluation import with_client_number
from tff_pmc.processes.evaluation import (
    build_correct_counts,
    build_federated_evaluation,
    build_loss_sums,
    evaluation_packs,
)
from tff_pmc.processes.factory_fed_avg import build_factory_fed_avg
from tff_pmc.processes.federated_prediction import (
    build_federated_prediction,
    build_local_tuning_prediction,
    prediction_packs,
)
from tff_pmc.processes.online_adjusted import (
    OnlineAdjustedFedAvg,
    OnlineOutput,
    build_online_adjusted_fed_avg,
)
from tff_pmc.processes.online_iterative import (
    build_online_adjusted_iterative_process,
    pair_packs,
)
from tff_pmc.processes.online_parts import OnlineState
from tff_pmc.processes.prioritized_fed_avg import (
    build_prioritized_fed_avg,
    build_two_stage_fed_avg,
    with_score,
)
from tff_pmc.processes.server_examples import build_server_judge
from tff_pmc.runtime import tffs_context

tffs_context.warn_when_used()

__all__ = [
    "OnlineAdjustedFedAvg",
    "OnlineOutput",
    "OnlineState",
    "TrainingOptions",
    "build_adafed",
    "build_correct_counts",
    "build_factory_fed_avg",
    "build_federated_evaluation",
    "build_federated_prediction",
    "build_local_tuning_prediction",
    "build_loss_sums",
    "build_online_adjusted_fed_avg",
    "build_online_adjusted_iterative_process",
    "build_prioritized_fed_avg",
    "build_server_judge",
    "build_two_stage_fed_avg",
    "counterfactuals",
    "evaluation_packs",
    "pair_packs",
    "prediction_packs",
    "with_client_number",
    "with_score",
]
