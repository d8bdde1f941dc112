"""AdaFed: clients weighted by their models' accuracy, and a loss that adapts.

One round:

    the server sends w and class weights: 1 in the first round, then
       1 / (F1_c + epsilon), with F1_c the F1 of w for class c on the server's examples
    -> each client trains on the weighted loss; its model's accuracy on the server's
       examples is its criterion ACC
    -> sums, score and server step as in `prioritized_fed_avg`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import tensorflow_federated as tff
from typing_extensions import Unpack

from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc.aggregation import SumOptions
from tff_pmc.aggregation.sum_options import PLAIN_SUMS
from tff_pmc.clients.training_options import TrainingOptions, takes_training
from tff_pmc.models import PackedModel
from tff_pmc.processes.prioritized_fed_avg import build_prioritized_fed_avg
from tff_pmc.processes.server_evaluation import build_class_weight_distributor


@takes_training
def build_adafed(
    model: tff.learning.models.FunctionalModel,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    server_examples: tuple[Any, Any],
    num_classes: int,
    server_optimizer_fn: Optional[tff.learning.optimizers.Optimizer] = None,
    power: float = 1.0,
    quality: Optional[criteria_lib.Criterion] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS",),
    score: Optional[scores.Score] = None,
    adapt_loss: bool = True,
    epsilon: float = 0.1,
    sums: SumOptions = PLAIN_SUMS,
    **training: Unpack[TrainingOptions],
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of AdaFed.

    It is that of `build_prioritized_fed_avg` with one more criterion, ACC, and, if the
    loss adapts, with a `model_distributor` that sends class weights: the metrics then
    contain `distributor=<class_weights=float32[classes]>`. Its `next` compiles to
    MapReduceForm.

    Args:
        model: a functional model; with `adapt_loss` a classifier that is a
            `models.PackedModel` with `example_losses`, as those of `tff_pmc.models`.
        client_optimizer_fn: the clients' optimizer.
        server_examples: the arrays (x, y) of the examples on which models are measured.
        num_classes: the number of classes; labels are 0 to num_classes - 1. Only the
            class weights need it: 0 for a regression.
        server_optimizer_fn: the server's optimizer; by default SGD with rate 1.
        power: the exponent of the accuracy; `criteria.server_accuracy` defines it and
            says whom it trusts.
        quality: a criterion bound to the server's examples, which replaces ACC: for a
            regression `criteria.server_percentage_error`.
        criteria: the criteria of the further columns; ACC is the first. Those that need
            the server's examples are bound to `server_examples`.
        score: over the columns (ACC, *criteria); by default ACC alone.
            `scores.product(("ACC", "DS"))` is accuracy x number of examples, and
            `scores.single(1)` federated averaging.
        adapt_loss: whether the server sends class weights.
        epsilon: the summand of F1 in a class weight, which bounds it by 1 / epsilon;
            0.1 in AdaFed's simulation 2.
        sums: normalization, clipping, secure sums, privacy.
        **training: the clients' training, see `TrainingOptions`. The clients of
            `keep_own_model` are the adversaries of simulation 3.

    Raises:
        ValueError: as `build_prioritized_fed_avg` and `server_accuracy`; the model is
            not functional; or `adapt_loss` is set for a model without `example_losses`,
            or with `packed=False`.

    Examples:
        >>> process = build_adafed(
        ...     models.keras_mnist_cnn(),
        ...     server_examples=(x_test, y_test),
        ...     num_classes=10,
        ...     client_optimizer_fn=tff.learning.optimizers.build_adam(0.001),
        ...     local_epochs=5,
        ...     batch_size=100,
        ... )
    """
    if not isinstance(model, tff.learning.models.FunctionalModel):
        raise ValueError("AdaFed needs a tff.learning.models.FunctionalModel")
    if adapt_loss and not PackedModel.of(model).has_example_losses:
        raise ValueError(
            "adapt_loss needs a models.PackedModel with example_losses(output, y) -> "
            "float32[n]: pass one, or adapt_loss=False"
        )
    x, y = server_examples
    if quality is None:
        quality = criteria_lib.server_accuracy(model, x, y, power=power)
    resolved = criteria_lib.resolve((quality, *criteria))
    distributor = None
    if adapt_loss:
        distributor = build_class_weight_distributor(model, x, y, num_classes, epsilon)
    return build_prioritized_fed_avg(
        model,
        client_optimizer_fn=client_optimizer_fn,
        server_optimizer_fn=server_optimizer_fn,
        priority=None if score else (quality.code,),
        score=score,
        criteria=criteria_lib.bind_to_server(resolved, model, x, y),
        sums=sums,
        model_distributor=distributor,
        **training,
    )
