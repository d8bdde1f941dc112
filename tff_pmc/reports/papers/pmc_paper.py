"""PMC's tables and figures of each experiment, and the runs that they need.

PMC is *Prioritized Multi-Criteria Federated Learning* (2020). The module also lists
known errors of its Tables 2, 4 and 6: impossible cells, and labels that are in doubt.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Callable, Optional

import numpy as np
import pandas as pd

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.reference_code import TARGETS, orderings
from tff_pmc.record.results import Results
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.statistics import published
from tff_pmc.reports.statistics.rounds_table import AVERAGE
from tff_pmc.reports.statistics.rounds_to_target import reach_rule, rounds_to_target

KEYS = ("experiment", "quantity", "target_accuracy_pct", "devices")
TEXT_AVERAGE = "Avg. (text)"
"""The average over the columns with a gain, which the paper's text sometimes uses."""

Cell = tuple[str, str, int, str]
"""The `KEYS` of a cell."""

IMPOSSIBLE: frozenset[Cell] = frozenset(
    {
        ("CB≻DS≻IS", "gain", 70, "50%"),
        ("CB≻DS≻IS", "gain", 70, "60%"),
        ("CB≻IS≻DS", "gain", 70, "40%"),
        ("CB≻IS≻DS", "gain", 70, "50%"),
    }
)
"""Impossible cells of Table 6: more of the devices in an earlier round."""


@dataclasses.dataclass(frozen=True)
class PaperResults:
    """The tables and the figure of one experiment, by their numbers.

    Attributes:
        title: the experiment in the paper's words.
        data_set: `mnist` or `celeba`, whose orderings and targets these are.
        rounds_table: the number of the table of rounds and gains.
        joint_table: the number of the table of right and wrong predictions.
        figure: the number of the figure of accuracies.
        prose: notes on the statements of the paper's text about the table of rounds.
        text_numbers: numbers of the paper's text, by the `KEYS` of their cells.
        rounds: the round in which a target that is not reached counts as reached, if
            there is one.
        labels_in_doubt: whether the labels IS and CB are probably exchanged.
    """

    title: str
    data_set: str
    rounds_table: int
    joint_table: int
    figure: str
    prose: tuple[str, ...] = ()
    text_numbers: Mapping[Cell, float] = dataclasses.field(default_factory=dict)
    rounds: Optional[int] = None
    labels_in_doubt: bool = False

    @property
    def targets(self) -> tuple[int, ...]:
        """The target accuracies of the table of rounds, percent."""
        return TARGETS[self.data_set]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the nine runs, DS first."""
        return tuple(map(",".join, orderings(self.data_set)))

    def rows(self, results: Results) -> Results:
        """Returns the runs that are rows, in the order of the rows.

        A run that has reached all targets may be shorter (`--until=targets`).

        Raises:
            RecordError: the runs were tested on different clients, or differ in length,
                on which it depends which targets are not reached.
        """
        rows = results.only(label=self.labels)
        rows.runs = rows.runs.sort_values(
            "label", key=lambda labels: labels.map(self.labels.index), ignore_index=True
        )
        published.check_clients(rows)
        length = rows.length.droplevel("seed")
        short = [label for label in rows.labels if length[label] < length.max()]
        if short:
            reached = rounds_to_target(rows.only(label=short), self.targets)
            late = reached[reached["rounds"].isna()]["label"]
            if len(late):
                raise RecordError(
                    f"{late.iloc[0]} has {length[late.iloc[0]]} rounds and "
                    f"{length.idxmax()} has {length.max()}: PMC's tables compare runs "
                    "that are equally long, or have reached all targets "
                    f"(--reach={reach_rule(rows)})"
                )
        return rows

    def notes(self, results: Results) -> list[str]:
        """Returns notes on the runs, and on rows without a run."""
        rows = self.rows(results)
        first = rows.runs.iloc[0]
        source = f" ({first['data_source']})" if first.get("data_source") else ""
        notes = [
            f"Runs: {first['data_name']}{source}, {first['data_clients']} clients, "
            f"{rows.length.max()} rounds; one run a row, so without the spread over "
            "seeds."
        ]
        return [*notes, *published.missing_row_notes(results, self.labels)]


PAPER = {
    "mnist_iid": PaperResults("MNIST IID", "mnist", 2, 3, "2a"),
    "mnist_noniid": PaperResults(
        "MNIST non-IID",
        "mnist",
        4,
        5,
        "2b",
        (
            "The paper's text (section 6.2) has the averages of MW≻DS≻LD as -0.1, 0.2, "
            "2.1 and 1.7; at 90 % its cell is 0.56, the other three agree.",
        ),
        {
            (published.pmc_experiment("MD,DS,LD"), "gain", target, AVERAGE): number
            for target, number in zip((70, 80, 90, 95), (-0.1, 0.2, 2.1, 1.7))
        },
    ),
    "celeba": PaperResults(
        "CelebA",
        "celeba",
        6,
        7,
        "3",
        (
            "The averages in the paper's text (section 6.1), 8.6, 11.5 and 13, are "
            "those of the row CB at 70, 80 and 85 %, divided by the columns that have "
            "a gain. Its 7.5 for CB and 7.6 for IS are the means of the tables' "
            "averages, which divide by nine.",
        ),
        {
            ("CB", "gain", target, TEXT_AVERAGE): number
            for target, number in zip((70, 80, 85), (8.6, 11.5, 13.0))
        },
        rounds=100,
        labels_in_doubt=True,
    ),
}
"""Experiment -> the tables and the figure that the paper has of it."""


def register(name: str, report: Callable[..., Report]) -> None:
    """Registers a report for each experiment; `name` has fields of `PaperResults`."""
    for experiment, paper in PAPER.items():
        REPORTS.register(
            name.format(**vars(paper)),
            functools.partial(report, experiment=experiment),
        )


def published_rows(number: int) -> pd.DataFrame:
    """Returns the published Table 2, 4 or 6, and the averages by the text's rule."""
    theirs = published.table(f"pmc_table{number}")
    cells = theirs[(theirs["quantity"] == "gain") & (theirs["devices"] != AVERAGE)]
    means = cells.groupby([*KEYS[:3]], sort=False)["value"].mean().reset_index()
    with_averages: pd.DataFrame = pd.concat(
        [theirs, means.assign(devices=TEXT_AVERAGE)]
    )
    return with_averages


