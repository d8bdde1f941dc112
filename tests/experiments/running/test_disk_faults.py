"""A disk that is full, or a folder that is gone, in the middle of a checkpoint."""

import errno
import json
import os
import shutil

import pytest

from tff_pmc.record.checkpoints import Checkpoints

FLAGS = ["--experiment=quickstart", "--rounds=3", "--local_epochs=1", "--priority=DS"]


@pytest.fixture
def at_checkpoint(monkeypatch):
    """Does something just before the state of round 2 is saved."""

    def set_to(act):
        save = Checkpoints.save

        def act_and_save(self, state, round_num, lengths):
            if round_num == 2:
                act()
            save(self, state, round_num, lengths)

        monkeypatch.setattr(Checkpoints, "save", act_and_save)

    return set_to


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(
    tmp_path, run, at_checkpoint, monkeypatch, records
):
    folder = tmp_path / "out"
    sync = os.fsync

    def no_space(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".state.new"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    at_checkpoint(lambda: monkeypatch.setattr(os, "fsync", no_space))
    done = run(*FLAGS, f"--output_dir={folder}", code=1)
    monkeypatch.undo()
    assert "No space left on device" in done.stderr.splitlines()[-1]
    assert "round_2.state" in done.stderr.splitlines()[-1]
    assert "--resume goes on" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert json.loads((folder / "DS" / "run.json").read_text())["status"] == (
        "interrupted"
    )
    states = {path.name for path in (folder / "DS" / "checkpoints").iterdir()}
    assert states == {"round_0.state", "round_1.state"}
    run(*FLAGS, f"--output_dir={folder}", "--resume")
    whole = tmp_path / "whole"
    run(*FLAGS, f"--output_dir={whole}")
    assert records(folder, states=True) == records(whole, states=True)


def test_a_folder_that_is_deleted_is_one_line(tmp_path, run, at_checkpoint):
    folder = tmp_path / "out"
    at_checkpoint(lambda: shutil.rmtree(folder))
    done = run(*FLAGS, f"--output_dir={folder}", code=1)
    assert "No such file or directory" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr and not folder.exists()
