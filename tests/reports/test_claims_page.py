"""The page of claims: made of claims and kept runs, and committed as it is made."""

import pathlib

import pytest

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports import claims_page
from tff_pmc.reports.papers.claim_tables import Claim

ROOT = pathlib.Path(__file__).resolve().parents[2]


def claim(answer, paper="PMC", experiments=("mnist_iid",), place="section 1"):
    def judge(by_experiment):
        if isinstance(answer, Exception):
            raise answer
        return answer(by_experiment) if callable(answer) else answer

    return Claim(paper, place, "something | of note", experiments, judge)


@pytest.fixture
def runs(run_of):
    """Two runs of `mnist_iid` under the seeds 3 and 4."""
    return [
        run_of(
            "DS",
            [[1, 2]],
            [2, 2],
            settings={"experiment": "mnist_iid", "batch_seed": seed},
        )
        for seed in (4, 3)
    ]


def judged(own, runs):
    """The place, our number, the runs, the verdict and why."""
    found = claims_page.judged([own], runs)
    (row,) = found
    assert row.says == "something | of note"
    return (row.place, *row[3:]), claims_page.page(found)


def test_a_judged_claim_has_its_number_its_seeds_and_its_verdict(runs):
    seen = []

    def answer(by_experiment):
        seen.append({name: len(own) for name, own in by_experiment.items()})
        return "+1.0 rounds", "not reproduced", "the interval is below 0"

    row, text = judged(claim(answer), runs)
    assert seen == [{"mnist_iid": 2}]
    kept = "mnist_iid: 2 runs, seeds 3, 4"
    why = "the interval is below 0"
    assert row == ("section 1", "+1.0 rounds", kept, "not reproduced", why)
    line = r"| section 1 | something \| of note | not reproduced: +1.0 rounds |"
    assert line in text.splitlines()
    assert "1 claims: 0 reproduced, 1 not reproduced, 0 undecidable" in text
    _, text = judged(claim(("+2", "undecidable", "on a part, of all")), runs)
    assert "| undecidable: on a part |" in text


@pytest.mark.parametrize(
    ("name", "value"), [("normalization", "max"), ("protocol", "reference_code")]
)
def test_a_run_of_another_method_is_no_run_of_the_papers(runs, run_of, name, value):
    settings = {"experiment": "mnist_iid", "batch_seed": 5, name: value}
    other = run_of("DS", [[1, 2]], [2, 2], settings=settings)
    found = claims_page.by_experiment([*runs, other])
    assert list(found) == ["mnist_iid"] and other not in found["mnist_iid"]
    assert len(found["mnist_iid"]) == 2


COMMAND = ".venv/bin/python run_experiments.py --flagfile=experiments/pmc_table2.flags"


@pytest.mark.parametrize(
    ("answer", "needs", "number", "verdict", "why"),
    [
        (None, "", "", "not run yet", COMMAND),
        (None, "X", "", "undecidable", f"it takes X. With them: {COMMAND}"),
        (("1", "reproduced", ""), "X", "1", "reproduced", ""),
        # Runs that do not serve are as good as none.
        (RecordError("LD is not"), "", "", "not run yet", f"LD is not. {COMMAND}"),
        # Those that ended too early decide nothing, and are no lack of runs.
        (TooShortError("DS ends"), "", "", "undecidable", "DS ends"),
    ],
)
def test_what_cannot_be_judged_says_why_and_how(
    runs, answer, needs, number, verdict, why
):
    own = claim(answer or AssertionError("not asked"))._replace(needs=needs)
    (_, ours, kept, *last), _ = judged(own, runs if answer else [])
    assert (ours, last[0]) == (number, verdict) and last[1].startswith(why)
    assert bool(kept) == (answer is not None and verdict != "not run yet")


def test_of_several_flag_files_it_is_the_one_that_runs_longest():
    assert "da_table1.flags" in claims_page._command("femnist")  # The other: 40 rounds.
    assert "--experiment=drawn_faces" in claims_page._command("drawn_faces")


def test_the_papers_are_in_their_order(runs):
    answer = "1", "reproduced", ""
    own = [
        claim(answer, paper=paper, place=f"section {place}")
        for place, paper in enumerate(("Dual", "PMC", "DA", "PMC"))
    ]
    text = claims_page.page(claims_page.judged(own, runs))
    places = [line[10] for line in text.splitlines() if line.startswith("| section")]
    assert places == ["2", "1", "3", "0"]


def test_an_unknown_verdict_is_refused(runs):
    with pytest.raises(ValueError, match="'perhaps' is none of reproduced"):
        judged(claim(("1", "perhaps", "")), runs)


@pytest.mark.parametrize(
    ("path", "options"),
    [("docs/claims.md", []), ("results/reproduced/claims.csv", ["--csv"])],
)
def test_the_committed_files_are_what_the_command_makes(path, options, capsys):
    claims_page.main(options)
    command = " ".join(["python -m tff_pmc.reports.claims_page", *options])
    committed = (ROOT / path).read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, f"run: {command} > {path}"
