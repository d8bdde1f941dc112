"""What is kept of runs, packed where it is large, and read back the same."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest

from tff_pmc.record import plain_files, read, schema
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import compare, keeping, kept

CLIENTS = [tuple(range(10))] * 100
COUNTS = np.random.default_rng(0).integers(0, 11, (60, 100)).tolist()


@pytest.fixture
def runs(tmp_path, write_ours):
    """A folder of a long run, whose `clients.csv` is large, and a short one."""
    long = write_ours(tmp_path / "runs" / "DS", CLIENTS, COUNTS, priority=["DS"])
    write_ours(tmp_path / "runs" / "LD", CLIENTS, COUNTS[:2], priority=["LD"])
    (tmp_path / "runs" / "run.json").write_text("{}")
    (tmp_path / "runs" / "no run").mkdir()
    (tmp_path / "runs" / "no run" / "rounds.csv").write_text("round\n1\n")
    (tmp_path / "runs" / "table.md").write_text("A table.\n")
    # A table, however large, is no record: it is not packed.
    (tmp_path / "runs" / "results.csv").write_text("a,b\n" * keeping.LARGEST_PLAIN)
    (tmp_path / "runs" / ".lock").write_text("")
    (long / "checkpoints").mkdir()
    (long / "checkpoints" / "round_1.csv").write_text("no record\n")
    assert (long / "clients.csv").stat().st_size > keeping.LARGEST_PLAIN
    return tmp_path / "runs"


def test_a_large_record_is_kept_packed_and_read_the_same(runs, tmp_path):
    size = keeping.keep(str(runs), str(tmp_path / "kept"))
    paths = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    found = {str(path.relative_to(tmp_path / "kept")) for path in paths}
    small = {"run.json", "rounds.csv", "weights.csv"}
    assert found == {
        *("run.json", "table.md", "results.csv", "no run/rounds.csv"),
        *("DS/clients.csv.gz", "LD/clients.csv"),
        *(f"{run}/{name}" for run in ("DS", "LD") for name in small),
    }
    assert size == sum(path.stat().st_size for path in paths)
    packed = (tmp_path / "kept" / "DS" / "clients.csv.gz").read_bytes()
    plain = (runs / "DS" / "clients.csv").read_bytes()
    assert gzip.decompress(packed) == plain and len(packed) < len(plain) / 3
    paths = [run.path for run in kept.kept_runs(str(tmp_path / "kept"))]
    assert paths == [str(tmp_path / "kept" / name) for name in ("DS", "LD")]
    both = compare.compare(str(runs), str(tmp_path / "kept"), [70])
    assert (both["difference"].dropna() == 0).all() and len(both)


def test_the_command_says_where_and_how_much_or_why_not(runs, tmp_path):
    def command(*words):
        words = [sys.executable, "-m", "tff_pmc.reports.keeping", *map(str, words)]
        return subprocess.run(words, capture_output=True, text=True)

    done = command(runs, tmp_path / "kept")
    assert done.returncode == 0 and "kept: " in done.stdout
    again = command(runs, tmp_path / "kept")
    assert again.returncode == 2 and "is there already" in again.stderr
    assert again.stderr.count("\n") == 1


@pytest.mark.parametrize("what", ["none", "broken"])
def test_nothing_is_written_of_what_is_no_run(runs, tmp_path, what, assert_one_line):
    folder = runs if what == "broken" else tmp_path / "none"
    (runs / "DS" / "rounds.csv").write_text("")
    says = "rounds.csv" if what == "broken" else "none holds no run"
    target = str(tmp_path / "kept")
    assert_one_line(RecordError, lambda: keeping.keep(str(folder), target), says)
    assert not os.path.exists(target)


def packed_only(folder, data):
    (folder / "clients.csv").unlink()
    (folder / "clients.csv.gz").write_bytes(data)
    return str(folder)


@pytest.mark.parametrize("how", ["cut", "no gzip", "other bytes", "behind it"])
def test_a_damaged_packed_record_is_refused_by_name(runs, how, assert_one_line):
    good = gzip.compress((runs / "DS" / "clients.csv").read_bytes())
    damaged = {
        "cut": good[: len(good) // 2],
        "no gzip": gzip.decompress(good),
        "other bytes": good[:999] + bytes(9) + good[1008:],
        "behind it": good + b"more",
    }
    folder = packed_only(runs / "DS", damaged[how])
    assert_one_line(
        RecordError, lambda: read.read_run(folder), "clients.csv.gz cannot be unpacked"
    )


def test_a_few_bytes_that_unpack_to_very_many_are_refused(runs, monkeypatch):
    folder = packed_only(runs / "DS", gzip.compress(b"\n" * 3_000_000))
    path = os.path.join(folder, "clients.csv.gz")
    with pytest.raises(RecordError, match="unpacks to more than 2,000,000 bytes"):
        plain_files.open_packed(path, at_most=2_000_000)
    with plain_files.open_packed(path, at_most=3_000_000) as file:
        assert len(file.read()) == 3_000_000


def test_a_plain_record_counts_before_a_packed_one(runs):
    folder = runs / "LD"
    (folder / "clients.csv.gz").write_bytes(b"no gzip")
    assert schema.has_table(str(folder), "clients.csv")
    assert len(read.read_table(str(folder), "clients.csv")) == 200
