"""A run whose clients are all left out warns, and ends; nothing is pretended."""

import csv

import pytest


@pytest.mark.parametrize(("most", "rounds"), [(3, 3), (2, 2), (0, 4)])
def test_a_rate_that_breaks_every_client(run, tmp_path, most, rounds):
    out = tmp_path / "out"
    done = run(
        "--experiment=quickstart",
        "--priority=DS",
        "--rounds=4",
        "--clients_per_round=2",
        "--learning_rate=1e10",
        f"--most_lost_rounds={most}",
        f"--output_dir={out}",
        code=1 if most else 0,
    )
    with open(out / "DS" / "rounds.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == rounds
    assert {row["train_loss"] for row in found} == {""}
    assert "round 1: all 2 clients were left out" in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    if most:
        words = f"DS: in the rounds 1 to {most} all 2 clients were left out"
        assert words in last and f"what was recorded is in {out}" in last
    else:
        assert "DS: 8 of 8 trainings were left out" in done.stdout
