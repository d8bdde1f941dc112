"""Reports by their names, written into a folder as the command line does."""

from tff_pmc.reports import REPORTS, SEED_REPORTS, output
from tff_pmc.reports.rounds_to_target import by_one_rule


def write(name, runs, folder, *, reach="", **options):
    """Writes a report on runs, or on runs of each seed; returns its text."""
    if name in REPORTS:
        if reach:
            runs = by_one_rule(runs, reach)
        return output.write(REPORTS[name](runs, **options), str(folder))
    if reach:
        runs = {s: by_one_rule(r, reach) for s, r in runs.items()}
    return output.write(SEED_REPORTS[name](runs, **options), str(folder))
