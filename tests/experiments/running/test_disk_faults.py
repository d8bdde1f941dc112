"""No disk or memory left, or a folder that is gone, in the middle of a checkpoint."""

import errno
import json
import os
import shutil
import tempfile

import pytest
from cli import QUICK, records, run

from tff_pmc.record.run_folder import RunFolder

FLAGS = [*QUICK, "--rounds=3", "--priority=DS"]


@pytest.fixture
def at_checkpoint(monkeypatch):
    """Does something just before the state of round 2 is saved."""

    def set_to(act):
        save = RunFolder.save

        def act_and_save(self, state, round_num):
            if round_num == 2:
                act()
            save(self, state, round_num)

        monkeypatch.setattr(RunFolder, "save", act_and_save)

    return set_to


def test_a_full_disk_is_one_line_and_the_run_is_resumed_later(
    tmp_path, at_checkpoint, monkeypatch
):
    folder, sync = tmp_path / "out", os.fsync

    def no_space(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".npz.new"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    at_checkpoint(lambda: monkeypatch.setattr(os, "fsync", no_space))
    done = run(*FLAGS, f"--output_dir={folder}", code=1)
    monkeypatch.undo()
    last = done.stderr.splitlines()[-1]
    for words in ("No space left on device", "checkpoint.npz", "--resume continues it"):
        assert words in last
    assert "Traceback" not in done.stderr
    info = json.loads((folder / "DS" / "run.json").read_text())
    assert info["status"] == "interrupted"
    run(*FLAGS, f"--output_dir={folder}", "--resume")
    whole = tmp_path / "whole"
    run(*FLAGS, f"--output_dir={whole}")
    assert records(folder, states=True) == records(whole, states=True)


def no_memory(folder):
    raise MemoryError


def copied(folder):
    """Replaces a folder with a copy: equal bytes, other inodes."""
    folder = folder / "DS"
    folder.rename(folder.with_name("moved"))
    shutil.copytree(folder.with_name("moved"), folder)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (no_memory, "out of memory; what was recorded"),
        (shutil.rmtree, "No such file or directory"),
        # The next round ends the run: it would train to the end for nothing.
        (copied, "DS was removed or replaced during the run"),
    ],
    ids=["no memory", "folder removed", "folder replaced"],
)
def test_an_error_that_ends_a_run_is_one_line(tmp_path, at_checkpoint, act, says):
    folder = tmp_path / "out"
    at_checkpoint(lambda: act(folder))
    done = run(*FLAGS, f"--output_dir={folder}", code=1)
    assert says in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
    assert folder.exists() == (act is not shutil.rmtree)


def test_without_room_for_temporary_files_the_folder_is_named(monkeypatch):
    import run_experiments

    run_experiments.check_temporary_room()
    full = shutil._ntuple_diskusage(1 << 30, 1 << 30, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(OSError, match=f"{tempfile.gettempdir()}: less than 1 MB is le"):
        run_experiments.check_temporary_room()
