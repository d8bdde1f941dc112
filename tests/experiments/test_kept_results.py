"""Tables and comparisons of what `results/reproduced` keeps: made, or said why not."""

import pathlib

import pytest

KEPT = pathlib.Path(__file__).resolve().parents[2] / "results" / "reproduced"
FOLDERS = sorted(path.name for path in KEPT.iterdir() if path.is_dir())
# Those of which no run is kept, or runs under several seeds.
NO_RUNS = {
    **dict.fromkeys(
        ("celeba_crops_rates_relu", "mnist_rates"), "; there is only rates.csv"
    ),
    **{
        name: "holds runs under several seeds: name one of its folders, as "
        for name in FOLDERS
        if (KEPT / name / "seed_0").is_dir()
    },
}
# The tables that one ordering does not make, and what is missing.
LEFT_OUT = {"mnist_reference_code": "PMC Table 5 is left out"}


def tables(run, name, out):
    return run(f"--tables={KEPT / name}", f"--output_dir={out}")


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
    assert {"accuracy.png", "fairness.png", "results.csv", *kept} <= made
    assert done.stdout.strip()


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
    lines = [" ".join(line.split()) for line in last]
    assert lines and all("+0.000 +0.000 0.000" in line for line in lines)
