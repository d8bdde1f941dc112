"""TFF processes composed from criteria, scores, client work and aggregation.

`build_prioritized_fed_avg` builds the learning process, for a score or around any TFF
aggregation factory, such as the baselines of `tff_pmc.aggregation`. `build_adafed` adds
a criterion and class weights that the server's examples determine.
`build_online_adjusted_fed_avg` builds online adjustment, and
`build_online_adjusted_iterative_process` the same as one pure process. All of them take
`TrainingOptions`. The other functions build evaluations, or data for them.
"""

from tff_pmc.clients.training_options import Training, TrainingOptions
from tff_pmc.processes.adafed_process import build_adafed
from tff_pmc.processes.counterfactuals import counterfactuals
from tff_pmc.processes.dataset_evaluation import with_client_number
from tff_pmc.processes.evaluation import (
    build_correct_counts,
    build_federated_evaluation,
    build_loss_sums,
    build_metrics,
    evaluation_packs,
)
from tff_pmc.processes.federated_prediction import (
    build_federated_prediction,
    build_local_tuning_prediction,
    prediction_packs,
)
from tff_pmc.processes.online_adjusted import (
    OnlineAdjustedFedAvg,
    OnlineOutput,
    OnlineState,
    build_online_adjusted_fed_avg,
)
from tff_pmc.processes.online_iterative import (
    build_online_adjusted_iterative_process,
    pair_packs,
)
from tff_pmc.processes.prioritized_fed_avg import (
    build_prioritized_fed_avg,
    with_score,
)
from tff_pmc.processes.server_evaluation import build_server_judge
from tff_pmc.runtime import default_context

default_context.warn_when_used()

# In the order of the API reference: builders and their options come first.
__all__ = [
    "build_prioritized_fed_avg",
    "build_online_adjusted_fed_avg",
    "build_online_adjusted_iterative_process",
    "build_adafed",
    "TrainingOptions",
    "Training",
    "OnlineAdjustedFedAvg",
    "OnlineOutput",
    "OnlineState",
    "build_correct_counts",
    "build_metrics",
    "build_federated_evaluation",
    "build_federated_prediction",
    "build_local_tuning_prediction",
    "build_loss_sums",
    "build_server_judge",
    "counterfactuals",
    "evaluation_packs",
    "pair_packs",
    "prediction_packs",
    "with_client_number",
    "with_score",
]
