"""The page and the table of claims, of claims and of kept runs."""

import io
import pathlib
import re

import pandas as pd
import pytest
from papers.claim_runs import kept, read_once, reproduced, run

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import claims_page
from tff_pmc.reports.papers import claim_registry, paper_runs
from tff_pmc.reports.papers.claim_measures import rounds_saved
from tff_pmc.reports.papers.claim_registry import Claim, claims
from tff_pmc.reports.papers.claims.pmc_claims import AT_70_AND_80
from tff_pmc.reports.papers.judging import Difference, Differences
from tff_pmc.reports.papers.paper_experiments import command
from tff_pmc.reports.statistics import paired_statistics, published

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOW = (
    "`.venv/bin/python run_experiments.py "
    "--flagfile=experiments/pmc_table2.flags --seeds=0,1,2,3,4 --data_dir=DIR` "
    "(about 22 hours of one core)"
)
SHORT, UNTESTABLE = "not run far enough", "cannot be tested here"


def differences(runs):
    """DS, which is 4 under each seed, minus 1."""
    used = runs.select_comparable(["DS"])
    used = used[used["label"] == "DS"]
    values, base = [4.0] * len(used), [1.0] * len(used)
    return Differences([Difference("a", values, base, runs=used)])


def claim_without_runs(runs):
    """A claim whose runs are not there."""
    raise RecordError(f"no LD under {len(runs.rows)} runs")


def judged(differences, seeds, experiment="mnist_iid", **row):
    """A claim's row, judged by DS under seeds; LD, under another seed, is there."""
    runs = [run("DS", seed, experiment=experiment, **row) for seed in seeds]
    runs += [run("LD", 9, experiment=experiment, **row)] if seeds else []
    claim = Claim("PMC-1", "section 1", "a | b (Here: c.)", [experiment], differences)
    table = claims_page.claims_table([claim], kept(runs))
    return tuple(table.iloc[0].drop("folders"))[4:]


FIVE = (4, 3, 5, 6, 7)
BELOW = "2 seeds; below five nothing is decided"


@pytest.mark.parametrize(
    ("differences_of", "seeds", "row"),
    [
        (
            differences,
            FIVE,
            ("a +3.0 ± 0.0", "mnist_iid: 5 runs, seeds 3 to 7", "reproduced", "", ""),
        ),
        (
            differences,
            (4, 3),
            ("a +3.0", "mnist_iid: 2 runs, seeds 3, 4", SHORT, BELOW, HOW),
        ),
        (
            claim_without_runs,
            (4, 3),
            (
                *("", "mnist_iid: 3 runs, seeds 3, 4, 9", SHORT),
                *("no LD under 3 runs", HOW),
            ),
        ),
        # Without runs nothing is judged.
        (differences, (), ("", "", SHORT, "no run is kept", HOW)),
    ],
)
def test_a_claim_has_its_number_runs_verdict_why_and_what_decides_it(
    differences_of, seeds, row
):
    assert judged(differences_of, seeds)[:5] == row


@pytest.mark.parametrize(
    ("seeds", "runs"), [((), ""), ((4, 3), "celeba: 3 runs, seeds 3, 4, 9")]
)
def test_a_claim_on_unavailable_data_is_not_tested_despite_kept_runs(seeds, runs):
    ours, kept, verdict, why, how, *_ = judged(differences, seeds, "celeba")
    assert (ours, kept, verdict) == ("", runs, UNTESTABLE)
    assert why.startswith("it needs CelebA's photographs") and "table6" in how


@pytest.mark.parametrize(
    "other", [{"normalization": "max"}, {"protocol": "x"}, {"dataset": "digits5k"}]
)
def test_a_run_of_another_method_is_not_one_of_the_papers(other):
    assert judged(differences, FIVE, **other)[:3] == ("", "", SHORT)
    for options in ({"dataset": "mnist"}, {}):
        assert judged(differences, FIVE, **options)[2] == "reproduced"


def test_the_command_uses_the_flag_file_with_the_most_rounds():
    assert "da_table1.flags" in command("femnist")  # The other has fewer rounds.
    assert "--experiment=other" in command("other")
    assert command("femnist", "--seeds=5,6").count("--seeds=") == 1


def test_the_committed_files_are_what_the_command_makes(capsys, monkeypatch):
    read_once(monkeypatch, claims_page)
    table = claims_page.claims_table(claims(), reproduced()[1])
    monkeypatch.setattr(claims_page, "claims_table", lambda chosen, kept: table)
    for path, options in [
        ("docs/claims.md", []),
        ("results/reproduced/claims.csv", ["--csv"]),
        ("results/README.md", ["--results"]),
    ]:
        claims_page.main(options)
        command = " ".join(["python -m tff_pmc.reports.claims_page", *options])
        committed = (ROOT / path).read_text(encoding="utf-8")
        printed = capsys.readouterr().out
        assert committed == printed, f"run: {command} > {path}"


