"""A run that is cut off and resumed is the run that was not, bit for bit."""

import json
import pathlib
import shutil

import numpy as np
import pytest
from cli import ALONE, QUICK, mark_as_running, records, run, run_alone, table
from leaf_documents import write_leaf

ROUNDS = 5
FLAGS = [
    *QUICK,
    f"--rounds={ROUNDS}",
    "--batch_size=10",
    "--priority=LD,DS,MD",  # The last, as tests replace it.
]


def resume(folder, *flags, code=0):
    """Runs or resumes into a folder, in this process."""
    return run(*FLAGS, f"--output_dir={folder}", *flags, code=code)


def run_of(folder):
    """The run of the ordering in the folder."""
    return pathlib.Path(folder) / "LD-DS-MD"


def assert_same_run(a, b):
    """Checks that two folders have the same records and the same last state."""
    assert records(a, states=True) == records(b, states=True)


@pytest.fixture(scope="module")
def uninterrupted_run(tmp_path_factory):
    """The run without interruption."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    resume(folder)
    return folder


def rounds_done(folder):
    path = run_of(folder) / "rounds.csv"
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


@pytest.mark.slow
def test_the_same_flags_give_the_same_run_in_a_new_process(tmp_path):
    flags = [*ALONE, *FLAGS[len(QUICK) :]]
    run(*flags, f"--output_dir={tmp_path / 'here'}")
    done = run_alone(*flags, f"--output_dir={tmp_path / 'there'}")
    assert done.returncode == 0, done.stderr
    assert_same_run(tmp_path / "there", tmp_path / "here")


@pytest.fixture
def copy(uninterrupted_run, tmp_path):
    """The finished run as if it had been killed before `run.json` was written."""
    folder = tmp_path / "copy"
    shutil.copytree(uninterrupted_run, folder)
    mark_as_running(run_of(folder))
    return folder


def test_a_run_killed_before_its_first_row_is_made_again(uninterrupted_run, copy):
    """Also if its first state is not the one of this run: it is not used."""
    run = run_of(copy)
    for path in run.glob("*.csv"):
        path.unlink()
    resume(copy.with_name("other"), "--rounds=1", "--model_seed=5")
    other = run_of(copy.with_name("other")) / "checkpoint.npz"
    with np.load(other) as arrays:
        first = {**arrays, "round": 0, "tables": np.array([], "U"), "lengths": []}
    np.savez(run / "checkpoint.npz", **first)
    resume(copy, "--resume")
    assert_same_run(copy, uninterrupted_run)


def file_contents(folder):
    """All files of a folder: their bytes, and when they were written."""
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_without_a_checkpoint_nothing_is_changed(copy):
    (run_of(copy) / "checkpoint.npz").unlink()
    before = file_contents(copy)
    done = resume(copy, "--resume", code=2)
    assert len(done.stderr.splitlines()) == 1
    assert "rounds but no checkpoint.npz; nothing was changed" in done.stderr
    assert file_contents(copy) == before


def test_a_folder_may_get_more_rounds_and_orderings(uninterrupted_run, tmp_path):
    """They are what they had been if they had been asked for at once.

    What is finished is reported again and not touched.
    """
    folder = tmp_path / "out"
    resume(folder, "--rounds=3")
    resume(folder, "--resume")
    assert_same_run(folder, uninterrupted_run)
    (folder / "results.csv").unlink()
    before = file_contents(run_of(folder))
    run(*FLAGS[:-1], "--priority=LD,DS,MD;DS", f"--output_dir={folder}", "--resume")
    assert file_contents(run_of(folder)) == before and (folder / "results.csv").exists()
    assert rounds_done(folder) == ROUNDS
    plan = json.loads((folder / "run.json").read_text())
    assert plan["settings"]["orderings"] == ["LD,DS,MD", "DS"]
    longer = json.loads((run_of(folder) / "run.json").read_text())
    assert longer["settings"]["training"]["rounds"] == ROUNDS
    assert len(longer["resumed"]) == 1
    fewer = resume(folder, "--resume", code=2)
    assert "orderings: ['LD,DS,MD', 'DS'] there, ['LD,DS,MD'] here" in fewer.stderr


def test_a_comparison_may_get_more_rows_seeds_and_rounds(tmp_path):
    """It is then what it had been if it had been asked for at once."""
    rows = [
        "--rows=fedavg; qffl qffl_q=5",
        "--rows=fedavg; qffl qffl_q=5; fedavg learning_rate=0.2",
    ]
    grown, uninterrupted_run = (
        f"--output_dir={tmp_path / name}" for name in ("grown", "whole")
    )
    run(*QUICK, "--rounds=1", rows[0], "--seeds=0,1", grown)
    run(*QUICK, "--rounds=1", rows[1], "--seeds=0,1", grown, "--resume")
    last = [*QUICK, "--rounds=2", rows[1], "--seeds=0,1,2"]
    run(*last, grown, "--resume")
    run(*last, uninterrupted_run)
    assert records(tmp_path / "grown") == records(tmp_path / "whole")
    rates = run(*last, "--learning_rate=0.3", grown, "--resume", code=2)
    assert "learning_rate: 0.1 there, 0.3 here" in rates.stderr
    fewer = run(*last[:-2], rows[0], last[-1], grown, "--resume", code=2)
    assert (
        "orderings: ['FedAvg', 'q-FFL, q 5', 'FedAvg, learning rate 0.2'] there"
        in fewer.stderr
    )


EQUAL = ("fednova", "scaffold", "feddyn")
ALGORITHMS = (
    "afl",
    "scaffold",
    "feddyn",
    "q_fedavg",
    "fednova",
    "qffl",
    "term",
    "propfair",
    "inverse_accuracy",
)


@pytest.mark.parametrize(
    "algorithm",
    [
        *ALGORITHMS[:3],
        *(pytest.param(s, marks=pytest.mark.slow) for s in ALGORITHMS[3:]),
    ],
)
def test_algorithms_resume_with_their_whole_state(tmp_path, algorithm):
    """The weights that AFL learns are in the state; in the last round they differ."""
    flags = [*FLAGS[:-1], f"--algorithms={algorithm}"]
    for folder, rounds in (("whole", 3), ("out", 1), ("out", 3)):
        extra_flags = ["--resume"] if (folder, rounds) == ("out", 3) else []
        into = f"--output_dir={tmp_path / folder}"
        run(*flags, f"--rounds={rounds}", into, *extra_flags)
    uninterrupted_run = records(tmp_path / "whole", states=True)
    assert records(tmp_path / "out", states=True) == uninterrupted_run
    (name,) = (name for name in uninterrupted_run if name.endswith("cohort.csv"))
    weights = [
        line.split(b",")[-1] for line in uninterrupted_run[name].splitlines()[-10:]
    ]
    assert len(set(weights)) > 1 or algorithm in EQUAL  # Clients of one size.


def write_plays(folder):
    """Three roles of different sizes, as LEAF's Shakespeare."""
    verse = "Now is the winter of our discontent made glorious summer by this sun of "
    for part, sizes in (("train", (5, 9, 14)), ("test", (3, 4, 5))):
        texts = [(verse * 2)[k : k + 81] for k in range(sum(sizes))]
        users = {
            f"ROLE_{k}": {
                "x": [text[:80] for text in texts[:size]],
                "y": [*verse[:size]],
            }
            for k, size in enumerate(sizes)
        }
        write_leaf(folder / part / f"all_data_niid_1_keep_0_{part}_9.json", users)


