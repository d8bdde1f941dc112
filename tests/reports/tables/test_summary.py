"""The last and the best round of runs: rows, table, file and plot, by hand."""

import numpy as np
import pytest
from small_results import join_results, of_seeds, results_of_seed, with_losses

from tff_pmc.record.results import Results
from tff_pmc.reports.figures import fairness_plot
from tff_pmc.reports.statistics import run_summary
from tff_pmc.reports.tables import results_table, summary

# Three rounds of four devices, of which the third has no test examples.
EXAMPLES = [10, 10, 0, 20]
FALLING = [[1, 1, 0, 2], [9, 5, 0, 20], [9, 6, 0, 18]]
RISING = [[0, 0, 0, 0], [1, 1, 0, 2], [8, 8, 0, 16]]


@pytest.fixture
def results():
    return results_of_seed({"DS": FALLING, "LD,DS": RISING}, EXAMPLES)


def test_the_table_has_the_last_and_the_best_round_or_says_they_are_the_same(results):
    title, head, *lines, note = summary.report(results).text.splitlines()
    assert "chosen on these test examples" in note
    assert title.endswith("(3 of 4, who have tests)")
    assert head.split()[0] == "round" and "mean of worst tenth" in head
    words = [line.split() for line in lines]
    assert words[0][:5] == ["FedAvg", "(DS)", "last", "3", "0.8250"]
    assert words[1][:5] == ["FedAvg", "(DS)", "best", "2", "0.8500"]
    assert words[2][:6] == ["LD,DS", "last", "and", "best", "3", "0.8000"]
    assert words[2][6:] == ["0.8000", "0.8000", "0.0000", "1.0000"]
    assert len(lines) == 3


def test_the_last_round_is_the_last_that_was_tested():
    """Every third of seven, and the first: the others have no clients."""
    whole = results_of_seed(
        {"DS": [[k, k] for k in range(7)]}, [10, 10], evaluate_every=3
    )
    tested = whole.clients["round"].isin([1, 3, 6])
    tables = {"rounds": whole.rounds, "clients": whole.clients[tested]}
    tables["rounds"].loc[6, "correct"] = 10  # As in the sixth.
    results = Results(whole.runs, tables.get)
    assert run_summary.last_and_best(results)["round"].tolist() == [6, 6]


def test_the_plot_has_each_figure_over_the_rounds(results):
    figure = fairness_plot.fairness_plot(results, title="title")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [spread.title for spread in run_summary.SPREAD.values()]
    worst = figure.axes[1].get_lines()
    assert [line.get_label() for line in worst] == ["FedAvg (DS)", "LD,DS"]
    assert worst[0].get_xydata().tolist() == [[1, 0.1], [2, 0.5], [3, 0.6]]
    assert worst[1].get_xydata().tolist() == [[1, 0.0], [2, 0.1], [3, 0.8]]


def test_each_of_many_runs_has_a_panel_with_the_baseline():
    """By hand: of one client with one right of ten each round, all figures are it."""
    labels = ("DS", "LD", "MD", "LD,DS,MD", "LD,DS,MD (backtracking)")
    counts = {label: [[k], [2 * k + 1]] for k, label in enumerate(labels)}
    results = results_of_seed(counts, [10])
    figure = fairness_plot.fairness_plot(results, title="title")
    assert [axes.get_title() for axes in figure.axes] == [
        *("LD", "MD", "LD,DS,MD", "LD,DS,MD\nbacktracking")
    ]
    for place, axes in enumerate(figure.axes, 1):
        base, *curves = [list(line.get_ydata()) for line in axes.get_lines()]
        assert base == [0, 0]
        # Points from DS, which has 0 and 1 right; two figures.
        assert curves == 2 * [pytest.approx([10 * place, 20 * place])]
        low, high = axes.get_ylim()
        assert -5 < low < 0 and 80 < high < 85
    assert "points from FedAvg (DS)" in figure.get_supylabel()
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["10th percentile", "mean of worst tenth", "FedAvg (DS)"]
    without = {"LD,MD": [[1], [3]], **{k: v for k, v in counts.items() if k != "DS"}}
    alone = fairness_plot.fairness_plot(results_of_seed(without, [10]), title="title")
    (first, _), *_ = (axes.get_lines() for axes in alone.axes)
    assert list(first.get_ydata()) == [0.1, 0.3]  # Without DS as they are.
    assert alone.get_supylabel() == "accuracy"


