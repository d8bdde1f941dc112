"""`--inspect`: describes a federation and the weights of each ordering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

import leaf_data
from declared_settings import SettingError
from leaf_data.client_ids import ClientNumber
from tff_pmc import criteria as criteria_lib
from tff_pmc.algorithms.algorithm import algorithm_of
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.clients.client_work import evaluate_criterion
from tff_pmc.processes.argument_checks import initial_weights_and_spec
from tff_pmc.processes.criterion_probe import criterion_errors, probe_criteria
from tff_pmc.record.round_record import mask_excluded, weight_shares
from tff_pmc.reports.statistics.weight_statistics import round_weight_statistics
from tff_pmc.runtime import Runtime
from tff_pmc.scores import participant_weights
from tff_pmc.selections import LOSS
from tff_pmc.settings import RunSettings

NUM_COHORTS = 3
MAX_CLIENTS_SHOWN = 10
"""The number of clients of the first cohort whose names are shown."""


def inspect(
    runs: Sequence[RunSettings],
    data: leaf_data.FederatedDataset,
    engine: Mapping[str, Any],
) -> str:
    """Describes a federation and the weights of each ordering on the first cohorts.

    Nothing is aggregated. The clients of the first cohorts measure their criteria. They
    train only if a criterion needs the trained model: once, from the initial weights,
    on an engine with these options of `Runtime`.
    """
    settings = runs[0]
    others = [
        run_settings.algorithm.score(run_settings).over(run_settings.criterion_codes)
        for run_settings in runs
    ]
    for run_settings in runs:
        if run_settings.criterion_codes != settings.criterion_codes:
            names = f"{settings.algorithm_name} and {run_settings.algorithm_name}"
            raise SettingError(
                f"--inspect: the algorithms {names} measure different criteria: "
                "name one of them; DS and the orderings are shown with it"
            )
    # The criteria are the same whether a search follows or not.
    context, of_model = (
        RunContext.from_settings(settings.with_changes(adjustment="fixed"), data),
        "",
    )
    if LOSS in settings.selection.needs:
        drawn = settings.with_changes(adjustment="fixed", selection="uniform")
        context = RunContext.from_settings(drawn, data)
        of_model = (
            f" (--selection={settings.component_names['selection']} needs the model of "
            "each round: these cohorts are uniform)"
        )
    data, in_force = context.data, settings.algorithm.score(settings)
    chosen = [
        context.cohort_sampler.draw(round_num, context.cohort_size).clients
        for round_num in range(1, min(NUM_COHORTS, settings.training.rounds) + 1)
    ]
    measured = _measure(context, chosen, engine)
    aggregation = settings.aggregation
    normalization = aggregation.scores_normalization
    weights = pd.DataFrame(
        row
        for raw in measured
        for row in round_weight_statistics(
            raw,
            aggregation.criteria,
            normalization,
            in_force=in_force.label,
            shares=weight_shares(settings, in_force, raw),
            others={
                run_settings.label: participant_weights(
                    raw, run_settings, normalization
                )
                for run_settings in others
                if run_settings.label != in_force.label
            },
        )
    )
    means = weights.groupby("ordering", sort=False).mean(numeric_only=True)
    first = [data.client_ids[client] for client in chosen[0][:MAX_CLIENTS_SHOWN]]
    ellipsis = ", ..." if len(chosen[0]) > MAX_CLIENTS_SHOWN else ""
    lines = [data.describe(), ""]
    lines += [f"First cohort: {', '.join(first)}{ellipsis}{of_model}", ""]
    all_rows = np.concatenate(measured)
    raw = all_rows[~np.isnan(all_rows).any(axis=1)]
    if len(raw) < len(all_rows):
        lines.append(
            f"{len(all_rows) - len(raw)} of {len(all_rows)} clients of the first "
            "cohorts were excluded: not finite, or above --max_update_norm."
        )
    if not len(raw):
        return "\n".join(lines)
    lines.append(f"Raw criteria over {len(raw)} clients of the first cohorts:")
    for code, values in zip(settings.criterion_codes, raw.T):
        lines.append(
            f"  {code:9} {values.min():10.4g} to {values.max():10.4g}, "
            f"mean {values.mean():.4g}"
        )
    width = max(14, *(len(label) + 1 for label in means.index))
    lines += [
        "",
        f"Weights of {len(measured[0])} clients, mean over {len(measured)} cohorts",
        f"(total variation: share of weight that moves away from {settings.label}):",
        f"  {'ordering':{width}}{'coefficient of':>16}{'effective':>11}{'total':>11}",
        f"  {'':{width}}{'variation':>16}{'clients':>11}{'variation':>11}",
    ]
    for ordering, row in means.iterrows():
        lines.append(
            f"  {ordering:{width}}{row['coefficient_of_variation']:16.4f}"
            f"{row['effective_clients']:11.2f}{row['total_variation']:11.4f}"
        )
    return "\n".join(lines)


def _measure(
    context: RunContext, cohorts: Sequence[Sequence[int]], engine: Mapping[str, Any]
) -> list[np.ndarray]:
    """Measures the raw criteria [clients, m] of each cohort."""
    criteria, words = context.criteria, "measuring the criteria of cohorts"
    if not any(criterion.needs_model for criterion in criteria):
        weights, spec = initial_weights_and_spec(context.model)
        named = context.settings.aggregation.client_attributes
        probe_criteria(criteria, context.model, weights, spec, named)
        with tqdm(cohorts, desc=words, unit="cohort") as shown:
            return [_measure_on_data(context, chosen) for chosen in shown]
    rounds = algorithm_of(context.settings).build_trainer(context)
    measured = []
    with Runtime(**engine):
        state = rounds.initialize()
        for round_num, chosen in enumerate(tqdm(cohorts, desc=words, unit="cohort"), 1):
            metrics = rounds.next(state, context.pack(chosen, round_num)).metrics
            train = metrics["client_work"]["train"]
            raw, excluded = train["criteria_by_client"], train["excluded_by_client"]
            measured.append(
                mask_excluded(np.asarray(raw, float), np.asarray(excluded) > 0)
            )
    return measured


def _measure_on_data(context: RunContext, chosen: Sequence[int]) -> np.ndarray:
    criteria, data, table = (
        context.criteria,
        context.data,
        context.data.client_table.values,
    )
    values = []
    for k in chosen:
        part = data.train_examples.client(ClientNumber(k))
        client_attributes = {name: column[k] for name, column in table.items()}
        sharing = {
            name: np.asarray(part[name], np.float32)
            for name in criteria_lib.example_attributes(criteria)
        }
        client = criteria_lib.LocalClient(
            part["x"], part["y"], None, None, client_attributes, sharing
        )
        values.append(
            [
                _evaluate_on_data(context, criterion, client, data.client_ids[k])
                for criterion in criteria
            ]
        )
    return np.array(values)


def _evaluate_on_data(
    context: RunContext,
    criterion: criteria_lib.Criterion,
    client: criteria_lib.LocalClient,
    name: str,
) -> float:
    """Evaluates a criterion on a client's data; a `CriterionError` names both."""
    with criterion_errors(criterion, f"for the data of client {name} alone"):
        value = float(evaluate_criterion(criterion, client, check_sign=False))
    # A declared range clips values below it.
    if value < 0 and context.settings.aggregation.normalization != "range":
        raise criteria_lib.CriterionError(
            f"the criterion {criterion.code} gave a negative value, {value:g}, for "
            f"client {name}"
        )
    return value
