"""The files of a run folder: no link is followed, and nothing stays behind."""

import os

import pytest

from tff_pmc.experiments.record import files, run_folder
from tff_pmc.reports.record_error import RecordError

SETTINGS = {"settings": {"training": {"rounds": 3}}, "data": {"name": "m"}}


@pytest.fixture
def other(tmp_path):
    """A file outside of the run's folder."""
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


@pytest.fixture
def begun(tmp_path):
    """The folder of a run that was interrupted after its first round."""
    folder = run_folder.RunFolder(str(tmp_path / "run"), SETTINGS)
    folder.release_round({"round": 1, "accuracy": 0.5, "testing_rounds": 0})
    for name in ("clients", "cohort", "weights"):
        folder.append(name, [{"round": 1, "client": "a"}])
    folder.finish("interrupted")
    return tmp_path / "run"


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_the_place_of_the_new_run_json_is_not_followed(begun, other, link):
    link(other, begun / "run.json.new")
    folder = run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    folder.go_on_after(1)
    folder.finish("interrupted")
    assert other.read_text() == "precious"
    assert not (begun / "run.json").is_symlink()
    assert not os.path.lexists(begun / "run.json.new")


@pytest.mark.parametrize(
    "name", ["clients.csv", "timing.csv", ".lock", "checkpoints", "predictions/a"]
)
def test_a_folder_with_a_link_is_not_gone_on_with(begun, other, name):
    (begun / "predictions").mkdir()
    if os.path.exists(begun / name):
        os.unlink(begun / name)
    os.symlink(other.parent if name == "checkpoints" else other, begun / name)
    before = contents(begun)
    with pytest.raises(RecordError, match=f"{name} is a link or a device"):
        run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    assert contents(begun) == before and other.read_text() == "precious"


def test_a_link_that_comes_later_is_not_written_through(begun, other):
    folder = run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    os.symlink(other, begun / "timing.csv")
    with pytest.raises(OSError, match="timing.csv"):
        folder.append("timing", [{"round": 2, "train": 1}])
    folder.finish("interrupted")
    assert other.read_text() == "precious"


@pytest.mark.parametrize("key", ["status", "versions", "started", "resumed"])
def test_a_run_json_without_what_resuming_needs_is_refused(begun, key):
    path = begun / "run.json"
    path.write_text(path.read_text().replace(f'"{key}"', '"else"'))
    before = contents(begun)
    with pytest.raises(RecordError, match=f"run.json lacks '{key}'"):
        run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    assert contents(begun) == before


def test_rows_that_do_not_fit_are_an_error_that_names_their_file(begun):
    folder = run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    folder.append("timing", [{"round": 2}])
    descriptor = folder._files["timing"].fileno()
    with open("/dev/full", "wb") as full, open(os.devnull, "wb") as null:
        os.dup2(full.fileno(), descriptor)
        with pytest.raises(OSError, match="No space left on device.*timing.csv"):
            folder.append("timing", [{"round": 3}])
        os.dup2(null.fileno(), descriptor)
    folder.finish("interrupted")


def test_until_it_goes_on_nothing_is_changed(begun):
    before = contents(begun)
    folder = run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    assert (folder.complete_rounds(), folder.recorded_rounds()) == (1, 1)
    folder.finish("interrupted")
    assert contents(begun) == before


def test_leftovers_of_a_kill_are_swept_and_nothing_else(begun, other):
    keep = {"round_1.state", "broken_round_2.state", "round_2"}
    (begun / "checkpoints").mkdir()
    for name in keep:
        (begun / "checkpoints" / name).write_text("")
    (begun / "predictions").mkdir()
    for name in ("rounds.csv_temp1234", "run.json.new", "predictions/labels.npz.new"):
        (begun / name).write_text("")
    for name in ("round_2.state.new", "round_3.partial"):
        (begun / "checkpoints" / name).write_text("")
    os.symlink(other.parent, begun / "checkpoints" / "round_5_temp99")
    (begun / "checkpoints" / "round_4_temp1234" / "variables").mkdir(parents=True)
    before = {path.name for path in begun.iterdir() if path.suffix in (".csv", ".json")}
    os.unlink(begun / "checkpoints" / "round_5_temp99")
    folder = run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    os.symlink(other.parent, begun / "checkpoints" / "round_5_temp99")
    folder.go_on_after(1)
    folder.finish("interrupted")
    assert {path.name for path in (begun / "checkpoints").iterdir()} == keep
    assert list((begun / "predictions").iterdir()) == []
    names = {path.name for path in begun.iterdir() if path.suffix in (".csv", ".json")}
    assert names == before and other.exists()


def test_the_records_have_the_columns_that_their_header_says(begun):
    folder = run_folder.RunFolder(str(begun), SETTINGS, resume=True)
    with pytest.raises(RecordError, match="cohort.csv has other columns than round,c"):
        folder.append("cohort", [{"round": 2, "criterion": 1}])
    folder.finish("interrupted")


def test_rounds_csv_is_as_tff_wrote_it(begun):
    """With the columns in order, and the line ends that CSV has."""
    text = (begun / "rounds.csv").read_bytes()
    assert text == b"round,accuracy,testing_rounds\r\n1,0.5,0\r\n"


def test_what_a_failed_write_leaves_is_the_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replacing(str(path)) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["x"]
