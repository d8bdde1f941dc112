"""Maps where another weighting helps, over 24 small federations of 5,000 real digits.

    python benchmarks/when_it_helps.py runs/when_it_helps

Each cell is a federation. The cheap estimate is one run of DS in which every ordering
is judged for one step. The expensive one is the paired difference of whole runs, of the
ordering whose step was best and of DS, under five other seeds. The folder contains the
runs of each cell, and `when_it_helps.csv`, one row per cell. It takes hours, and
continues where it was interrupted. `docs/when_it_helps.md` describes the results.
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pandas as pd
from scipy import stats

import tff_pmc
from tff_pmc.reports.statistics import measures, paired_statistics

SEEDS = (1, 2, 3, 4, 5)
COMMON = (
    *("--experiment=quickstart", "--partition=dirichlet", "--rounds=30"),
    *("--model=keras_simple_convnet", "--clients_per_round=10", "--batch_size=20"),
    *("--local_epochs=2", "--learning_rate=0.2"),
)
SKEWED = ("--client_sizes=power_law", "--normalization=max")
COLUMNS = {
    "equal sizes": (),
    "equal sizes, max": ("--normalization=max",),
    "power law": ("--client_sizes=power_law",),
    "power law, max": SKEWED,
    "wrong labels in 20 %": (*SKEWED, "--wrong_clients=0.2"),
    "wrong labels in 40 %": (*SKEWED, "--wrong_clients=0.4"),
    "cohort of 5": (*SKEWED, "--clients_per_round=5"),
    "cohort of 50": (*SKEWED, "--clients_per_round=50"),
}


def run(folder, *flags):
    """Starts or resumes runs; returns their results."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    resume = ["--resume"] if (folder / "run.json").exists() else []
    command = [sys.executable, str(ROOT / "run_experiments.py"), *COMMON, *flags]
    subprocess.run([*command, f"--output_dir={folder}", *resume], check=True)
    return tff_pmc.read_results(str(folder))


def cell(folder, row, column, flags):
    """Returns the row of a federation."""
    run(folder / "one_step", *flags, "--priority=DS", "--counterfactuals=orderings")
    steps = pd.read_csv(folder / "one_step" / "counterfactuals.csv")
    step = steps.loc[steps["accuracy_mean"].idxmax()]
    best = str(step["weighting"])
    seeds = ",".join(map(str, SEEDS))
    results = run(folder / "seeds", *flags, f"--priority=DS;{best}", f"--seeds={seeds}")
    values = pd.DataFrame(
        {
            "accuracy": measures.second_half(results),
            "all_rounds": measures.mean_of_rounds(results, 1),
        }
    )
    row_values = {
        "row": row,
        "column": column,
        "ordering": best,
        "weight_moved": step["total_variation"],
        "one_step": step["accuracy_mean"],
        "one_step_interval": step["accuracy_interval"],
        "one_step_p": step["accuracy_p"],
        "seeds": len(SEEDS),
    }
    for measure, by_run in values.items():
        by_label = by_run.unstack("label")
        stat = paired_statistics.difference([*by_label[best]], [*by_label["DS"]])
        row_values[measure] = 100 * stat["mean"]
        row_values[f"{measure}_interval"] = 100 * stat["interval"]
    return row_values


def main():
    """Writes the map, and prints rank correlations of cheap and expensive estimates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="the folder of the runs")
    goal = parser.parse_args().folder
    rows = []
    for column, changes in COLUMNS.items():
        for alpha in (0.1, 1, 100):
            name = f"{column} {alpha}".replace(" ", "_").replace(",", "")
            flags = (f"--dirichlet_alpha={alpha}", *changes)
            rows.append(cell(goal / name, f"alpha {alpha:g}", column, flags))
            table = pd.DataFrame(rows)
            table.to_csv(goal / "when_it_helps.csv", index=False)
    for cheap in ("one_step", "weight_moved"):
        for dear in ("accuracy", "all_rounds"):
            rank = stats.spearmanr(table[cheap], table[dear])
            print(f"{cheap}, {dear}: {rank.correlation:+.2f} (p = {rank.pvalue:.2g})")


if __name__ == "__main__":
    main()
