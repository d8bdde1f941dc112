"""The baselines on their own papers' synthetic data: numbers, claims and loss curves.

Each claim compares two rows of an experiment of
`experiments/catalog/baseline_experiments` by the rule of `judging`. They are apart from
the four papers' claims: no other page counts them (docs/baselines.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.client_statistics import client_means, worst_tenth
from tff_pmc.record.record_error import ClientsNotRecordedError, NotRecordedError
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.papers.judging import Difference, judge
from tff_pmc.reports.statistics import measures, paired_statistics
from tff_pmc.reports.statistics.run_notes import condition_notes, early_stop_notes

LOSS = "global_train_loss"


def _check_loss(results: Results) -> None:
    if LOSS not in results.rounds:
        raise NotRecordedError(
            "the loss of all training examples is needed but was not recorded "
            "(--noglobal_train_loss)"
        )


def _loss(results: Results) -> pd.Series[float]:
    _check_loss(results)
    return measures.second_half(results, LOSS)


def _loss_change(results: Results) -> pd.Series[float]:
    """Returns the mean absolute change of the loss per round, second half."""
    _check_loss(results)
    rounds = results.rounds
    half = rounds.groupby(RUN_KEY)["round"].transform("max") / 2
    change = rounds.groupby(RUN_KEY)[LOSS].diff().abs()
    late = rounds[RUN_KEY].assign(change=change)[rounds["round"] > half]
    return late.groupby(RUN_KEY, sort=False)["change"].mean()


def _accuracy(results: Results) -> pd.Series[float]:
    return 100 * measures.second_half(results)


def _over_clients(
    results: Results, statistic: Callable[[Any], Any]
) -> pd.Series[float]:
    """Returns a statistic of the clients' accuracies, in percent, in the last round."""
    if not results.has_clients:
        raise ClientsNotRecordedError
    clients = results.clients
    last = clients.groupby(RUN_KEY)["round"].transform("max")
    by_run = clients[clients["round"] == last].groupby(RUN_KEY, sort=False)
    values = {
        key: float(statistic(100 * client_means(*run.to_numpy().T)))
        for key, run in by_run[["correct", "examples"]]
    }
    return pd.Series(values).rename_axis(RUN_KEY)


class Measure(NamedTuple):
    """A number of a run: its name in tables, its decimals, how it is computed."""

    name: str
    digits: int
    values: Callable[[Results], Any]


TRAINING_LOSS = Measure("training loss", 3, _loss)
LOSS_CHANGE = Measure("change of the loss per round", 4, _loss_change)
ACCURACY = Measure("accuracy", 1, _accuracy)
AVERAGE = Measure("average", 1, functools.partial(_over_clients, statistic=np.mean))
WORST = Measure(
    "worst 10 %", 1, functools.partial(_over_clients, statistic=worst_tenth)
)
BEST = Measure(
    "best 10 %",
    1,
    functools.partial(_over_clients, statistic=lambda shares: -worst_tenth(-shares)),
)
VARIANCE = Measure("variance", 0, functools.partial(_over_clients, statistic=np.var))


class BaselineClaim(NamedTuple):
    """A statement of a paper on two rows.

    Attributes:
        place: where the paper has it, such as `Figure 2`.
        says: the statement, in words.
        measure: what is compared: `row` minus `baseline`, under the same seed.
        row: the label of a row.
        baseline: the label of the other.
        is_more: whether the statement is that the difference is above 0, not below.
        printed: the difference in the paper's table, or nothing.
    """

    place: str
    says: str
    measure: Measure
    row: str
    baseline: str
    is_more: bool = False
    printed: tuple[float, ...] = ()


class BaselinePaper(NamedTuple):
    """What is shown of an experiment.

    `printed` has the paper's numbers by row, in the order of the measures; `panels` the
    lines of each panel of loss curves, name -> row. Runs of fewer rounds than
    `least_rounds`, those of the authors, decide nothing.
    """

    paper: str
    measures: Sequence[Measure]
    claims: Sequence[BaselineClaim]
    panels: Mapping[str, Mapping[str, str]] = {}
    printed: Mapping[str, Sequence[float]] = {}
    least_rounds: int = 0


_MU_1 = "mu = 1 has a lower loss than mu = 0 on {}"
_STABLE = "mu = 1 stabilizes the loss on {}: it changes less per round than with mu = 0"
_FEDERATIONS = {
    "Synthetic (0,0)": ("FedAvg, alpha 0, beta 0", "FedProx, mu 1, alpha 0, beta 0"),
    "Synthetic (0.5,0.5)": (
        "FedAvg, alpha 0.5, beta 0.5",
        "FedProx, mu 1, alpha 0.5, beta 0.5",
    ),
    "Synthetic (1,1)": ("FedAvg", "FedProx, mu 1"),
}


