"""The command line as a user runs it."""

import csv
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SMALL = ["--experiment=quickstart", "--rounds=2", "--local_epochs=1"]


def command(*arguments):
    return [sys.executable, str(ROOT / "run_experiments.py"), *map(str, arguments)]


def run(*arguments, cwd=ROOT, timeout=180):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=cwd, timeout=timeout
    )


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_help_imports_no_tensorflow():
    """In under two seconds: TensorFlow and TFF alone take longer."""
    code = (
        "import sys, runpy; sys.argv = ['run_experiments.py', '--help']\n"
        "try: runpy.run_path('run_experiments.py', run_name='__main__')\n"
        "except SystemExit as end: print('exit', end.code)\n"
        "print('tensorflow' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.endswith("exit 0\nFalse False\n"), done.stderr
    assert "--priority" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--experiment=nothing"], "--experiment=nothing is unknown; there are quick"),
        (["--priority=DS,XX"], "--priority=DS,XX: unknown criterion 'XX'"),
        (["--priority=LD,LD"], "LD,LD names a criterion twice"),
        (["--rounds=0"], "--rounds must be at least 1"),
        (["--rounds=many"], "--rounds=many"),
        (["--learning_rate=-1"], "--learning_rate must be above 0"),
        (["--no_such_flag"], "no_such_flag"),
        (["stray"], "unexpected argument: stray"),
        (["--flagfile=missing.flags"], "missing.flags"),
        (["--criteria=DS,MD", "--priority=LD"], "declared criteria are DS, MD"),
        (["--clients_per_round=inf"], "--clients_per_round must be"),
        (["--seed=-1"], "--seed must be in"),
        (["--criteria="], "--criteria="),
        (["--priority=DS,,LD"], "--priority=DS,,LD"),
        (["--normalization=range"], "needs --criteria_ranges"),
        (["--data_dir=/no/such/dir"], "--data_dir=/no/such/dir is no folder"),
        (["--adjustment=greedy"], "--adjustment=greedy: value should be one of"),
        (["--judge_on=train"], "--judge_on=train: value should be one of"),
        (["--protocol=authors"], "--protocol=authors: value should be one of"),
        (
            ["--experiment=femnist", "--protocol=reference_code"],
            "no such protocol for femnist",
        ),
        (["--experiment=lr_search", "--learning_rates=0.1,x"], "--learning_rates=0.1"),
        (["--experiment=lr_search", "--learning_rates=0.1,0.1"], "each once"),
        (["--experiment=lr_search", "--priority=LD"], "--priority does not go with"),
        (["--seeds=1"], "--seeds=1: name two or more seeds"),
        (["--adjustment=backtracking", "--priority=DS"], "has nothing to adjust"),
        (["--sample_fraction=0.1"], "--sample_fraction is of no use with digits5k"),
        (["--cache_dir=/tmp"], "--cache_dir is of no use with digits5k"),
        (["--validation_fraction=0.1"], "goes with --judge_on=local_validation"),
        (["--seeds=1,2", "--cohort_seed=3"], "--seeds sets all seeds"),
        (["--seeds=1,2", "--priority=LD"], "--seeds holds every ordering against DS"),
        (["--dropout=0.5"], "--dropout is of no use with mnist_cnn"),
        (["--experiment=lr_search", "--search_for=adafed_1"], "compares systems"),
        (["--systems=fedavg"], "--systems is of no use with quickstart"),
        (["--alpha=0.3"], "--alpha is of no use with the runs"),
        (["--experiment=adafed_1", "--beta=0.3"], "--beta is of no use"),
        (["--experiment=adafed_1", "--systems="], "--systems is empty"),
        (["--experiment=adafed_1", "--systems=sgd"], "adafed_1 has no 'sgd'"),
        (["--experiment=adafed_1", "--score=owa"], "--score does not go with"),
        (["--experiment=adafed_1", "--normalization=max"], "does not go with adafed_1"),
        (["--experiment=adafed_1", "--judge_on=server"], "--judge_on is of no use"),
        (
            ["--experiment=adafed_1", "--seeds=1,2", "--systems=adafed"],
            "name fedavg in --systems, too",
        ),
        (["--experiment=adafed_2", "--num_adversaries=1"], "is of adafed_3"),
        (["--experiment=dual_criterion", "--num_clients=5"], "no run of so many"),
        (
            ["--experiment=dual_criterion", "--quantization_levels=100"],
            "--quantization_levels must be a power of two",
        ),
    ],
)
def test_a_bad_flag_is_one_line_and_exit_code_2(arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--experiment=mnist_iid", "--data_dir=/no/such/dir"], "/no/such/dir"),
        (["--clients_per_round=101"], "--clients_per_round=101"),
        (["--criteria=DS,IS"], "IS needs to know of each example whether it is sharp"),
        (["--model=celeba_cnn"], "--model=celeba_cnn takes images of (64, 64, 3)"),
        (["--output_dir=/dev/null/below"], "--output_dir=/dev/null/below"),
    ],
)
def test_a_bad_folder_is_one_line_and_exit_code_2(arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two orderings on the embedded digits."""
    folder = tmp_path_factory.mktemp("cli") / "out"
    done = run(
        *SMALL,
        *("--priority=DS", "--priority=LD,MD,DS", f"--output_dir={folder}"),
    )
    assert done.returncode == 0, done.stderr
    return folder, done


def test_a_run_leaves_a_record_and_shows_its_table(finished):
    folder, done = finished
    assert "Rounds until a share of the devices" in done.stdout
    assert "LD,MD,DS" in done.stdout
    assert "round" in done.stderr and "accuracy" in done.stderr  # The progress bar.
    assert (folder / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    rows = table(folder / "results.csv")
    assert {row["experiment"] for row in rows} == {"DS", "LD,MD,DS"}
    assert {row["quantity"] for row in rows} == {"rounds", "gain"}


def test_the_record_is_complete(finished):
    folder, _ = finished
    for name in ("DS", "LD-MD-DS"):
        info = json.loads((folder / name / "run.json").read_text())
        assert info["status"] == "finished"
        assert info["settings"]["cohort_seed"] == 0
        assert info["versions"]["tensorflow-federated"] == "0.87.0"
        rounds = table(folder / name / "rounds.csv")
        assert [row["round"] for row in rounds] == ["1", "2"]
        clients = table(folder / name / "clients.csv")
        assert len(clients) == 200
        for row in rounds:
            hits = sum(
                int(client["correct"])
                for client in clients
                if client["round"] == row["round"]
            )
            assert hits == int(row["correct"])
        cohort = table(folder / name / "cohort.csv")
        assert len(cohort) == 20
        assert len(table(folder / name / "weights.csv")) == 18


def test_orderings_are_compared_on_paired_seeds(finished):
    """Round 1 starts from one model: the criteria agree, the weights differ."""
    folder, _ = finished
    first = table(folder / "DS" / "cohort.csv")[:10]
    second = table(folder / "LD-MD-DS" / "cohort.csv")[:10]
    for column in ("client", "DS", "LD", "MD"):
        assert [row[column] for row in first] == [row[column] for row in second]
    assert [row["weight"] for row in first] == ["0.1"] * 10
    assert [row["weight"] for row in second] != ["0.1"] * 10


def test_an_adjusted_run_beside_a_fixed_one(tmp_path):
    """One command; judged on a fifth of the training examples, which nobody trains on.

    An ordering of one criterion has nothing to adjust: it is run once, as it is.
    """
    folder = tmp_path / "out"
    done = run(
        *SMALL,
        *("--rounds=4", "--priority=MD,DS,LD", "--priority=DS", "--learning_rate=0.3"),
        *("--adjustment=best_of_all", "--judge_on=local_validation"),
        f"--output_dir={folder}",
    )
    assert done.returncode == 0, done.stderr
    assert "MD,DS,LD (best_of_all)" in done.stdout
    adjusted, fixed = folder / "MD-DS-LD_best_of_all", folder / "DS"
    assert not (fixed / "candidates.csv").exists()
    rounds, tried = table(adjusted / "rounds.csv"), table(adjusted / "candidates.csv")
    assert len(tried) == 4 * 6
    for row in rounds:
        own = [t for t in tried if t["round"] == row["round"]]
        assert [t["trial"] for t in own] == list("123456")
        (kept,) = [t for t in own if t["kept"] == "1"]
        assert kept["ordering"] == row["ordering"]
        assert int(kept["correct"]) == max(int(t["correct"]) for t in own)
        assert {t["examples"] for t in own} == {"800"}  # 100 clients, 8 of 40 each.
        assert row["testing_rounds"] == "6" and row["examples"] == "1000"
        model = 1_663_370 * 4
        assert int(row["test_bytes"]) == 6 * 100 * (model + 4)
    assert int(rounds[0]["train_bytes"]) == 10 * (8 * model + 8 + 7 * 4 + 3 * 4 + 4 * 4)
    for path in (adjusted, fixed):
        assert {row["DS"] for row in table(path / "cohort.csv")} == {"32.0"}
    for row in table(fixed / "rounds.csv"):
        assert row["testing_rounds"] == row["test_bytes"] == "0"


def test_predictions_are_the_counts_and_survive_a_resume(tmp_path):
    """Recorded answers add up to the record; those of lost rounds are made again."""
    import numpy as np

    folder = tmp_path / "out"
    flags = [*SMALL, "--priority=DS", "--predictions", f"--output_dir={folder}"]
    assert run(*flags).returncode == 0
    predictions = folder / "DS" / "predictions"
    labels = np.load(predictions / "labels.npz")
    counts = []
    for name in ("round_0001.npz", "round_0002.npz"):
        right = np.load(predictions / name)["predicted"] == labels["y"]
        counts += [
            int(part.sum()) for part in np.split(right, labels["row_splits"][1:-1])
        ]
    rows = table(folder / "DS" / "clients.csv")
    assert counts == [int(row["correct"]) for row in rows]
    assert list(labels["client_ids"]) == [row["client"] for row in rows[:100]]

    before = {p.name: p.read_bytes() for p in predictions.iterdir()}
    info = folder / "DS" / "run.json"
    info.write_text(info.read_text().replace('"finished"', '"running"'))
    shutil.rmtree(folder / "DS" / "checkpoints" / "round_2")
    (predictions / "round_0002.npz").write_bytes(b"of a round that is run again")
    (predictions / "round_0003.npz").write_bytes(b"of a round that never was")
    assert run(*flags, "--resume").returncode == 0
    assert {p.name: p.read_bytes() for p in predictions.iterdir()} == before


@pytest.fixture
def leaf_folder(tmp_path):
    """Six writers in LEAF's form: two files, 10 training and 2 test images each."""
    generator = random.Random(1)
    for number in range(2):
        for part, count in (("train", 10), ("test", 2)):
            users = [f"f000{number}_{k}" for k in range(3)]
            data = {
                user: {
                    "x": [
                        [round(generator.random(), 2) for _ in range(784)]
                        for _ in range(count)
                    ],
                    "y": [generator.randrange(62) for _ in range(count)],
                }
                for user in users
            }
            folder = tmp_path / "femnist" / "data" / part
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"all_data_{number}_niid_1_keep_0_{part}_9.json").write_text(
                json.dumps(
                    {
                        "users": users,
                        "num_samples": [count] * 3,
                        "user_data": data,
                    }
                )
            )
    return tmp_path / "femnist"


