"""The map's table, its sentences and its figure, of made-up cells."""

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import when_it_helps


@pytest.fixture
def cells(run_of):
    """Five cells; in each, LD has the best step, and a gain in whole runs."""

    def cell(number, step, gain, p):
        steps = pd.DataFrame(
            {
                "weighting": ["MD", "LD"],
                "accuracy_mean": [step - 1, step],
                "accuracy_interval": [0.5, 0.5],
                "accuracy_p": [1.0, p],
                "total_variation": [0.0, 0.25 + number / 10],
            }
        )
        by_seed = {
            seed: [
                run_of("DS", [[500 + seed]] * 4, [1000]),
                run_of("LD", [[500]] * 2 + [[500 + 10 * gain + 2 * seed]] * 2, [1000]),
            ]
            for seed in range(5)
        }
        return when_it_helps.Cell(
            f"alpha {number % 2}", f"c{number // 2}", steps, by_seed
        )

    steps, gains = [3, 1, 4, 2, 5], [2, 1, 4, 3, -6]
    p = [0.01, 0.2, 0.01, 0.2, 0.01]
    return [cell(n, *values) for n, values in enumerate(zip(steps, gains, p))]


def test_a_row_has_the_best_step_and_the_paired_gain_in_points(cells):
    report = when_it_helps.report(cells)
    first = report.tables["when_it_helps"].iloc[0]
    assert (first["ordering"], first["one_step"]) == ("LD", 3)
    assert first["weight_moved"] == 0.25
    # In the second half the runs differ by 20 + seed of 1,000: 2.0 to 2.4 points.
    assert first["accuracy"] == pytest.approx(2.2)
    half = 2.776 * np.std([2.0, 2.1, 2.2, 2.3, 2.4], ddof=1) / np.sqrt(5)
    assert first["accuracy_interval"] == pytest.approx(half, rel=1e-3)
    assert first["all_rounds"] == pytest.approx((2.2 - 0.2) / 2)
    page = report.pages["when_it_helps"].markdown()
    # Ranks of the steps 3 1 4 2 5, of the gains 3 2 5 4 1: 1 - 6 * 22 / 120.
    assert "one step -0.10 (p = " in page and "(3 of 5 federations)" in page
    assert "federations), whole runs gain in 2 and lose in 1; where" in page
    assert "it does not (2), they gain in 2 and lose in 0" in page
    assert "| alpha 0 | c0 | LD | 0.250 | +3.00\\* | +2.20 ± 0.20\\* |" in page


def test_the_maps_have_a_place_for_each_cell_and_none_for_what_is_missing(cells):
    figure = when_it_helps.report(cells).figures["when_it_helps"]
    *heat, _ = figure.axes
    for axes in heat:
        texts = [text.get_text() for text in axes.texts]
        assert len(texts) == 6 and texts.count("") == 1
    assert "+2.20" in [text.get_text() for text in heat[2].texts]
