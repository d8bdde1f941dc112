"""A table."""

import os

from tff_pmc.reports import REPORTS


def write(runs, folder, *, strictly_above=None):
    best = {run.label: run.rounds["accuracy"].max() for run in runs}
    lines = [f"{label}: {accuracy:.3f}" for label, accuracy in best.items()]
    with open(os.path.join(folder, "best_rounds.txt"), "w") as file:
        file.write("\n".join(lines))
    return "\n".join(["Best rounds", *lines])


REPORTS.register("best_rounds", write)
