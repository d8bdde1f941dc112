"""AdaFed's six figures, on curves worked by hand."""

import dataclasses

import pandas as pd
import pytest
from reported import write

from tff_pmc.reports.papers import adafed_figures


@pytest.fixture
def run_with_f1(system_run, tmp_path):
    """A function that makes a run with F1 of two classes, a tuple for each round."""

    def make(system, f1, experiment="adafed_2", seed=0):
        macro = [sum(pair) / 2 for pair in f1]
        run = system_run(system, macro, experiment=experiment)
        folder = tmp_path / f"{system}_{seed}"
        folder.mkdir()
        table = pd.DataFrame(f1, pd.RangeIndex(1, len(f1) + 1, name="round"))
        rows = table.stack().rename_axis(["round", "class"]).rename("f1")
        rows.to_csv(folder / "class_f1.csv")
        rounds = run.rounds.assign(macro_f1=macro)
        return dataclasses.replace(run, rounds=rounds, path=str(folder))

    return make


def lines_of(axes):
    return {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}


@pytest.mark.parametrize(
    ("number", "experiment", "column"),
    [
        (1, "adafed_1", "accuracy"),
        (2, "adafed_2", "accuracy"),
        (3, "adafed_2", "macro_f1"),
        (5, "adafed_3", "accuracy"),
        (6, "adafed_3", "macro_f1"),
    ],
)
def test_a_figure_draws_its_measure_under_its_number(
    system_run, tmp_path, number, experiment, column
):
    runs = []
    for system, values in {"FedAvg": [0.25, 0.5], "AdaFed": [0.5, 0.75]}.items():
        runs += [system_run(system, [0.125, 0.125], experiment=experiment)]
        runs[-1].rounds[column] = values
    figure = adafed_figures.draw(runs, number)
    (axes,) = figure.axes
    assert lines_of(axes) == {
        "FedAvg": [[1, 0.25], [2, 0.5]],
        "AdaFed": [[1, 0.5], [2, 0.75]],
    }
    title = figure.get_suptitle()
    assert title.startswith(f"AdaFed Figure {number}, simulation {experiment[-1]}: ")
    assert len(title.split("The paper: ")[1]) > 40
    assert write(f"adafed_figure{number}", runs, tmp_path) == ""
    assert (tmp_path / f"figure{number}.png").stat().st_size > 0


def test_figure_4_has_a_panel_for_each_class(run_with_f1):
    runs = [
        run_with_f1("FedAvg", [(0.0, 0.5), (0.25, 0.75)]),
        run_with_f1("AdaFed", [(0.5, 0.5), (0.75, 1.0)]),
    ]
    figure = adafed_figures.draw(runs, 4)
    panels = {axes.get_title(): lines_of(axes) for axes in figure.axes}
    assert panels == {
        "class 0": {"FedAvg": [[1, 0], [2, 0.25]], "AdaFed": [[1, 0.5], [2, 0.75]]},
        "class 1": {"FedAvg": [[1, 0.5], [2, 0.75]], "AdaFed": [[1, 0.5], [2, 1]]},
    }
    assert figure.get_suptitle().startswith("AdaFed Figure 4, simulation 2: ")


@pytest.mark.parametrize("number", [3, 4, 6])
def test_runs_without_f1_of_after_the_round_are_said_to_have_none(
    run_with_f1, tmp_path, number
):
    """Records without `macro_f1` have the F1 of the model that a round began with."""
    run = run_with_f1("AdaFed", [(0.5, 0.5)])
    old = dataclasses.replace(run, rounds=run.rounds.drop(columns="macro_f1"))
    said = write(f"adafed_figure{number}", [old], tmp_path / "out")
    assert said.startswith(f"AdaFed's Figure {number} is not drawn")
    assert not list((tmp_path / "out").iterdir())


def test_of_several_seeds_the_mean_is_drawn_in_a_band(system_run, tmp_path):
    by_seed = {
        s: [system_run("AdaFed", [0.2, high])] for s, high in ((0, 0.4), (1, 0.8))
    }
    figure = adafed_figures.draw([run for (run,) in by_seed.values()], 5)
    (axes,) = figure.axes
    (line,) = axes.get_lines()
    assert line.get_xydata().ravel().tolist() == pytest.approx([1, 0.2, 2, 0.6])
    said = figure.legends[0].get_title().get_text()
    assert said == "line: mean of 2 seeds; band: lowest to highest"
    said = write("adafed_figures", by_seed, tmp_path, baseline="FedAvg")
    assert [path.name for path in tmp_path.iterdir()] == ["figure5.png"]
    assert said == "AdaFed's Figure 6 is not drawn: the runs have no F1 on record"
