"""AdaFed's six figures, on curves worked by hand."""

import numpy as np
import pandas as pd
import pytest
from reported import write
from small_results import RECORDED

from tff_pmc.record.results import Results
from tff_pmc.reports.papers import adafed_figures


def make(curves, number, column="accuracy", f1=None):
    """Runs of label -> a curve a seed; F1 of classes as label -> [rounds, classes]."""
    runs, rounds, classes = [], [], []
    row = {**RECORDED, "experiment": f"adafed_{number}", "note": "", "data_name": "m"}
    row.update(data_source="a test", data_clients=8, data_options={})
    for label, seeds in curves.items():
        for seed, curve in enumerate(seeds):
            key = {"seed": seed, "label": label}
            runs.append({**key, "title": label, "rounds": len(curve), **row})
            numbers = np.arange(1, len(curve) + 1)
            rows = pd.DataFrame({"round": numbers, "accuracy": 0.125}).assign(**key)
            rounds.append(rows.assign(**{column: curve}))
            if f1:
                table = pd.DataFrame(f1[label], pd.Index(numbers, name="round"))
                tidy = table.stack().rename_axis(["round", "class"]).rename("f1")
                classes.append(tidy.reset_index().assign(**key))
    tables = {"rounds": pd.concat(rounds)}
    tables.update({"class_f1": pd.concat(classes)} if f1 else {})
    return Results(pd.DataFrame(runs), tables.get)


def lines_of(axes):
    return {line.get_label(): line.get_xydata().tolist() for line in axes.get_lines()}


@pytest.mark.parametrize(
    ("number", "simulation", "column"),
    [
        (1, 1, "accuracy"),
        (2, 2, "accuracy"),
        (3, 2, "macro_f1"),
        (5, 3, "accuracy"),
        (6, 3, "macro_f1"),
    ],
)
def test_a_figure_draws_its_measure_under_its_number(
    tmp_path, number, simulation, column
):
    runs = make({"FedAvg": [[0.25, 0.5]], "AdaFed": [[0.5, 0.75]]}, simulation, column)
    figure = adafed_figures.draw(runs, number)
    (axes,) = figure.axes
    assert lines_of(axes) == {
        "FedAvg": [[1, 0.25], [2, 0.5]],
        "AdaFed": [[1, 0.5], [2, 0.75]],
    }
    title = figure.get_suptitle()
    assert title.startswith(f"AdaFed Figure {number}, simulation {simulation}: ")
    assert len(title.split("The paper: ")[1]) > 40
    assert write(f"adafed_figure{number}", runs, tmp_path) == ""
    assert (tmp_path / f"figure{number}.png").stat().st_size > 0


F1 = {"FedAvg": [(0.0, 0.5), (0.25, 0.75)], "AdaFed": [(0.5, 0.5), (0.75, 1.0)]}


def test_figure_4_has_a_panel_for_each_class():
    macro = {label: [np.mean(f1, axis=1)] for label, f1 in F1.items()}
    figure = adafed_figures.draw(make(macro, 2, "macro_f1", F1), 4)
    panels = {axes.get_title(): lines_of(axes) for axes in figure.axes}
    assert panels == {
        "class 0": {"FedAvg": [[1, 0], [2, 0.25]], "AdaFed": [[1, 0.5], [2, 0.75]]},
        "class 1": {"FedAvg": [[1, 0.5], [2, 0.75]], "AdaFed": [[1, 0.5], [2, 1]]},
    }
    assert figure.get_suptitle().startswith("AdaFed Figure 4, simulation 2: ")


@pytest.mark.parametrize("number", [3, 4, 6])
def test_runs_without_f1_after_the_round_lack_its_figure(tmp_path, number):
    """Records without `macro_f1` have the F1 of the model that a round began with."""
    runs = make({label: [[0.5, 0.5]] for label in F1}, 2, f1=F1)
    text = write(f"adafed_figure{number}", runs, tmp_path)
    assert text == f"AdaFed's Figure {number} is not drawn: no F1 was recorded."
    assert not list(tmp_path.iterdir())


def test_the_mean_of_several_seeds_is_drawn_in_a_band(tmp_path):
    runs = make({"AdaFed": [[0.2, 0.4], [0.2, 0.8]]}, 3)
    figure = adafed_figures.draw(runs, 5)
    (axes,) = figure.axes
    (line,) = axes.get_lines()
    assert line.get_xydata().ravel().tolist() == pytest.approx([1, 0.2, 2, 0.6])
    words = figure.legends[0].get_title().get_text()
    assert words == "line: mean of 2 seeds; band: lowest to highest"
    assert write("adafed_page", runs, tmp_path) == ""
    assert not list(tmp_path.iterdir())


def test_the_page_has_leads_and_rounds_to_accuracies(tmp_path):
    """Leads .1, .2, .3, .4, .5 and 0 of six rounds."""
    base = [0.3, 0.4, 0.5, 0.5, 0.5, 0.95]
    accuracy = [0.4, 0.6, 0.8, 0.9, 1.0, 0.95]
    write("adafed_page", make({"FedAvg": [base], "AdaFed": [accuracy]}, 1), tmp_path)
    table = pd.read_csv(tmp_path / "adafed.csv").set_index("algorithm")
    reached = table.loc["AdaFed", ["to 80 %", "to 90 %", "to 95 %"]]
    assert reached.tolist() == [3, 4, 5]
    leads = table[["lead 1-5", "lead"]].to_dict("index")
    assert leads == {
        "FedAvg": {"lead 1-5": 0, "lead": 0},
        "AdaFed": {"lead 1-5": 30, "lead": 25},
    }
    assert table.loc["FedAvg", "round 3"] == 0.5 and "macro F1" not in table
