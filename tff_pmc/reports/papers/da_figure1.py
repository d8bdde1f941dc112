"""DA's Figure 1: an illustration of the online adjustment, with dummy values.

The paper says of its figure that its values are dummies, and prints none of them. Its
text names what is to be seen: one parametrization is kept until its point of round 8 is
lower than that of the round before; then the round is repeated with the other
configurations until one is higher; in round 10 none is, and the best of the bad is
taken. The values below are made up to show that, and so are those of the paper. What a
real search did is another plot, `adjustment_RUN.png` (`adjustment_plot`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.read import Run
from tff_pmc.reports import REPORTS, Report, figures

TITLE = "DA Figure 1: online adjustment, an illustration with dummy values"
NAME = "figure1_dummy_values"
COLORS = {"blue": "#332288", "orange": "#e69f00", "green": "#117733"}
"""The three configurations that the text names, by their colors."""

# Configuration and made-up accuracy of what each round tests, in order; the last but in
# round 10 is kept. There it is the best of them, as none is as good as round 9's.
_TESTED = {
    1: [("blue", 0.30)],
    2: [("blue", 0.41)],
    3: [("blue", 0.49)],
    4: [("blue", 0.55)],
    5: [("blue", 0.60)],
    6: [("blue", 0.64)],
    7: [("blue", 0.67)],
    8: [("blue", 0.62), ("orange", 0.69)],
    9: [("orange", 0.72)],
    10: [("orange", 0.64), ("blue", 0.61), ("green", 0.69)],
    11: [("green", 0.73)],
    12: [("green", 0.75)],
}


def dummy_values() -> pd.DataFrame:
    """Returns the made-up tests: round, configuration, accuracy and kept (1 or 0)."""
    rows = [
        (number, name, accuracy, int(place == len(tested) - 1))
        for number, tested in _TESTED.items()
        for place, (name, accuracy) in enumerate(tested)
    ]
    return pd.DataFrame(rows, columns=["round", "configuration", "accuracy", "kept"])


def report(runs: Sequence[Run]) -> Report:
    """Returns `figure1_dummy_values.png`, which shows none of the runs."""
    text = f"{TITLE}: {NAME}.png. It shows no run, neither the paper's nor ours."
    return Report(text, figures={NAME: draw()})


@figures.styled
def draw() -> Figure:
    """Returns the figure."""
    tests = dummy_values()
    kept = tests[tests["kept"] == 1]
    figure, axes = figures.single()
    axes.plot(kept["round"], kept["accuracy"], color="#333333")
    for name, color in COLORS.items():
        own = tests[tests["configuration"] == name]
        for chosen, part in own.groupby("kept"):
            axes.scatter(
                part["round"],
                part["accuracy"],
                s=30,
                facecolors=color if chosen else "none",
                edgecolors=color,
                zorder=3,
                label=f"{name}, {'kept' if chosen else 'tested and rejected'}",
            )
    axes.set_xlabel(figures.ROUNDS)
    axes.set_ylabel("accuracy (dummy values)")
    axes.set_yticklabels([])
    figures.round_axis(axes, int(tests["round"].max()))
    axes.set_title(TITLE, loc="left")
    axes.legend(loc="lower right")
    return figure


REPORTS.register("da_figure1", report)
