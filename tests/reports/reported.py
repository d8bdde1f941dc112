"""Reports by their names, written into a folder as the command line does."""

from tff_pmc.reports import REPORTS, output


def write(name, results, folder):
    """Writes a report on runs; returns its text."""
    return output.write(REPORTS[name](results), str(folder))
