"""No disk or memory left, or a folder that is gone, in the middle of a checkpoint."""

import errno
import json
import os
import shutil
import tempfile

import pytest
from cli import QUICK, records, run, table

from tff_pmc.record.checkpoints import Checkpoints

FLAGS = [*QUICK, "--rounds=3", "--priority=DS"]


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
    tmp_path, at_checkpoint, monkeypatch
):
    folder = tmp_path / "out"
    sync = os.fsync

    def no_space(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".npz.new"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    at_checkpoint(lambda: monkeypatch.setattr(os, "fsync", no_space))
    done = run(*FLAGS, f"--output_dir={folder}", code=1)
    monkeypatch.undo()
    assert "No space left on device" in done.stderr.splitlines()[-1]
    assert "round_2.npz" in done.stderr.splitlines()[-1]
    assert "--resume goes on" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert json.loads((folder / "DS" / "run.json").read_text())["status"] == (
        "interrupted"
    )
    states = {path.name for path in (folder / "DS" / "checkpoints").iterdir()}
    assert states == {"round_0.npz", "round_1.npz"}
    run(*FLAGS, f"--output_dir={folder}", "--resume")
    whole = tmp_path / "whole"
    run(*FLAGS, f"--output_dir={whole}")
    assert records(folder, states=True) == records(whole, states=True)


def test_no_memory_is_one_line(tmp_path, at_checkpoint):
    def none_left():
        raise MemoryError

    at_checkpoint(none_left)
    done = run(*FLAGS, f"--output_dir={tmp_path / 'out'}", code=1)
    assert "out of memory; what was recorded" in done.stderr.splitlines()[-1]
    assert "--resume goes on" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_deleted_is_one_line(tmp_path, at_checkpoint):
    folder = tmp_path / "out"
    at_checkpoint(lambda: shutil.rmtree(folder))
    done = run(*FLAGS, f"--output_dir={folder}", code=1)
    assert "No such file or directory" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr and not folder.exists()


def _remove(folder):
    shutil.rmtree(folder)


def _copy_over(path):
    """Puts a copy in the place of a file or a folder: equal bytes, another inode."""
    moved = path.with_name("moved")
    path.rename(moved)
    (shutil.copytree if moved.is_dir() else shutil.copyfile)(moved, path)


@pytest.mark.parametrize(
    "act, name",
    [
        (_remove, ""),
        (_copy_over, "DS"),
        (lambda path: path.unlink(), "DS/clients.csv"),
    ],
    ids=["removed", "folder replaced", "table removed"],
)
def test_what_is_written_into_stays_what_it_was(tmp_path, monkeypatch, act, name):
    """The next round ends the run: it would train to the end for nothing."""
    folder = tmp_path / "out"
    save = Checkpoints.save

    def save_and_act(self, state, round_num, lengths):
        save(self, state, round_num, lengths)
        if round_num == 1:
            act(folder / name)

    monkeypatch.setattr(Checkpoints, "save", save_and_act)
    done = run(*FLAGS, f"--output_dir={folder}", code=1)
    last = done.stderr.splitlines()[-1]
    assert "was removed or " in last and "during the run" in last
    assert str(folder / (name or "DS")) in last and "Traceback" not in done.stderr
    if not name:
        assert not folder.exists()
    else:
        assert len(table(folder / "DS" / "rounds.csv")) <= 2


def test_without_room_for_temporary_files_the_folder_is_named(monkeypatch):
    import run_experiments

    run_experiments.check_temporary_room()
    full = shutil._ntuple_diskusage(1 << 30, 1 << 30, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(OSError, match=f"{tempfile.gettempdir()}: less than 1 MB is le"):
        run_experiments.check_temporary_room()