@pytest.mark.parametrize(
    ("paper", "name", "rows"),
    [
        ("PMC", "pmc", 11),
        ("DA", "da", 16),
        ("AdaFed", "adafed", 10),
        ("Dual", "dual_criterion", 10),
    ],
)
def test_the_pages_of_the_papers_have_the_verdicts_and_numbers(paper, name, rows):
    table = pd.read_csv(ROOT / "results" / "reproduced" / "claims.csv", dtype=str)
    table = table[table["paper"] == paper].fillna("").reset_index(drop=True)
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    line = rf"^\| ({paper}-\d.*?) \| .* \| (.*?) \| (.*?) \|$"
    lines = re.findall(line, text, re.M)
    assert len(lines) == rows
    size = r"(\d*\.\d+ ± \d*\.\d+)(?: (?:rounds )?(ahead|behind|sooner|later))?"
    for first, ours, verdict in lines:
        judged_rows = table.iloc[
            [int(n) - 1 for n in re.findall(rf"{paper}-(\d+)", first)]
        ]
        assert {*judged_rows["verdict"]} == {verdict.partition(":")[0]}, first
        numbers = " ".join(judged_rows["ours"])
        for words, direction in re.findall(size, ours):
            sign = {"": "", "ahead": "+", "sooner": "+"}.get(direction, "-")
            assert f"{sign}{words}" in numbers, (first, words, direction)


def test_the_table_of_claims_names_the_folders_that_decided():
    """PMC-7 and PMC-12 rest on the long runs, as docs/pmc.md says."""
    path = ROOT / "results" / "reproduced" / "claims.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    folders = table.set_index("claim")["folders"].str.split("; ")
    kept_folders = {*reproduced()[0]}
    assert {name for names in folders for name in names} - {""} <= kept_folders
    assert ((table["folders"] == "") == (table["kept"] == "")).all()
    assert folders["PMC-12"] == ["mnist_table4_long"]
    assert "mnist_table4_long" in folders["PMC-7"]


def test_adding_a_claim_moves_no_other(monkeypatch):
    before = {claim.id: claim.differences for claim in claims()}
    monkeypatch.setattr(
        claim_registry.CLAIMS, "_things", {**claim_registry.CLAIMS._things}
    )
    ids = ["PMC-word", "PMC-44", "PMC-0"]
    for id in ids:
        claim_registry.claim(id, "2", "mnist_iid")(differences)
    assert {claim.id: claim.differences for claim in claims()} == {
        **before,
        **dict.fromkeys(ids, differences),
    }
    order = [claim.id for claim in claims("PMC")]
    assert order[:2] == ["PMC-0", "PMC-1"] and order[-2:] == ["PMC-44", "PMC-word"]
    with pytest.raises(ValueError, match="'PMC-7' already"):
        claim_registry.claim("PMC-7", "2", "mnist_iid")(differences)


def test_the_page_of_pmc_has_the_orderings_under_both_networks():
    """LD has nine seeds without ReLU, which its claim has."""
    text = (ROOT / "docs" / "pmc.md").read_text("utf-8")
    part = text.split("bias the comparison of orderings?")[1].split("###")[0]
    lines = re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", part, re.M)[-4:]
    assert [line[0] for line in lines] == ["LD", "MD", "LD,DS,MD", "LD,MD,DS"]
    for label, *cells in lines:
        means = []
        for name in ("mnist_table4", "mnist_table4_relu"):
            runs = paper_runs.kept_runs([reproduced()[0][name]])
            runs = paper_runs.Runs.from_kept("mnist_noniid", runs)
            (difference,) = rounds_saved(runs, label, AT_70_AND_80)
            stat = paired_statistics.difference(
                difference.values, difference.baseline_values
            )
            means.append(f"{stat['mean']:+.1f} ± {stat['interval']:.1f}")
        saved = published.rounds_saved("pmc_table4", label)
        printed = sum(saved[cell] for cell in AT_70_AND_80.cells) / 18
        assert cells[label == "LD" :] == [*means, f"{printed:+.1f}"][label == "LD" :]


