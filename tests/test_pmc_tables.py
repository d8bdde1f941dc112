"""PMC's tables and figures: what the paper printed, fed back, and cases by hand."""

import dataclasses
import itertools
import json
import pathlib

import numpy as np
import pandas as pd
import pytest

from leaf_data import DataError
from tff_pmc.reports import (
    compare,
    pmc_figures,
    pmc_joint_tables,
    pmc_paper,
    pmc_tables,
    published,
    read,
)

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARES = [f"{share}%" for share in range(10, 100, 10)]
MW, CB_BEFORE = "MW", ("CB≻DS≻IS", "CB≻IS≻DS")


def make_run(label, correct, examples):
    info = {"data": {"name": "mnist"}, "settings": {}}
    table = pd.DataFrame()
    return read.Run(label, info, table, table, np.array(correct), np.array(examples))


def from_rounds(label, arrivals, target, rounds):
    """Ten devices; the k-th has `target` % from round `arrivals[k]` on, else nothing.

    NaN: never.
    """
    line = np.array([*arrivals, np.nan])
    hits = np.arange(1, rounds + 1)[:, np.newaxis] >= line
    return make_run(label, hits * target, [100] * 10)


def printed_cells(number):
    """(experiment, target) -> column -> number, straight from the published CSV."""
    table = pd.read_csv(ROOT / "results" / "paper" / f"pmc_table{number}.csv")
    cells = {}
    for row in table.itertuples():
        key = row.experiment, row.target_accuracy_pct
        cells.setdefault(key, {})[row.devices] = row.value
    return cells


def published_as_runs(number, target, rounds, labels=str):
    """The runs that a published table describes; a dash, or a censored run, is NaN."""
    cells = printed_cells(number)
    base = cells["DS (baseline)", target]
    runs = {"DS": from_rounds("DS", _line(base, rounds), target, rounds)}
    for (name, goal), gains in cells.items():
        if goal != target or name == "DS (baseline)" or name in CB_BEFORE:
            continue
        # A run of DS that did not arrive counts as the last round.
        arrivals = {
            share: (rounds if np.isnan(base.get(share, np.nan)) else base[share]) - gain
            for share, gain in gains.items()
            if share in SHARES
        }
        label = labels(name.replace("≻", ",").replace(MW, "MD"))
        runs[label] = from_rounds(label, _line(arrivals, rounds), target, rounds)
    return runs


def _line(by_share, rounds):
    line = np.array([by_share.get(share, np.nan) for share in SHARES], float)
    return np.where(line >= rounds, np.nan, line)  # Censored: it never arrived.


@pytest.mark.parametrize(
    "number, targets, rounds",
    [(2, (70, 80, 90, 95), 101), (4, (70, 80, 90, 95), 301), (6, (70, 80, 85), 100)],
)
def test_the_published_rounds_give_the_published_gains_and_averages(
    number, targets, rounds
):
    cells = printed_cells(number)
    for target in targets:
        runs = published_as_runs(number, target, rounds)
        ours = pmc_tables.tidy_rows(runs, (target,))
        # Tables 2 and 4 have all nine rows; of Table 6 two rows cannot be.
        assert ours["experiment"].nunique() == (7 if number == 6 else 9)
        for row in ours.itertuples():
            if row.devices == "Avg. (text)":
                continue
            printed = cells[row.experiment, target].get(row.devices, np.nan)
            assert row.value == pytest.approx(printed, abs=0.006, nan_ok=True), row


def test_the_averages_in_the_papers_text_are_cbs():
    rows = pmc_paper.published_rows(6)
    text = rows[(rows["devices"] == "Avg. (text)") & (rows["experiment"] == "CB")]
    assert text["value"].round(1).tolist() == [8.6, 11.5, 13.0]


