"""The examples of docs/numbers_and_words.md: a regression, and a next-word model."""

import re
import shlex
import textwrap

import numpy as np
import pytest
from commands import ROOT, python, rows

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "numbers_and_words.md").read_text()
FOLDER = "examples/numbers_and_words"
MODULES = {
    name: (ROOT / "docs" / FOLDER / f"{name}.py").read_text()
    for name in re.findall(rf"\({FOLDER}/(\w+)\.py\)", PAGE)
}
(COMMANDS,) = re.findall(r"```\n(CHECKOUT/\.venv/bin/tff-pmc .*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def page_run(tmp_path_factory):
    """Runs the page's and more commands in one process: the folder, (output, code)s."""
    folder = tmp_path_factory.mktemp("page")
    for name in ("wells", "next_word"):
        (folder / f"{name}.py").write_text(MODULES[name])
    commands = [shlex.split(line)[1:] for line in COMMANDS.strip().splitlines()]
    wells = ["--plugin=wells", "--experiment=wells", "--rounds=1"]
    commands += [
        ["--compare=out_wells/DS,out_wells/DS"],
        [*wells, "--criteria=DS,LD", "--output_dir=no"],
        [*wells, "--priority=DS,MD", "--adjustment=backtracking", "--output_dir=no"],
        [*wells, "--predictions", "--output_dir=no"],
        [*wells, "--record_clients=none", "--output_dir=no"],
        [*wells, "--model=mnist_cnn", "--output_dir=no"],
        [*wells, "--seeds=0,1", "--priority=DS;MD", "--output_dir=seeds"],
        ["--plugin=wells", "--tables=out_wells", "--output_dir=again"],
    ]
    script = textwrap.dedent(
        f"""
        import sys
        sys.stderr = sys.stdout
        sys.path[:0] = [{str(ROOT)!r}, "."]
        import run_experiments
        for words in {commands!r}:
            print("--- command", flush=True)
            argv = ["run_experiments.py", *words]
            code = run_experiments.main(argv)
            print("--- code", code, flush=True)
        """
    )
    done = python("-c", script, cwd=folder)
    ends = re.findall(r"--- command\n(.*?)--- code (\S+)\n", done.stdout, re.S)
    assert len(ends) == len(commands), done.stdout
    return folder, ends


def figures(path, label):
    """Returns the values of a run in `results.csv` by quantity."""
    rows_of_label = [row for row in rows(path) if row["experiment"] == label]
    return {row["quantity"]: float(row["value"]) for row in rows_of_label}


def test_the_regression_is_recorded_by_its_loss(page_run):
    """Against federated averaging of a linear regression in NumPy."""
    folder, ends = page_run
    text, code = ends[0]
    assert code == "0", text
    assert "Loss over all test examples" in text and "Rounds until" not in text
    out = folder / "out_wells"
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    x = np.random.default_rng(0)
    inputs = x.normal(size=(60, 2)).astype(np.float32)
    noise = x.normal(scale=0.1, size=60)
    y = (2 * inputs[:, 0] - inputs[:, 1] + 0.5 + noise).astype(np.float32)
    design = np.c_[inputs, np.ones(60)].astype(float)
    weights = np.zeros(3)
    recorded = rows(out / "DS" / "rounds.csv")
    by_client = rows(out / "DS" / "clients.csv")
    for number in range(5):
        trained = []
        for k in range(6):
            client_weights, part = weights.copy(), slice(10 * k, 10 * k + 10)
            for _ in range(5):
                error = design[part] @ client_weights - y[part]
                client_weights -= 0.1 * 2 * design[part].T @ error / 10
            trained.append(client_weights)
        weights = np.mean(trained, axis=0)
        squares = (design @ weights - y) ** 2
        sums = [squares[10 * k : 10 * k + 4].sum() for k in range(6)]
        losses = [float(row["loss_sum"]) for row in by_client[6 * number :][:6]]
        np.testing.assert_allclose(losses, sums, rtol=1e-3)
        row = recorded[number]
        assert float(row["test_loss"]) == pytest.approx(sum(sums) / 24, rel=1e-3)
        middle = float(row["loss_p50"])
        assert middle == pytest.approx(np.median(sums) / 4, rel=1e-2, abs=1e-4)
        assert "accuracy" not in row and "correct" not in by_client[0]
    results = figures(out / "results.csv", "DS")
    assert results["last_test_loss"] == pytest.approx(sum(sums) / 24, rel=1e-3)
    expected = np.percentile(np.array(sums) / 4, 90)
    assert results["last_p90"] == pytest.approx(expected, rel=1e-3)


def test_the_next_words_are_learned_and_reported(page_run):
    folder, ends = page_run
    text, code = ends[1]
    assert code == "0", text
    assert "Rounds until a share of the devices" in text
    out = folder / "out_words"
    assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    (path,) = out.glob("*/rounds.csv")
    recorded = rows(path)
    accuracies = [float(row["accuracy"]) for row in recorded]
    assert accuracies[-1] > 0.9 > accuracies[0]
    assert {row["examples"] for row in recorded} == {"48"}
    rounds = [row for row in rows(out / "results.csv") if row["devices"] != "all"]
    reached = {row["target_accuracy_pct"] for row in rounds}
    assert reached == {"50", "90"}


def test_an_option_that_needs_accuracy_is_rejected_and_named(page_run):
    _, ends = page_run
    for (text, code), words in zip(
        ends[2:8],
        [
            "out_wells/DS: rounds to a target need accuracies, and these",
            "--criteria: LD needs classes, and wells is a regression",
            "--adjustment=backtracking compares accuracies, and wells",
            "--predictions records labels of classes, and wells",
            "--record_clients=none records accuracies only, and wells",
            "--model=mnist_cnn expects inputs of (28, 28) uint8, and wells "
            "provides (2,) float32",
        ],
    ):
        assert code == "2" and words in text.strip().splitlines()[-1], text
    assert not (page_run[0] / "no").exists()


def test_the_table_and_plot_of_a_regression_are_recomputed_over_several_seeds(page_run):
    folder, ends = page_run
    (text, code), (again, again_code) = ends[8:]
    assert again_code == "0" and "Loss over all test examples" in again, again
    for name in ("results.csv", "loss.png"):
        first, second = (folder / where / name for where in ("out_wells", "again"))
        assert first.read_bytes() == second.read_bytes()
    assert code == "0" and "against FedAvg (DS) over two seeds" in text, text
    seeds = folder / "seeds"
    (last,) = (
        row
        for row in rows(seeds / "seeds.csv")
        if (row["experiment"], row["quantity"]) == ("MD", "last_test_loss")
    )
    last_losses = {
        label: [
            figures(seeds / f"seed_{seed}" / "results.csv", label)["last_test_loss"]
            for seed in (0, 1)
        ]
        for label in ("DS", "MD")
    }
    assert float(last["mean"]) == pytest.approx(np.mean(last_losses["MD"]), rel=1e-5)
    effect = {row["measure"]: float(row["mean"]) for row in rows(seeds / "effect.csv")}
    # In a run of one round, the second half is this round.
    difference = np.mean(last_losses["MD"]) - np.mean(last_losses["DS"])
    assert effect["test_loss"] == pytest.approx(difference, abs=2e-6)


def test_the_model_fn_of_the_page_learns():
    done = python("-c", MODULES["own_metrics"])
    *before, last = done.stdout.strip().splitlines()
    error, examples = last.split()
    assert examples == "40" and len(before) == 5, done.stderr
    assert float(error) < 0.7 * float(before[0])
