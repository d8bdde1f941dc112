"""Folders of workers: those in use stay, those left behind go."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile

import pytest

from tff_pmc.runtime.worker_host import make_folder

HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from tff_pmc.runtime.worker_host import make_folder
print(make_folder()[0], flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A short folder as the temporary directory; pytest has made its own before."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield folder


@pytest.fixture
def made():
    """Makes folders, and closes their locks in the end."""
    locks = []

    def make():
        folder, lock = make_folder()
        locks.append(lock)
        return folder

    yield make
    for lock in locks:
        os.close(lock)


def hold(place):
    """A process that holds a folder; and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


def test_what_a_killed_process_left_goes_and_what_is_in_use_stays(place, made):
    (killed, left), (alive, used) = hold(place), hold(place)
    own = made()
    assert os.path.dirname(own) == place and os.stat(own).st_mode & 0o777 == 0o700
    for folder in (left, used, own):
        with open(os.path.join(folder, "worker.log"), "w") as file:
            file.write("words")
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert os.path.exists(left)
        new = made()
        assert sorted(os.listdir(place)) == sorted(
            map(os.path.basename, (used, own, new))
        )
        assert os.listdir(used) == os.listdir(own) == ["worker.log"]
    finally:
        alive.kill()
        alive.communicate()
        killed.communicate()


def test_a_process_that_a_lock_was_passed_to_keeps_the_folder(place, made):
    folder, lock = make_folder()
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock,))
    os.close(lock)
    made()
    assert os.path.exists(folder)
    child.communicate()
    made()
    assert not os.path.exists(folder)


def test_links_files_and_the_folders_of_others_are_left_alone(
    place, made, tmp_path, monkeypatch
):
    (tmp_path / "kept").mkdir()
    os.symlink(tmp_path, os.path.join(place, "tff_worker-link"))
    os.mkdir(os.path.join(place, "tff_pmc-other"))
    with open(os.path.join(place, "tff_worker-file"), "w"):
        pass
    made()
    assert (tmp_path / "kept").exists() and len(os.listdir(place)) == 4
    uid = os.geteuid()
    os.mkdir(os.path.join(place, "tff_worker-theirs"))
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    made()
    assert "tff_worker-theirs" in os.listdir(place)
    monkeypatch.undo()


def test_a_file_system_without_locks_will_do(place, made, monkeypatch):
    def refuse(*_):
        raise OSError("no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert made() != made()
    assert len(os.listdir(place)) == 2


def test_a_folder_that_is_swept_before_it_is_locked_is_made_anew(
    place, made, monkeypatch
):
    real, swept = fcntl.flock, []

    def sweep_first(descriptor, how):
        if not swept:
            swept.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            os.rmdir(swept[0])
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    folder = made()
    assert swept and folder != swept[0] and os.path.isdir(folder)


@pytest.mark.parametrize("name", ["a" * 80, "with space", "ü"])
def test_an_unfit_temporary_directory_is_not_used(name, tmp_path, monkeypatch, made):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    folder = made()
    os.rmdir(folder)
    assert os.path.dirname(folder) == "/tmp"
