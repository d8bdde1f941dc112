"""A run's folder: written round by round, cut to its checkpoint, no link followed."""

import os
import shutil
import tempfile

import pytest

from tff_pmc.record import files, run_folder
from tff_pmc.record.record_error import RecordError

SETTINGS = {"settings": {"training": {"rounds": 3}}, "data": {"name": "m"}}
NAMES = ["a\nb", "7,8\n9,x", 'say "1,"', "=1+1|cmd"]


def write_round(folder, number):
    """A round of clients whose names have line breaks, commas and quotes."""
    row = {"round": number, "accuracy": 0.5, "testing_rounds": 0}
    clients = [{"round": number, "client": name} for name in NAMES]
    folder.release({"rounds": [row], "clients": clients, "groups": []})
    folder.append("timing", [{"round": number, "train": 0.1 * number}])
    return folder.lengths()


@pytest.fixture
def other(tmp_path):
    """A file outside of the run's folder."""
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


@pytest.fixture
def begun(tmp_path):
    """The folder of a run that was interrupted after two rounds, and its lengths."""
    folder = run_folder.RunFolder(str(tmp_path / "run"), SETTINGS)
    lengths = [{}, *(write_round(folder, number) for number in (1, 2))]
    folder.finish("interrupted")
    return tmp_path / "run", lengths


@pytest.fixture
def again(begun):
    """The same folder, taken again."""
    folder = run_folder.RunFolder(str(begun[0]), SETTINGS, resume=True)
    yield folder
    folder.finish("interrupted")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_are_on_disk_as_soon_as_they_are_appended(tmp_path):
    folder = run_folder.RunFolder(str(tmp_path / "run"), {"settings": {}})
    folder.append("clients", [{"round": 1, "client": "a"}])
    assert (tmp_path / "run" / "clients.csv").read_bytes() == b"round,client\n1,a\n"
    folder.finish("finished")
    text = (tmp_path / "run" / "run.json").read_text()
    assert '"status": "finished"' in text and "tensorflow-federated" in text


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_records_are_as_the_umask_says(tmp_path, mask):
    before = os.umask(mask)
    try:
        folder = run_folder.RunFolder(str(tmp_path / "run"), SETTINGS)
        write_round(folder, 1)
        folder.finish("finished")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in contents(tmp_path / "run")}
    assert modes == {0o666 & ~mask}


def test_rounds_csv_is_as_tff_wrote_it(begun):
    """With the columns in order, and the line ends that CSV has."""
    text = (begun[0] / "rounds.csv").read_bytes()
    assert text == b"round,accuracy,testing_rounds\r\n1,0.5,0\r\n2,0.5,0\r\n"


def test_results_are_never_overwritten(tmp_path):
    (tmp_path / "precious.csv").write_text("1")
    with pytest.raises(RecordError, match="precious.csv"):
        run_folder.RunFolder(str(tmp_path), {})
    with pytest.raises(RecordError, match="run.json: settings.targets must be a list"):
        run_folder.RunFolder(str(tmp_path / "run"), {"settings": {"targets": [0]}})
    assert os.listdir(tmp_path / "run") == [".lock"]
    with pytest.raises(RecordError, match="run.json has more than 4,194,304 bytes"):
        files.write_json(str(tmp_path), {"label": "x" * 5_000_000})
    with pytest.raises(RecordError, match="--output_dir"):
        files.make_empty_folder(str(tmp_path / "precious.csv" / "below"))


@pytest.mark.parametrize("round_num", [0, 1, 2])
@pytest.mark.parametrize("more", [b"", b"3,", b'3,"a\n4,b\n'])
def test_a_record_is_cut_to_a_checkpoint_and_goes_on_as_if_it_had_not_been(
    begun, again, round_num, more
):
    path, lengths = begun
    # Equal runs have equal checkpoints: what differs in them is not in these.
    assert set(lengths[round_num]) <= {"rounds.csv", "clients.csv"}
    whole = contents(path)
    for name in ("clients.csv", "rounds.csv", "timing.csv"):
        (path / name).write_bytes((path / name).read_bytes() + more)
    (path / "groups.csv").write_bytes(b"round,group\n2,x\n")  # Of no checkpoint.
    again.check(lengths[round_num])
    again.go_on_after(round_num, lengths[round_num])
    kept = {p.name: p.read_bytes() for p in path.glob("*.csv")}
    assert ("clients.csv" in kept) == (round_num > 0)
    for name, content in kept.items():
        assert whole[path / name].startswith(content)
    assert kept.get("timing.csv", b"").count(b"\n") == (round_num and round_num + 1)
    for number in range(round_num + 1, 3):
        assert write_round(again, number) == lengths[number]
    for name in ("clients.csv", "rounds.csv", "timing.csv"):
        assert (path / name).read_bytes() == whole[path / name]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda c: c[:-1], "the record lacks rows of its round: .*clients.csv"),
        (lambda c: b"", "the record lacks rows of its round: .*clients.csv"),
        (lambda c: c.replace(b"1,=1", b"2,=1"), "clients.csv is not what was written"),
        (lambda c: b"\n" + c, "clients.csv is not what was written"),
        (None, "the record lacks rows of its round: .*clients.csv"),
    ],
    ids="shorter,emptied,changed,longer at its beginning,deleted".split(","),
)
def test_a_record_that_is_not_what_was_written_is_refused(begun, again, damage, says):
    path, lengths = begun
    place = path / "clients.csv"
    place.write_bytes(damage(place.read_bytes())) if damage else place.unlink()
    before = contents(path)
    with pytest.raises(RecordError, match=says) as error:
        again.check(lengths[2])
    assert "\n" not in str(error.value) and contents(path) == before
    again.check(lengths[0])


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_the_place_of_the_new_run_json_is_not_followed(
    begun, again, other, link
):
    link(other, begun[0] / "run.json.new")
    again.go_on_after(1, begun[1][1])
    assert other.read_text() == "precious"
    assert not (begun[0] / "run.json").is_symlink()
    assert not os.path.lexists(begun[0] / "run.json.new")


