"""A run's folder: written round by round, cut to its checkpoint, never overwritten."""

import json
import os

import numpy as np
import pytest

from tff_pmc.record import files, run_folder
from tff_pmc.record.record_error import FolderInUseError, RecordError
from tff_pmc.record.run_folder import FolderLostError, RunFolder

TABLES = ("rounds.csv", "clients.csv", "cohort.csv", "timing.csv")


def described(rounds=3):
    return {"settings": {"training": {"rounds": rounds}}, "data": {"name": "m"}}


def state(number):
    return [np.float32(number)]


def take(path, *, resume=True, **changes):
    return RunFolder(str(path), described(**changes), resume=resume)


def write(folder, record_of, *numbers):
    for number in numbers:
        folder.write(record_of(number))
        folder.save(state(number), number)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def interrupted_run(tmp_path, record_of):
    """The folder of a run that was interrupted after two rounds."""
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), take(path, resume=False) as folder:
        folder.save(state(0), 0)
        write(folder, record_of, 1, 2)
        raise KeyboardInterrupt
    return path


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_rows_are_on_disk_as_soon_as_they_are_written(tmp_path, record_of, mask):
    """As the umask says, with the line ends of Unix; tables without rows are absent."""
    path, before = tmp_path / "run", os.umask(mask)
    try:
        with take(path, resume=False) as folder:
            folder.write(record_of(1))
            assert (path / "clients.csv").read_bytes() == (
                b"round,client,correct,examples\n"
                b'1,"a\nb",5,10\n1,"7,8\n9,x",30,30\n1,"say ""1,""",0,0\n'
            )
            assert {file.name for file in path.glob("*.csv")} == {*TABLES}
            assert b"\r" not in b"".join(contents(path).values())
            folder.save(state(1), 1)
    finally:
        os.umask(before)
    info = json.loads((path / "run.json").read_text())
    assert info["status"] == "finished" and info["format"] == files.FORMAT
    assert "tensorflow-federated" in info["versions"] and info["resumed"] == []
    modes = {file.stat().st_mode & 0o777 for file in contents(path)}
    assert modes == {0o666 & ~mask}


def test_results_are_never_overwritten_and_belong_to_one_process(tmp_path):
    (tmp_path / "precious.csv").write_text("1")
    with pytest.raises(RecordError, match="precious.csv"):
        take(tmp_path)
    with pytest.raises(RecordError, match="below: Not a directory"):
        files.make_empty_folder(str(tmp_path / "precious.csv" / "below"))
    path = tmp_path / "run"
    path.mkdir()
    for leftover in (".lock", "run.json.new"):  # Of one that was killed at once.
        (path / leftover).write_text("")
    with take(path, resume=False):
        with pytest.raises(FolderInUseError, match="is in use: another run"):
            take(path)
    take(path).__exit__(None, None, None)


@pytest.mark.parametrize("round_num", [0, 1, 2])
@pytest.mark.parametrize("tail", [b"", b"3,", b'3,"a\n4,b\n'])
def test_a_record_is_cut_to_its_checkpoint_and_resumes_as_if_uninterrupted(
    tmp_path, interrupted_run, record_of, round_num, tail
):
    whole = contents(interrupted_run)
    path = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt), take(path, resume=False) as folder:
        folder.save(state(0), 0)
        write(folder, record_of, *range(1, round_num + 1))
        if round_num < 2:  # Its rows are there, and its checkpoint is not.
            folder.write(record_of(round_num + 1))
        raise KeyboardInterrupt
    if round_num:
        for name in TABLES:
            (path / name).write_bytes((path / name).read_bytes() + tail)
    (path / "class_f1.csv").write_bytes(b"round,class\n2,x\n")  # Of no checkpoint.
    with pytest.raises(KeyboardInterrupt), take(path) as folder:
        assert folder.load(state(9)) == (state(round_num or 9), round_num)
        assert not (path / "class_f1.csv").exists()
        write(folder, record_of, *range(round_num + 1, 3))
        raise KeyboardInterrupt
    for name in (*TABLES, "checkpoint.npz"):
        assert (path / name).read_bytes() == whole[interrupted_run / name]
    # Equal runs have equal checkpoints: what differs in them is not in these.
    with np.load(path / "checkpoint.npz") as checkpoint:
        assert {*checkpoint["tables"]} == {*TABLES} - {"timing.csv"}