def test_femnist_from_leafs_files_to_table_1(leaf_folder, tmp_path):
    """Backtracking beside DS from one command, and resumed; no real data needed."""
    folder = tmp_path / "out"
    flags = [
        *("--experiment=femnist", f"--data_dir={leaf_folder}", "--rounds=2"),
        *("--clients_per_round=2", "--local_epochs=1", "--priority=MD,DS,LD"),
        *("--priority=DS", "--adjustment=backtracking", f"--output_dir={folder}"),
    ]
    done = run(*flags)
    assert done.returncode == 0, done.stderr
    assert "Table 1 of the device-aware paper" in done.stdout
    assert (leaf_folder / "data" / "femnist_cache" / "femnist.npz").exists()
    adjusted = folder / "MD-DS-LD_backtracking"
    assert {row["examples"] for row in table(adjusted / "candidates.csv")} == {"12"}
    assert (folder / "table1.md").exists() and (folder / "table1.csv").exists()
    plot = folder / "adjustment_MD-DS-LD_backtracking.png"
    assert plot.read_bytes().startswith(b"\x89PNG")

    before = {p.name: p.read_bytes() for p in adjusted.glob("*.csv")}
    info = adjusted / "run.json"
    info.write_text(info.read_text().replace('"finished"', '"running"'))
    tried = adjusted / "candidates.csv"
    tried.write_bytes(tried.read_bytes()[:-5])  # A row lost after its checkpoint.
    done = run(*flags, "--resume")
    assert done.returncode == 0, done.stderr
    assert "the record lacks rows" in done.stderr
    after = {p.name: p.read_bytes() for p in adjusted.glob("*.csv")}
    assert {**after, "timing.csv": b""} == {**before, "timing.csv": b""}


