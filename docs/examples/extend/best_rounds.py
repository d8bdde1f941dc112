"""A table, written as `best_rounds.csv`; a `Report` may have pages and figures, too."""

from tff_pmc.reports import REPORTS, Report


def report(results):
    best = results.rounds.groupby(["seed", "label"], sort=False)["accuracy"].max()
    table = best.rename("best").rename_axis(["seed", "run"]).reset_index()
    return Report(f"Best rounds\n{table}", tables={"best_rounds": table})


REPORTS.register("best_rounds", report)
