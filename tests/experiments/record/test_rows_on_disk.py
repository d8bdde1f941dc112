"""Records are counted and cut by the rows of CSV, whatever clients are called."""

import csv

import pytest

from tff_pmc.experiments.record import rows_on_disk
from tff_pmc.reports.record_error import RecordError

NAMES = ["a\nb", "7,8\n9,x", 'say "1,"', "plain", "=1+1|cmd"]


@pytest.fixture
def clients(tmp_path):
    """Three rounds of clients whose names have line breaks, commas and quotes."""
    path = tmp_path / "clients.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["round", "client", "correct"])
        writer.writerows([n, name, n] for n in (1, 2, 3) for name in NAMES)
    return path


def table(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_rounds_are_counted_by_rows(clients):
    path = str(clients)
    assert rows_on_disk.rows_by_round(path) == {1: 5, 2: 5, 3: 5}
    assert rows_on_disk.complete_rounds(path) == 3
    assert rows_on_disk.column(path, "client") == NAMES * 3
    assert rows_on_disk.column(path, "weight") == []
    assert rows_on_disk.last_round(path) == 3


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_record_is_cut_after_a_round(clients, last):
    whole = table(clients)
    rows_on_disk.cut_after(str(clients), last)
    assert table(clients) == whole[: 1 + 5 * last]


@pytest.mark.parametrize("lost", range(1, 40))
def test_a_cut_off_row_goes_wherever_it_was_cut(clients, lost):
    """In a name with a line break, too, whose first half looks like a row."""
    before = clients.read_bytes()
    clients.write_bytes(before[:-lost])
    assert rows_on_disk.complete_rounds(str(clients)) == 2
    rows_on_disk.cut_after(str(clients), 3)
    kept = clients.read_bytes()
    assert before.startswith(kept) and len(kept) <= len(before) - lost
    rows = table(clients)
    assert rows == table(clients)[: len(rows)] and {len(row) for row in rows} == {3}
    rows_on_disk.cut_after(str(clients), 2)
    assert len(table(clients)) == 1 + 10


@pytest.mark.parametrize(
    ("content", "rounds"),
    [
        (b"round,x\n1,2\n\xff,3\n", {1: 1}),
        (b"round,x\n1,2\n1,3,4\n", {1: 1}),
        (b"round,x\n1,2\n1\n1,2\n", {1: 1}),
        (b"round,x\n1,2\n\n1,2\n", {1: 1}),
        (b"round,x\n2,2\n1,2\n", {2: 1}),
        (b"round,x\n-1,2\n", {}),
        ("round,x\n²,2\n".encode(), {}),
        (b"round,x\n" + b"9" * 5000 + b",2\n", {}),
        (b'round,x\n1,"' + b"y" * (1 << 21) + b'"\n', {}),
        (b"round,x\n1,\0\0\n1," + b"z" * (1 << 21), {}),
        (b"", {}),
    ],
    ids=(
        "no text,cell more,cell less,empty row,round back,negative,no digit,"
        "many digits,long cell,zeros,empty"
    ).split(","),
)
def test_rows_end_where_they_are_none(tmp_path, content, rounds):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    found = rows_on_disk.rows_by_round(str(path))
    assert found == rounds or b"\0" in content and found == {1: 1}
    assert rows_on_disk.last_round(str(path)) == max(
        *rounds, *found, 1 if content else 0, 0
    )


def test_a_file_without_a_row_goes_so_that_the_next_makes_it_anew(clients):
    rows_on_disk.cut_after(str(clients), 0)
    assert not clients.exists()
    clients.write_text("round,cli")
    rows_on_disk.cut_after(str(clients), 3)
    assert not clients.exists()
    assert rows_on_disk.rows_by_round(str(clients)) == {}
    assert rows_on_disk.last_round(str(clients)) == 0


def test_a_folder_in_the_place_of_a_record_is_named(tmp_path):
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(RecordError, match="x.csv cannot be read"):
        rows_on_disk.rows_by_round(str(tmp_path / "x.csv"))