# Of two devices with ten examples each: seed -> label -> [rounds, devices].
OVER_SEEDS = {
    0: {"DS": [[1, 3], [4, 6]], "LD": [[2, 2], [5, 9]]},
    1: {"DS": [[2, 4], [5, 5], [9, 9]], "LD": [[3, 7], [1, 9], [9, 9]]},
}


def band_of(collection):
    """Returns the lowest and the highest value of a band in each round."""
    (path,) = collection.get_paths()
    points = path.vertices
    rounds = sorted({*points[:, 0]})
    return [
        [limit(points[points[:, 0] == x, 1]) for x in rounds] for limit in (min, max)
    ]


def test_the_plot_of_several_seeds_has_means_in_bands():
    """It ends with the seed that ended first: of two devices the lowest is worst."""
    results = of_seeds(OVER_SEEDS, [10, 10])
    figure = summary.fairness(results).figures["fairness"]
    worst, deviation = figure.axes[1], figure.axes[2]
    for place, label in enumerate(("DS", "LD")):
        counts = np.array([OVER_SEEDS[seed][label][:2] for seed in (0, 1)]) / 10
        for axes, values in ((worst, counts.min(-1)), (deviation, counts.std(-1))):
            line = axes.get_lines()[place]
            assert line.get_xdata().tolist() == [1, 2]
            np.testing.assert_allclose(line.get_ydata(), values.mean(0))
            np.testing.assert_allclose(
                band_of(axes.collections[place]), [values.min(0), values.max(0)]
            )
    assert worst.get_xlim()[1] < 2.1
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "line: mean of 2 seeds\n" + (
        "band: lowest to highest"
    )


def test_differences_over_seeds_are_paired_by_seed():
    counts = {
        seed: {
            **by_label,
            **{label: by_label["LD"] for label in ("MD", "LD,MD", "MD,LD")},
        }
        for seed, by_label in OVER_SEEDS.items()
    }
    figure = fairness_plot.fairness_plot(of_seeds(counts, [10, 10]))
    assert len(figure.axes) == 4
    by_seed = [
        [np.array(OVER_SEEDS[seed][label][:2]).min(-1) * 10 for seed in (0, 1)]
        for label in ("LD", "DS")
    ]
    differences = np.subtract(*by_seed)
    for axes in figure.axes:
        _, _, worst_tenth = axes.get_lines()
        np.testing.assert_allclose(worst_tenth.get_ydata(), differences.mean(0))
        np.testing.assert_allclose(
            band_of(axes.collections[1]), [differences.min(0), differences.max(0)]
        )
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("10th percentile", "mean of worst tenth", "FedAvg (DS)"),
        "line: mean of 2 seeds\nband: lowest to highest",
    ]


def test_over_seeds_a_run_has_its_mean_and_its_spread():
    """Last rounds of .5, .7 and .9; the numbers of the file are in the kept ones."""
    rounds = {"clients": 5, "excluded": [0, 2]}
    results = of_seeds(
        {
            seed: {"DS": [[0, 0], last]}
            for seed, last in ((7, [4, 6]), (8, [6, 8]), (9, [9, 9]))
        },
        [10, 10],
        rounds=rounds,
    )
    report = summary.report(results)
    assert report.text.startswith("# Over 3 seeds")
    assert "DS: 6 of 30 trainings were excluded, as not finite or" in report.text
    assert report.tables["seeds"]["standard_deviation"][1] == pytest.approx(0.2)
    # t of two degrees of freedom is 4.303: 4.303 * .2 / sqrt(3).
    cell = report.pages["seeds"].blocks[-1].grid[1][1]
    assert cell == "0.700 ± 0.497 (0.500 to 0.900)"
    assert not results_table.report(results).tables


