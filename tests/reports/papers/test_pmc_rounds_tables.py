"""PMC's Tables 2, 4 and 6: what the paper printed, fed back, and cases by hand."""

import dataclasses
import pathlib

import numpy as np
import pandas as pd
import pytest
from reported import write

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import pmc_paper, pmc_rounds_tables

ROOT = pathlib.Path(__file__).resolve().parents[3]


def gains(runs):
    """column -> (gain, bound) of the one ordering beside DS, at 70 %."""
    rows = pmc_rounds_tables.tidy_rows(runs, (70,)).query("quantity == 'gain'")
    return dict(zip(rows["devices"], zip(rows["value"], rows["bound"])))


def test_a_run_that_does_not_arrive_is_a_bound_and_both_a_dash(from_rounds):
    # 70 % reached by the devices one by one, in four rounds.
    never = np.nan
    first = from_rounds("DS", [2, 3, never] + 6 * [never], 70, 4)
    # The share of 20 % is there when two devices are: LD in round 2, by its third.
    # 30 % of DS is never there, nor of LD.
    other = from_rounds("LD", [1, never, 2] + 6 * [never], 70, 4)
    found = gains({"DS": first, "LD": other})
    assert found["10%"] == (1, "") and found["20%"] == (1, "")
    assert np.isnan(found["30%"][0]) and found["30%"][1] == ""
    assert found["Avg."][0] == pytest.approx(2 / 9, abs=0.001)
    assert found["Avg. (text)"][0] == 1

    slow = from_rounds("LD", [3] + 8 * [never], 70, 4)
    found = gains({"DS": other, "LD": slow})
    assert found["10%"] == (-2, "") and found["20%"] == (-2, "at most")
    assert gains({"DS": slow, "LD": other})["20%"] == (2, "at least")


def test_the_label_note_measures_both_readings(published_as_runs):
    def swapped(label):
        return label.replace("IS", "?").replace("CB", "IS").replace("?", "CB")

    theirs = pmc_paper.published_rows(6)
    for labels, sentence in (
        (str, "differs by 0.0 rounds on average"),
        (swapped, "by 0.0 from the one with IS and CB exchanged"),
    ):
        runs = {run.label: run for run in published_as_runs(6, 80, 100, labels)}
        ours = pmc_rounds_tables.tidy_rows(runs, (80,))
        (note,) = pmc_paper.exchanged_labels(ours, theirs)
        assert sentence in note and note.count("0.0") == 1


def test_write_marks_differences_bounds_and_misprints(tmp_path, run_of, celeba_runs):
    # Neither is a row, so they may be alike, and have other rounds.
    more = [run_of("DS,CB", [[0] * 10], [100] * 10) for _ in range(2)]
    text = write("pmc_table6", [*celeba_runs, *more], tmp_path)
    cells = pd.read_csv(tmp_path / "table6.csv")
    where = "experiment == 'CB≻DS≻IS' and target_accuracy_pct == 70"
    cell = cells.query(f"{where} and devices == '50%'").iloc[0]
    # DS in round 3, CB,DS,IS in none of 5; the paper prints 6.
    assert (cell["ours"], cell["printed"], cell["published"]) == (-2, "6", 6)
    assert (cell["difference"], cell["bound"]) == (-8, "at most")
    assert cell["impossible"] == 1 and cells["impossible"].sum() == 2
    markdown = (tmp_path / "table6.md").read_text(encoding="utf-8")
    for shown in (text, markdown):
        for part in ("≤-2", "6†", "-8", "8.62", "8.6, 11.5 and 13", "exchanged"):
            assert part in shown
    assert "No run, so no row: IS; DS,CB,IS; DS,IS,CB; IS,DS,CB; " in text
    assert "Runs that are no row of this table: DS,CB; DS,CB." in text
    assert "| DS (baseline) | rounds, ours | 3 |" in markdown
    text = write("pmc_table7", celeba_runs, tmp_path)
    assert "PMC Table 7 is left out: " in text and "--predictions" in text
    assert not (tmp_path / "table7.csv").exists()


@pytest.mark.parametrize("report", ["pmc_table6", "pmc_table7", "pmc_figure3"])
def test_runs_that_cannot_be_compared_are_refused(
    report, tmp_path, celeba_runs, from_rounds, run_of
):
    for other, words in (
        (from_rounds("DS", 9 * [1], 70, 5), "both runs of DS"),
        (run_of("IS", np.zeros((5, 10), int), [100] * 9 + [99]), "other clients"),
        (from_rounds("IS", 9 * [1], 70, 6), "has 5 rounds and odd has 6"),
    ):
        runs = [*celeba_runs, dataclasses.replace(other, path="odd")]
        with pytest.raises(RecordError, match=words) as error:
            write(report, runs, tmp_path)
        assert "odd" in str(error.value) and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_the_label_question_is_not_put_to_runs_that_cannot_answer_it(
    tmp_path, published_as_runs, celeba_runs
):
    """Of the paper's length, and on the whole data, or not."""
    full = published_as_runs(6, 80, 100)
    data = {"name": "drawn_faces", "origin": {"source": "drawn, no photographs"}}
    drawn = [dataclasses.replace(r, info={**r.info, "data": data}) for r in full]
    for runs, measured, other_length in (
        (full, True, False),
        (drawn, False, False),
        (celeba_runs, False, True),
    ):
        text = write("pmc_table6", runs, tmp_path)
        assert "IS and CB are probably exchanged here" in text
        assert ("A gain of ours differs by" in text) == measured
        said = "Ours end in round 5, the paper's in round 100" in text
        assert said == other_length
    # MNIST's tables have no run that did not arrive in its 1,000 rounds.
    assert "Ours end" not in write("pmc_table2", full[:1], tmp_path)


@pytest.mark.parametrize(
    "number, experiment", [(2, "mnist_iid"), (4, "mnist_noniid"), (6, "celeba")]
)
def test_a_flag_file_runs_what_the_tables_need(number, experiment, page):
    path = ROOT / "experiments" / f"pmc_table{number}.flags"
    flags = [line for line in path.read_text().split("\n") if line[:1] == "-"]
    assert {f"--experiment={experiment}", "--priority=all", "--predictions"} < {*flags}
    paper = pmc_paper.PAPER[experiment]
    assert paper.rounds_table == number
    (rounds,) = [int(f.split("=")[1]) for f in flags if f.startswith("--rounds=")]
    # Long enough for the latest round of the published table.
    latest = 0.0
    for (name, target), gains in page.by_line(number).items():
        base = page.by_line(number)["DS (baseline)", target]
        if name != "DS (baseline)":
            latest = np.nanmax([latest, *(base[s] - gains[s] for s in base)])
    assert 80 < latest <= rounds