def exchanged_labels_note(
    ours: pd.DataFrame, theirs: pd.DataFrame, *, comparable: bool = True
) -> list[str]:
    """Returns a note on whether Table 6 fits better with IS and CB exchanged.

    The authors' published code logs its second criterion, which it computes as the
    class balance, as IS; Tables 6 and 7 contradict each other unless the two are
    exchanged in one of them. Our labels are correct. How well ours fit is informative
    only if the runs are `comparable`: on the paper's data, and as long as the paper's.
    The list is empty if no gain can be compared.
    """
    note = (
        "The paper's labels IS and CB are probably exchanged here: Table 7 and "
        "the published code say so. Ours are true."
    )
    if not comparable:
        return [note]
    exchange = {"IS": "CB", "CB": "IS"}
    names = theirs["experiment"].str
    other = names.replace("IS|CB", lambda match: exchange[match[0]], regex=True)
    shares = ours.query("quantity == 'gain' and devices.str.endswith('%')")
    misfits = [
        published.join_published(shares, rows, KEYS)["difference"].abs().mean()
        for rows in (theirs, theirs.assign(experiment=other))
    ]
    if np.isnan(misfits).any():
        return []
    return [
        f"{note} A gain of ours differs by {misfits[0]:.1f} rounds on average from the "
        f"published one, and by {misfits[1]:.1f} from the one with IS and CB exchanged."
    ]
