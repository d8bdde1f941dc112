"""Tables and comparisons of what `results/reproduced` keeps: made, or said why not."""

import csv
import pathlib

import pytest

KEPT = pathlib.Path(__file__).resolve().parents[2] / "results" / "reproduced"
FOLDERS = sorted(path.name for path in KEPT.iterdir() if path.is_dir())
# Those of which no run is kept, or runs under several seeds.
NO_RUNS = {
    "celeba_crops_rates_relu": "; there is only rates.csv",
    "digits5k_effect_relu": "; there is only effect.csv, effect.md",
    **dict.fromkeys(
        (
            *("adafed_1_seeds", "adafed_2", "adafed_3", "mnist_normalization_max_relu"),
            *("mnist_table2_relu", "mnist_table4_relu", "mnist_table4"),
            "mnist_kernels_normal",
        ),
        "holds runs under several seeds: name one of its folders, as ",
    ),
}
# The tables that the few files do not make, and what is missing.
LEFT_OUT = {
    "celeba_crops_relu": "PMC Table 7 is left out",
    "digits5k_variance_relu": "PMC Table 5 is left out",
    "femnist_online_relu": "da_table1 is left out: ",
    "mnist_reference_code": "PMC Table 5 is left out",
    **{f"mnist_noniid_ds_seed{k}_relu": "PMC Table 5 is left out" for k in range(3)},
}
EXPERIMENTS = {"digits5k_variance_relu": "mnist_noniid"}  # Of others: their own.


def tables(run, name, out):
    flags = [f"--tables={KEPT / name}", f"--output_dir={out}"]
    if name in EXPERIMENTS:
        flags.append(f"--experiment={EXPERIMENTS[name]}")
    return run(*flags)


@pytest.mark.parametrize("name", FOLDERS)
def test_tables_are_made_or_it_says_why_not(name, run, tmp_path):
    done = tables(run, name, tmp_path / "out")
    if name in NO_RUNS:
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert NO_RUNS[name] in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert ("left out" in done.stdout) == (name in LEFT_OUT), done.stdout
    assert LEFT_OUT.get(name, "") in done.stdout
    made = {path.name for path in (tmp_path / "out").iterdir()}
    kept = {path.name for path in (KEPT / name).glob("*.png")} - {"comparison.png"}
    assert {"accuracy.png", "results.csv", *kept} <= made
    # Each client's results are kept of these alone.
    whole = bool(list((KEPT / name).glob("**/clients.csv*")))
    assert ("fairness.png" in made) == whole
    assert done.stdout.strip()


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def of_targets(table):
    """Without the rows of the last and the best round, which kept files may lack."""
    return [row for row in table if row.get("devices") != "all"]


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("quickstart", ["results.csv"]),
        ("mnist_noniid_ds_seed1_relu", ["results.csv"]),
        ("celeba_crops_relu", ["results.csv", "figure3.csv", "figure3_script.csv"]),
        ("digits5k_variance_relu", ["results.csv", "variance.csv"]),
        ("adafed_2/seed_0", ["adafed.csv"]),
    ],
)
def test_the_tables_are_those_that_are_kept(folder, names, run, tmp_path):
    assert tables(run, folder, tmp_path).returncode == 0
    for name in names:
        ours, before = rows(tmp_path / name), rows(KEPT / folder / name)
        ours, before = of_targets(ours), of_targets(before)
        assert len(ours) == len(before) > 0
        for one, other in zip(ours, before):
            for column, value in other.items():
                try:
                    value, found = float(value), float(one[column])
                except ValueError:
                    found = one[column]
                assert found == pytest.approx(value, rel=1e-9, nan_ok=True), name


def test_table_6_is_the_one_that_is_kept(run, tmp_path):
    assert tables(run, "celeba_crops_relu", tmp_path).returncode == 0
    made = (tmp_path / "table6.md").read_bytes()
    assert made == (KEPT / "celeba_crops_relu" / "table6.md").read_bytes()
    assert len([line for line in made.splitlines() if line.startswith(b"|")]) == 92


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_compared_with_itself_or_it_says_why_not(name, run):
    done = run(f"--compare={KEPT / name},{KEPT / name}")
    if name in NO_RUNS:
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert NO_RUNS[name] in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert "Accuracy on all clients' test examples" in done.stdout
    last = done.stdout.split("largest |B-A|\n")[1].splitlines()
    assert last and all("+0.000     +0.000   0.000" in line for line in last)


def test_kept_runs_are_compared_with_each_other(run, tmp_path):
    seeds = [KEPT / f"mnist_noniid_ds_seed{seed}_relu" for seed in (0, 1)]
    done = run(f"--compare={seeds[0]},{seeds[1]}", f"--output_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "comparison.png").stat().st_size > 5000
    found = [r for r in rows(tmp_path / "comparison.csv") if r["quantity"] == "rounds"]
    assert len(found) == 36
    for side, seed in zip("ab", seeds):
        for row, kept in zip(found, rows(seed / "results.csv")):
            assert row["devices"] == kept["devices"]
            assert row[side] == kept["value"]


def test_another_rule_than_the_kept_one_needs_the_clients(run, tmp_path):
    done = run(f"--tables={KEPT / 'mnist_noniid_ds_seed1_relu'}", "--reach=above",
               f"--output_dir={tmp_path}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "has no clients.csv, and its kept rounds are by its own rule" in done.stdout
    assert not (tmp_path / "results.csv").exists()


def test_one_run_of_a_folder_knows_what_it_shares(run, tmp_path):
    done = run(
        f"--tables={KEPT / 'celeba_crops_relu' / 'DS'}", f"--output_dir={tmp_path}"
    )
    assert done.returncode == 0, done.stderr
    kept = [r for r in rows(KEPT / "celeba_crops_relu" / "results.csv")
            if r["experiment"] == "DS"]  # fmt: skip
    made = of_targets(rows(tmp_path / "results.csv"))
    assert [r["value"] for r in made] == [r["value"] for r in kept]