def _with_stragglers(share: str) -> dict[str, str]:
    """Returns the rows of Figure 1 with a share of stragglers."""
    return {
        "FedAvg": f"FedAvg, stragglers {share}",
        "FedProx, mu = 0": f"FedProx, stragglers {share}, mu 0",
        "FedProx, mu = 1": f"FedProx, stragglers {share}, mu 1",
    }


def _figure_1(share: str, percent: str) -> list[BaselineClaim]:
    drops, keeps, holds = _with_stragglers(share).values()
    place = f"Figure 1, {percent} % stragglers"
    keeping = "FedProx with mu = 0, which keeps partial work, has a {} than FedAvg"
    return [
        BaselineClaim(place, keeping.format("lower loss"), TRAINING_LOSS, keeps, drops),
        BaselineClaim(
            place, keeping.format("higher accuracy"), ACCURACY, keeps, drops, True
        ),
        BaselineClaim(
            place,
            "FedProx with mu = 1 has a lower loss than with mu = 0",
            TRAINING_LOSS,
            holds,
            keeps,
        ),
    ]


BASELINE_PAPERS: dict[str, BaselinePaper] = {
    "fedprox_synthetic": BaselinePaper(
        "FedProx",
        (TRAINING_LOSS, LOSS_CHANGE, ACCURACY),
        [
            BaselineClaim(
                "Figure 2",
                "FedAvg converges worse the more the clients differ: its loss is "
                "higher on (1,1) than on IID data",
                TRAINING_LOSS,
                "FedAvg",
                "FedAvg, IID",
                True,
            ),
            *(
                BaselineClaim("Figure 2", words.format(name), measure, prox, plain)
                for name, (plain, prox) in _FEDERATIONS.items()
                for words, measure in ((_MU_1, TRAINING_LOSS), (_STABLE, LOSS_CHANGE))
            ),
            *_figure_1("0.5", "50"),
            *_figure_1("0.9", "90"),
        ],
        {
            "Synthetic IID": {
                "FedProx, mu = 0": "FedAvg, IID",
                "FedProx, mu = 1": "FedProx, mu 1, IID",
            },
            **{
                name: {"FedProx, mu = 0": plain, "FedProx, mu = 1": prox}
                for name, (plain, prox) in _FEDERATIONS.items()
            },
            "(1,1), 50 % stragglers": _with_stragglers("0.5"),
            "(1,1), 90 % stragglers": _with_stragglers("0.9"),
        },
        least_rounds=200,
    ),
    "qffl_synthetic": BaselinePaper(
        "q-FFL",
        (AVERAGE, WORST, BEST, VARIANCE),
        [
            BaselineClaim(
                "Table 1",
                "q = 1 has a lower variance over devices than q = 0",
                VARIANCE,
                "q-FedAvg, q 1",
                "q-FedAvg, q 0",
                printed=(472 - 724,),
            ),
            BaselineClaim(
                "Table 1",
                "q = 1 has more accurate worst devices than q = 0",
                WORST,
                "q-FedAvg, q 1",
                "q-FedAvg, q 0",
                True,
                (31.1 - 18.8,),
            ),
        ],
        printed={
            "q-FedAvg, q 0": (80.8, 18.8, 100.0, 724),
            "q-FedAvg, q 1": (79.0, 31.1, 100.0, 472),
        },
        least_rounds=20_000,
    ),
    "fednova_synthetic": BaselinePaper(
        "FedNova",
        (TRAINING_LOSS, LOSS_CHANGE, ACCURACY),
        [
            BaselineClaim(
                "experiments on synthetic data",
                "FedNova has a lower loss than FedAvg where clients run 1 to 5 epochs",
                TRAINING_LOSS,
                "FedNova",
                "FedAvg",
            ),
        ],
        {"1 to 5 epochs": {"FedAvg": "FedAvg", "FedNova": "FedNova"}},
    ),
}
"""What is shown of each experiment, by its name."""


def _paper(results: Results) -> BaselinePaper | None:
    return BASELINE_PAPERS.get(str(results.setting("experiment", "")))


