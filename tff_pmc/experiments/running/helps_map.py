"""A map of federations: the cheap answer beside the dear one, in each of them.

The cheap answer is one run of DS in which every ordering is judged beside, for one
step. The dear one is whole runs of the ordering whose step was best, and of DS, under
seeds of their own, so that what chose the ordering has no part in what judges it.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Sequence

from tff_pmc.experiments.experiment import experiment, values_of
from tff_pmc.experiments.running import loop
from tff_pmc.experiments.running.callbacks import LostRunError
from tff_pmc.experiments.running.suite import Load
from tff_pmc.record import read
from tff_pmc.record.same_run import folder_of_runs
from tff_pmc.reports import one_step_effects, output, summary, when_it_helps
from tff_pmc.settings import RunSettings, SettingError
from tff_pmc.settings.run_settings import in_small_letters
from tff_pmc.systems.setup import Setup

_NUM_SEEDS = 5


def run(
    runs: Sequence[RunSettings],
    load: Load,
    output_dir: str,
    *,
    seeds: Sequence[int] = (),
    resume: bool = False,
    tensorboard: bool = False,
) -> str:
    """Makes the runs of a map, and its report; returns this as text for a terminal.

    `seeds` are those of the whole runs; by default five that follow on the first run's.
    """
    first = runs[0]
    if len(runs) > 1 or first.label != read.BASELINE:
        raise SettingError(
            f"--experiment={first.experiment} runs {read.BASELINE} and the ordering "
            "that helps most: it takes no others"
        )
    judged = first.counterfactual
    if judged.kinds != ("orderings",) or judged.rates:
        raise SettingError(
            f"--experiment={first.experiment} takes --counterfactuals=orderings alone"
        )
    changed = experiment(first.experiment).cells
    plain = RunSettings.of({}, inherited=values_of(first.experiment)).by_flag()
    for flag in sorted({flag for changes in changed.values() for flag in changes}):
        if first.by_flag()[flag] != plain[flag]:
            raise SettingError(
                f"--{flag} is what the federations differ in: leave it out"
            )
    cells = {place: first.replaced(**changes) for place, changes in changed.items()}
    seeds = seeds or [first.data.seed + 1 + number for number in range(_NUM_SEEDS)]
    if first.data.seed in seeds:
        raise SettingError(
            f"--seeds: {first.data.seed} is the seed of the run that chooses the "
            "ordering, and may not judge it, too"
        )
    for settings in cells.values():
        Setup.of(settings, load(settings))  # Refused before a folder is made.
    plan = loop.describe(first, load(first))
    plan["settings"]["cells"] = [" ".join(place) for place in cells]
    plan["settings"]["seeds"] = list(seeds)
    found: list[when_it_helps.Cell] = []
    every: list[read.Run] = []
    lost, text = [], ""

    def made(settings: RunSettings, folder: str, words: str) -> read.Run:
        title = f"{words}: {settings.label}"
        how = {"resume": resume, "title": title, "tensorboard": tensorboard}
        path = os.path.join(folder, settings.folder)
        loop.run(settings, load(settings), path, **how)
        every.append(read.read_run(path))
        return every[-1]

    def cell(
        place: tuple[str, str], settings: RunSettings, folder: str, words: str
    ) -> when_it_helps.Cell:
        one_step = made(settings, os.path.join(folder, "one_step"), words)
        steps = one_step_effects.of_run(one_step)
        best = when_it_helps.best_step(steps)
        base = dataclasses.replace(settings, counterfactual=type(judged)())
        both = base, base.replaced(priority=tuple(best.split(",")))
        by_seed = {
            seed: [
                made(
                    one.seeded(seed),
                    os.path.join(folder, f"seed_{seed}"),
                    f"{words}, seed {seed}",
                )
                for one in both
            ]
            for seed in seeds
        }
        return when_it_helps.Cell(*place, steps, by_seed)

    with folder_of_runs(output_dir, plan, resume=resume):
        for number, (place, settings) in enumerate(cells.items(), 1):
            words = f"cell {number} of {len(cells)}"
            folder = os.path.join(output_dir, in_small_letters("_".join(place)))
            try:
                found.append(cell(place, settings, folder, words))
            except LostRunError as error:
                lost.append(f"{words}: {error}")
                continue
            about = when_it_helps.data_of(found)
            text = output.write(when_it_helps.report(found), output_dir, about)
    if lost:
        raise LostRunError("; ".join(lost))
    return text + summary.left_out(
        every, lambda run: pathlib.Path(run.path).relative_to(output_dir).parts[0]
    )
