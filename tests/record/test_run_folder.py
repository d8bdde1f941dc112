"""A run's folder: written round by round, cut to its checkpoint, never overwritten."""

import json
import os

import pytest

from tff_pmc.record import files, run_folder
from tff_pmc.record.record_error import InUseError, RecordError
from tff_pmc.record.run_folder import FolderLostError, RunFolder

SETTINGS = {"settings": {"training": {"rounds": 3}}, "data": {"name": "m"}}
TABLES = ("rounds.csv", "clients.csv", "cohort.csv", "timing.csv")


@pytest.fixture
def begun(tmp_path, record_of):
    """The folder of a run that was interrupted after two rounds, and its lengths."""
    folder = RunFolder(str(tmp_path / "run"), SETTINGS)
    lengths = [{}]
    for number in (1, 2):
        folder.write(record_of(number))
        lengths.append(folder.lengths())
    folder.finish("interrupted")
    return tmp_path / "run", lengths


@pytest.fixture
def again(begun):
    """The same folder, taken again."""
    folder = RunFolder(str(begun[0]), SETTINGS, resume=True)
    yield folder
    folder.finish("interrupted")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_are_on_disk_as_soon_as_they_are_written(tmp_path, record_of):
    """With the line ends of Unix; only tables that have rows are there."""
    folder = RunFolder(str(tmp_path / "run"), SETTINGS)
    folder.write(record_of(1))
    assert (tmp_path / "run" / "clients.csv").read_bytes() == (
        b"round,client,correct,examples\n"
        b'1,"a\nb",5,10\n1,"7,8\n9,x",30,30\n1,"say ""1,""",0,0\n'
    )
    found = {path.name for path in (tmp_path / "run").glob("*.csv")}
    assert found == {*TABLES}
    assert b"\r" not in b"".join(contents(tmp_path / "run").values())
    folder.finish("finished")
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert info["status"] == "finished" and info["format"] == files.FORMAT
    assert "tensorflow-federated" in info["versions"] and info["resumed"] == []


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_records_are_as_the_umask_says(tmp_path, record_of, mask):
    before = os.umask(mask)
    try:
        folder = RunFolder(str(tmp_path / "run"), SETTINGS)
        folder.write(record_of(1))
        folder.finish("finished")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in contents(tmp_path / "run")}
    assert modes == {0o666 & ~mask}


def test_results_are_never_overwritten_and_belong_to_one_process(tmp_path):
    (tmp_path / "precious.csv").write_text("1")
    with pytest.raises(RecordError, match="precious.csv"):
        RunFolder(str(tmp_path), {})
    with pytest.raises(RecordError, match="--output_dir"):
        files.make_empty_folder(str(tmp_path / "precious.csv" / "below"))
    folder = RunFolder(str(tmp_path / "run"), SETTINGS)
    with pytest.raises(InUseError, match="is in use: another run writes into it"):
        RunFolder(str(tmp_path / "run"), SETTINGS, resume=True)
    folder.finish("interrupted")
    RunFolder(str(tmp_path / "run"), SETTINGS, resume=True).finish("interrupted")


@pytest.mark.parametrize("round_num", [0, 1, 2])
@pytest.mark.parametrize("more", [b"", b"3,", b'3,"a\n4,b\n'])
def test_a_record_is_cut_to_a_checkpoint_and_resumes_as_if_it_had_not_been(
    begun, again, record_of, round_num, more
):
    path, lengths = begun
    # Equal runs have equal checkpoints: what differs in them is not in these.
    assert "timing.csv" not in lengths[2]
    whole = contents(path)
    for name in TABLES:
        (path / name).write_bytes((path / name).read_bytes() + more)
    (path / "class_f1.csv").write_bytes(b"round,class\n2,x\n")  # Of no checkpoint.
    again.resume_after(round_num, lengths[round_num])
    kept = {p.name: p.read_bytes() for p in path.glob("*.csv")}
    assert {*kept} == ({*TABLES} if round_num else set())
    for name, content in kept.items():
        assert whole[path / name].startswith(content)
    assert kept.get("timing.csv", b"").count(b"\n") == (round_num and round_num + 1)
    for number in range(round_num + 1, 3):
        again.write(record_of(number))
        assert again.lengths() == lengths[number]
    for name in TABLES:
        assert (path / name).read_bytes() == whole[path / name]


def test_until_it_resumes_nothing_is_changed(begun):
    path, lengths = begun
    before = contents(path)
    folder = RunFolder(str(path), SETTINGS, resume=True)
    assert folder.lengths() == lengths[2] and not folder.finished
    folder.finish("interrupted")
    assert contents(path) == before


