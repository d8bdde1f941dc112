"""The callback that shows a run's progress."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

from tff_pmc import escape
from tff_pmc.experiments.callbacks import Callback, FinishedRound, Run
from tff_pmc.record.client_statistics import PERCENTILES
from tff_pmc.record.metric import Metric


class Progress(Callback):
    """A progress bar of rounds, or about ten lines if there is no terminal."""

    def __init__(self, title: str = "") -> None:
        """Stores the bar's title, by default the run's label."""
        self._title = title

    def on_start(self, run: Run) -> None:
        """Shows the bar."""
        self._shown = escape.printable(self._title or run.settings.label)
        self._rounds = run.settings.training.rounds
        self._bar = tqdm(
            desc=self._shown,
            unit="round",
            initial=run.rounds_before,
            total=self._rounds,
            mininterval=1,
            disable=not sys.stderr.isatty(),
        )

    def after_round(self, round: FinishedRound) -> None:
        """Shows the round."""
        record = round.record
        words = escape.printable(
            progress_text(round.row, sum(record.seconds.values()), record.metric)
        )
        if not self._bar.disable:
            self._bar.set_postfix_str(words, refresh=False)
            self._bar.update()
        elif round.round_num % -(-self._rounds // 10) == 0 or (
            round.round_num == self._rounds
        ):
            place = f"round {round.round_num} of {self._rounds}"
            print(f"{self._shown}: {place}, {words}", file=sys.stderr, flush=True)

    def on_end(self, status: str) -> None:
        """Closes the bar."""
        self._bar.close()


def progress_text(row: Mapping[str, Any], seconds: float, metric: Metric) -> str:
    """Returns the results of a round as the progress bar shows them."""
    if row[metric.mean] == "":
        return f"not tested, {seconds:.1f} s"
    percentiles = "/".join(f"{row[f'{metric.prefix}p{p}']:.2f}" for p in PERCENTILES)
    name = metric.mean.replace("_", " ")
    text = f"{name} {row[metric.mean]:.3f}, p10/50/90 {percentiles}, {seconds:.1f} s"
    tested = row["testing_rounds"]
    if tested:
        candidates = "candidate" if tested == 1 else "candidates"
        text += f", tested {tested} {candidates} and kept {row['ordering']}"
    return text
