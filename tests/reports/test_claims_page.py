"""The page of claims: made of claims and kept runs, and committed as it is made."""

import pathlib

import pytest

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import claims_page
from tff_pmc.reports.kept import kept_runs
from tff_pmc.reports.papers import claim_tables
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
        return Answer(f"{len(used)} runs (noise floor 1)", *answer, used, ("a", "b"), 7)

    return Claim(paper, place, "a | b (Here: c.)", ("mnist_iid",), judge, **parts)


@pytest.fixture
def judged(run_of):
    """A function that judges a claim by DS under seeds: the row.

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
        return row[3:]

    return make


TWO = "mnist_iid: 2 runs, seeds 3, 4"
THREE = "mnist_iid: 3 runs, seeds 3, 4, 9"
OURS = "2 runs (noise floor 1)"
# By which numbers it is decided, and with how many seeds.
BY, NO = ("a; b", "7"), ("", "")


@pytest.mark.parametrize(
    ("own", "seeds", "row"),
    [
        (
            claim(("not reproduced", "why")),
            (4, 3),
            (OURS, TWO, "not reproduced", "why", *BY),
        ),
        (claim((SHORT, "3 rounds")), (4, 3), (OURS, TWO, SHORT, f"3 rounds{HOW}", *BY)),
        (claim(RecordError("no LD")), (4, 3), ("", THREE, SHORT, f"no LD{HOW}", *NO)),
        # Without runs nothing is judged, and what nobody can get comes before all.
        (claim(), (), ("", "", SHORT, f"no run is kept{HOW}", *NO)),
        (claim(needs="X"), (4, 3), ("", THREE, UNTESTABLE, f"it takes X{HOW}", *NO)),
        (claim(needs="X"), (), ("", "", UNTESTABLE, f"it takes X{HOW}", *NO)),
    ],
)
def test_a_claim_has_its_number_its_runs_its_verdict_and_why(judged, own, seeds, row):
    assert judged(own, *seeds) == row


@pytest.mark.parametrize(
    "other", [{"normalization": "max"}, {"protocol": "x"}, {"dataset": "digits5k"}]
)
def test_a_run_of_another_method_is_no_run_of_the_papers(judged, other):
    own = claim(("open", ""), settings={"mnist_iid": {"dataset": "mnist"}})
    assert judged(own, 3, **other)[:3] == ("", "", SHORT)
    assert judged(own, 3, dataset="mnist")[2] == judged(own, 3)[2] == "open"


def test_of_several_flag_files_it_is_the_one_that_runs_longest():
    assert "da_table1.flags" in claim_tables.command("femnist")  # The other: 40 rounds.
    assert "--experiment=drawn_faces" in claim_tables.command("drawn_faces")
    assert claim_tables.command("femnist", "--seeds=5,6").count("--seeds=") == 1


@pytest.fixture(scope="module")
def kept():
    """What is kept, read once."""
    return kept_runs(claims_page.RESULTS)


@pytest.mark.parametrize(
    ("path", "options"),
    [("docs/claims.md", []), ("results/reproduced/claims.csv", ["--csv"])],
)
def test_the_committed_files_are_what_the_command_makes(
    path, options, kept, capsys, monkeypatch
):
    monkeypatch.setattr(claims_page, "kept_runs", {claims_page.RESULTS: kept}.get)
    claims_page.main(options)
    command = " ".join(["python -m tff_pmc.reports.claims_page", *options])
    committed = (ROOT / path).read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, f"run: {command} > {path}"


def test_the_page_shows_the_numbers_that_decide_and_how_many_more_there_are():
    def cells(ours, by, verdict="open"):
        row = claims_page.Judged("PMC", "1", "x", ours, "", verdict, "why", by, "7")
        return claims_page.page([row]).split("\n")[-2].split(" | ")

    def shown(ours, by=""):
        return cells(ours, by)[-3]

    parts = [f"a,{k} at 9 %, 1 of 2 columns +{k}" for k in range(1, 6)]
    assert shown("; ".join(parts[:3])) == "; ".join(parts[:3])
    assert shown("; ".join(parts)) == "; ".join([*parts[:2], "3 more"])
    names = "a,2 at 9 %; a,4 at 9 %"
    assert shown("; ".join(parts), names) == "; ".join([*parts[1:4:2], "3 more"])
    assert shown("a +1 (noise floor 2); a over b -1", "a") == "a +1; 1 more"
    assert shown("a +1; b +2", "one that lacks runs") == "a +1; b +2"
    assert shown("a +1; b +2 (7 or 8 clients)", "a") == "a +1; 1 more (7 or 8 clients)"
    assert cells("a +1", "")[-2:] == ["open: why", "7 |"]
    assert cells("a +1", "", SHORT) == ["- 1: x [7 seeds]"]
