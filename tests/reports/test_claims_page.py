"""The page of claims: made of claims and kept runs, and committed as it is made."""

import pathlib

import pandas as pd
import pytest
from papers.claim_runs import read_once, reproduced

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results
from tff_pmc.reports import claims_page
from tff_pmc.reports.papers import evidence
from tff_pmc.reports.papers.catalog import Claim
from tff_pmc.reports.papers.evidence import KeptResults, command
from tff_pmc.reports.papers.judging import Difference, Differences

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOW = (
    ". To decide it: .venv/bin/python run_experiments.py "
    "--flagfile=experiments/pmc_table2.flags --seeds=0,1,2,3,4 --data_dir=DIR "
    "(about 22 hours of one core)"
)
SHORT, UNTESTABLE = "not run far enough", "cannot be tested here"


def differences(results):
    """DS, which is 4 under each seed, minus 1."""
    runs = [named["DS"] for named in results.mnist_iid.by_seed(["DS"]).values()]
    count = [4.0] * len(runs)
    return Differences([Difference("a", count, [1.0] * len(runs), runs=runs)])


def of_celeba(results):
    """What nobody can get."""
    return Differences([Difference("a", [1.0], [0.0], runs=results.celeba.runs)])


def lacks(results):
    """A claim whose runs are not there."""
    raise RecordError(f"no LD under {len(results.mnist_iid.runs)} runs")


def judged(differences, seeds, experiment="mnist_iid", **row):
    """A claim's row, judged by DS under seeds; LD, under another seed, is there."""
    own = {"data_name": "", "data_source": "", "data_clients": 7, "versions": {}}
    own.update(data_options={}, experiment=experiment, **row)
    runs = [{**own, "label": "DS", "seed": seed} for seed in seeds]
    runs += [{**own, "label": "LD", "seed": 9}] if seeds else []
    rounds = pd.DataFrame([{k: run[k] for k in ("seed", "label")} for run in runs])
    results = Results(pd.DataFrame(runs), {"rounds": rounds.assign(round=1)}.get)
    claim = Claim("PMC", "section 1", "a | b (Here: c.)", differences)
    (found,) = claims_page.judged([claim], KeptResults([results]))
    return found[3:]


FIVE = (4, 3, 5, 6, 7)
BELOW = "2 seeds; below five nothing is decided"


@pytest.mark.parametrize(
    ("of", "seeds", "row"),
    [
        (
            differences,
            FIVE,
            ("a +3.0 ± 0.0", "mnist_iid: 5 runs, seeds 3 to 7", "reproduced", ""),
        ),
        (
            differences,
            (4, 3),
            ("a +3.0", "mnist_iid: 2 runs, seeds 3, 4", SHORT, BELOW + HOW),
        ),
        (
            lacks,
            (4, 3),
            (
                *("", "mnist_iid: 3 runs, seeds 3, 4, 9", SHORT),
                f"no LD under 3 runs{HOW}",
            ),
        ),
        # Without runs nothing is judged, and what nobody can get comes before all.
        (differences, (), ("", "", SHORT, f"no run is kept{HOW}")),
        (
            of_celeba,
            (),
            ("", "", UNTESTABLE, f"it takes CelebA's photographs, which could n{HOW}"),
        ),
    ],
)
def test_a_claim_has_its_number_its_runs_its_verdict_and_why(of, seeds, row):
    ours, kept, verdict, why, *_ = judged(of, seeds)
    assert (ours, kept, verdict) == row[:3]
    if of is of_celeba:
        assert why.startswith("it takes CelebA's photographs") and "table6" in why
    else:
        assert why == row[3]


def test_what_nobody_can_get_is_not_tested_though_there_are_runs():
    ours, kept, verdict, *_ = judged(of_celeba, (4, 3), "celeba")
    assert (ours, kept) == ("", "celeba: 3 runs, seeds 3, 4, 9")
    assert verdict == UNTESTABLE


@pytest.mark.parametrize(
    "other", [{"normalization": "max"}, {"protocol": "x"}, {"dataset": "digits5k"}]
)
def test_a_run_of_another_method_is_no_run_of_the_papers(other):
    assert judged(differences, FIVE, **other)[:3] == ("", "", SHORT)
    for same in ({"dataset": "mnist"}, {}):
        assert judged(differences, FIVE, **same)[2] == "reproduced"


def test_of_several_flag_files_it_is_the_one_that_runs_longest():
    assert "da_table1.flags" in command("femnist")  # The other: 40 rounds.
    assert "--experiment=other" in command("other")
    assert command("femnist", "--seeds=5,6").count("--seeds=") == 1


@pytest.mark.parametrize(
    ("path", "options"),
    [("docs/claims.md", []), ("results/reproduced/claims.csv", ["--csv"])],
)
def test_the_committed_files_are_what_the_command_makes(
    path, options, capsys, monkeypatch
):
    read_once(monkeypatch, claims_page)
    claims_page.main(options)
    command = " ".join(["python -m tff_pmc.reports.claims_page", *options])
    committed = (ROOT / path).read_text(encoding="utf-8")
    assert committed == capsys.readouterr().out, f"run: {command} > {path}"


def test_a_folder_is_one_of_results_or_has_such_folders(tmp_path):
    kept, _ = reproduced()
    assert {"quickstart", "adafed_2", "when_it_helps"} <= {*kept}
    one = evidence.read_kept(kept["quickstart"].path)
    assert [*one] == ["quickstart"] and one["quickstart"].labels == ["DS", "LD,DS,MD"]
    for path, words in ((tmp_path, "holds no run"), (tmp_path / "x", "is no folder")):
        with pytest.raises(RecordError, match=words):
            evidence.read_kept(str(path))


def test_the_page_has_the_claims_judged_and_the_others_by_their_reasons():
    own = "PMC", "1", "x (Here: y.)", "a +1 (noise floor 2); b +2", "runs"
    row = claims_page.Judged(*own, "open", "why", "b", "7", "b +2; 1 more")
    assert claims_page.page([row]).split("\n")[-2].split(" | ")[-4:] == [
        *("x (Here: y.)", "b +2; 1 more", "open: why", "7 |")
    ]
    short = row._replace(verdict=SHORT, why="few; seeds. To decide it: run")
    assert claims_page.page([short]).endswith(
        "**Not run far enough: few.**\n\n- 1: x [7 seeds]\n"
    )
    lacking = row._replace(ours="", shown="")
    assert " | b | open" in claims_page.page([lacking])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "nowhere is no folder\n"),
        (["--plugin=none_such"], "--plugin=none_such: "),
        (["--paper=Mine"], "no paper 'Mine': there are DA, PMC"),
    ],
)
def test_what_cannot_be_ends_with_one_line(options, message, capsys):
    folder = [] if "nowhere" in options else [f"{claims_page.RESULTS}/quickstart"]
    with pytest.raises(SystemExit) as error:
        claims_page.main([*options, *folder])
    assert error.value.code == 2
    text = capsys.readouterr().err
    assert text.startswith(message) and text.count("\n") == 1