def damage_table(path):
    (path / "clients.csv").write_bytes((path / "clients.csv").read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (
            lambda path: (path / "checkpoint.npz").unlink(),
            "has recorded rounds but no checkpoint",
        ),
        (lambda path: (path / "checkpoint.npz").write_text(""), "cannot be read"),
        (damage_table, "clients.csv is shorter than at the checkpoint of round 2"),
        (
            lambda path: (path / "cohort.csv").unlink(),
            "cohort.csv is shorter than at the checkpoint of roun",
        ),
    ],
)
def test_a_run_that_cannot_be_resumed_is_unchanged(
    interrupted_run, damage, says, assert_one_line
):
    damage(interrupted_run)
    before = contents(interrupted_run)
    with take(interrupted_run) as folder:
        assert_one_line(
            RecordError, lambda: folder.load(state(0)), says, str(interrupted_run)
        )
    assert contents(interrupted_run) == before


@pytest.mark.parametrize(
    ("ends", "recorded", "rounds", "is_complete"),
    [
        (KeyboardInterrupt, 2, 3, False),
        (None, 3, 3, True),
        # With more rounds it is not, unless it ended before its last round.
        (None, 2, 9, True),
        (None, 3, 9, False),
    ],
)
def test_a_finished_run_is_unchanged(
    interrupted_run, record_of, ends, recorded, rounds, is_complete
):
    folder = take(interrupted_run)
    with folder:
        folder.load(state(0))
        write(folder, record_of, *range(3, recorded + 1))
        folder.__exit__(ends, None, None)
    before = contents(interrupted_run)
    with take(interrupted_run, rounds=rounds) as again:
        assert again.is_complete == is_complete
    assert contents(interrupted_run) == before


@pytest.mark.parametrize("key", ["status", "versions", "started", "resumed"])
def test_a_run_json_without_what_resuming_needs_is_rejected(interrupted_run, key):
    path = interrupted_run / "run.json"
    path.write_text(path.read_text().replace(f'"{key}"', '"else"'))
    before = contents(interrupted_run)
    with pytest.raises(RecordError, match=f"run.json has no '{key}'"):
        take(interrupted_run)
    assert contents(interrupted_run) == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "must be a JSON object") for text in ("[]", "null", '"a"')),
        *((text, "cannot be read") for text in ("", "{", "[" * 100_000, "\udcff")),
        ("{}", "has no 'label'"),
        (None, "is missing"),
    ],
)
def test_a_file_that_is_not_a_run_json_is_rejected(
    tmp_path, text, says, assert_one_line
):
    path = tmp_path / "run.json"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    read = lambda: files.read_json(str(path), ["label"])  # noqa: E731
    assert_one_line(RecordError, read, path, says)


def test_invalid_rows_raise_and_name_their_file(tmp_path, record_of, monkeypatch):
    def to_a_full_disk(path, mode, *unused):
        return open("/dev/full", mode) if mode == "ab" else open(path, mode)

    monkeypatch.setattr(run_folder, "open", to_a_full_disk, raising=False)
    with pytest.raises(OSError, match="No space left on device.*rounds.csv"):
        with take(tmp_path / "run", resume=False) as folder:
            folder.write(record_of(1))


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: os.rename(run, f"{run}s"),
        lambda run: os.unlink(f"{run}/.lock"),
    ],
    ids=["folder moved", "folder made anew"],
)
def test_a_folder_that_is_lost_ends_the_run(tmp_path, record_of, damage):
    """With the next round; a file that is absent is not made again."""
    path = tmp_path / "run"
    with pytest.raises(FolderLostError, match="run was removed or replaced"):
        with take(path, resume=False) as folder:
            folder.write(record_of(1))
            damage(path)
            folder.write(record_of(2))
    assert len([*tmp_path.iterdir()]) == 1


def test_metrics_without_a_column_are_not_recorded(interrupted_run, record_of, caplog):
    """As of a run of an earlier version, which is resumed; one line names them."""
    head = (interrupted_run / "rounds.csv").read_text().splitlines()[0]
    with take(interrupted_run) as folder:
        folder.load(state(0))
        for number in (3, 4):
            folder.write(record_of(number, model_metrics={"auc": 0.5, "top_2": 0.25}))
    lines = (interrupted_run / "rounds.csv").read_text().splitlines()
    assert lines[0] == head and lines[-1].startswith("4,")
    (words,) = [r.getMessage() for r in caplog.records if "auc" in r.getMessage()]
    assert "no columns for the model's metrics auc, top_2" in words


def test_another_versions_columns_are_rejected(interrupted_run, record_of):
    text = (interrupted_run / "rounds.csv").read_text().replace("p10", "p11")
    (interrupted_run / "rounds.csv").write_text(text)
    with pytest.raises(RecordError, match="rounds.csv: its columns are not"):
        with take(interrupted_run) as folder:
            folder.load(state(0))
            folder.write(record_of(3))
