"""Tables and comparisons of what `results/reproduced` keeps: made, or said why not."""

import pathlib
import shutil

import pandas as pd
import pytest
from cli import refused, run

KEPT = pathlib.Path(__file__).resolve().parents[2] / "results" / "reproduced"
FOLDERS = sorted(path.name for path in KEPT.iterdir() if path.is_dir())
# Those of which no run is kept, or runs under several seeds.
NO_RUNS = {
    **dict.fromkeys(
        ("celeba_crops_rates_relu", "mnist_rates"), "; there is only rates.csv"
    ),
    "baselines": "; there is only effect.csv, effect.md, seeds.csv",
    "when_it_helps": "; there is only when_it_helps.csv, when_it_helps.md",
    **{
        name: "holds runs under several seeds: name one of its folders, as "
        for name in FOLDERS
        if any((KEPT / name).glob("seed_*"))
    },
}
# The tables that one ordering does not make, and what is missing.
LEFT_OUT = {"mnist_reference_code": "PMC Table 5 is left out"}
# Many runs, which take the way of those without ReLU.
SLOW = ("mnist_table2_relu", "mnist_table4_relu")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in FOLDERS],
)
@pytest.mark.parametrize("what", ["tables", "compare"])
def test_it_is_made_or_it_says_why_not(name, what, tmp_path):
    """Tables; and the comparison of a folder with itself."""
    folder, out = KEPT / name, tmp_path / "out"
    flags = [f"--compare={folder},{folder}"]
    if what == "tables":
        flags = [f"--tables={folder}", f"--output_dir={out}"]
    seeds = sorted(path.name for path in folder.glob("seed_*"))
    if name in NO_RUNS and not (seeds and what == "tables"):
        assert NO_RUNS[name] in refused(*flags)
        return
    done = run(*flags)
    if what == "compare":
        assert "Accuracy on all clients' test examples" in done.stdout
        last = done.stdout.split("largest |B-A|\n")[1].splitlines()
        lines = [" ".join(line.split()) for line in last]
        assert lines and all("+0.000 +0.000 0.000" in line for line in lines)
        return
    if seeds:  # What is kept, to the byte; only a look at one of many is made.
        for table in ("effect.csv", "effect.md", f"{seeds[0]}/results.csv"):
            if (folder / table).exists():
                assert (out / table).read_bytes() == (folder / table).read_bytes()
        return
    assert ("left out" in done.stdout) == (name in LEFT_OUT), done.stdout
    assert LEFT_OUT.get(name, "") in done.stdout and done.stdout.strip()
    kept = {path.name for path in folder.glob("*.png")} - {"comparison.png"}
    made = {path.name for path in out.iterdir()}
    assert {"accuracy.png", "fairness.png", "results.csv", *kept} <= made


def test_refused_tables_leave_nothing_behind(tmp_path):
    """The column is missing to the plots, which come last."""
    folder, out = tmp_path / "runs", tmp_path / "new" / "out"
    shutil.copytree(KEPT / "quickstart", folder)
    (path,) = list(folder.glob("DS/rounds.csv"))
    rounds = pd.read_csv(path, dtype=str)
    rounds.drop(columns="p10").to_csv(path, index=False)
    assert "lack the column 'p10'" in refused(
        f"--tables={folder}", f"--output_dir={out}"
    )
    assert not out.parent.exists()
    shutil.copytree(KEPT / "quickstart", tmp_path / "good")
    out.mkdir(parents=True)
    (out / "results.csv").symlink_to(tmp_path / "victim")
    assert "is not empty (it holds results.csv)" in refused(
        f"--tables={tmp_path / 'good'}", f"--output_dir={out}"
    )
    assert not (tmp_path / "victim").exists()
    shutil.copytree(folder / "DS", folder / "DS again")
    assert "are both runs of DS: give one" in refused(
        f"--tables={folder}", f"--output_dir={out}"
    )