def test_the_clients_that_stragglers_excludes_are_named():
    results = results_of_seed(
        {"DS": FALLING, "LD,DS": RISING, "MD": FALLING},
        EXAMPLES,
        runs={"stragglers": [0.5, np.nan, 0.5]},
        rounds={"clients": 4, "excluded": [2] * 6 + [0] * 3},
    )
    *_, first, second = summary.report(results).text.splitlines()
    words = "6 of 12 trainings were excluded, as {}not finite or above"
    assert first.startswith(f"DS: {words.format('stragglers, ')}")
    assert second.startswith(f"LD,DS: {words.format('')}")


def test_over_five_seeds_a_cell_has_the_mean_its_interval_and_the_range():
    """Of 50, 60, 70, 80, 90: the deviation is 15.81 and t is 2.7764, so 19.63.

    Of both devices one counts as half: 60 % is reached in rounds 2 and 1 and so on,
    90 % under one seed alone.
    """
    by_seed = {
        seed: {"DS": [[first] * 2, [last] * 2]}
        for seed, (first, last) in enumerate([(6, 5), (0, 6), (0, 7), (7, 8), (6, 9)])
    }
    report = summary.report(of_seeds(by_seed, [10, 10], targets=(60, 90)))
    rows = report.tables["seeds"].set_index("quantity")
    figures = rows.loc["last_accuracy", ["mean", "interval", "lowest", "highest"]]
    assert figures.tolist() == pytest.approx([0.7, 0.19632, 0.5, 0.9], abs=1e-5)
    assert rows.loc["rounds_to_90", "seeds"] == 1
    assert rows.loc["rounds_to_90", ["mean", "interval"]].isna().all()
    _, _, accuracy, heading, rounds = report.pages["seeds"].blocks
    assert accuracy.grid[1][:2] == ["FedAvg (DS)", "0.700 ± 0.196 (0.500 to 0.900)"]
    assert "half of the devices" in heading.text
    # 1, 2, 2, 1, 1: the deviation is 0.5477, so 0.680.
    assert rounds.grid == [
        ["", "60 %", "90 %"],
        ["FedAvg (DS)", *("1.4 ± 0.7 (1 to 2)", "1 of 5 seeds (2 to 2)")],
    ]


def test_the_lowest_loss_is_the_best_and_the_highest_are_the_worst():
    """Sums of three rounds; the last client has no examples."""
    sums = {"DS": [[8, 3, 0], [2, 1, 0], [4, 2, 0]]}
    results = with_losses(sums, [4, 1, 0])
    last_and_best = run_summary.last_and_best(results)
    assert last_and_best["round"].tolist() == [3, 2]
    assert last_and_best["test_loss"].tolist() == pytest.approx([6 / 5, 3 / 5])
    # The clients' means are 1 and 2 in the end.
    assert last_and_best["p90"].iloc[0] == pytest.approx(1.9)
    assert last_and_best["worst_tenth"].iloc[0] == 2
    rows = results_table.report(results).tables["results"]
    assert "last_test_loss" in set(rows["quantity"])
    assert "Loss over all test examples" in summary.report(results).text
    joined = join_results([results, with_losses(sums, [4, 1, 0], seed=1)])
    seeds = summary.report(joined).tables["seeds"].set_index("quantity")
    assert seeds.loc["best_test_loss", "mean"] == pytest.approx(0.6)


def test_a_loss_that_is_not_finite_is_never_the_best():
    results = with_losses({"DS": [[float("inf")], [float("nan")], [6]]}, [5])
    assert run_summary.last_and_best(results)["round"].tolist() == [3, 3]


def test_accuracies_and_losses_cannot_be_compared(fails):
    mixed = join_results(
        [results_of_seed({"LD": [[1]]}, [2]), with_losses({"DS": [[1]]}, [2])]
    )
    fails(lambda: summary.report(mixed), "some runs have accuracies and others losses")
