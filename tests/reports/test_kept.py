"""The runs under a folder that a repository keeps."""

from tff_pmc.reports import kept
from tff_pmc.reports.rounds_to_target import rounds_of


def test_whole_runs_are_found_and_nothing_else(tmp_path, write_ours):
    write_ours(tmp_path / "a" / "run", [(1, 2), (3, 4)], [[1, 2], [2, 2]])
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost" / "rounds.csv").write_text("round\n1\n")
    (run,) = kept.kept_runs(str(tmp_path))
    assert run.correct.tolist() == [[1, 2], [2, 2]]
    assert rounds_of(run, (90,), (50, 100)) == {(90, 50): 1, (90, 100): 2}
