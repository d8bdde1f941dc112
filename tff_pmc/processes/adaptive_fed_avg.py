"""AdaFed: clients weighted by their models' accuracy, a loss that adapts.

One round:

    the server sends w and class weights: 1 in the first round, and then
       1 / (F1_c + epsilon), F1_c its model's on its own examples after the round before
    -> each client trains on the weighted loss; its model's accuracy on the server's
       examples is its criterion ACC
    -> sums, score and server step as in `prioritized_fed_avg`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.models import PackedModel
from tff_pmc.processes import arguments
from tff_pmc.processes.prioritized_fed_avg import compose
from tff_pmc.processes.round_parts import build_round_parts
from tff_pmc.processes.server_examples import build_class_weight_distributor


def build_adafed(
    model: tff.learning.models.FunctionalModel,
    *,
    server_examples: tuple[Any, Any],
    num_classes: int,
    power: float = 1.0,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS",),
    score: Optional[scores.Score] = None,
    adapt_loss: bool = True,
    epsilon: float = 0.1,
    **training_options: Any,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of AdaFed for classification.

    It is that of `build_prioritized_fed_avg` with one more criterion, ACC, and where
    the loss adapts with class weights in the broadcast: the metrics then have
    `distributor=<class_weights=float32[classes]>`. Its `next` compiles to
    MapReduceForm.

    Args:
        model: a functional model of a classifier; with `adapt_loss` a
            `models.PackedModel` with `example_losses`, as those of `tff_pmc.models`.
        server_examples: the arrays (x, y) of the examples that the server measures
            models on.
        num_classes: the number of classes; labels are 0 to num_classes - 1.
        power: the exponent of the accuracy; see `criteria.server_accuracy`,
            also for whom this trusts.
        criteria: the criteria beside ACC, which is the first column. Others that need
            the server's examples are bound to these.
        score: over the columns (ACC, *criteria); by default ACC alone.
            `scores.product(("ACC", "DS"))` is accuracy x number of
            samples, and `scores.single(1)` federated averaging.
        adapt_loss: whether the server sends class weights.
        epsilon: what is added to F1 in a class weight, so that it is at most
            1 / epsilon; 0.1 in AdaFed's simulation 2.
        **training_options: the attributes of `TrainingOptions`. The clients of
            `keep_own_model` are the adversaries of simulation 3.

    Raises:
        ValueError: as `build_prioritized_fed_avg` and `server_accuracy`; the model is
            not functional, or has no `example_losses`; `adapt_loss` with
            `packed=False`.

    Example:
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
            "float32[n]"
        )
    x, y = server_examples
    accuracy = criteria_lib.server_accuracy(model, x, y, power=power)
    found = criteria_lib.resolve((accuracy, *criteria))
    found = criteria_lib.bind_to_server(found, model, x, y)
    codes = [criterion.code for criterion in found]
    score = arguments.resolve_score(None if score else codes[:1], score, codes)
    basis = scores.Basis.of(len(found), [score])
    parts = build_round_parts(
        model,
        found,
        basis,
        TrainingOptions(**training_options),
        num_weighted_classes=num_classes if adapt_loss else 0,
    )
    distributor = None
    if adapt_loss:
        distributor = build_class_weight_distributor(model, x, y, num_classes, epsilon)
    return compose(parts, score, distributor)
