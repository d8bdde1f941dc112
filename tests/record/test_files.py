"""The folder of a call that names none: no two calls have the same."""

import concurrent.futures
import threading

import pytest

from tff_pmc.record import files
from tff_pmc.record.record_error import RecordError


def test_folders_created_at_once_differ(tmp_path):
    path, number = str(tmp_path / "runs" / "a"), 12
    barrier = threading.Barrier(number)

    def make(refused):
        barrier.wait()
        if refused:  # What is refused removes its folder, and that above it.
            for _ in range(20):
                files.remove_if_empty(files.make_new_folder(f"{path}-refused"))
            return ""
        return files.make_new_folder(path)

    with concurrent.futures.ThreadPoolExecutor(number) as pool:
        folders = {*pool.map(make, [False, True] * (number // 2))} - {""}
    names = {path, *(f"{path}-{k}" for k in range(2, number // 2 + 1))}
    assert folders <= names and len(folders) == number // 2
    assert {str(folder) for folder in (tmp_path / "runs").iterdir()} == folders


def test_a_folder_without_content_is_removed(tmp_path, assert_one_line):
    (tmp_path / "file").touch()
    path = files.make_new_folder(str(tmp_path / "runs" / "a"))
    (tmp_path / "runs" / "other").mkdir()
    files.remove_if_empty(path)
    assert [folder.name for folder in (tmp_path / "runs").iterdir()] == ["other"]
    files.remove_if_empty(str(tmp_path))
    assert (tmp_path / "file").exists()
    for folder in ("file/a", "file/a/b"):
        with pytest.raises(RecordError, match="file"):
            files.make_new_folder(str(tmp_path / folder))
