"""The page of claims: made of claims and kept runs, and committed as it is made."""

import pathlib

import pytest

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports import claims_page
from tff_pmc.reports.papers.claim_tables import Claim

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
        return (f"{len(by_experiment['mnist_iid'])} runs", *answer)

    return Claim(paper, place, "a | b", ("mnist_iid",), judge, **parts)


@pytest.fixture
def judged(run_of):
    """A function that judges a claim by the runs of seeds: the row, and its line."""

    def make(own, *seeds, **settings):
        runs = [
            run_of("DS", [[1]], [2], settings={**IID, "batch_seed": seed, **settings})
            for seed in seeds
        ]
        (row,) = claims_page.judged([own], runs)
        lines = claims_page.page([row]).splitlines()
        (line,) = (one for one in lines if one.startswith("| section 1 "))
        return row[3:], line.removeprefix(r"| section 1 | a \| b | ")

    return make


TWO = "mnist_iid: 2 runs, seeds 3, 4"


@pytest.mark.parametrize(
    ("own", "seeds", "row", "line"),
    [
        (claim(("not reproduced", "why")), (4, 3),
         ("2 runs", TWO, "not reproduced", "why"), "not reproduced: 2 runs. why |"),
        (claim(("reproduced", "")), (4, 3),
         ("2 runs", TWO, "reproduced", ""), "reproduced: 2 runs |"),
        (claim(("open", "9 seeds")), (4, 3),
         ("2 runs", TWO, "open", "9 seeds"), "open: 2 runs. 9 seeds |"),
        (claim((SHORT, "3 rounds")), (4, 3),
         ("2 runs", TWO, SHORT, f"3 rounds{HOW}"), f"{SHORT}: 3 rounds |"),
        (claim(RecordError("no LD")), (4, 3),
         ("", TWO, SHORT, f"no LD{HOW}"), f"{SHORT}: no LD |"),
        (claim(TooShortError("DS ends")), (4, 3),
         ("", TWO, SHORT, f"DS ends{HOW}"), f"{SHORT}: DS ends |"),
        # Without runs nothing is judged, and what nobody can get comes before all.
        (claim(), (), ("", "", SHORT, f"no run is kept{HOW}"),
         f"{SHORT}: no run is kept |"),
        (claim(needs="X"), (4, 3),
         ("", TWO, UNTESTABLE, f"it takes X{HOW}"), f"{UNTESTABLE}: it takes X |"),
        (claim(needs="X"), (),
         ("", "", UNTESTABLE, f"it takes X{HOW}"), f"{UNTESTABLE}: it takes X |"),
        (claim(hours={"mnist_iid": 22.5}), (),
         ("", "", SHORT, f"no run is kept{HOW} (about 22.5 hours of one core)"),
         f"{SHORT}: no run is kept |"),
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


def test_the_papers_are_in_their_order_and_the_verdicts_are_counted():
    papers = enumerate(("Dual", "PMC", "DA", "PMC"))
    own = [claim(paper=one, place=f"section {n}") for n, one in papers]
    text = claims_page.page(claims_page.judged([*own, claim(needs="X")], []))
    places = [line[10] for line in text.splitlines() if line.startswith("| section")]
    assert places == ["2", "1", "3", "1", "0"]
    counts = f"0 reproduced, 0 not reproduced, 0 open, 4 {SHORT}, 1 {UNTESTABLE}."
    assert f"\n5 claims: {counts}\n" in text


@pytest.mark.parametrize(
    ("path", "options"),
    [("docs/claims.md", []), ("results/reproduced/claims.csv", ["--csv"])],
)
def test_the_committed_files_are_what_the_command_makes(path, options, capsys):
    claims_page.main(options)
    command = " ".join(["python -m tff_pmc.reports.claims_page", *options])
    committed = (ROOT / path).read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, f"run: {command} > {path}"
