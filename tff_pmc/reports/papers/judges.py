"""The judges of claims: from runs, and what a claim's table says, to an answer.

A judge takes the runs of each of the claim's experiments and the keys of the claim
(`claim_tables`), by their names.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from tff_pmc.record.read import BASELINE, Run
from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.papers import dual_cells, judging, pmc_variance
from tff_pmc.reports.papers.judging import Answer, Cells, Labeled, Measure, Runs
from tff_pmc.reports.papers.own_reading import other_reading
from tff_pmc.reports.papers.published import rounds_saved
from tff_pmc.reports.papers.quantities import (
    QUANTITIES,
    Row,
    label_of,
    mean_rounds,
    reached_by,
)

EVERY_RUN = "every run"
_PRINTED = ("rounds", "gain", "cells that lose")


def compared(
    runs: Runs,
    *,
    measures: Sequence[Row],
    lacking: str = "",
    clients: int = 0,
    least_rounds: int = 0,
    shows: str = "",
) -> Answer:
    """Judges what runs have more, or less, than others under each seed.

    Of two experiments the runs are of the first, and those that they are held against
    of the second. `lacking` is said where a run is not there, `clients` is that of
    `label_of`, and the number says how many `clients` or `epochs` (which are rounds)
    there were, if that is what it `shows`.
    """
    named = functools.partial(label_of, clients=clients)
    least = max(row.rounds[1] * QUANTITIES[row.of].of_rounds for row in measures)
    found: list[Measure] = []
    for row in measures:
        labels = [*dict.fromkeys(_needed(row))]
        if lacking and not {*labels} <= {*map(named, itertools.chain(*runs.values()))}:
            raise TooShortError(lacking)
        by_experiment = [
            judging.by_seed(own, labels, named, least) for own in runs.values()
        ]
        common = sorted(set.intersection(*map(set, by_experiment)))
        if not common:
            both = " and ".join(runs)
            raise RecordError(f"the runs of {both} have no seed in common")
        seeds = [[of_seed[seed] for of_seed in by_experiment] for seed in common]
        of_row = [
            run
            for own in itertools.chain(*seeds)
            for label, run in own.items()
            if EVERY_RUN in row.runs or label in labels
        ]
        found += [one._replace(runs=of_row) for one in _measures(row, seeds)]
    used = [*{id(run): run for one in found for run in one.runs}.values()]
    answer = judging.judged(found, used, least_rounds=least_rounds)
    if shows and answer.number:
        of_clients = shows == "clients"
        sizes = {x.data["clients"] if of_clients else len(x.rounds) for x in used}
        shown = f"{answer.number} ({' or '.join(map(str, sorted(sizes)))} {shows})"
        answer = answer._replace(number=shown)
    return answer


def _needed(row: Row) -> list[str]:
    """Returns the labels that a row needs, those it is held against first."""
    base = () if isinstance(row.base, (int, float)) else row.base
    beside = row.beside or [BASELINE] * (EVERY_RUN in row.runs)
    return [*beside, *base, *(label for label in row.runs if label != EVERY_RUN)]


def _measures(row: Row, seeds: Sequence[Sequence[Labeled]]) -> list[Measure]:
    """Returns the measures of a row, for each run, or group, and set of columns."""
    sides = [[*row.runs]] if row.group else [[label] for label in row.runs]
    columns = (row.columns or {"": ()}).items()
    return [_measure(row, seeds, *one) for one in itertools.product(sides, columns)]


def _measure(
    row: Row,
    seeds: Sequence[Sequence[Labeled]],
    own: Sequence[str],
    columns: tuple[str, Cells],
) -> Measure:
    """Returns one measure; of columns only those count that every run reaches."""
    quantity, (name, cells) = QUANTITIES[row.of], columns
    ((minus, theirs),) = (row.minus or {"": cells}).items()
    others: Sequence[str] = []
    if not isinstance(row.base, (int, float)):
        others = [label for label in row.base if label not in own] or own
    base = " or ".join(others) or f"{row.base:g}"
    parts = {"run": ", ".join(own), "columns": name, "minus": minus, "base": base}
    name = row.name.format(**parts).strip()
    limits = row.sign, row.tolerance, row.within, row.digits
    equal, before = _equal(own, others, seeds), (len(cells), len(theirs))

    def value(runs: Labeled, labels: Sequence[str], cells: Cells) -> float:
        every = [*runs] if EVERY_RUN in labels else labels
        pairs = [(runs[label], runs[(row.beside or [label])[0]]) for label in every]
        found = [quantity.number(*pair, cells, row) for pair in pairs]
        return max(found) if row.group == "best" else statistics.fmean(found)

    try:
        if quantity.in_cells:
            ours, bases = (
                [seed[place][x] for seed in seeds for x in (*row.beside, *labels)]
                for place, labels in ((0, own), (-1, others))
            )
            both = not row.minus and len(seeds[0]) == 1
            cells = reached_by([*ours, *bases] if both else ours, cells)
            theirs = cells if both else reached_by(bases, theirs)
            if not (cells and theirs):
                length = max(len(run.rounds) for run in [*ours, *bases])
                why = f"not all runs arrive in {length} rounds"
                raise TooShortError(": ".join(filter(None, [columns[0], why])))
        mine = [row.times * value(one[0], own, cells) for one in seeds]
        base_values = (
            [float(row.base)] * len(seeds)
            if isinstance(row.base, (int, float))
            else [value(one[-1], others, theirs) for one in seeds]
        )
    except TooShortError as error:
        return Measure(name, (), (), *limits, equal=equal, lacks=str(error))
    counts = dict.fromkeys(zip((len(cells), len(theirs)), before))
    part = ", ".join(f"{n} of {m} columns" for n, m in counts if n < m)
    run = seeds[0][0].get(own[0])
    printed = _printed(row, own, others, cells, theirs, part)
    if run and not printed and row.tables and len(others) == 1:
        printed = _printed_of_dual(row, run, own[0], others[0])
    return Measure(name, mine, base_values, *limits, printed, equal, part)


def _printed(
    row: Row,
    own: Sequence[str],
    others: Sequence[str],
    cells: Cells,
    theirs: Cells,
    part: str,
) -> Sequence[float]:
    """Returns what the paper prints over the same columns; nothing without a table."""
    said = row.printed
    said = (said, said) if isinstance(said, (int, float)) else said
    if said and not part:  # It is said of all columns.
        return said
    summed = row.of in _PRINTED and row.times == 1
    if not (row.tables and summed and others):
        return ()
    sides = []
    both = (own, cells, row.tables[0]), (others, theirs, row.tables[-1])
    for labels, of_cells, table in both:
        means = []
        for label in labels:
            saved = rounds_saved(table, label)
            gains = [saved.get(cell, math.nan) for cell in of_cells]
            if not all(map(math.isfinite, gains)):
                return ()
            if row.of == "cells that lose":
                gains = [100.0 * (gain < 0) for gain in gains]
            means.append(statistics.fmean(gains))
        sides.append(max(means) if row.group == "best" else statistics.fmean(means))
    return (sides[0] - sides[1],) * 2


def _printed_of_dual(row: Row, run: Run, own: str, other: str) -> Sequence[float]:
    """Returns what Dual prints of the best epoch of a run beyond another's."""
    metrics = {"best round": dual_cells.METRICS[0], "best epoch": row.column}
    if row.of not in metrics:
        return ()
    which = row.tables[0], dual_cells.clients_of(run), metrics[row.of]
    size = dual_cells.printed(own, *which) - dual_cells.printed(other, *which)
    return () if math.isnan(size) else (size, size)


