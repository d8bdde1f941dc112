"""The page of claims: made of claims and kept runs, and committed as it is made."""

import pathlib

import pytest

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports import claims_page
from tff_pmc.reports.papers.claim_tables import Claim
from tff_pmc.reports.papers.judging import Answer

ROOT = pathlib.Path(__file__).resolve().parents[2]
IID = {"experiment": "mnist_iid"}
HOW = (
    ". To decide it: .venv/bin/python run_experiments.py "
    "--flagfile=experiments/pmc_table2.flags --seeds=0,1,2,3,4 --data_dir=DIR"
)
SHORT, UNTESTABLE = "not run far enough", "cannot be tested here"


def claim(answer=None, paper="PMC", place="section 1", **parts):
    def judge(by_experiment):
        assert answer, "it was judged"
        if isinstance(answer, Exception):
            raise answer
        runs = by_experiment["mnist_iid"]
        used = [run for run in runs if run.label == "DS"]
        return Answer(f"{len(used)} runs (noise floor 1)", *answer, used)

    return Claim(paper, place, "a | b (Here: c.)", ("mnist_iid",), judge, **parts)


@pytest.fixture
def judged(run_of):
    """A function that judges a claim by DS under seeds: the row, and its lines.

    A run of LD, under another seed, is there and is not judged.
    """

    def make(own, *seeds, **settings):
        runs = [
            run_of("DS", [[1]], [2], settings={**IID, "batch_seed": seed, **settings})
            for seed in seeds
        ]
        more = {**IID, "batch_seed": 9, **settings}
        runs += [run_of("LD", [[1]], [2], settings=more)] if seeds else []
        (row,) = claims_page.judged([own], runs)
        lines = claims_page.page([row]).splitlines()
        where = next(n for n, one in enumerate(lines) if "section 1" in one)
        why = lines[where - 2] if lines[where].startswith("- ") else ""
        return row[3:], why + lines[where]

    return make


TWO = "mnist_iid: 2 runs, seeds 3, 4"
THREE = "mnist_iid: 3 runs, seeds 3, 4, 9"
OURS = "2 runs (noise floor 1)"
LINE = r"| section 1 | a \| b (Here: c.) | 2 runs | "


def undecided(why):
    return rf"**{why}.**- section 1: a \| b"


@pytest.mark.parametrize(
    ("own", "seeds", "row", "line"),
    [
        (claim(("not reproduced", "why")), (4, 3),
         (OURS, TWO, "not reproduced", "why"), f"{LINE}not reproduced: why |"),
        (claim(("reproduced", "")), (4, 3),
         (OURS, TWO, "reproduced", ""), f"{LINE}reproduced |"),
        (claim(("open", "9 seeds")), (4, 3),
         (OURS, TWO, "open", "9 seeds"), f"{LINE}open: 9 seeds |"),
        (claim((SHORT, "3 rounds")), (4, 3), (OURS, TWO, SHORT, f"3 rounds{HOW}"),
         undecided("Not run far enough: 3 rounds")),
        (claim(RecordError("no LD")), (4, 3), ("", THREE, SHORT, f"no LD{HOW}"),
         undecided("Not run far enough: no LD")),
        (claim(TooShortError("DS ends")), (4, 3), ("", THREE, SHORT, f"DS ends{HOW}"),
         undecided("Not run far enough: DS ends")),
        # Without runs nothing is judged, and what nobody can get comes before all.
        (claim(), (), ("", "", SHORT, f"no run is kept{HOW}"),
         undecided("Not run far enough: no run is kept")),
        (claim(needs="X"), (4, 3), ("", THREE, UNTESTABLE, f"it takes X{HOW}"),
         undecided("Cannot be tested here: it takes X")),
        (claim(needs="X"), (), ("", "", UNTESTABLE, f"it takes X{HOW}"),
         undecided("Cannot be tested here: it takes X")),
        (claim(hours={"mnist_iid": 22.5}), (),
         ("", "", SHORT, f"no run is kept{HOW} (about 22.5 hours of one core)"),
         undecided("Not run far enough: no run is kept")),
    ],
)  # fmt: skip
def test_a_claim_has_its_number_its_runs_its_verdict_and_why(
    judged, own, seeds, row, line
):
    assert judged(own, *seeds) == (row, line)


@pytest.mark.parametrize("other", [{"normalization": "max"}, {"protocol": "x"}])
def test_a_run_of_another_method_is_no_run_of_the_papers(judged, other):
    assert judged(claim(("open", "")), 3, **other)[0][:3] == ("", "", SHORT)


def test_an_unknown_verdict_is_refused(judged):
    with pytest.raises(ValueError, match="'perhaps' is none of reproduced"):
        judged(claim(("perhaps", "")), 3)


def test_of_several_flag_files_it_is_the_one_that_runs_longest():
    assert "da_table1.flags" in claims_page._command("femnist")  # The other: 40 rounds.
    assert "--experiment=drawn_faces" in claims_page._command("drawn_faces")


def test_the_papers_are_in_their_order_and_a_reason_is_said_once():
    papers = ["Dual", "PMC", "DA", "PMC"]
    own = [claim(paper=one, place=f"section {n}") for n, one in enumerate(papers)]
    own += [claim(needs="X"), claim(paper="DA", place="section 2")]
    lines = claims_page.page(claims_page.judged(own, [])).splitlines()
    assert [line[10] for line in lines if line.startswith("- sect")] == [*"21310"]
    assert r"- section 2: a \| b a \| b" in lines
    assert lines.count("**Not run far enough: no run is kept.**") == 3
    counts = f"0 reproduced, 0 not reproduced, 0 open, 5 {SHORT}, 1 {UNTESTABLE}."
    assert f"6 claims: {counts}" in lines


def test_runs_of_other_epochs_are_other_runs(judged, run_of):
    settings = [{**IID, "batch_seed": 0, "local_epochs": n} for n in (1, 5, 5)]
    runs = [run_of("DS", [[1]], [2], settings=own) for own in settings]
    (row,) = claims_page.judged([claim(("open", ""))], runs)
    assert row.kept == "mnist_iid: 2 runs, seed 0"


@pytest.mark.parametrize(
    ("path", "options"),
    [("docs/claims.md", []), ("results/reproduced/claims.csv", ["--csv"])],
)
def test_the_committed_files_are_what_the_command_makes(path, options, capsys):
    claims_page.main(options)
    command = " ".join(["python -m tff_pmc.reports.claims_page", *options])
    committed = (ROOT / path).read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, f"run: {command} > {path}"
