"""Tables of client attributes, from a CSV and from a dict, and accuracy by group."""

import csv
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import leaf_data
from tff_pmc.experiments import rows

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write(path, text):
    path.write_text(text)
    return str(path)


def test_a_csv_is_read(tmp_path):
    path = write(tmp_path / "t.csv", "client,trusted,battery\na,true,0.5\nb,0,1\n")
    table = leaf_data.read_client_table(path).of(["b", "a"])
    np.testing.assert_array_equal(table.values["trusted"], [0, 1])
    np.testing.assert_array_equal(table.values["battery"], [1, 0.5])
    assert table.values["battery"].dtype == np.float32


def test_a_dict_is_a_table_too():
    table = leaf_data.ClientTable.from_dict({"a": {"vip": True}, "b": {"vip": False}})
    np.testing.assert_array_equal(table.values["vip"], [1, 0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("client,vip\na,1.5\n", "client a: vip must be a boolean or in"),
        ("client,vip\na,perhaps\n", "client a: vip must be a boolean or in"),
        ("client,vip\na,\n", "client a: vip"),
        ("client,vip\na,nan\n", "client a: vip"),
        ("client,vip\na,1\na,0\n", "client a is there twice"),
        ("client,vip\na,1,2\n", "line 2 has the wrong number of fields"),
        ("client,vip\na\n", "line 2 has the wrong number of fields"),
        ("name,vip\na,1\n", "a column 'client'"),
        ("client\na\n", "at least one more"),
        ("", "a column 'client'"),
    ],
)
def test_a_wrong_table_is_refused_by_file_and_client(tmp_path, text, says):
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(leaf_data.DataError, match=says) as error:
        leaf_data.read_client_table(path)
    assert path in str(error.value)


def test_a_missing_file_and_a_missing_client_are_named(tmp_path):
    with pytest.raises(leaf_data.DataError, match="nowhere.csv"):
        leaf_data.read_client_table(str(tmp_path / "nowhere.csv"))
    table = leaf_data.ClientTable.from_dict({"a": {"vip": 1}})
    with pytest.raises(leaf_data.DataError, match="no row for b"):
        table.of(["a", "b"])
    with pytest.raises(leaf_data.DataError, match="client b: the attribute old"):
        leaf_data.ClientTable.from_dict({"a": {"vip": 1}, "b": {"old": 1}})


def test_accuracy_by_group_by_hand():
    correct, sizes = np.array([5, 9, 1, 3]), np.array([10, 10, 10, 5])
    table = {
        "vip": np.array([1, 0, 1, 0], np.float32),
        "battery": np.array([0.1, 0.2, 0.3, 0.9], np.float32),
    }
    found = {
        (row["attribute"], row["group"]): row["accuracy"]
        for row in rows.group_rows(1, table, correct, sizes)
    }
    assert found == {
        ("vip", "0"): 0.8,  # 12 of 15
        ("vip", "1"): 0.3,  # 6 of 20
        ("battery", "below median"): 0.7,  # 14 of 20
        ("battery", "median or above"): round(4 / 15, 6),
    }


@pytest.fixture
def table_of_all(tmp_path):
    lines = [f"client_{k:03d},{k % 2},{k / 100}" for k in range(100)]
    return write(tmp_path / "table.csv", "client,vip,battery\n" + "\n".join(lines))


def run(*arguments):
    return subprocess.run(
        [sys.executable, "run_experiments.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_from_the_command_line(table_of_all, tmp_path):
    """Clients that are no VIPs have weight 0, and groups are recorded."""
    folder = tmp_path / "out"
    done = run(
        "--experiment=quickstart",
        *("--rounds=1", "--local_epochs=1", "--criteria=DS,vip,battery"),
        *("--priority=vip,DS", f"--client_table={table_of_all}"),
        f"--output_dir={folder}",
    )
    assert done.returncode == 0, done.stderr
    with open(folder / "vip-DS" / "cohort.csv", newline="") as file:
        cohort = list(csv.DictReader(file))
    for row in cohort:
        odd = int(row["client"][-3:]) % 2
        assert float(row["vip"]) == odd
        assert (float(row["weight"]) > 0) == bool(odd)
    with open(folder / "vip-DS" / "groups.csv", newline="") as file:
        groups = list(csv.DictReader(file))
    assert [(g["attribute"], g["clients"]) for g in groups] == [
        *(("vip", "50"), ("vip", "50")),
        *(("battery", "50"), ("battery", "50")),
    ]


def test_inspect_takes_it_without_training(table_of_all):
    done = run("--inspect", "--criteria=DS,battery", f"--client_table={table_of_all}")
    assert done.returncode == 0, done.stderr
    assert "battery,DS" in done.stdout


def test_a_code_without_its_table_and_a_broken_table_are_one_line(tmp_path):
    done = run("--criteria=DS,vip")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "unknown criterion 'vip'" in done.stderr
    path = write(tmp_path / "t.csv", "client,vip\nclient_000,7\n")
    done = run("--criteria=DS,vip", f"--client_table={path}")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "client_000: vip" in done.stderr