def _equal(
    own: Sequence[str], others: Sequence[str], seeds: Sequence[Sequence[Labeled]]
) -> bool:
    """Returns whether two runs had equal weights in every round under every seed."""
    if len(own) != 1 or len(others) != 1 or [*own] == [*others]:
        return False
    for seed in seeds:
        runs = seed[0][own[0]], seed[-1][others[0]]
        first, second = (run.cohort for run in runs)
        if first is None or second is None or len(seed) > 1:
            return False
        # A system that does more than weigh, as momentum does, is another algorithm.
        if len({run.settings.get("system") for run in runs}) > 1:
            return False
        columns = ["round", "client", "weight"]
        if not first[columns].equals(second[columns]):
            return False
    return True


def variance_and_gain(runs: Runs, *, least_rounds: int) -> Answer:
    """Judges by rank correlations over the orderings of an experiment.

    They are of the first criterion's variance between clients and the best accuracy.
    """
    ((_, own),) = runs.items()
    criteria = next((run.settings["criteria"] for run in own), [BASELINE])
    seeds = [[*one.values()] for one in judging.by_seed(own, criteria).values()]
    tables = map(pmc_variance.orderings, seeds)
    ranks = [pmc_variance.correlations(t)[pmc_variance.BEST] for t in tables]
    said, zeros = "rank correlation with the best accuracy", [0.0] * len(ranks)
    measure = Measure(said, ranks, zeros, judging.MORE, digits=2)
    used = [*itertools.chain(*seeds)]
    return judging.judged([measure], used, least_rounds=least_rounds)


