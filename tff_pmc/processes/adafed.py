"""AdaFed: clients weighted by their models' accuracy, a loss that adapts.

One round:

    the server measures its model's F1 of each class on its own examples
    -> w and the class weights 1 / (F1_c + 0.1) are sent
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
from tff_pmc.processes import options
from tff_pmc.processes.prioritized_fed_avg import compose
from tff_pmc.processes.server_set import build_class_weight_distributor
from tff_pmc.processes.training import build_training
from tff_pmc.server_criteria import server_accuracy


def build_adafed(
    model: tff.learning.models.FunctionalModel,
    *,
    server_examples: tuple[Any, Any],
    num_classes: int,
    power: float = 1.0,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS",),
    score: Optional[scores.Score] = None,
    adapt_loss: bool = True,
    keep_own_model: Sequence[int] = (),
    **training_options: Any,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of AdaFed for classification.

    It is that of `build_prioritized_fed_avg` with one more criterion, ACC, and where
    the loss adapts with class weights in the broadcast: the metrics then have
    `distributor=<f1=float32[classes]>`. Its `next` compiles to MapReduceForm.

    Args:
        model: a classifier, functional; with `adapt_loss` one that has
            `example_losses`, as those of `tff_pmc.models` do.
        server_examples: (x, y), arrays: what the server measures models on.
        num_classes: labels are 0 to num_classes - 1.
        power: of the accuracy; see `server_criteria.server_accuracy`, also for whom
            this trusts.
        criteria: the criteria beside ACC, which is the first column.
        score: over the columns (ACC, *criteria); by default ACC alone.
            `scores.product(("ACC", "DS"))` is accuracy x number of
            samples, and `scores.single(1)` federated averaging.
        adapt_loss: send class weights.
        keep_own_model: for simulation: numbers of the clients that ignore the model
            received and go on with their own (adversaries of simulation 3); their
            models travel in the client work's state, because TFF's clients keep
            nothing.
        **training_options: `client_optimizer_fn` and the other options of
            `build_prioritized_fed_avg`, but for `priority` and `basis`.

    Raises:
        ValueError: as `build_prioritized_fed_avg` and `server_accuracy`; the model is
            not functional, or has no `example_losses`; `adapt_loss` or
            `keep_own_model` with `packed=False`.

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
    if adapt_loss and not hasattr(model, "example_losses"):
        raise ValueError(
            "adapt_loss needs a model with example_losses(output, y) -> float32[n]"
        )
    x, y = server_examples
    accuracy = server_accuracy(model, x, y, power=power)
    found = criteria_lib.resolve((accuracy, *criteria))
    codes = [criterion.code for criterion in found]
    score = options.resolve_score(None if score else codes[:1], score, codes)
    basis = scores.Basis.of(len(found), [score])
    training = build_training(
        model,
        found,
        basis,
        num_weighted_classes=num_classes if adapt_loss else 0,
        keep_own_model=keep_own_model,
        **training_options,
    )
    distributor = None
    if adapt_loss:
        distributor = build_class_weight_distributor(model, x, y, num_classes)
    return compose(training, score, distributor)