def test_without_any_test_example_nothing_is_begun(leaf_folder, tmp_path):
    done = run(
        *("--experiment=femnist", f"--data_dir={leaf_folder}", "--rounds=1"),
        *("--sample_fraction=0.08", "--clients_per_round=1"),
        f"--output_dir={tmp_path / 'out'}",
    )
    assert done.returncode == 2, done.stdout
    assert "no client of femnist has test examples" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_adjustment_without_a_priority_is_of_all_criteria():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import run_experiments as r; "
            "r.FLAGS(['x', '--adjustment=backtracking']); "
            "print([c.label for c in r.parse()])",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stdout == "['DS,LD,MD (backtracking)']\n", done.stderr


def test_several_seeds_end_in_a_page_of_effects(tmp_path):
    folder = tmp_path / "out"
    flags = [
        *(*SMALL, "--priority=DS", "--priority=LD", "--reach=above"),
        f"--output_dir={folder}",
    ]
    done = run(*flags, "--seeds=3,5")
    assert done.returncode == 0, done.stderr
    assert "Under 5 seeds nothing is claimed" in done.stdout
    assert "--reach=above" in (folder / "effect.md").read_text()
    for name in ("DS", "LD"):
        apart = {row["ordering"]: row for row in table(folder / "effect_distances.csv")}
        assert float(apart[name][name]) == 0 < float(apart["DS"]["LD"])
    effects = {
        (row["ordering"], row["verdict"]) for row in table(folder / "effect.csv")
    }
    assert effects == {("LD", "undecided")}
    seeds = [
        json.loads((folder / f"seed_{seed}" / "LD" / "run.json").read_text())[
            "settings"
        ]
        for seed in (3, 5)
    ]
    assert (
        [s["cohort_seed"] for s in seeds] == [s["model_seed"] for s in seeds] == [3, 5]
    )
    before = (folder / "effect.md").read_bytes()
    (folder / "effect.md").unlink()
    assert run(*flags, "--seeds=3,5", "--resume").returncode == 0
    assert (folder / "effect.md").read_bytes() == before
    other = run(*flags, "--seeds=3,6", "--resume")
    assert other.returncode == 2 and "seeds: [3, 5] there" in other.stderr