@pytest.mark.parametrize(
    ("experiment", "number", "text", "rows"),
    [
        ("celeba", 6, {70: "8.6", 80: "11.5", 85: "13.0"}, ["CB"]),
        ("mnist_noniid", 4, {90: "2.1"}, ["LD", "MW≻DS≻LD"]),
    ],
)
def test_the_numbers_of_the_papers_text_stand_beside_ours(
    tmp_path, experiment, number, text, rows
):
    """DS arrives in round 6, the others in 4, two of nine shares never: 2 or 14 / 9."""
    slow, fast = 7 * [6] + 2 * [np.nan], 7 * [4] + 2 * [np.nan]
    labels = ["DS", *(row.replace("≻", ",").replace(MW, "MD") for row in rows)]
    runs = {
        label: from_rounds(label, fast if place else slow, 99, 7)
        for place, label in enumerate(labels)
    }
    shown = pmc_tables.write(runs, str(tmp_path), experiment)
    markdown = (tmp_path / f"table{number}.md").read_text(encoding="utf-8")
    part = markdown.split("## Averages that the paper's text names\n\n")[1]
    lines = [line.strip("| ").split(" | ") for line in part.splitlines()[2:]]
    cells = printed_cells(number)
    expected = []
    for row, target in itertools.product(rows, text):
        gains = [cells[row, target].get(share, np.nan) for share in SHARES]
        known = [gain for gain in gains if not np.isnan(gain)]
        whole = experiment == "celeba"  # Of the columns reached, or of nine.
        column, theirs, ours = (
            ("Avg. (text)", sum(known) / len(known), 14 / 7)
            if whole
            else ("Avg.", sum(known) / 9, 14 / 9)
        )
        # The text is its cell in all but Table 4.
        assert (f"{theirs:.1f}" == text[target]) == whole
        difference = ours - float(text[target])
        expected.append(
            [
                row,
                f"{target} %, {column}",
                text[target],
                *(f"{value:.2f}".rstrip("0").rstrip(".") for value in (theirs, ours)),
                f"{difference:.2f}".rstrip("0").rstrip("."),
            ]
        )
    assert sorted(lines) == sorted(expected)
    assert "ours minus the text's" in shown
    csv = pd.read_csv(tmp_path / f"table{number}.csv")
    assert csv["text"].notna().sum() == len(expected)
    note = "The numbers of the paper's text are beside ours in table"
    for name in pmc_paper.PAPER:
        figure = pmc_figures.write(runs, str(tmp_path), name)
        assert (f"{note}{number}.md" in figure) == (name == experiment)


def test_a_run_that_does_not_arrive_is_a_bound_and_both_a_dash():
    # 70 % reached by the devices one by one, in four rounds.
    never = np.nan
    runs = {
        "DS": from_rounds("DS", [2, 3, never] + 6 * [never], 70, 4),
        "LD": from_rounds("LD", [1, never, 2] + 6 * [never], 70, 4),
    }
    # The share of 20 % is there when two devices are: LD in round 2, by its third.
    # 30 % of DS is never there, nor of LD.
    rows = pmc_tables.tidy_rows(runs, (70,)).query("quantity == 'gain'")
    cells = dict(zip(rows["devices"], zip(rows["value"], rows["bound"])))
    assert cells["10%"] == (1, "") and cells["20%"] == (1, "")
    assert np.isnan(cells["30%"][0]) and cells["30%"][1] == ""
    assert cells["Avg."][0] == pytest.approx(2 / 9, abs=0.001)
    assert cells["Avg. (text)"][0] == 1

    slower = {"DS": runs["LD"], "LD": from_rounds("LD", [3] + 8 * [never], 70, 4)}
    rows = pmc_tables.tidy_rows(slower, (70,)).query("quantity == 'gain'")
    cells = dict(zip(rows["devices"], zip(rows["value"], rows["bound"])))
    assert cells["10%"] == (-2, "") and cells["20%"] == (-2, "at most")

    faster = {"DS": slower["LD"], "LD": slower["DS"]}
    rows = pmc_tables.tidy_rows(faster, (70,)).query("quantity == 'gain'")
    cells = dict(zip(rows["devices"], zip(rows["value"], rows["bound"])))
    assert cells["20%"] == (2, "at least")


