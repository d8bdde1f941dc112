"""PMC's Tables 3, 5 and 7 beside the published ones."""

import numpy as np
import pandas as pd
import pytest
from reported import write

from tff_pmc.reports import read_folder
from tff_pmc.reports.papers import pmc_joint_tables

# Two clients with 2 and 3 test examples.
Y, SPLITS = list(range(5)), [0, 2, 5]


def test_independence_by_hand():
    # Margins 4, 6 and 3, 7 of ten; and of twenty in halves.
    squares = np.array([[[1.0, 3.0], [2.0, 4.0]], [[9.0, 1.0], [1.0, 9.0]]])
    expected = [[[1.2, 2.8], [1.8, 4.2]], [[5.0, 5.0], [5.0, 5.0]]]
    np.testing.assert_allclose(pmc_joint_tables.independent(squares), expected)


def test_the_joint_table_beside_the_published_one(tmp_path, write_run):
    write_run(tmp_path / "runs" / "DS", "DS", [[1, 0, 1, 0, 0]], Y, SPLITS)
    write_run(tmp_path / "runs" / "MD", "MD", [[1, 1, 0, 0, 0]], Y, SPLITS)
    runs = read_folder.read_runs(str(tmp_path / "runs"))
    text = write("pmc_table3", runs, tmp_path)
    cells = pd.read_csv(tmp_path / "table3.csv")
    aligned = cells[cells["pairing"] == "aligned"]
    assert set(cells["experiment"]) == {"MW"} and len(cells) == 8
    # Both wrong 2, only MD right 1, only DS right 1, both right 1; margins 3, 2.
    assert aligned["ours"].tolist() == [2, 1, 1, 1]
    assert aligned["independent"].tolist() == pytest.approx([1.8, 1.2, 1.2, 0.8])
    assert aligned["published"].tolist() == [0, 98, 107, 9795]
    expected = pytest.approx([1.0486, 96.9514, 105.9514, 9796.0486])
    assert aligned["published_independent"].tolist() == expected
    assert aligned["difference"].tolist() == [2, -97, -106, -9794]
    shuffled = cells[cells["pairing"] == "shuffled"]["ours"].tolist()
    assert shuffled[2] + shuffled[3] == 2 and shuffled[1] + shuffled[3] == 2
    markdown = (tmp_path / "table3.md").read_text(encoding="utf-8")
    for shown in (text, markdown):
        assert "published pairing is broken" in shown
        assert "Ours are 5 test examples and the paper's 10000" in shown
    assert "| MW | aligned | 2 | 1 | 1 | 1 | 2 | 2 | 1 |" in markdown


def test_a_run_of_ds_alone_is_no_table(write_run, tmp_path):
    write_run(tmp_path / "runs" / "DS", "DS", [[1, 0, 1, 0, 0]], Y, SPLITS)
    runs = read_folder.read_runs(str(tmp_path / "runs"))
    text = write("pmc_table3", runs, tmp_path)
    assert text == "PMC Table 3 is left out: there are no two runs, DS and another"
    assert not (tmp_path / "table3.csv").exists()


@pytest.mark.parametrize(
    "data",
    [
        {"name": "drawn_faces", "origin": {"source": "drawn, no photographs"}},
        {"name": "celeba", "origin": {"source": "INCOMPLETE: 3 of 9 images"}},
        {"name": "celeba", "origin": {"source": "all of CelebA"}},
    ],
)
def test_a_stand_in_is_said_to_be_one_in_every_table_and_figure(
    tmp_path, data, write_run
):
    for name, right in (("DS", [1, 0, 1, 0, 0]), ("IS", [1, 1, 0, 0, 0])):
        write_run(tmp_path / "runs" / name, name, [right], Y, SPLITS, data=data)
    runs = read_folder.read_runs(str(tmp_path / "runs"))
    for report in ("pmc_table6", "pmc_table7", "pmc_figure3"):
        write(report, runs, tmp_path)
    source = data["origin"]["source"]
    for name in ("table6.csv", "table7.csv", "figure3.csv"):
        table = pd.read_csv(tmp_path / name)
        if source == "all of CelebA":
            assert "data" not in table
        else:
            assert set(table["data"]) == {source}
    for name in ("table6.md", "table7.md"):
        markdown = (tmp_path / name).read_text("utf-8")
        assert f"- Runs: {data['name']} ({source}), 2 clients, 1 rounds" in markdown
