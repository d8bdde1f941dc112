"""A run's folder: written round by round, never overwritten."""

import pytest

from tff_pmc.experiments.record import files, run_folder
from tff_pmc.reports.record_error import RecordError


class TestRunFolder:
    def test_rows_are_on_disk_as_soon_as_they_are_appended(self, tmp_path):
        folder = run_folder.RunFolder(str(tmp_path / "run"), {"settings": {}})
        folder.append("rounds", [{"round": 1, "accuracy": 0.5}])
        path = tmp_path / "run" / "rounds.csv"
        assert path.read_text() == "round,accuracy\n1,0.5\n"
        folder.finish("finished")
        text = (tmp_path / "run" / "run.json").read_text()
        assert '"status": "finished"' in text
        assert "tensorflow-federated" in text

    def test_results_are_never_overwritten(self, tmp_path):
        (tmp_path / "precious.csv").write_text("1")
        with pytest.raises(RecordError, match="precious.csv"):
            run_folder.RunFolder(str(tmp_path), {})

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(RecordError, match="--output_dir"):
            files.make_empty_folder(str(tmp_path / "file" / "below"))
