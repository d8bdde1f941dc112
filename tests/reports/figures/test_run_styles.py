"""One color for one ordering, which readers with a color deficiency can tell apart."""

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from tff_pmc.experiments.experiment import EXPERIMENTS, settings
from tff_pmc.reports.figures import figure_layout, run_styles

MNIST = ["DS", "LD", "MD", *map(",".join, itertools.permutations(["DS", "LD", "MD"]))]
CELEBA = [name.replace("LD", "CB").replace("MD", "IS") for name in MNIST]
# Linear RGB as it is seen without one kind of cone (Vienot, Brettel and Mollon, 1999).
SEEN = {
    "all cones": np.eye(3),
    "no long ones": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0],
                     [0.00401, -0.00401, 1]],
    "no middle ones": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0],
                       [-0.02234, 0.02234, 1]],
}  # fmt: skip
TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)


def lab(color, seen):
    """CIELAB of a `#rrggbb`, as it is seen."""
    rgb = np.array([int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.array(seen) @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen", list(SEEN))
@pytest.mark.parametrize("names", [MNIST, CELEBA], ids=["MNIST", "CelebA"])
def test_the_nine_orderings_can_be_told_apart(names, seen):
    colors = {name: run_styles.style_of(name).color for name in names}
    assert len(set(colors.values())) == 9
    for name, other in itertools.combinations(names, 2):
        apart = np.linalg.norm(
            lab(colors[name], SEEN[seen]) - lab(colors[other], SEEN[seen])
        )
        assert apart > 10, (name, other, apart)


@pytest.mark.parametrize(
    "name", [n for n, experiment in EXPERIMENTS.items() if experiment.paper]
)
def test_the_algorithms_of_an_experiment_have_distinct_styles(name):
    experiment = EXPERIMENTS[name]
    row_settings = [
        settings(name, row.values) for row in (*experiment.rows, *experiment.on_demand)
    ]
    algorithms = {run_settings.algorithm.name for run_settings in row_settings}
    assert len({run_styles.style_of(algorithm)[:2] for algorithm in algorithms}) == len(
        algorithms
    )


def test_a_style_depends_only_on_the_name():
    for name in ("XX,DS", "DS,LD", "lambda=0.30", "My own", "DS,LD,MD,XX"):
        assert run_styles.style_of(name).color.startswith("#")
    assert run_styles.style_of("DS,LD").line != run_styles.style_of("DS,LD,MD").line
    assert run_styles.style_of("LD,DS,MD").label == "LD,DS,MD"
    assert (
        run_styles.style_of("average[0.5,0.3](DS,LD)").label
        == "average[0.5,0.3](DS,LD)"
    )
    light, dark = (run_styles.style_of(f"lambda={x}").color for x in ("1.00", "0.00"))
    assert lab(light, np.eye(3))[0] > lab(dark, np.eye(3))[0] + 30


def test_orderings_have_one_order_and_algorithms_keep_theirs():
    assert run_styles.sort_names(["DS", *reversed(MNIST[1:])]) == MNIST
    assert run_styles.sort_names(reversed(CELEBA)) == CELEBA
    algorithms = ["Median", "LD", "DS"]
    assert run_styles.sort_names(algorithms) == algorithms


@pytest.mark.parametrize(
    ("label", "lines"),
    [
        ("MD,DS,LD\nbacktracking", ["MD,DS,LD", "backtracking"]),
        ("OWA[most]:DS,LD,MD", ["OWA[most]:DS,LD,MD"]),
        ("average[0.5,0.3,0.2]:MD,DS,LD", ["average[0.5,0.3,0.2]:", "MD,DS,LD"]),
    ],
)
def test_long_titles_of_panels_are_wrapped(label, lines):
    axes = Figure().subplots()
    figure_layout.name_panel(axes, label)
    assert axes.get_title().split("\n") == lines
