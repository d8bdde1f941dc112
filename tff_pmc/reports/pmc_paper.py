"""What PMC shows of each of its experiments, and the runs that make it.

PMC is *Prioritized Multi-Criteria Federated Learning* (2020). Here too is what is known
of its printed Tables 2, 4 and 6: which cells cannot be, and which labels are in doubt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Optional

import numpy as np
import pandas as pd

from leaf_data import DataError
from tff_pmc.reports import published, reference_code
from tff_pmc.reports.read import Run
from tff_pmc.reports.rounds_to_target import DEVICES
from tff_pmc.reports.tables import AVERAGE

KEYS = ("experiment", "quantity", "target_accuracy_pct", "devices")
TEXT_AVERAGE = "Avg. (text)"
"""The average by the rule of the paper's text, which its tables do not have."""

Cell = tuple[str, str, int, str]
"""The `KEYS` of a cell."""


@dataclasses.dataclass(frozen=True)
class PaperResults:
    """The tables and the figure of one experiment.

    Attributes:
        title: the experiment in the paper's words.
        data_set: whose orderings these are, as `reference_code.orderings` has it.
        targets: target accuracies of the table of rounds, percent.
        rounds_table: number of the table of rounds and gains.
        joint_table: number of the table of right and wrong.
        figure: number of the figure.
        prose: what the paper's text says of the table of rounds.
        text_numbers: numbers in the paper's text, by the `KEYS` of the cell they are
            of.
        rounds: the round in which a run that does not arrive counts as arriving, where
            the table has such runs.
    """

    title: str
    data_set: str
    targets: tuple[int, ...]
    rounds_table: int
    joint_table: int
    figure: str
    prose: tuple[str, ...] = ()
    text_numbers: Mapping[Cell, float] = dataclasses.field(default_factory=dict)
    rounds: Optional[int] = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the nine runs, DS first."""
        return tuple(map(",".join, reference_code.orderings(self.data_set)))

    def rows(self, runs: Mapping[str, Run]) -> dict[str, Run]:
        """The runs that are rows, in the order of the rows; by the same keys.

        Raises:
            DataError: two runs are of one ordering, or have other clients or another
                number of rounds, on which what counts as not reached depends.
        """
        found: dict[str, str] = {}
        for key, run in runs.items():
            if run.label not in self.labels:
                continue
            if run.label in found:
                raise DataError(
                    f"{found[run.label]} and {key} are both runs of {run.label}: PMC's "
                    "tables take one run of an ordering"
                )
            found[run.label] = key
        rows = {found[name]: runs[found[name]] for name in self.labels if name in found}
        first = next(iter(rows), "")
        for key, run in rows.items():
            if not np.array_equal(run.examples, runs[first].examples):
                raise DataError(f"{first} and {key} were tested on other clients")
            if len(run.correct) != len(runs[first].correct):
                raise DataError(
                    f"{first} has {len(runs[first].correct)} rounds and {key} has "
                    f"{len(run.correct)}: PMC's tables compare equally long runs"
                )
        return rows

    def notes(self, runs: Mapping[str, Run]) -> list[str]:
        """What a reader must know of the runs: which, and which rows have none."""
        rows = list(self.rows(runs).values())
        labels = [run.label for run in rows]
        missing = [name for name in self.labels if name not in labels]
        others = [run.label for run in runs.values() if run.label not in labels]
        data = rows[0].info["data"]
        source = data.get("origin", {}).get("source", "")
        notes = [
            f"Runs: {data['name']}{f' ({source})' if source else ''}, "
            f"{len(rows[0].examples)} clients, {len(rows[0].correct)} rounds; one run "
            "a row, so without the spread over seeds."
        ]
        if missing:
            notes.append(f"No run, so no row: {'; '.join(missing)}.")
        if others:
            notes.append(f"Runs that are no row of this table: {'; '.join(others)}.")
        return notes


_MNIST, _CELEBA = (70, 80, 90, 95), (70, 80, 85)
PAPER = {
    "mnist_iid": PaperResults("MNIST IID", "mnist", _MNIST, 2, 3, "2a"),
    "mnist_noniid": PaperResults(
        "MNIST non-IID",
        "mnist",
        _MNIST,
        4,
        5,
        "2b",
        (
            "The paper's text has an average of 2.1 where the cell is 0.56. Two rows "
            "have that cell, and which is meant is not known: both are shown.",
        ),
        {
            (row, "gain", 90, AVERAGE): 2.1
            for row in map(published.pmc_experiment, ("LD", "MD,DS,LD"))
        },
    ),
    "celeba": PaperResults(
        "CelebA",
        "celeba",
        _CELEBA,
        6,
        7,
        "3",
        (
            "The averages in the paper's text, 8.6, 11.5 and 13, are those of the row "
            "CB at 70, 80 and 85 %, by the text's rule.",
        ),
        {
            ("CB", "gain", target, TEXT_AVERAGE): number
            for target, number in zip(_CELEBA, (8.6, 11.5, 13.0))
        },
        rounds=100,
    ),
}
"""Experiment -> what the paper shows of it."""


def published_rows(number: int) -> pd.DataFrame:
    """The published Table 2, 4 or 6, and the averages by the rule of the text.

    Raises:
        published.PublishedTableMissing: the published table is not there.
    """
    theirs = published.table(f"pmc_table{number}")
    cells = theirs[(theirs["quantity"] == "gain") & (theirs["devices"] != AVERAGE)]
    means = cells.groupby([*KEYS[:3]], sort=False)["value"].mean().reset_index()
    both: pd.DataFrame = pd.concat([theirs, means.assign(devices=TEXT_AVERAGE)])
    return both


def impossible(theirs: pd.DataFrame) -> set[Cell]:
    """Cells that contradict each other: more of the devices, in an earlier round.

    Args:
        theirs: a published table, as `published_rows` gives it.

    Returns:
        `KEYS` of both cells of each such pair of neighboring columns.
    """
    base = theirs[theirs["quantity"] == "rounds"]
    rounds = base.set_index([*KEYS[2:]])["value"]
    found = set()
    for start, part in theirs.groupby([*KEYS[:3]], sort=False):
        values = part.set_index("devices")["value"]
        if start[1] == "gain":
            values = rounds[start[2]] - values
        line = values.reindex([f"{share}%" for share in DEVICES]).dropna()
        for place in np.flatnonzero(np.diff(line) < 0):
            found |= {(*start, line.index[place]), (*start, line.index[place + 1])}
    return found


def exchanged_labels(
    ours: pd.DataFrame, theirs: pd.DataFrame, *, comparable: bool = True
) -> list[str]:
    """A note: does Table 6 fit better with its labels IS and CB exchanged?

    The authors' published code prints its second criterion, which it computes as the
    class balance, as IS; Tables 6 and 7 contradict each other unless the two are
    exchanged in one of them. Ours are what they are called.

    Args:
        ours: cells with the columns `KEYS` and `value`.
        theirs: the published table, as `published_rows` gives it.
        comparable: whether ours are on the paper's data, and of its length. If not,
            how well they fit says nothing, and is left out.

    Returns:
        One note; none where no gain can be compared.
    """
    note = (
        "The paper's labels IS and CB are probably exchanged here: Table 7 and "
        "the published code say so. Ours are true."
    )
    if not comparable:
        return [note]
    exchange = {"IS": "CB", "CB": "IS"}
    names = theirs["experiment"].str.split("≻")
    exchanged = theirs.assign(
        experiment=["≻".join(exchange.get(p, p) for p in parts) for parts in names]
    )
    shares = ours.query("quantity == 'gain' and devices.str.endswith('%')")
    misfits = [
        published.beside(shares, rows, KEYS)["difference"].abs().mean()
        for rows in (theirs, exchanged)
    ]
    if np.isnan(misfits).any():
        return []
    return [
        f"{note} A gain of ours differs by {misfits[0]:.1f} rounds on average from the "
        f"published one, and by {misfits[1]:.1f} from the one with IS and CB exchanged."
    ]
