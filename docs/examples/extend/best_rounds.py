"""A table, written as `best_rounds.csv`; a `Report` may have pages and figures, too."""

import pandas as pd

from tff_pmc.reports import REPORTS, Report


def report(runs):
    best = [run.rounds["accuracy"].max() for run in runs]
    table = pd.DataFrame({"run": [run.label for run in runs], "best": best})
    return Report(f"Best rounds\n{table}", tables={"best_rounds": table})


REPORTS.register("best_rounds", report)