def claims_report(results: Results) -> Report:
    """Returns `baseline.md` and `baseline.csv`: the rows' numbers, and the claims.

    It is empty for runs of other experiments, and has no claims on rows that were not
    run.

    Raises:
        NotRecordedError: the loss or the results of each client were not recorded.
    """
    paper = _paper(results)
    if paper is None:
        return Report()
    values = {measure: measure.values(results) for measure in paper.measures}
    numbers = [["row", *(measure.name for measure in paper.measures)]]
    for label in results.labels:
        cells = [_mean_text(values[m].xs(label, level="label"), m) for m in values]
        numbers.append([label, *cells])
        if label in paper.printed:
            printed = zip(paper.measures, paper.printed[label])
            texts = [f"{number:.{m.digits}f}" for m, number in printed]
            numbers.append([f"{label}, paper", *texts])
    claims = [
        _claim_row(claim, paper, values[claim.measure], results)
        for claim in paper.claims
        if {claim.row, claim.baseline} <= {*results.labels}
    ]
    table = pd.DataFrame(claims)
    parts = {"The rows": numbers}
    if claims:
        head = ["place", "claim", "ours", "verdict", "why"]
        lines = table[["place", "says", "ours", "verdict", "why"]].to_numpy().tolist()
        parts["What the paper says"] = [head, *lines]
    notes = [
        *condition_notes(results.only(seed=results.seeds[0])),
        *early_stop_notes(results),
        f"Numbers are means over seeds ({', '.join(map(str, results.seeds))}; the data "
        "above are those of the first), ± half of the 95 % interval; losses and "
        "accuracies are those of the second half of the rounds, and statistics of "
        "devices those of the last round, in percent.",
    ]
    title = f"{paper.paper} on its paper's synthetic data"
    return Report.from_grids("baseline", title, notes, parts, table, digits=6)


def _mean_text(values: pd.Series[float], measure: Measure) -> str:
    """Returns the mean of a row over the seeds, and half of its interval."""
    mean = f"{values.mean():.{measure.digits}f}"
    half = paired_statistics.half_interval(float(values.std(ddof=1)), len(values))
    return mean if math.isnan(half) else f"{mean} ± {half:.{measure.digits}f}"


def _claim_row(
    claim: BaselineClaim,
    paper: BaselinePaper,
    values: pd.Series[float],
    results: Results,
) -> dict[str, Any]:
    """Returns a claim, the difference over the seeds that both rows have, a verdict."""
    pair = values.unstack("label")[[claim.row, claim.baseline]].dropna()
    short = results.length.min() < paper.least_rounds
    difference = Difference(
        claim.measure.name,
        pair[claim.row].tolist(),
        pair[claim.baseline].tolist(),
        low=0.0 if claim.is_more else -math.inf,
        high=math.inf if claim.is_more else 0.0,
        printed=claim.printed * 2,
        digits=claim.measure.digits,
    )
    judgment = judge([difference])
    verdict, why = judgment.verdict, judgment.why
    if short:
        too_short = judge([difference._replace(missing=_short_words(paper, results))])
        verdict, why = too_short.verdict, too_short.why
    stat = paired_statistics.difference(difference.values, difference.baseline_values)
    return {
        "place": claim.place,
        "says": claim.says,
        "measure": claim.measure.name,
        "row": claim.row,
        "baseline": claim.baseline,
        **{name: stat[name] for name in ("seeds", "mean", "interval")},
        "printed": claim.printed[0] if claim.printed else math.nan,
        "ours": judgment.ours,
        "verdict": verdict,
        "why": why,
    }


def _short_words(paper: BaselinePaper, results: Results) -> str:
    return (
        f"the runs have {results.length.min()} rounds, and the authors' "
        f"{paper.least_rounds}"
    )


def curves_report(results: Results) -> Report:
    """Returns `loss_curves.png`: the training loss of all clients over the rounds."""
    paper = _paper(results)
    if paper is None or not paper.panels:
        return Report()
    _check_loss(results)
    return Report(figures={"loss_curves": draw(results, paper)})


@figure_layout.with_style
def draw(results: Results, paper: BaselinePaper) -> Figure:
    """Returns a panel of loss curves for each federation, or share of stragglers."""
    panels = {
        title: {name: label for name, label in lines.items() if label in results.labels}
        for title, lines in paper.panels.items()
    }
    panels = {title: lines for title, lines in panels.items() if lines}
    figure, grid = figure_layout.panels(len(panels))
    names = [*dict.fromkeys(name for lines in panels.values() for name in lines)]
    styles = run_styles.styles_of(names)
    curves = results.rounds.set_index("round").groupby(RUN_KEY)[LOSS]
    for axes, (title, lines) in zip(grid, panels.items()):
        for name, label in lines.items():
            seeds = [curve for (_, run), curve in curves if run == label]
            figure_layout.draw_curve(axes, seeds, styles[name])
        figure_layout.name_panel(axes, title)
        figure_layout.number_rounds(axes, int(results.rounds["round"].max()))
    handles = [
        figure_layout.legend_handle(name, style.color, linestyle=style.line)
        for name, style in styles.items()
    ]
    figure_layout.label_axes(
        figure, grid, "training loss, all clients", handles=handles
    )
    band = figure_layout.band_words(len(results.seeds))
    title = f"{paper.paper} on its paper's synthetic data"
    figure_layout.set_figure_title(figure, f"{title}\n{band}".strip())
    return figure


REPORTS.register("baseline_claims", claims_report)
REPORTS.register("baseline_curves", curves_report)
