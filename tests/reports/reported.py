"""Reports by their names, written into a folder as the command line does."""

from tff_pmc.reports import REPORTS, SEED_REPORTS, output
from tff_pmc.reports.rounds_to_target import by_one_rule


def write(name, runs, folder, *, reach="", **options):
    """Writes a report on runs, or on runs of each seed; returns its text."""
    if reach:
        runs = by_one_rule(runs, reach)
    report = {**REPORTS, **SEED_REPORTS}[name]
    return output.write(report(runs, **options), str(folder))
