"""PMC's Figures 2a, 2b and 3, on runs worked by hand."""

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import REPORTS
from tff_pmc.reports.papers import pmc_figures


def test_the_figure_has_every_round_of_every_run(tmp_path, run_of):
    # Of 10 test examples in two clients. DS is at 80 % in round 2 and goes on.
    ds = run_of("DS", [[1, 2], [3, 5], [2, 2]], [4, 6])
    ld = run_of("LD", [[1, 2], [3, 4], [2, 2]], [4, 6])
    text = REPORTS["pmc_figure2b"]([ds, ld], str(tmp_path))
    table = pd.read_csv(tmp_path / "figure2b.csv")
    by_name = {name: part for name, part in table.groupby("experiment")}
    assert by_name["DS (baseline)"]["accuracy"].tolist() == [0.3, 0.8, 0.4]
    assert by_name["LD"]["accuracy"].tolist() == [0.3, 0.7, 0.4]
    assert by_name["LD"]["round"].tolist() == [1, 2, 3]
    lines = [line.split() for line in text.splitlines()]
    assert ["DS", "0.8000", "2", "0.4000"] in lines
    assert (tmp_path / "figure2b.png").read_bytes().startswith(b"\x89PNG")


def test_every_ordering_is_drawn_over_all_rounds_with_ds_behind(tmp_path):
    curves = {"DS": np.array([0.31, 0.62]), "LD": np.array([0.4, 0.75])}
    figure = pmc_figures._draw(curves, str(tmp_path / "figure.png"), "title")
    (panel,) = figure.axes
    assert [line.get_xydata().tolist() for line in panel.get_lines()] == [
        [[1, 0.31], [2, 0.62]],
        [[1, 0.4], [2, 0.75]],
    ]
    assert panel.get_title() == "LD" and "gray: DS" in figure.get_suptitle()
    assert panel.get_ylim() == (0.3, 0.8)
    alone = pmc_figures._draw({"DS": curves["DS"]}, str(tmp_path / "ds.png"), "title")
    assert len(alone.axes[0].get_lines()) == 1 and "gray" not in alone.get_suptitle()


@pytest.mark.parametrize(
    ("number", "title"),
    [("2a", "MNIST IID"), ("2b", "MNIST non-IID"), ("3", "CelebA")],
)
def test_the_figures_are_named_as_in_the_paper(tmp_path, celeba_runs, number, title):
    report = REPORTS[f"pmc_figure{number}"]
    text = report(celeba_runs[:1], str(tmp_path))
    assert (tmp_path / f"figure{number}.png").exists()
    assert text.startswith(f"PMC Figure {number}: {title}, test accuracy in each round")
    assert ("exchanged" in text) == (number == "3")
    text = report([], str(tmp_path))
    assert text == f"PMC Figure {number} is left out: no run of its orderings."