@pytest.mark.parametrize(
    ("before", "rounds", "finished"),
    [
        ("interrupted", 3, False),
        ("finished", 3, True),
        # With more rounds it is not, unless it ended before its last round.
        ("finished", 9, True),
        ("finished after all rounds", 9, False),
    ],
)
def test_a_finished_run_stays_as_it_is(begun, record_of, before, rounds, finished):
    path, lengths = begun
    first = RunFolder(str(path), SETTINGS, resume=True)
    first.resume_after(2, lengths[2])
    if before.endswith("rounds"):
        first.write(record_of(3))
    first.finish(before.split()[0])
    settings = {**SETTINGS, "settings": {"training": {"rounds": rounds}}}
    folder = RunFolder(str(path), settings, resume=True)
    folder.finish("interrupted")
    assert folder.finished == finished


@pytest.mark.parametrize("key", ["status", "versions", "started", "resumed"])
def test_a_run_json_without_what_resuming_needs_is_refused(begun, key):
    path = begun[0] / "run.json"
    path.write_text(path.read_text().replace(f'"{key}"', '"else"'))
    before = contents(begun[0])
    with pytest.raises(RecordError, match=f"run.json lacks '{key}'"):
        RunFolder(str(begun[0]), SETTINGS, resume=True)
    assert contents(begun[0]) == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "must be a JSON object") for text in ("[]", "null", '"a"')),
        *((text, "cannot be read") for text in ("", "{", "[" * 100_000, "\udcff")),
        ("{}", "lacks 'label'"),
        (None, "is missing"),
    ],
)
def test_a_run_json_that_is_none_is_refused(tmp_path, text, says, assert_one_line):
    path = tmp_path / "run.json"
    if text is not None:
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    read = lambda: files.read_json(str(path), ["label"])  # noqa: E731
    assert_one_line(RecordError, read, path, says)


def test_rows_that_do_not_fit_are_an_error_that_names_their_file(
    tmp_path, record_of, monkeypatch
):
    folder = RunFolder(str(tmp_path / "run"), SETTINGS)

    def to_a_full_disk(path, mode, *unused):
        return open("/dev/full", mode) if mode == "ab" else open(path, mode)

    monkeypatch.setattr(run_folder, "open", to_a_full_disk, raising=False)
    with pytest.raises(OSError, match="No space left on device.*rounds.csv"):
        folder.write(record_of(1))
    monkeypatch.undo()
    folder.finish("interrupted")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: os.rename(run, f"{run}s"), "run was removed or replaced"),
        (lambda run: os.unlink(f"{run}/.lock"), "run was removed or replaced"),
        (lambda run: os.unlink(f"{run}/clients.csv"), "clients.csv was removed or"),
        (lambda run: os.truncate(f"{run}/cohort.csv", 9), "cohort.csv was removed or"),
    ],
    ids=["folder moved", "folder made anew", "table removed", "table cut off"],
)
def test_a_folder_that_is_lost_ends_the_run(tmp_path, record_of, damage, says):
    """With the next round; what is not there is not made again."""
    folder = RunFolder(str(tmp_path / "run"), SETTINGS)
    folder.write(record_of(1))
    damage(str(tmp_path / "run"))
    with pytest.raises(FolderLostError, match=says):
        folder.write(record_of(2))
    folder.finish("interrupted")
    assert len([*tmp_path.iterdir()]) == 1


def test_another_versions_columns_are_refused(begun, again, record_of):
    path, lengths = begun
    again.resume_after(2, lengths[2])
    text = (path / "rounds.csv").read_text().replace("p10", "p11")
    (path / "rounds.csv").write_text(text)
    with pytest.raises(RecordError, match="rounds.csv has other columns than"):
        again.write(record_of(3))


def test_leftovers_of_a_kill_are_swept_and_nothing_else(begun, again):
    path, lengths = begun
    keep = {"checkpoints": {"round_1.npz", "broken_round_2.npz", "x.newer"}}
    for folder in ("checkpoints", "predictions"):
        (path / folder).mkdir()
        for name in keep.get(folder, ()):
            (path / folder / name).write_text("")
        (path / folder / "round_2.npz.new").write_text("")
    (path / "candidates.csv").write_text("of a round after the checkpoint")
    for number in (2, 3):
        (path / "predictions" / f"round_000{number}.npz").write_text("")
    own = ["mine.csv", "mine.new", "predictions/round_3.txt", "predictions/mine.new"]
    for name in own:
        (path / name).write_text("notes")
    for name in ("run.json", "0123456789abcdef" * 2):  # A worker's trial, too.
        (path / f"{name}.new").write_text("")
    again.resume_after(2, lengths[2])
    found = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    kept = {f"checkpoints/{name}" for name in keep["checkpoints"]}
    record = {*TABLES, "run.json", ".lock", "predictions/round_0002.npz"}
    assert found == {*own, *kept, *record}