def test_the_rate_is_searched_on_validation_examples(tmp_path):
    folder = tmp_path / "out"
    done = run(
        *("--experiment=lr_search", "--search_for=quickstart", "--rounds=3"),
        *("--learning_rates=0.1,1e-6", "--local_epochs=1", f"--output_dir={folder}"),
    )
    assert done.returncode == 0, done.stderr
    rows = table(folder / "rates.csv")
    assert [row["learning_rate"] for row in rows] == ["0.1", "1e-06"]
    assert [row["rounds"] for row in rows] == ["", ""]
    assert "First: none; the best accuracy is that of 0.1" in done.stdout
    clients = table(folder / "rate_0.1" / "clients.csv")
    assert {row["examples"] for row in clients} == {"8"}  # A fifth of 40.


def test_results_are_never_overwritten(finished):
    folder, _ = finished
    before = (folder / "results.csv").read_bytes()
    done = run(*SMALL, f"--output_dir={folder}")
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert (folder / "results.csv").read_bytes() == before


def test_inspect_trains_nothing_without_a_model_criterion():
    done = run("--experiment=quickstart", "--inspect", "--criteria=DS,LD")
    assert done.returncode == 0, done.stderr
    assert "100 clients" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    orderings = [line[0] for line in lines if len(line) == 4 and line[0][0] in "DL"]
    assert orderings == ["DS", "LD", "DS,LD", "LD,DS"]