def test_runs_without_any_gain_have_no_average():
    runs = {name: from_rounds(name, 9 * [np.nan], 70, 3) for name in ("DS", "LD")}
    assert pmc_tables.tidy_rows(runs, (70,))["value"].isna().all()


def test_strictly_above_is_passed_on():
    runs = {"DS": from_rounds("DS", 9 * [1], 70, 2)}  # Exactly 70 % of each.
    assert pmc_tables.tidy_rows(runs, (70,))["value"].tolist() == 9 * [1]
    above = pmc_tables.tidy_rows(runs, (70,), strictly_above=True)
    assert above["value"].isna().all()


def test_the_impossible_cells():
    for number in (2, 4):
        assert pmc_paper.impossible(pmc_paper.published_rows(number)) == set()
    assert pmc_paper.impossible(pmc_paper.published_rows(6)) == {
        ("CB≻DS≻IS", "gain", 70, "50%"),
        ("CB≻DS≻IS", "gain", 70, "60%"),
        ("CB≻IS≻DS", "gain", 70, "40%"),
        ("CB≻IS≻DS", "gain", 70, "50%"),
    }


def test_the_label_note_measures_both_readings():
    def swapped(label):
        return label.replace("IS", "?").replace("CB", "IS").replace("?", "CB")

    theirs = pmc_paper.published_rows(6)
    for labels, sentence in (
        (str, "differs by 0.0 rounds on average"),
        (swapped, "by 0.0 from the one with IS and CB exchanged"),
    ):
        ours = pmc_tables.tidy_rows(published_as_runs(6, 80, 100, labels), (80,))
        (note,) = pmc_paper.exchanged_labels(ours, theirs)
        assert sentence in note and note.count("0.0") == 1


def test_write_marks_differences_bounds_and_misprints(tmp_path):
    runs = {f"runs/{name}": run for name, run in celeba_runs().items()}
    # Neither is a row, so they may be alike, and have other rounds.
    for name in ("runs/more", "runs/again"):
        runs[name] = make_run("DS,CB", [[0] * 10], [100] * 10)
    text = pmc_tables.write(runs, str(tmp_path), "celeba")
    cells = pd.read_csv(tmp_path / "table6.csv")
    cell = cells.query(
        "experiment == 'CB≻DS≻IS' and target_accuracy_pct == 70 and devices == '50%'"
    ).iloc[0]
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
    assert "PMC Table 7 is left out: " in text and "--predictions" in text
    assert not (tmp_path / "table7.csv").exists()


def celeba_runs():
    return {
        "DS": from_rounds("DS", 9 * [3], 85, 5),
        "CB": from_rounds("CB", 9 * [1], 85, 5),
        "CB,DS,IS": from_rounds("CB,DS,IS", 9 * [np.nan], 85, 5),
    }


def test_without_the_published_tables_ours_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "FOLDER", str(tmp_path / "none"))
    text = pmc_tables.write(celeba_runs(), str(tmp_path), "celeba")
    assert "No comparison: no published table" in text and "difference " not in text
    cells = pd.read_csv(tmp_path / "table6.csv")
    assert cells["published"].isna().all() and cells["ours"].notna().any()


