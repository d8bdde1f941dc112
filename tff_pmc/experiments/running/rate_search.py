"""The search of a learning rate by PMC's rule, on a part of the training examples."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import pandas as pd

import leaf_data
from leaf_data.formats.data_files import expand_path
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.experiments.callbacks import Callback, FinishedRound
from tff_pmc.experiments.running import loop
from tff_pmc.experiments.running.sweep import RunJob, sweep
from tff_pmc.record.record_error import LostRunError
from tff_pmc.record.results import read_results
from tff_pmc.record.resume_check import claim_folder
from tff_pmc.reports import Report, output
from tff_pmc.reports.page_model import MISSING
from tff_pmc.reports.statistics.rounds_to_target import count_devices
from tff_pmc.reports.statistics.run_notes import excluded_notes
from tff_pmc.settings import RunSettings, SettingError

_DEVICES_PERCENT = 50  # Of the devices, percent.
_REACH_WORDS = {"at_least": "reach", "above": "are above"}
_WHOSE_EXAMPLES = {"pooled": "all devices'", "own": "their own"}


def search(
    runs: Sequence[RunSettings],
    data: leaf_data.FederatedDataset,
    output_dir: str,
    *,
    held_out: str = "pooled",
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> str:
    """Finds the rate with which DS first brings half of the devices to the target.

    The rule is PMC's (section 5.3), which prints neither the target nor the examples
    that it is judged on. The published code's validation scripts have both: a target of
    95 %, reached at an accuracy of at least that, within 100 rounds, on a random fifth
    of all training examples, on which no client trains, dealt to the devices. So it is
    here: `adjustment.validation_fraction` of each device's training examples are held
    out, mixed and dealt anew. The scripts hold out before they partition, which leaves
    the devices equally many examples as well. The test sets are not looked at, the
    target is the experiment's highest, and a run ends when it is reached; with
    `record.reach` "above" it has to be exceeded.
    """
    first, output_dir = runs[0], expand_path(output_dir)
    if not data.has_classes:
        raise SettingError(
            f"--experiment=lr_search needs accuracies, and {data.name} has none: its "
            "labels are numbers"
        )
    adjustment = first.adjustment
    remaining, aside = data.hold_out(
        adjustment.validation_fraction, first.data.seed, pooled=held_out == "pooled"
    )
    data = dataclasses.replace(remaining, test_examples=aside)
    target, sizes = max(first.record.targets), aside.label_counts
    rule = first.record.reach
    RunContext.from_settings(first, data)  # Refused before a folder is made.
    plan = loop.describe(first, data)
    plan["settings"]["training"].pop("learning_rate")
    rates = [settings.training.learning_rate for settings in runs]
    plan["settings"]["learning_rates"] = rates
    plan["settings"]["held_out"] = held_out
    jobs = [
        RunJob(
            settings,
            os.path.join(output_dir, f"rate_{rate:g}"),
            title=f"run {number} of {len(runs)}: rate {rate:g}",
            resume=resume,
        )
        for number, (rate, settings) in enumerate(zip(rates, runs), 1)
    ]
    rows, excluded = [], []
    lost: Optional[LostRunError] = None
    with claim_folder(output_dir, plan, resume=resume):
        # A rate that breaks every client loses its run, and the next is tried.
        for job, lost in sweep(
            jobs,
            load=lambda _: data,
            callbacks=[*callbacks, TargetReached(target, rule)],
        ):
            results = read_results(job.folder)
            clients, accuracy = results.clients, results.rounds["accuracy"]
            correct = clients.pivot(index="round", columns="client", values="correct")
            by_round = correct.reindex(results.rounds["round"]).ffill()
            ordered = by_round[list(data.test_examples.client_ids)].to_numpy(int)
            name = os.path.basename(job.folder)
            excluded += [f"\n{name}: {n}" for n in excluded_notes(results).values()]
            rows.append(
                {
                    "learning_rate": job.settings.training.learning_rate,
                    "rounds": _first_round(ordered, sizes, target, rule),
                    "rounds_run": len(accuracy),
                    # In a lost run the model was not trained any more.
                    "best_accuracy": math.nan if lost else accuracy.max(),
                }
            )
        if lost and all(math.isnan(row["best_accuracy"]) for row in rows):
            raise lost
        table = pd.DataFrame(rows).astype({"rounds": "Int64"})
        output.write(Report(tables={"rates": table}), output_dir)
    kept = [row for row in rows if not math.isnan(row["best_accuracy"])]
    best = min(kept, key=lambda row: (row["rounds"] or math.inf, -row["best_accuracy"]))
    first_rate = f"{best['learning_rate']:g}, in round {best['rounds']}"
    if best["rounds"] is None:
        first_rate = (
            "none; the best accuracy is that of " + f"{best['learning_rate']:g}"
        )
    text = table.to_string(index=False, na_rep=MISSING)
    return (
        f"Rounds of DS until {_DEVICES_PERCENT} % of the devices {_REACH_WORDS[rule]} "
        f"{target} % on {adjustment.validation_fraction:.0%} of "
        f"{_WHOSE_EXAMPLES[held_out]} training examples\n{text}"
        f"{''.join(excluded)}\n"
        f"First: {first_rate}"
    )


class TargetReached(Callback):
    """Ends a run when enough devices have reached the target."""

    def __init__(self, target: float, rule: str) -> None:
        """Takes the target, percent, and how it is reached (`--reach`)."""
        self._target, self._rule = target, rule

    def after_round(self, round: FinishedRound) -> bool:
        """Counts the devices, in a round that was tested."""
        tested, sizes = round.record.measured, round.record.sizes
        if tested is None:
            return False
        correct = tested[np.newaxis]
        return _first_round(correct, sizes, self._target, self._rule) is not None


def _first_round(correct: Any, sizes: Any, target: float, rule: str) -> Optional[int]:
    """Returns the first of the rounds in which enough devices reach the target.

    As `rounds_to_target`, without the devices that have no examples.
    """
    count = count_devices(correct, sizes, target, rule)
    enough = count >= math.ceil(_DEVICES_PERCENT * (sizes > 0).sum() / 100)
    return int(enough.argmax()) + 1 if enough.any() else None