def test_the_page_of_pmc_says_which_verdicts_the_published_codes_rule_changes(capsys):
    claims_page.main(["--reach=above", "--csv"])
    above = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index("claim")
    kept = ROOT / "results" / "reproduced" / "claims.csv"
    verdicts = above[["verdict"]].assign(
        own=pd.read_csv(kept).set_index("claim").verdict
    )
    changed = verdicts[verdicts["own"] != verdicts["verdict"]]
    text = (ROOT / "docs" / "pmc.md").read_text("utf-8")
    part = text.split("### At least the target, or above it?")[1].split("\n### ")[0]
    lines = re.findall(r"^\| (PMC.*?) \| (.*?) \| (.*?) \|$", part, re.M)
    shown = {claim_id: rest for names, *rest in lines for claim_id in names.split(", ")}
    rows = {
        claim_id: [*cells[["own", "verdict"]]] for claim_id, cells in changed.iterrows()
    }
    assert shown == {
        claim_id: cells
        for claim_id, cells in rows.items()
        if claim_id.startswith("PMC")
    }
    assert {*rows} - {*shown} == {"DA-6", "DA-16"}
    assert rows["DA-6"] == rows["DA-16"] == ["not reproduced", "not run far enough"]
    pmc = verdicts[verdicts.index.str.startswith("PMC")]
    yes, no, own_yes, own_no = (
        sum(pmc[name] == word)
        for name in ("verdict", "own")
        for word in ("reproduced", "not reproduced")
    )
    words = " ".join(part.split())
    assert (
        f"PMC has {yes} claims reproduced, {no} not and {len(pmc) - yes - no} "
        f"undecided, instead of {own_yes}, {own_no} and {len(pmc) - own_yes - own_no}; "
        "of the other papers' verdicts only [DA-6 and "
        "DA-16](da.md#what-table-1-can-show) change."
    ) in words
    assert all("5 of 18 columns" in above["ours"][x] for x in ("PMC-23", "PMC-28"))
    for claim in ("PMC-38", "PMC-41"):
        (size,) = re.findall(r"\+(\S+ ± \S+) \(noise", above["ours"][claim])
        assert f"{size} rounds sooner" in words


def test_claims_are_judged_by_one_rule_whatever_the_rule_of_the_runs(capsys):
    folder = f"{claims_page.RESULTS}/mnist_table4_ld"
    tables = []
    for rule, words in (("at_least", "of at least the target"), ("above", "above the")):
        flags = [folder, "--paper=PMC", f"--reach={rule}"]
        claims_page.main(flags)
        text = " ".join(capsys.readouterr().out.split())
        assert f"with an accuracy {words}" in text
        claims_page.main([*flags, "--csv"])
        tables.append(capsys.readouterr().out)
    assert tables[0] != tables[1]


def test_a_folder_holds_results_or_folders_of_results(tmp_path):
    kept, _ = reproduced()
    assert {"quickstart", "adafed_2", "when_it_helps"} <= {*kept}
    by_experiment = paper_runs.read_kept(kept["quickstart"].path)
    assert [*by_experiment] == ["quickstart"] and by_experiment[
        "quickstart"
    ].labels == ["DS", "LD,DS,MD"]
    for path, words in (
        (tmp_path, "contains no run"),
        (tmp_path / "x", "is not a folder"),
    ):
        with pytest.raises(RecordError, match=words):
            paper_runs.read_kept(str(path))


def test_the_page_has_the_claims_judged_and_the_others_by_their_reasons():
    claim_row = [
        "PMC-1",
        "PMC",
        "1",
        "x (Here: y.)",
        "a +1 (noise floor 2); b +2",
        "runs",
    ]
    claim_row += ["open", "why", "", "b", "7", "b +2; 1 more"]

    def last_line(**changes):
        columns = ["claim", "paper", "place", "says", "ours", "kept", "verdict", "why"]
        columns += ["to_run", "decided_by", "seeds", "shown"]
        table = pd.DataFrame([claim_row], columns=columns).assign(**changes)
        return claims_page.claims_markdown(table).rstrip().split("\n\n")[-3:]

    cells = last_line()[-1].split("\n")[-1].split(" | ")
    assert cells[:2] == ["| PMC-1 (1)", "x (Here: y.)"]
    assert cells[2:] == ["b +2; 1 more", "open: why", "7 |"]
    short = last_line(verdict=SHORT, why="few; seeds", to_run="`run` (an hour)")
    assert short == [
        "**Not run far enough: few.**",
        "- PMC-1 (1): x [7 seeds needed]",
        "To run PMC-1 far enough: `run` (an hour).",
    ]
    assert " | b | open" in last_line(ours="", shown="")[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "nowhere is not a folder\n"),
        (["--plugin=none_such"], "--plugin=none_such: "),
        (["--paper=Mine"], "unknown paper 'Mine'; known: DA, PMC"),
    ],
)
def test_invalid_arguments_end_with_one_line(options, message, capsys):
    folder = [] if "nowhere" in options else [f"{claims_page.RESULTS}/quickstart"]
    with pytest.raises(SystemExit) as error:
        claims_page.main([*options, *folder])
    assert error.value.code == 2
    text = capsys.readouterr().err
    assert text.startswith(message) and text.count("\n") == 1
