"""Client attributes on the command line: criteria, and accuracy by group."""

import pytest
from cli import ALONE, QUICK, refusal, run, table

import leaf_data
from tff_pmc.record.results import read_results
from tff_pmc.reports.statistics.client_groups import groups


def write(path, text):
    path.write_text(text)
    return str(path)


@pytest.fixture
def table_of_all(tmp_path):
    lines = [f"client_{k:03d},{k % 2},{k / 100}" for k in range(100)]
    return write(tmp_path / "table.csv", "client,vip,battery\n" + "\n".join(lines))


def test_a_client_table_is_used_from_the_command_line(table_of_all, tmp_path):
    """Clients that are not VIPs have weight 0, and the record has their groups."""
    folder = tmp_path / "out"
    run(
        *(*QUICK, "--rounds=1", "--criteria=DS,vip,battery"),
        *("--priority=vip,DS", f"--client_table={table_of_all}"),
        f"--output_dir={folder}",
    )
    for row in table(folder / "vip-DS" / "cohort.csv"):
        odd = int(row["client"][-3:]) % 2
        assert float(row["vip"]) == odd
        assert (float(row["weight"]) > 0) == bool(odd)
    attributes = leaf_data.read_client_table(table_of_all)
    group_rows = groups(read_results(str(folder / "vip-DS")), attributes)
    assert group_rows["attribute"].tolist() == ["vip", "vip", "battery", "battery"]
    assert group_rows["clients"].tolist() == [50] * 4


def test_inspect_shows_every_orderings_weights_and_trains_nothing(table_of_all):
    done = run("--inspect", "--criteria=DS,battery", f"--client_table={table_of_all}")
    assert "100 clients" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    orderings = [line[0] for line in lines if len(line) == 4 and line[0][0] in "Db"]
    assert orderings == ["DS", "battery", "DS,battery", "battery,DS"]
    assert "cohorts: 100%" in done.stderr and "3/3" in done.stderr


def test_inspect_trains_for_a_criterion_of_the_model():
    done = run(*QUICK, "--inspect", "--rounds=1")
    for name in ("DS ", "MD,LD,DS", "40 to", "effective"):
        assert name in done.stdout
    broken = run(*ALONE, "--inspect", "--learning_rate=1e10")
    assert broken.stdout.strip().endswith(
        "30 of 30 clients of the first cohorts were excluded: not finite, or above "
        "--max_update_norm."
    )


def test_inspect_needs_algorithms_that_measure_the_same():
    line = refusal("--experiment=quickstart", "--inspect", "--algorithms=afl,fednova")
    assert "the algorithms afl and fednova measure different criteria" in line


def test_a_code_without_its_table_and_a_broken_table_are_one_line(tmp_path):
    assert "unknown criterion 'vip'" in refusal("--criteria=DS,vip")
    path = write(tmp_path / "t.csv", "client,vip\nclient_000,7\n")
    line = refusal("--criteria=DS,vip", f"--client_table={path}")
    assert "client_000: vip" in line