@pytest.mark.parametrize(
    "name", ["clients.csv", "timing.csv", ".lock", "checkpoints", "predictions/a"]
)
def test_a_folder_with_a_link_is_not_gone_on_with(begun, other, name):
    path, _ = begun
    (path / "predictions").mkdir()
    if os.path.exists(path / name):
        os.unlink(path / name)
    os.symlink(other.parent if name == "checkpoints" else other, path / name)
    before = contents(path)
    with pytest.raises(RecordError, match=f"{name} is a link or a device"):
        run_folder.RunFolder(str(path), SETTINGS, resume=True)
    assert contents(path) == before and other.read_text() == "precious"


def test_a_link_that_comes_later_is_not_written_through(begun, again, other):
    for name, call in (
        ("groups.csv", lambda: again.append("groups", [{"round": 2}])),
        ("weights.csv", lambda: files.cut(str(begun[0] / "weights.csv"), 1)),
    ):
        os.symlink(other, begun[0] / name)
        with pytest.raises(OSError, match=name):
            call()
        assert other.read_text() == "precious"


@pytest.mark.parametrize("key", ["status", "versions", "started", "resumed"])
def test_a_run_json_without_what_resuming_needs_is_refused(begun, key):
    path = begun[0] / "run.json"
    path.write_text(path.read_text().replace(f'"{key}"', '"else"'))
    before = contents(begun[0])
    with pytest.raises(RecordError, match=f"run.json lacks '{key}'"):
        run_folder.RunFolder(str(begun[0]), SETTINGS, resume=True)
    assert contents(begun[0]) == before


def test_rows_that_do_not_fit_are_an_error_that_names_their_file(again):
    again.append("timing", [{"round": 3, "train": 1}])
    descriptor = again._files["timing.csv"].fileno()
    with open("/dev/full", "wb") as full, open(os.devnull, "wb") as null:
        os.dup2(full.fileno(), descriptor)
        with pytest.raises(OSError, match="No space left on device.*timing.csv"):
            again.append("timing", [{"round": 4, "train": 1}])
        os.dup2(null.fileno(), descriptor)


def test_until_it_goes_on_nothing_is_changed(begun):
    path, lengths = begun
    before = contents(path)
    folder = run_folder.RunFolder(str(path), SETTINGS, resume=True)
    folder.check(lengths[2])
    assert folder.has_rows
    folder.finish("interrupted")
    assert contents(path) == before


def test_leftovers_of_a_kill_are_swept_and_nothing_else(begun, again):
    path, lengths = begun
    keep = {"checkpoints": {"round_1.state", "broken_round_2.state", "x.newer"}}
    for folder in ("checkpoints", "predictions"):
        (path / folder).mkdir()
        for name in keep.get(folder, ()):
            (path / folder / name).write_text("")
        (path / folder / "round_2.state.new").write_text("")
    (path / "candidates.csv").write_text("of a round after the checkpoint")
    (path / "predictions" / "round_0003.npz").write_text("")
    own = ["mine.csv", "mine.new", "predictions/round_3.txt", "predictions/mine.new"]
    for name in own:
        (path / name).write_text("notes")
    for name in ("run.json", "0123456789abcdef" * 2):  # A worker's trial, too.
        (path / f"{name}.new").write_text("")
    again.go_on_after(2, lengths[2])
    found = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    kept = {f"checkpoints/{name}" for name in keep["checkpoints"]}
    record = {"rounds.csv", "clients.csv", "timing.csv", "run.json", ".lock"}
    assert found == {*own, *kept, *record}


def test_the_records_have_the_columns_that_their_header_says(again):
    with pytest.raises(RecordError, match="clients.csv has other columns than round,e"):
        again.append("clients", [{"round": 2, "examples": 1}])
    with pytest.raises(ValueError, match="weights.csv has no column 'weight' in its"):
        again.append("weights", [{"round": 2, "weight": 1}])


def test_without_room_for_temporary_files_the_folder_is_named(monkeypatch):
    files.check_temporary_room()
    full = shutil._ntuple_diskusage(1 << 30, 1 << 30, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(OSError, match=f"{tempfile.gettempdir()}: less than 1 MB is le"):
        files.check_temporary_room()