def test_no_run_of_ds_leaves_the_tables_out_and_says_so(tmp_path):
    runs = celeba_runs()
    del runs["DS"]
    text = pmc_tables.write(runs, str(tmp_path), "celeba")
    assert text.count("\n") == 0 and "Tables 6 and 7 are left out" in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "other, words",
    [
        (from_rounds("DS", 9 * [1], 70, 5), "both runs of DS"),
        (make_run("IS", np.zeros((5, 10), int), [100] * 9 + [99]), "other clients"),
        (from_rounds("IS", 9 * [1], 70, 6), "has 5 rounds and odd has 6"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(tmp_path, other, words):
    runs = {**celeba_runs(), "odd": other}
    for report in (pmc_tables, pmc_figures):
        with pytest.raises(DataError, match=words) as error:
            report.write(runs, str(tmp_path), "celeba")
        assert "odd" in str(error.value) and "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_independence_by_hand():
    # Margins 4, 6 and 3, 7 of ten; and of twenty in halves.
    squares = np.array([[[1.0, 3.0], [2.0, 4.0]], [[9.0, 1.0], [1.0, 9.0]]])
    expected = [[[1.2, 2.8], [1.8, 4.2]], [[5.0, 5.0], [5.0, 5.0]]]
    np.testing.assert_allclose(pmc_joint_tables.independent(squares), expected)


def write_run(folder, label, right):
    """A run of one round over two clients with 2 and 3 test examples."""
    (folder / "predictions").mkdir(parents=True)
    info = {"settings": {"priority": label.split(",")}, "data": {"name": "mnist"}}
    (folder / "run.json").write_text(json.dumps(info))
    for name in ("rounds", "weights"):
        (folder / f"{name}.csv").write_text("round\n")
    counts = [sum(right[:2]), sum(right[2:])]
    lines = [f"1,{k},{count},{size}" for k, count, size in zip("ab", counts, (2, 3))]
    (folder / "clients.csv").write_text(
        "round,client,correct,examples\n" + "\n".join(lines)
    )
    labels = np.arange(5)
    np.savez(
        folder / "predictions" / "labels.npz",
        y=labels,
        row_splits=[0, 2, 5],
        client_ids=["a", "b"],
    )
    predicted = np.where(right, labels, 9)
    np.savez(folder / "predictions" / "round_0001.npz", predicted=predicted)


def test_the_joint_table_beside_the_published_one(tmp_path):
    write_run(tmp_path / "runs" / "DS", "DS", [1, 0, 1, 0, 0])
    write_run(tmp_path / "runs" / "MD", "MD", [1, 1, 0, 0, 0])
    runs = compare.read_runs(str(tmp_path / "runs"))
    text = pmc_tables.write(runs, str(tmp_path), "mnist_iid")
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


def test_the_figure_ends_where_the_target_is_reached(tmp_path):
    # Of 10 test examples in two clients; 8 of 10 is 80 %, not 0.7999.
    ds = make_run("DS", [[1, 2], [3, 5], [2, 2]], [4, 6])
    ld = make_run("LD", [[1, 2], [3, 4], [2, 2]], [4, 6])
    text = pmc_figures.write({"a": ds, "b": ld}, str(tmp_path), "mnist_noniid")
    table = pd.read_csv(tmp_path / "figure2b.csv")
    by_name = {name: part for name, part in table.groupby("experiment")}
    assert by_name["DS (baseline)"]["accuracy"].tolist() == [0.3, 0.8]
    assert by_name["LD"]["accuracy"].tolist() == [0.3, 0.7, 0.4]
    assert by_name["LD"]["round"].tolist() == [1, 2, 3]
    lines = [line.split() for line in text.splitlines()]
    assert ["DS", "2"] in lines and ["LD", "—"] in lines
    assert (tmp_path / "figure2b.png").read_bytes().startswith(b"\x89PNG")
    text = pmc_figures.write({"a": ds, "b": ld}, str(tmp_path), "mnist_noniid", 70)
    assert ["LD", "2", "+0"] in [line.split() for line in text.splitlines()]


def test_the_figures_target_is_reached_by_the_rule_of_the_runs(tmp_path):
    ds = make_run("DS", [[2, 4], [3, 5], [4, 5]], [4, 6])  # 60, 80 and 90 %.
    for above, last in ((False, 2), (True, 3)):
        text = pmc_figures.write(
            {"a": ds}, str(tmp_path), "mnist_noniid", strictly_above=above
        )
        assert len(pd.read_csv(tmp_path / "figure2b.csv")) == last
        assert ["DS", str(last)] in [line.split() for line in text.splitlines()]
        assert f"--reach={'above' if above else 'at_least'}" in text


def test_the_tables_say_by_which_rule_a_target_is_reached(tmp_path):
    for above, name in ((False, "at_least"), (True, "above")):
        text = pmc_tables.write(
            celeba_runs(), str(tmp_path), "celeba", strictly_above=above
        )
        assert f"(--reach={name})" in text
        assert f"(--reach={name})" in (tmp_path / "table6.md").read_text("utf-8")


def test_the_label_question_is_not_put_to_runs_that_cannot_answer_it(tmp_path):
    """Of the paper's length, and on the whole data, or not."""
    full = published_as_runs(6, 80, 100)
    drawn = {name: on_drawn_faces(run) for name, run in full.items()}
    short = celeba_runs()
    for runs, measured, other_length in (
        (full, True, False),
        (drawn, False, False),
        (short, False, True),
    ):
        text = pmc_tables.write(runs, str(tmp_path), "celeba")
        assert "IS and CB are probably exchanged here" in text
        assert ("A gain of ours differs by" in text) == measured
        said = "Ours end in round 5, the paper's in round 100" in text
        assert said == other_length
    # How the MNIST tables were censored is not known.
    runs = {name: full[name] for name in ("DS",)}
    assert "Ours end" not in pmc_tables.write(runs, str(tmp_path), "mnist_iid")


def on_drawn_faces(run):
    data = {"name": "drawn_faces", "origin": {"source": "drawn, no photographs"}}
    return dataclasses.replace(run, info={**run.info, "data": data})


@pytest.mark.parametrize(
    "data",
    [
        {"name": "drawn_faces", "origin": {"source": "drawn, no photographs"}},
        {"name": "celeba", "origin": {"source": "INCOMPLETE: 3 of 9 images"}},
        {"name": "celeba", "origin": {"source": "all of CelebA"}},
    ],
)
def test_a_stand_in_is_said_to_be_one_in_every_table_and_figure(tmp_path, data):
    for name, right in (("DS", [1, 0, 1, 0, 0]), ("IS", [1, 1, 0, 0, 0])):
        write_run(tmp_path / "runs" / name, name, right)
        info = {"settings": {"priority": [name]}, "data": data}
        (tmp_path / "runs" / name / "run.json").write_text(json.dumps(info))
    runs = compare.read_runs(str(tmp_path / "runs"))
    pmc_tables.write(runs, str(tmp_path), "celeba")
    pmc_figures.write(runs, str(tmp_path), "celeba")
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


def test_the_figures_are_named_as_in_the_paper(tmp_path):
    runs = {"DS": celeba_runs()["DS"]}
    for experiment, name in (
        ("mnist_iid", "2a"),
        ("mnist_noniid", "2b"),
        ("celeba", "3"),
    ):
        text = pmc_figures.write(runs, str(tmp_path), experiment)
        assert (tmp_path / f"figure{name}.png").exists()
        assert ("exchanged" in text) == (experiment == "celeba")
    text = pmc_figures.write({}, str(tmp_path), "celeba")
    assert text == "PMC Figure 3 is left out: no run of its orderings."


@pytest.mark.parametrize(
    "number, experiment", [(2, "mnist_iid"), (4, "mnist_noniid"), (6, "celeba")]
)
def test_a_flag_file_runs_what_the_tables_need(number, experiment):
    path = ROOT / "experiments" / f"pmc_table{number}.flags"
    flags = [line for line in path.read_text().split("\n") if line[:1] == "-"]
    assert {f"--experiment={experiment}", "--priority=all", "--predictions"} < {*flags}
    paper = pmc_paper.PAPER[experiment]
    assert paper.rounds_table == number
    (rounds,) = [int(f.split("=")[1]) for f in flags if f.startswith("--rounds=")]
    # Long enough for the latest round of the published table.
    latest = 0.0
    for (name, target), gains in printed_cells(number).items():
        base = printed_cells(number)["DS (baseline)", target]
        if name != "DS (baseline)":
            latest = np.nanmax([latest, *(base[s] - gains[s] for s in base)])
    assert 80 < latest <= rounds
