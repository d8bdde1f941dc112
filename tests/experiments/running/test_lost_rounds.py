"""A run whose model stays as it is warns, and ends; nothing is pretended."""

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


def row(clients, excluded, rejected):
    return {"clients": clients, "excluded": excluded, "update_rejected": rejected}


GOOD, OUT, REJECTED = row(3, 1, 0), row(3, 3, 1), row(3, 0, 1)


@pytest.mark.parametrize(
    ("before", "then", "says"),
    [
        ([], [GOOD, OUT, OUT, GOOD, OUT, OUT, OUT], "in the rounds 5 to 7 all 3 clie"),
        ([], [REJECTED, OUT, REJECTED], "in the rounds 1 to 3 no client's score was"),
        # Those before a kill count, too.
        ([GOOD, OUT, OUT], [REJECTED], "in the rounds 2 to 4 no client's score was"),
        ([OUT, OUT, OUT], [], "in the rounds 1 to 3 all 3 clients were left out"),
    ],
)
def test_which_rounds_are_lost(before, then, says):
    from tff_pmc.experiments.running import callbacks

    lost = callbacks.LostRounds("DS", 3, before)
    done = [
        callbacks.RoundDone(number, {"rounds": [one]}, None, None, None, {})
        for number, one in enumerate(then, len(before) + 1)
    ]
    for one in done[:-1]:
        lost.after_round(one)
    with pytest.raises(callbacks.LostRunError, match=says):
        lost.after_round(done[-1]) if done else lost.check(len(before))


def test_the_others_are_made_and_a_lost_run_stays_lost(run, tmp_path):
    """The server's rate breaks one of two runs; the other has its tables."""
    out = tmp_path / "out"
    flags = [
        *("--experiment=quickstart", "--priority=DS", "--clients_per_round=2"),
        *("--systems=momentum,prioritized", "--momentum_eta=1e10"),
        *("--most_lost_rounds=2", f"--output_dir={out}"),
    ]
    run(*flags, "--rounds=2")
    for rounds in (5, 6):
        done = run(*flags, f"--rounds={rounds}", "--resume", code=1)
        last = done.stderr.strip().splitlines()[-1]
        assert "Momentum: in the rounds 2 to 3 all 2 clients were left out" in last
        with open(out / "momentum" / "rounds.csv", newline="") as file:
            assert len(list(csv.DictReader(file))) == 3
        with open(out / "DS" / "rounds.csv", newline="") as file:
            assert len(list(csv.DictReader(file))) == rounds
        assert "Momentum" not in (out / "results.csv").read_text()
