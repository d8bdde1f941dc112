"""A summary of runs: the last and the best round of each, and means over seeds."""

from __future__ import annotations

import pandas as pd

from tff_pmc.record.metric import ACCURACY, LOSS
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.figures import fairness_plot, run_labels
from tff_pmc.reports.page_model import (
    Block,
    Heading,
    Items,
    Page,
    Table,
    format_number,
    grid_text,
)
from tff_pmc.reports.statistics.rounds_to_target import recorded_targets
from tff_pmc.reports.statistics.row_titles import row_title
from tff_pmc.reports.statistics.run_notes import (
    caveat_notes,
    excluded_notes,
    mark_incomplete_data,
)
from tff_pmc.reports.statistics.run_summary import (
    last_and_best,
    metric_word,
    results_metric,
    seed_statistics,
    spread_of,
)

_TITLES = {
    ACCURACY.mean: "Accuracy over all test examples",
    LOSS.mean: "Loss over all test examples",
}
_NOTES = {
    ACCURACY.mean: "best: the round with the highest accuracy, chosen on these test "
    "examples, so optimistic",
    LOSS.mean: "best: the round with the lowest loss, chosen on these test "
    "examples, so optimistic",
}
_CELLS = (
    "Mean ± half of its 95 % interval (Student's t, from two seeds on), and in "
    "brackets the lowest and the highest seed. Where some seeds do not reach a target "
    "there is no mean."
)


def report(results: Results) -> Report:
    """Returns the last and the best round of runs as text; for several seeds, a table.

    The table is `seeds.csv` with its page; see `seed_statistics`. It shows how good
    each run is, and how much of that is due to the seed. Nothing is compared with the
    baseline here: whether two runs differ is the question of `effect`.
    """
    if len(results.seeds) == 1:
        return Report(text(results))
    table = seed_statistics(results)
    page = _page(results, table)
    return Report(
        page.markdown() + _excluded_note(results),
        {"seeds": mark_incomplete_data(table.reset_index(), results)},
        {"seeds": page},
        digits=6,
    )


def fairness(results: Results) -> Report:
    """Returns `fairness.png`: how accuracy is spread over clients, over the rounds."""
    figure = fairness_plot.fairness_plot(results, title=run_labels.title_of(results))
    return Report(figures={"fairness": figure})


def text(results: Results) -> str:
    """Returns the figures of `last_and_best` of one seed as a table for a terminal.

    A run whose last round is its best has one line, the others have two.
    """
    measure = results_metric(results)
    table = last_and_best(results)
    spread = {name: statistic.title for name, statistic in spread_of(measure).items()}
    titles = {measure.mean: metric_word(results), **spread}
    titles = {name: title for name, title in titles.items() if name in table}
    lines = [["", "", "round", *titles.values()]]
    for (_, label), part in table.groupby(level=RUN_KEY, sort=False):
        rounds = part.droplevel(RUN_KEY)
        if rounds["round"].nunique() == 1:
            rounds = rounds.iloc[:1].rename({"last": "last and best"})
        for which, figures in rounds.iterrows():
            cells = [f"{figures[name]:.4f}" for name in titles]
            lines.append(
                [row_title(label), str(which), f"{figures['round']:.0f}", *cells]
            )
    sizes = results.clients.groupby([*RUN_KEY, "client"], sort=False)["examples"].max()
    clients: dict[str, None] = {}
    for _, of_run in sizes.groupby(level=RUN_KEY, sort=False):
        tested, num_clients = int((of_run > 0).sum()), len(of_run)
        few = f" of {num_clients}, who have tests" if tested < num_clients else ""
        clients[f"{tested}{few}"] = None
    title = _TITLES[measure.mean]
    if results.has_clients:
        title = f"{title}, and how it is spread over the clients"
        title = f"{title} ({' or '.join(clients)})"
    parts = [title, grid_text(lines, 2), _NOTES[measure.mean], _excluded_note(results)]
    return "\n".join(filter(None, parts))


def _excluded_note(results: Results) -> str:
    """Returns a line for each label whose runs excluded trainings, or ""."""
    notes = excluded_notes(results).items()
    return "\n".join(f"{label}: {note}" for label, note in notes)


def _page(results: Results, table: pd.DataFrame) -> Page:
    """Returns the page of `seed_statistics`."""
    measure, count = results_metric(results), len(results.seeds)
    word, targets = metric_word(results), recorded_targets(results)
    shown = {
        f"last_{measure.mean}": f"last {word}",
        f"best_{measure.mean}": f"best {word}",
        **{
            f"last_{name}": statistic.title
            for name, statistic in spread_of(measure).items()
        },
    }
    recorded = {*table.index.get_level_values("quantity")}
    shown = {name: title for name, title in shown.items() if name in recorded}
    goals = {f"rounds_to_{target}": f"{target} %" for target in targets}
    parts = {
        f"The last round; best {word}: the best round": shown,
        "Rounds until half of the devices reach the target": goals,
    }
    notes = caveat_notes(results) if targets or not results.has_clients else ()
    blocks: list[Block] = [Items([_CELLS, *notes])]
    for heading, names in parts.items():
        grid = [["", *names.values()]]
        for label in results.labels:
            rows = [table.loc[(label, name)] for name in names]
            grid.append(
                [row_title(label), *(_interval_and_range(row, count) for row in rows)]
            )
        blocks += [Heading(heading), Table(grid)] if names else []
    return Page(f"Over {count} seeds", blocks)


def _interval_and_range(row: pd.Series[float], count: int) -> str:
    """Returns the mean, its interval and the range of a quantity over seeds."""
    form, of_range = (".1f", "g") if row.name[1].startswith("rounds") else (".3f",) * 2
    span = " to ".join(
        format_number(row[name], of_range) for name in ("lowest", "highest")
    )
    if row["seeds"] < count:
        arrived = f"{row['seeds']:.0f} of {count} seeds"
        return f"{arrived} ({span})" if row["seeds"] else arrived
    half = format_number(row["interval"], form)
    return f"{row['mean']:{form}}{half and f' ± {half}'} ({span})"


REPORTS.register("summary", report)
REPORTS.register("fairness", fairness)
