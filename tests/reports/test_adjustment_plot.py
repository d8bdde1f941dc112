"""An adjusted run read back from its folder, and its plot."""

import pytest
from folders import write_folder
from matplotlib import colors

from tff_pmc.record import read
from tff_pmc.reports.adjustment_plot import adjustment_plot

CANDIDATES = """round,trial,ordering,correct,examples,accuracy,kept
1,1,"MD,DS,LD",2,10,0.2,1
2,1,"MD,DS,LD",1,10,0.1,0
2,2,"DS,LD,MD",3,10,0.3,1
3,1,"DS,LD,MD",2,10,0.2,1
3,2,"MD,DS,LD",1,10,0.1,0
3,3,"LD,DS,MD",0,10,0.0,0
"""
ORDERINGS = ["DS≻LD≻MD", "LD≻DS≻MD", "MD≻DS≻LD"]


def make_run(folder, adjustment=None, candidates=CANDIDATES, **settings):
    """A run of three rounds, with 2, 3 and 2 of ten right, read from its folder."""
    settings["priority"] = ["MD", "DS", "LD"]
    if adjustment is not None:
        settings["adjustment"] = adjustment
    info = {"label": "MD,DS,LD", "settings": settings}
    columns = {"accuracy": [0.2, 0.3, 0.2], "ordering": ["MD,DS,LD", *["DS,LD,MD"] * 2]}
    predicted = [[1] * right + [0] * (10 - right) for right in (2, 3, 2)]
    write_folder(folder, info, [1] * 10, [0, 4, 10], predicted, **columns)
    # It was killed before it had written the clients of the last round.
    rows = (folder / "clients.csv").read_text().splitlines(keepends=True)
    (folder / "clients.csv").write_text("".join(rows[:-2]))
    if candidates is not None:
        (folder / "candidates.csv").write_text(candidates)
    return read.read_run(str(folder))


def hexes(colors_):
    return [colors.to_hex(color) for color in colors_]


def test_an_adjusted_run_without_its_candidates_is_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="candidates.csv"):
        make_run(tmp_path / "run", "backtracking", candidates=None)


def test_the_plot_shows_what_was_kept_and_what_was_rejected(tmp_path):
    run = make_run(tmp_path / "run", "backtracking", judge_on="local_validation")
    figure = adjustment_plot(run, title="a title")
    curve, lanes = figure.axes
    assert curve.get_title(loc="left") == "a title"
    assert curve.get_ylabel() == "accuracy of all clients"

    line = curve.get_lines()[0]
    assert line.get_xydata().tolist() == [[1, 0.2], [2, 0.3], [3, 0.2]]
    rejected, kept = curve.collections
    assert rejected.get_offsets().tolist() == [[2, 0.1], [3, 0.1], [3, 0.0]]
    assert len(rejected.get_facecolor()) == 0  # Hollow.
    assert kept.get_offsets().tolist() == line.get_xydata().tolist()

    assert [label.get_text() for label in lanes.get_yticklabels()] == ORDERINGS
    bars, marks = lanes.collections[::2], lanes.collections[1::2]
    starts = [[p.vertices[:, 0].min() for p in bar.get_paths()] for bar in bars]
    assert starts == [[1.5, 2.5], [], [0.5]]
    offsets = [mark.get_offsets().tolist() for mark in marks]
    assert offsets == [[], [[3, 1]], [[2, 2], [3, 2]]]
    # An ordering has one color, in the lanes and in the curve.
    ds, ld, md = (hexes(mark.get_edgecolor())[0] for mark in marks)
    assert len({ds, ld, md}) == 3
    assert hexes(kept.get_facecolor()) == [md, ds, ds]
    assert hexes(rejected.get_edgecolor()) == [md, md, ld]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["kept, on the test examples", "kept", "tested and rejected"]


def test_a_reference_is_a_line_of_its_own(tmp_path):
    reference = make_run(tmp_path / "reference", candidates=None)
    run = make_run(tmp_path / "run", "best_of_all")
    figure = adjustment_plot(run, reference=reference)
    line = figure.axes[0].get_lines()[0]
    assert line.get_xydata().tolist() == [[1, 0.2], [2, 0.3], [3, 0.2]]
    assert line.get_label() == "MD≻DS≻LD, on the test examples"


def test_a_run_of_one_round_that_rejected_nothing(tmp_path):
    first = "".join(CANDIDATES.splitlines(keepends=True)[:2])
    run = make_run(tmp_path / "run", "backtracking", candidates=first)
    figure = adjustment_plot(run)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["kept"]
    ticks = figure.axes[1].get_xticks()
    assert list(ticks) == [1]


def test_a_fixed_run_has_no_such_plot(tmp_path):
    run = make_run(tmp_path / "run", candidates=None)
    with pytest.raises(ValueError, match="MD,DS,LD was fixed"):
        adjustment_plot(run)