def test_inspect_shows_every_orderings_weights():
    done = run("--experiment=quickstart", "--inspect", "--rounds=1")
    assert done.returncode == 0, done.stderr
    for name in ("DS ", "MD,LD,DS", "40 to", "effective"):
        assert name in done.stdout


def test_a_pipe_that_closes_early_does_not_hang(tmp_path):
    line = " ".join(command(*SMALL, f"--output_dir={tmp_path / 'out'}"))
    done = subprocess.run(
        ["bash", "-c", f"{line} 2>/dev/null | head -n 1"],
        capture_output=True,
        text=True,
        timeout=180,
        cwd=ROOT,
    )
    assert done.stdout.startswith("digits5k")
    assert len(done.stdout.splitlines()) == 1


def start_until_the_first_round(folder):
    """A long run, as soon as its first round is recorded."""
    process = subprocess.Popen(
        command("--experiment=quickstart", "--rounds=1000", f"--output_dir={folder}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    rounds = folder / "DS" / "rounds.csv"
    deadline = time.monotonic() + 120
    while not (rounds.exists() and len(rounds.read_text().splitlines()) > 1):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.2)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_recorded(tmp_path, number):
    folder = tmp_path / "out"
    process = start_until_the_first_round(folder)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"--output_dir={folder} --resume" in err.splitlines()[-1]
    assert "Traceback" not in err and "asyncio" not in err
    info = json.loads((folder / "DS" / "run.json").read_text())
    assert info["status"] == "interrupted"


def test_every_flagfile_parses():
    """Each names flags that exist and an experiment that can be built."""
    for path in sorted((ROOT / "experiments").glob("*.flags")):
        code = (
            "import sys, run_experiments as r; "
            "r.FLAGS(['x', sys.argv[1]]); print(*r.parse())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, f"--flagfile={path}"],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        assert done.returncode == 0, (path, done.stderr)


@pytest.mark.parametrize("seconds", [1.0, 1.5, 2.0])
def test_an_interrupt_during_the_imports_is_one_line(tmp_path, seconds):
    process = subprocess.Popen(
        command(*SMALL, f"--output_dir={tmp_path / 'out'}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err.splitlines()[-1]


def test_every_registered_criterion_runs_from_the_command_line(tmp_path):
    from tff_pmc import criteria

    # Sharpness is of faces, and ACC of servers that have examples.
    codes = [code for code in criteria.REGISTRY if code not in ("IS", "ACC")]
    flag = f"--criteria={','.join(codes)}"
    done = run(*SMALL, flag, f"--output_dir={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path / "out" / "DS" / "cohort.csv")
    for code in codes:  # CB is 0 for a client of one class.
        assert max(float(row[code]) for row in rows) > 0, code


@pytest.mark.parametrize(
    ("flag", "folder", "says"),
    [
        ("export", "none", "none is no run of ours: it has no run.json"),
        ("export", "kept", "kept has run.json but no clients.csv"),
        ("tables", "none", "none is no folder"),
        ("tables", "kept", "kept has run.json but no clients.csv"),
        ("compare", "kept", "kept has run.json but no clients.csv"),
        ("compare", "", " has run.json but no clients.csv"),  # What holds it.
    ],
)
def test_folders_that_are_no_runs_are_named_in_one_line(tmp_path, flag, folder, says):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "run.json").write_text('{"settings": {}}')
    path = tmp_path / folder
    done = run(
        f"--{flag}={path},{path}" if flag == "compare" else f"--{flag}={path}",
        *("--experiment=celeba", f"--output_dir={tmp_path / 'out'}"),
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert says in done.stderr and "Errno" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_faces_from_their_files_to_pmcs_tables(tmp_path):
    """A drawn stand-in in CelebA's layout: run, resumed, exported and compared."""
    from leaf_data import drawn_faces

    drawn_faces.write(tmp_path / "faces", 24, 12, seed=1)
    folder = tmp_path / "out"
    flags = [
        *("--experiment=celeba", f"--data_dir={tmp_path / 'faces'}", "--rounds=2"),
        *("--priority=DS", "--priority=IS,CB,DS", "--predictions", "--local_epochs=1"),
        *("--clients_per_round=2", "--reach=above", f"--output_dir={folder}"),
    ]
    done = run(*flags)
    assert done.returncode == 0, done.stderr
    assert "drawn" in done.stdout
    for name in ("table6.md", "table7.md", "figure3.png"):
        assert (folder / name).exists(), name
    for name in ("table6.md", "table7.md"):
        assert "drawn" in (folder / name).read_text()
    for name in ("table6.csv", "table7.csv", "figure3.csv", "results.csv"):
        assert all("drawn" in row["data"] for row in table(folder / name)), name
    adjusted = folder / "IS-CB-DS"
    before = {p.name: p.read_bytes() for p in adjusted.glob("*.csv")}
    info = adjusted / "run.json"
    info.write_text(info.read_text().replace('"finished"', '"running"'))
    shutil.rmtree(adjusted / "checkpoints" / "round_2")
    assert run(*flags, "--resume").returncode == 0
    after = {p.name: p.read_bytes() for p in adjusted.glob("*.csv")}
    assert {**after, "timing.csv": b""} == {**before, "timing.csv": b""}
    for name, single in (("DS", "DS"), ("IS-CB-DS", "IS,CB,DS")):
        done = run(f"--export={folder / name}", f"--output_dir={tmp_path / name}")
        assert done.returncode == 0, done.stderr
        done = run(f"--compare={folder / name},{tmp_path / name}")
        assert done.returncode == 0 and single in done.stdout, done.stderr
        # The targets and the rule are the run's own.
        assert "  85 %" in done.stdout and "  95 %" not in done.stdout
        assert "--reach=above" in done.stdout
    made = tmp_path / "made"
    done = run("--experiment=celeba", f"--tables={folder}", f"--output_dir={made}")
    assert done.returncode == 0, done.stderr
    for name in ("table6.csv", "table6.md", "table7.md", "figure3.csv"):
        assert (made / name).read_bytes() == (folder / name).read_bytes()
    assert "--reach=above" in (made / "table6.md").read_text()
    done = run(
        *("--experiment=celeba", f"--tables={folder}", f"--output_dir={made}"),
        "--reach=at_least",
    )
    assert "--reach=at_least" in done.stdout and "--reach=above" not in done.stdout
    settings = adjusted / "run.json"
    settings.write_text(settings.read_text().replace('"above"', '"at_least"'))
    done = run("--experiment=celeba", f"--tables={folder}", f"--output_dir={made}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "IS-CB-DS has at_least: choose by --reach" in done.stderr


def test_the_published_codes_protocol_runs(tmp_path):
    done = run(
        *("--experiment=drawn_faces", "--protocol=reference_code", "--rounds=1"),
        *("--priority=CB", "--local_epochs=1", "--clients_per_round=2"),
        f"--output_dir={tmp_path / 'out'}",
    )
    assert done.returncode == 0, done.stderr
    settings = json.loads((tmp_path / "out" / "CB" / "run.json").read_text())[
        "settings"
    ]
    assert settings["model"] == "celeba_reference_cnn" and settings["reach"] == "above"


def test_inspect_knows_what_is_known_of_examples():
    done = run("--experiment=drawn_faces", "--inspect")
    assert done.returncode == 0, done.stderr
    assert "CB,DS,IS" in done.stdout


def children(pid):
    """The processes that a process's main thread has started."""
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def test_a_worker_that_dies_ends_the_run_and_keeps_the_record(tmp_path):
    folder = tmp_path / "out"
    process = start_until_the_first_round(folder)
    (host,) = children(process.pid)
    (worker,) = children(host)
    os.kill(worker, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = [line for line in err.splitlines() if "run_experiments.py:" in line]
    assert "ended by signal 9" in line
    assert "--resume" in line