def write_tweets(folder):
    """Three accounts of different sizes, as LEAF's Sent140."""
    for part, sizes in (("train", (4, 6, 9)), ("test", (2, 3, 4))):
        users = {
            f"account_{k}": {
                "x": [["1", "date", "q", "u", f"so good {n} {k}"] for n in range(size)],
                "y": [4 * (n % 2) for n in range(size)],
            }
            for k, size in enumerate(sizes)
        }
        write_leaf(folder / part / f"all_data_niid_1_keep_3_{part}_9.json", users)


@pytest.mark.parametrize(
    ("dataset", "write", "flags"),
    [
        pytest.param(
            *("shakespeare", write_plays, ["--learning_rate=0.8"]),
            marks=pytest.mark.slow,
        ),
        ("sent140", write_tweets, ["--max_words=4", "--vocabulary_size=8"]),
    ],
)
def test_text_resumes_from_its_files_and_from_its_cache(
    tmp_path, dataset, write, flags
):
    """The first load writes the cache, the others read it; the models are LEAF's."""
    write(tmp_path / "data")
    flags = [
        *("--experiment=quickstart", f"--dataset={dataset}", "--clients_per_round=2"),
        *(f"--data_dir={tmp_path / 'data'}", "--local_epochs=1", "--batch_size=4"),
        *("--priority=LD,DS,MD", "--max_client_examples=8", *flags),
    ]
    halves, whole = (f"--output_dir={tmp_path / name}" for name in ("halves", "whole"))
    run(*flags, "--rounds=2", halves)
    run(*flags, "--rounds=4", halves, "--resume")
    run(*flags, "--rounds=4", whole)
    assert_same_run(tmp_path / "halves", tmp_path / "whole")
    rounds = table(run_of(tmp_path / "whole") / "rounds.csv")
    assert len({row["train_loss"] for row in rounds}) == 4


def test_a_folder_that_this_run_cannot_continue_is_rejected_in_one_line(
    uninterrupted_run, copy, tmp_path
):
    """Another run's, that of an earlier version, none, and one that is in use."""
    from tff_pmc.record import files

    other = ("--learning_rate=0.2", "--cohort_seed=5", "--rounds=4")
    done = resume(uninterrupted_run, "--resume", *other, code=2)
    for words in ("learning_rate: 0.1 there, 0.2 here", "cohort_seed: 0 there, 5 here",
                  f"rounds: {ROUNDS} there, 4 here"):  # fmt: skip
        assert words in done.stderr
    assert "batch_size" not in done.stderr
    with files.lock_folder(str(run_of(copy))):
        held = resume(copy, "--resume", code=2)
    path = copy / "run.json"
    path.write_text(path.read_text().replace('"format": 4,', '"format": 3,'))
    earlier, none = (
        resume(path, "--resume", code=2) for path in (copy, tmp_path / "none")
    )
    assert "an earlier version with another format wrote it" in earlier.stderr
    assert "it contains no run" in none.stderr and not (tmp_path / "none").exists()
    assert "is in use" in held.stderr
    for refused in (done, held, earlier, none):
        assert len(refused.stderr.splitlines()) == 1