def epochs_and_batches(
    runs: Runs, *, own: Sequence[int], columns: Mapping[str, Cells]
) -> Answer:
    """Judges whether `own`, the paper's (E, B), brings DS to a target soonest (DA, 3).

    A seed has one pair: in the paper's reading where there is one, and the longest of
    each. DS with the paper's has to arrive; another that does not counts by its length,
    which then has to be that of DS, or more.
    """
    found: dict[tuple[int, ...], dict[tuple[int, bool], Run]] = {}
    for run in sorted(itertools.chain(*runs.values()), key=lambda run: len(run.rounds)):
        if run.label == BASELINE:
            trained = run.settings["local_epochs"], run.settings["batch_size"]
            key = judging.seed_of(run), not other_reading(run)
            found.setdefault(trained, {})[key] = run
    words = "E = {} and B = {}"
    if len(found) < 2 or tuple(own) not in found:
        raise RecordError(
            f"only {words.format(*own)} is kept; run DS with other --local_epochs and "
            "--batch_size"
        )
    bases = found.pop(tuple(own))
    ((name, cells),) = columns.items()
    measures: list[Measure] = []
    for other, others in sorted(found.items()):
        common = sorted({*bases} & {*others})
        both = {key[0]: (bases[key], others[key]) for key in common}.values()
        if not both:
            raise RecordError(
                f"no run with {words.format(*own)} has the seed of the one with "
                f"{words.format(*other)}"
            )
        for base, one in both:
            must_arrive: list[tuple[Sequence[int], Run]] = [(own, base)]
            if len(one.rounds) < len(base.rounds):
                must_arrive.append((other, one))
            for set_to, run in must_arrive:
                reached = reached_by([run], cells)
                for target, share in (cell for cell in cells if cell not in reached):
                    raise TooShortError(
                        f"the kept run of {BASELINE} with {words.format(*set_to)} "
                        f"ends in round {len(run.rounds)}, before {share} % of the "
                        f"devices reach {target} %"
                    )
        ours, theirs = ([-mean_rounds(r, cells) for r in side] for side in zip(*both))
        over = "{}, over E = {}, B = {}".format(name, *other)
        pairs = [*itertools.chain(*both)]
        measures.append(Measure(over, ours, theirs, judging.MORE, runs=pairs))
    used = [run for one in measures for run in one.runs]
    return judging.judged(measures, used)


JUDGES: Mapping[str, Callable[..., Answer]] = {
    "compared": compared,
    "variance and gain": variance_and_gain,
    "epochs and batches": epochs_and_batches,
}
"""The judges by the names that tables of claims have for them."""
