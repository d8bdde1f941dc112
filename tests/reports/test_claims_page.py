"""The page of claims: made of claims and kept runs, and committed as it is made."""

import pathlib

import pytest

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports import claims_page
from tff_pmc.reports.kept import kept_runs
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


def rows(text):
    return [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| section")
    ]


def test_a_judged_claim_has_its_number_its_seeds_and_its_verdict(runs):
    seen = []

    def answer(by_experiment):
        seen.append({name: len(own) for name, own in by_experiment.items()})
        return "+1.0 rounds", "not reproduced", "the interval is below 0"

    text = claims_page.page([claim(answer)], runs)
    assert seen == [{"mnist_iid": 2}]
    assert rows(text) == [
        [
            "section 1",
            "something \\| of note",
            "+1.0 rounds (kept: mnist_iid: 2 runs, seeds 3, 4)",
            "**not reproduced**: the interval is below 0",
        ]
    ]
    assert "1 claims: 0 reproduced, 1 not reproduced, 0 undecidable" in text


@pytest.mark.parametrize(
    ("name", "value"), [("normalization", "max"), ("protocol", "reference_code")]
)
def test_a_run_of_another_method_is_no_run_of_the_papers(runs, run_of, name, value):
    settings = {"experiment": "mnist_iid", "batch_seed": 5, name: value}
    other = run_of("DS", [[1, 2]], [2, 2], settings=settings)
    found = claims_page.by_experiment([*runs, other])
    assert list(found) == ["mnist_iid"] and other not in found["mnist_iid"]
    assert len(found["mnist_iid"]) == 2


COMMAND = (
    "`.venv/bin/python run_experiments.py --flagfile=experiments/pmc_table2.flags "
)


@pytest.mark.parametrize(
    ("answer", "needs", "number", "verdict"),
    [
        (None, "", "", f"**not run yet**: {COMMAND}"),
        (
            None,
            "a picture",
            "",
            f"**undecidable**: it takes a picture. With them: {COMMAND}",
        ),
        (("1", "reproduced", ""), "a picture", "1 (kept", "**reproduced**"),
        # Runs that do not serve are as good as none.
        (RecordError("LD is not"), "", "", f"**not run yet**: LD is not. {COMMAND}"),
        # Those that ended too early decide nothing, and are no lack of runs.
        (
            TooShortError("DS ends"),
            "",
            "(kept: mnist_iid: 2",
            "**undecidable**: DS ends",
        ),
    ],
)
def test_what_cannot_be_judged_says_why_and_how(runs, answer, needs, number, verdict):
    own = claim(answer or AssertionError("not asked"))._replace(needs=needs)
    ((*_, first, last),) = rows(claims_page.page([own], runs if answer else []))
    assert first.startswith(number) and bool(first) == bool(number)
    assert last.startswith(verdict)


def test_of_several_flag_files_it_is_the_one_that_runs_longest():
    assert "da_table1.flags" in claims_page._command("femnist")  # The other: 40 rounds.
    assert "--experiment=drawn_faces" in claims_page._command("drawn_faces")


def test_an_unknown_verdict_is_refused(runs):
    with pytest.raises(ValueError, match="'perhaps' is none of reproduced"):
        claims_page.page([claim(("1", "perhaps", ""))], runs)


def test_the_committed_page_is_what_the_command_makes():

    text = claims_page.page(claims_page.claims(), kept_runs(claims_page.RESULTS))
    committed = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert committed == text, (
        "run: python -m tff_pmc.reports.claims_page > docs/claims.md"
    )
