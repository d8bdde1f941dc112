"""The color, the line and the name of each ordering and algorithm, in every figure.

An ordering's color follows from its name alone, so that it is the same in all figures.
The hue shows which criterion is first: green for the size (DS) before another, blue for
the second criterion of a data set (LD, CB), red and purple for the third (MD, IS). The
baselines are gray. The colors are distinct with the common color deficiencies (a
test computes this); most are of Paul Tol's muted scheme.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple, Union

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex

from tff_pmc.escape import single_line
from tff_pmc.record.results import BASELINE
from tff_pmc.reports.statistics.row_titles import row_title

BASELINES = (BASELINE, "FedAvg", "Weighted mean")
"""The baselines: averaging by size, under its three names."""

LAMBDA = "lambda="
"""How the candidates of Dual's search begin; their colors range from dark to light."""

SOLID, DASHED, DOTTED = "-", (0, (4, 1.6)), (0, (1, 1.4))
DASH_DOT = (0, (5, 1.5, 1, 1.5))

Line = Union[str, tuple[int, tuple[float, ...]]]
"""A line style, as matplotlib takes it."""


BEHIND: dict[str, Any] = {"linewidth": 3.0, "alpha": 0.45}
"""How a baseline is drawn behind others: it is also seen where a curve lies on it."""


class Style(NamedTuple):
    """How an ordering or algorithm is drawn.

    Attributes:
        color: as `#rrggbb`.
        line: the line style, as matplotlib takes it.
        label: its name for a figure, such as `LD,DS,MD`.
    """

    color: str
    line: Line
    label: str


_GRAY = "#6b6b6b"
# By the place of the first two criteria among those of the data set.
_ORDERINGS = {
    (0,): _GRAY,
    (0, 1): "#117733",
    (0, 2): "#999933",
    (1,): "#332288",
    (1, 0): "#4477aa",
    (1, 2): "#66bbdd",
    (2,): "#882255",
    (2, 0): "#dd6655",
    (2, 1): "#aa4499",
}
_CRITERION_INDICES = {"DS": 0, "LD": 1, "CB": 1, "MD": 2, "IS": 2, "MD_layers": 2}
_ALGORITHMS: dict[str, tuple[str, Line]] = {
    "FedAvg": (_GRAY, DASHED),
    "Weighted mean": (_GRAY, DASHED),
    "AdaFed": ("#882255", SOLID),
    "AdaFed, weights only": ("#4477aa", SOLID),
    "AdaFed, times samples": ("#dd6655", SOLID),
    "AdaFed, weights only, times samples": ("#332288", SOLID),
    "Dual-criterion": ("#882255", SOLID),
    "Simple average": ("#66bbdd", SOLID),
    "Median": ("#117733", SOLID),
    "Momentum": ("#999933", SOLID),
    "Personalized": ("#aa4499", SOLID),
    "Laplace": ("#332288", DOTTED),
    "Quantized": ("#4477aa", SOLID),
    "Quantized updates": ("#dd6655", SOLID),
    "Weighted average": ("#4477aa", DASH_DOT),
    "OWA": ("#117733", DASH_DOT),
    "Choquet": ("#aa4499", DASH_DOT),
    "Product": ("#999933", DASH_DOT),
    "FedProx": ("#4477aa", SOLID),
    "q-FFL": ("#882255", SOLID),
    "SCAFFOLD": ("#117733", SOLID),
    "FedDyn": ("#dd6655", SOLID),
    "FedNova": ("#999933", SOLID),
    "AFL": ("#aa4499", SOLID),
    "TERM": ("#332288", SOLID),
}
_OTHER_COLORS = sorted({*_ORDERINGS.values()} - {_GRAY})
_OTHER_LINES: tuple[Line, ...] = (DASH_DOT, DOTTED, SOLID, DASHED)


def style_of(name: str) -> Style:
    """Returns the style of an ordering, `LD,DS,MD`, or of an algorithm, `FedAvg`.

    A name that is not known here, of a plugin's criterion for example, has a color and
    line that follow from its letters.
    """
    if name in _ALGORITHMS:
        return Style(*_ALGORITHMS[name], name)
    if name.startswith(LAMBDA):
        share = np.clip(pd.to_numeric(name[len(LAMBDA) :], errors="coerce"), 0, 1)
        # The lightest tenth cannot be seen on white.
        color = to_hex(colormaps["cividis"](0.9 * np.nan_to_num(share)))
        return Style(str(color), SOLID, figure_text(name))
    label = figure_text(row_title(name))
    members = name.split(",")
    places = tuple(_CRITERION_INDICES.get(code, -1) for code in members[:2])
    if -1 in places or places not in _ORDERINGS or len(members) > 3:
        number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
        color = _OTHER_COLORS[number % len(_OTHER_COLORS)]
        line = _OTHER_LINES[number // len(_OTHER_COLORS) % len(_OTHER_LINES)]
        return Style(color, line, label)
    # DS,LD differs from DS,LD,MD in the line alone: they are nearly one algorithm.
    return Style(_ORDERINGS[places], DASH_DOT if len(members) == 2 else SOLID, label)


def styles_of(names: Iterable[str]) -> dict[str, Style]:
    """Returns the styles of names that are drawn together: no two have the same.

    A name whose style an earlier one has gets the next that is free.
    """
    styles: dict[str, Style] = {}
    free = [(color, line) for line in _OTHER_LINES for color in _OTHER_COLORS]
    for name in names:
        style = style_of(name)
        used = {(other.color, other.line) for other in styles.values()}
        if (style.color, style.line) in used:
            color, line = next((look for look in free if look not in used), free[0])
            style = style._replace(color=color, line=line)
        styles[name] = style
    return styles


def sort_names(names: Iterable[str]) -> list[str]:
    """Returns orderings in the order that all figures have; other names as they are.

    Single criteria come first, and each criterion has its place in the data set.
    """
    in_given_order = list(names)
    indices_by_name = {
        n: [_CRITERION_INDICES.get(code, -1) for code in n.split(",")]
        for n in in_given_order
    }
    if any(-1 in indices for indices in indices_by_name.values()):
        return in_given_order
    return sorted(
        in_given_order,
        key=lambda name: (len(indices_by_name[name]) > 1, indices_by_name[name]),
    )


def figure_text(text: str) -> str:
    """Returns a name as a text of matplotlib's, such as a label or part of a title.

    A name between dollar signs is not read as a formula, and one that begins with an
    underscore appears in the legend. Two such texts may be joined.
    """
    line = single_line(text).replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line
