"""Computes how much weight a client gains by lying about one criterion.

    python benchmarks/lying_client.py RUN_FOLDER

Reads the raw criteria that a run recorded (`cohort.csv`), lets one client of each
cohort after another report a multiple of its value, and prints its mean weight when it
is honest and when it lies, for each criterion alone and every ordering of all. It
trains nothing. With --criteria_ranges=DS=0:60,LD=0:10,MD=0:1 the criteria are
normalized by these ranges, which clip larger values.
"""

import argparse
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np

from tff_pmc import scores
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.tables import COHORT
from tff_pmc.reports import page_model
from tff_pmc.settings import flag_values

NOT_CRITERIA = ("round", "client", "excluded", "weight")


def cohorts(folder):
    """Returns the criteria's codes, and the raw values [clients, m] of each round."""
    table = COHORT.read(folder)
    codes = [name for name in table.columns if name not in NOT_CRITERIA]
    table = table[table["excluded"] == 0]
    return codes, [part[codes].to_numpy() for _, part in table.groupby("round")]


def mean_weight(rounds, score, normalization, column, factor):
    """Returns the mean weight of a client that multiplies its value of a column."""
    weights = []
    for raw in rounds:
        for liar in range(len(raw)):
            claimed = raw.astype(float)
            claimed[liar, column] *= factor
            cohort_weights = scores.participant_weights(claimed, score, normalization)
            weights.append(cohort_weights[liar])
    return float(np.mean(weights))


def rows(codes, rounds, factors, normalization):
    """Yields a row per ordering: the honest weight, then one for each lie."""
    orderings = [(code,) for code in codes]
    orderings += itertools.permutations(codes) if len(codes) > 1 else []
    lies = [(0, 1), *itertools.product(range(len(codes)), factors)]
    for ordering in orderings:
        score = scores.prioritized(ordering, codes)
        mean_weights = [mean_weight(rounds, score, normalization, *lie) for lie in lies]
        yield [",".join(ordering), *(f"{weight:.3f}" for weight in mean_weights)]


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a run's folder, with cohort.csv")
    parser.add_argument("--factors", type=float, nargs="+", default=[10, 1000])
    parser.add_argument("--criteria_ranges", type=flag_values.parse_ranges, default=())
    options = parser.parse_args()
    try:
        codes, rounds = cohorts(options.folder)
        ranges = {code: (low, high) for code, low, high in options.criteria_ranges}
        method = "range" if ranges else "sum"
        normalization = scores.Normalization.from_codes(method, codes, ranges)
    except (RecordError, ValueError) as error:
        sys.exit(f"lying_client.py: {error}")
    lies = [f"{code} x {f:g}" for code in codes for f in options.factors]
    table_rows = rows(codes, rounds, options.factors, normalization)
    print(f"{len(rounds)} rounds, cohorts of {len(rounds[0])}; mean weight of one\n")
    print(page_model.markdown_table([["ordering", "honest", *lies], *table_rows]))


if __name__ == "__main__":
    main()
