"""Federated averaging with a score that needs the totals before it gives weights.

One round:

    broadcast w -> each client trains w_k, measures r[k, i] and KEEPS its update
    -> totals T_i -> broadcast T -> each client normalizes and weights its update
    -> sums over clients -> the score in force combines them -> server optimizer

OWA and Choquet compare a client's *normalized* criteria; with the papers'
normalization it does not know them before the cohort's totals. Everything but the
second broadcast is the round of `build_prioritized_fed_avg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.processes import arguments
from tff_pmc.processes.prioritized_fed_avg import compose
from tff_pmc.processes.round_parts import build_round_parts
from tff_pmc.processes.training_options import TrainingOptions
from tff_pmc.scores import Basis, Score


def build_two_stage_fed_avg(
    model_fn: tff.learning.models.FunctionalModel,
    *,
    priority: Optional[Sequence[str]] = None,
    score: Optional[Score] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    basis: Optional[Basis] = None,
    **training_options: Any,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of any score under any normalization.

    For simulation: its `next` runs on one machine, and compiles to none of TFF's
    deployment forms (MapReduceForm, DistributeAggregateForm, the mergeable form),
    because a broadcast depends on an aggregate. A pack keeps the updates of all its
    clients: memory grows with the cohort, by a model for each client. With declared
    ranges, or for the weighted average, `build_prioritized_fed_avg` does the same in
    one stage and compiles to all of them.

    The types are those of `build_prioritized_fed_avg`; `totals` in the metrics are of
    the criteria as they came in, `monomials` of normalized ones.

    Args:
        model_fn: a functional model; clients are packed.
        priority: the codes of criteria, for the prioritized score.
        score: any other score, in the place of `priority`: `scores.owa("most")`.
        criteria: the m criteria the clients measure, codes or `Criterion`s.
        basis: the sums to make; by default those the score needs.
        **training_options: the attributes of `TrainingOptions`. Its `sums` take neither
            `privacy` nor a `scalar_sum_factory`: the totals are summed in the clear.

    Returns:
        A `tff.learning.templates.LearningProcess`.

    Raises:
        ValueError: as `build_prioritized_fed_avg`, or an option is not for this form.
        TypeError: an optimizer is not a `tff.learning.optimizers.Optimizer`.

    Example:
        >>> process = build_two_stage_fed_avg(
        ...     models.mnist_cnn(),
        ...     score=scores.owa("most"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    found = criteria_lib.resolve(criteria)
    score = arguments.resolve_score(priority, score, [c.code for c in found])
    basis = basis or Basis.of(len(found), [score])
    basis.coefficients(score)  # Refused here, before anything is traced.
    options = TrainingOptions(**training_options)
    parts = build_round_parts(model_fn, found, basis, options, two_stage=True)
    return compose(parts, score)
