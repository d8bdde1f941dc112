"""Runs of which a repository keeps a few files, read back."""

import dataclasses
import json

import pytest

from tff_pmc.reports import kept
from tff_pmc.reports.record_error import RecordError

ROUNDS = "round,accuracy,correct,examples\n1,0.25,5,20\n2,0.75,15,20\n"
RESULTS = """experiment,quantity,target_accuracy_pct,devices,value
DS,rounds,70,10%,1.0
DS,rounds,70,20%,
"LD,DS",rounds,70,10%,2.0
"LD,DS",rounds,70,20%,2.0
"LD,DS",gain,70,10%,-1.0
"LD,DS",gain,70,Avg.,-1.0
"""


@pytest.fixture
def folder(tmp_path):
    """An experiment's folder whose two runs share `run.json` and `results.csv`."""
    for name in ("DS", "LD-DS"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "rounds.csv").write_text(ROUNDS)
    settings = {"experiment": "mnist_iid", "orderings": ["DS", "LD,DS"]}
    info = {"settings": settings, "data": {"name": "mnist", "clients": 10}}
    (tmp_path / "mine" / "run.json").write_text(json.dumps(info))
    (tmp_path / "mine" / "results.csv").write_text(RESULTS)
    return tmp_path


def test_runs_that_share_a_file_have_the_labels_of_their_folders(folder):
    runs = kept.kept_runs(str(folder))
    assert [run.label for run in runs] == ["DS", "LD,DS"]
    for run in runs:
        assert run.settings["experiment"] == "mnist_iid"
        assert run.accuracy.tolist() == [0.25, 0.75]
        assert run.correct is None and run.examples is None
        right, examples = kept.totals(run)
        assert (right.tolist(), examples) == ([5, 15], 20)


def test_the_rounds_to_targets_are_those_of_the_results(folder):
    ds, other = kept.kept_runs(str(folder))
    assert kept.rounds_of(ds, (70,), (10, 20)) == {(70, 10): 1, (70, 20): None}
    assert kept.rounds_of(other, (70,), (10, 20)) == {(70, 10): 2, (70, 20): 2}
    with pytest.raises(RecordError, match="30 % of the devices reach 70 %"):
        kept.rounds_of(other, (70,), (10, 30))
    by_their_rule = dataclasses.replace(ds, reach="at_least")
    assert kept.rounds_of(by_their_rule, (70,), (10,)) == {(70, 10): 1}
    with pytest.raises(RecordError, match="by its own rule .*, at_least"):
        kept.rounds_of(dataclasses.replace(ds, reach="above"), (70,), (10,))
    # What a fifth of the devices never reach, more of them do not reach either.
    assert kept.rounds_of(ds, (70,), (30,)) == {(70, 30): None}
    with pytest.raises(RecordError, match="5 % of the devices reach 70 %"):
        kept.rounds_of(ds, (70,), (5,))


def test_a_whole_run_is_read_whole(tmp_path, write_ours):
    write_ours(tmp_path / "a" / "run", [(1, 2), (3, 4)], [[1, 2], [2, 2]])
    (run,) = kept.kept_runs(str(tmp_path))
    assert run.correct.tolist() == [[1, 2], [2, 2]]
    assert kept.rounds_of(run, (90,), (50, 100)) == {(90, 50): 1, (90, 100): 2}
    assert kept.totals(run)[0].tolist() == [3, 4] and kept.totals(run)[1] == 4


def test_a_run_with_its_own_file_has_its_own_label(folder):
    own = folder / "mine" / "DS"
    info = {"label": "mine", "settings": {"priority": ["DS"]}, "data": {"name": "m"}}
    (own / "run.json").write_text(json.dumps(info))
    assert [run.label for run in kept.kept_runs(str(folder))] == ["mine", "LD,DS"]


def test_what_no_file_describes_is_no_run(tmp_path):
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "rounds.csv").write_text(ROUNDS)
    assert kept.kept_runs(str(tmp_path)) == []


def test_a_broken_file_is_named(folder):
    (folder / "mine" / "DS" / "rounds.csv").write_text("")
    with pytest.raises(RecordError, match="rounds.csv cannot be read"):
        kept.kept_runs(str(folder))
