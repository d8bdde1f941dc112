"""Rounds to target, gains and tables, on numbers worked by hand."""

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import plots, read, tables
from tff_pmc.reports.rounds_to_target import average, gains, rounds_to_target

# Three rounds of four devices with 10 test examples each.
CORRECT = np.array([[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]])
EXAMPLES = np.array([10, 10, 10, 10])


def test_reached_at_the_ceiling_of_the_share_of_devices():
    """70 %: one device in round 1, two in round 2, all four in round 3."""
    reached = rounds_to_target(CORRECT, EXAMPLES, [70], [10, 25, 30, 50, 60, 75, 90])
    assert [reached[70, p] for p in (10, 25, 30, 50, 60, 75, 90)] == (
        [1, 1, 2, 2, 3, 3, 3]
    )


def test_a_target_is_reached_at_equality_and_may_never_be():
    reached = rounds_to_target(CORRECT, EXAMPLES, [70, 90, 95])
    assert reached[70, 10] == 1  # 7 of 10 is 70 %.
    assert reached[90, 70] == 3  # ceil(2.8) = 3 of the 4 devices.
    assert reached[90, 80] is None  # ceil(3.2) = 4.
    assert reached[95, 10] is None


def test_seven_hundredths_are_not_lost_to_floating_point():
    """29 of 100 at a target of 29 %: 0.29 * 100 is 28.999999999999996."""
    assert rounds_to_target(np.array([[29]]), np.array([100]), [29], [50]) == {
        (29, 50): 1
    }


def test_devices_without_test_examples_never_reach():
    reached = rounds_to_target(np.array([[0, 5]]), np.array([0, 5]), [70], [50, 90])
    assert reached == {(70, 50): 1, (70, 90): None}


def test_gains_and_pmcs_average():
    """Two columns reached, +3 and -1; seven dashes: (3 - 1) / 9, not / 2."""
    shares = range(10, 100, 10)
    base = {(70, p): 10 if p <= 20 else None for p in shares}
    other = {(70, p): {10: 7, 20: 11, 30: 5}.get(p) for p in shares}
    gained = gains(other, base)
    assert [gained[70, p] for p in (10, 20, 30)] == [3, -1, None]
    assert average(gained, 70) == pytest.approx(2 / 9)


def make_run(label, correct):
    rounds = len(correct)
    frame = pd.DataFrame(
        {
            "round": range(1, rounds + 1),
            "accuracy": correct.sum(axis=1) / EXAMPLES.sum(),
            "p10": 0.1,
            "p90": 0.9,
        }
    )
    return read.Run(label, {}, frame, pd.DataFrame(), correct, EXAMPLES)


def test_the_tables_show_rounds_then_gains_over_ds():
    late = CORRECT[[0, 0, 1, 2]]
    runs = [make_run("DS", late), make_run("LD,DS,MD", CORRECT)]
    tidy = tables.tidy_rows(runs, [70, 95])
    assert list(tidy.columns) == [
        "experiment",
        "quantity",
        "target_accuracy_pct",
        "devices",
        "value",
    ]
    gain = tidy[(tidy.quantity == "gain") & (tidy.target_accuracy_pct == 70)]
    # DS needs 1, 1, 3, 3, 3, 4, 4, 4, 4; the other 1, 1, 2, 2, 2, 3, 3, 3, 3.
    assert list(gain.value) == [0, 0, 1, 1, 1, 1, 1, 1, 1, 0.78]
    text = tables.text_tables(tidy)
    rounds_table, gains_table = text.split("\n\n")
    assert "  70 %  DS            1      1      3      3" in rounds_table
    assert gains_table.splitlines()[2].split()[-1] == "0.78"
    assert gains_table.splitlines()[3].split()[3:12] == ["-"] * 9


def test_without_ds_there_are_no_gains():
    tidy = tables.tidy_rows([make_run("LD", CORRECT)], [70])
    assert set(tidy.quantity) == {"rounds"}


def test_the_plot_is_a_png(tmp_path):
    path = tmp_path / "plot.png"
    plots.accuracy_plot([make_run("DS", CORRECT)], str(path), "title")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_broken_run_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        read.read_run(str(tmp_path))
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="run.json is not JSON"):
        read.read_run(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "source", "second_line"),
    [
        ("celeba", "CelebA's files", ""),
        (
            "celeba",
            "CelebA's files, INCOMPLETE: 8 of the 9 images",
            "(CelebA's files, INCOMPLETE: 8 of the 9 images)",
        ),
        ("drawn_faces", "drawn faces, no photographs", "(drawn faces, no photographs)"),
    ],
)
def test_a_plots_title_says_where_the_data_is_not_the_whole_set(
    name, source, second_line
):
    from tff_pmc.experiments import named, suite

    info = {"data": {"name": name, "clients": 3, "origin": {"source": source}}}
    table = pd.DataFrame()
    run = read.Run("DS", info, table, table, CORRECT, EXAMPLES)
    title = suite._title(named.EXPERIMENTS["celeba"], [run])
    assert title.split("\n")[1:] == ([second_line] if second_line else [])
    assert title.startswith("celeba: ")
