"""Compares weightings with DS, where sizes are dealt and where they differ by nature.

    python benchmarks/when_it_helps.py runs/when_it_helps
    python benchmarks/when_it_helps.py runs/when_it_helps --federations=synthetic
    python benchmarks/when_it_helps.py runs/when_it_helps --federations=shakespeare \
        --data_dir=DIR

`digits` are 24 small federations of 5,000 real digits. The cheap estimate is one run of
DS in which every ordering is judged for one step. The expensive one is the paired
difference of whole runs, of the ordering whose step was best and of DS, under five
other seeds. `when_it_helps.csv` has one row per federation.

`synthetic` are three federations by FedProx's law, and `shakespeare` are speaking roles
of plays. Here all weightings are compared in whole runs: `all_weightings.csv` has one
row per weighting.

The folder contains the runs. They take hours, and continue where they were interrupted.
`docs/when_it_helps.md` describes the results.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np
import pandas as pd
from scipy import stats

import leaf_data
import tff_pmc
from leaf_data import partition
from tff_pmc import scores
from tff_pmc.reports.statistics import (
    counterfactual_statistics,
    measures,
    paired_effects,
    paired_statistics,
    row_titles,
)
from tff_pmc.reports.statistics.weight_statistics import cohorts, normalization_of

SEEDS = (1, 2, 3, 4, 5)
COMMON = (
    *("--partition=dirichlet", "--rounds=30"),
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

# FedProx has 20 epochs at .01: one epoch at .2 moves as far in a twentieth of the time.
SYNTHETIC = (
    *("--dataset=synthetic", "--rounds=100", "--clients_per_round=10"),
    *("--batch_size=10", "--local_epochs=1", "--learning_rate=0.2", "--num_packs=1"),
)
LAWS = {
    "synthetic (0,0)": ("--synthetic_alpha=0", "--synthetic_beta=0"),
    "synthetic (1,1)": ("--synthetic_alpha=1", "--synthetic_beta=1"),
    "synthetic IID": ("--synthetic_iid=1",),
}
EQUAL = "DS^0"  # It weighs all clients equally.
MEASURES = ("accuracy", "client_mean", "worst_tenth")
TITLES = ("accuracy", "mean over clients", "worst tenth")
SINGLE = ("LD", "MD")
ORDERINGS = ("DS,LD,MD", "DS,MD,LD", "LD,DS,MD", "LD,MD,DS", "MD,DS,LD", "MD,LD,DS")

# A role has 787 to 18,762 training examples. At most 128 of each, as is usual, would
# make all sizes equal; a share of each keeps their ratios.
TEXT_SHARE, MAX_TESTED = 0.03, 100
TEXT = (
    *("--dataset=store", "--model=stacked_lstm", "--num_packs=1"),
    *("--clients_per_round=10", "--batch_size=10", "--local_epochs=1"),
    *("--learning_rate=2", "--evaluate_every=10", "--criteria=DS,LD,MD,DS^0"),
)
TEXT_ROWS = ("DS", EQUAL, "LD,DS,MD", "LD", "MD")

# Whether a run from random weights learns more than to answer spaces is decided by the
# size of its first few updates. All rows therefore start from one trained model.
TEXT_FIRST = ("--seed=0", "--rounds=100")
TEXT_SECOND = ("--rounds=50",)


def run(folder, *flags):
    """Starts or resumes runs; returns their results."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    resume = ["--resume"] if (folder / "run.json").exists() else []
    command = [sys.executable, str(ROOT / "run_experiments.py")]
    command += ["--experiment=quickstart", *flags, f"--output_dir={folder}", *resume]
    subprocess.run(command, check=True)
    return tff_pmc.read_results(str(folder))


def list_seeds(seeds):
    """Returns the flag of seeds."""
    return f"--seeds={','.join(map(str, seeds))}"


def compare_best_step(folder, row, column, flags):
    """Returns the row of a federation of digits."""
    flags = (*COMMON, *flags)
    run(folder / "one_step", *flags, "--priority=DS", "--counterfactuals=orderings")
    steps = pd.read_csv(folder / "one_step" / "counterfactuals.csv")
    step = steps.loc[steps["accuracy_mean"].idxmax()]
    best = str(step["weighting"])
    results = run(folder / "seeds", *flags, f"--priority=DS;{best}", list_seeds(SEEDS))
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


def compare_whole_runs(results) -> pd.DataFrame:
    """Returns each row's differences from DS, in points, by label.

    Of the mean accuracy over the second half of the rounds (over all test examples,
    over clients, and over the worst tenth of them) and over all rounds: `NAME`,
    `NAME_interval` (half of the 95 % interval) and `NAME_p` (Student's t).
    """
    by_client = results.clients.assign(
        mean=results.clients["correct"] / results.clients["examples"]
    )
    keys = ["seed", "label", "round"]
    means = by_client.groupby(keys, sort=False)["mean"].mean()
    rounds = results.rounds.join(means, on=keys)
    last = rounds["round"].max()
    late = rounds[rounds["round"] > last // 2]
    by_run = paired_effects.run_measures(results)
    values = {
        "accuracy": by_run["accuracy"],
        "client_mean": late.groupby(["seed", "label"], sort=False)["mean"].mean(),
        "worst_tenth": by_run["worst tenth"],
        "all_rounds": measures.mean_of_rounds(results, 1),
    }
    rows: dict[str, dict[str, Any]] = {label: {} for label in results.labels}
    for measure, series in values.items():
        by_label = series.unstack("label")
        for label, row in rows.items():
            stat = paired_statistics.difference([*by_label[label]], [*by_label["DS"]])
            row["seeds"] = stat["seeds"]
            row[f"{measure}_ds"] = 100 * by_label["DS"].mean()
            row[measure] = 100 * stat["mean"]
            row[f"{measure}_interval"] = 100 * stat["interval"]
            error = stat["deviation"] / np.sqrt(stat["seeds"])
            ratio = abs(stat["mean"]) / error if error > 0 else np.nan
            row[f"{measure}_p"] = 2 * stats.t.sf(ratio, stat["seeds"] - 1)
    return pd.DataFrame(rows).T


def map_digits(goal):
    """Writes the map of digits, and prints rank correlations of both estimates."""
    rows = []
    for column, changes in COLUMNS.items():
        for alpha in (0.1, 1, 100):
            name = f"{column} {alpha}".replace(" ", "_").replace(",", "")
            flags = (f"--dirichlet_alpha={alpha}", *changes)
            rows.append(
                compare_best_step(goal / name, f"alpha {alpha:g}", column, flags)
            )
            table = pd.DataFrame(rows)
            table.to_csv(goal / "when_it_helps.csv", index=False)
    for cheap in ("one_step", "weight_moved"):
        for dear in ("accuracy", "all_rounds"):
            rank = stats.spearmanr(table[cheap], table[dear])
            print(f"{cheap}, {dear}: {rank.correlation:+.2f} (p = {rank.pvalue:.2g})")


def list_rows(normalization) -> dict[str, str]:
    """Returns the rows that a normalization changes, as --rows has them, by weighting.

    A single criterion has the same weights by its sum and by its maximum.
    """
    if normalization == "max":
        note = " normalization=max"
        return {name: f"prioritized priority={name}{note}" for name in ORDERINGS}
    names = (*SINGLE, *ORDERINGS)
    return {name: f"prioritized priority={name}" for name in names}


def compare_synthetic(folder, data, law) -> Iterator[dict[str, Any]]:
    """Yields the rows of a federation: eight by the sum, six by the maximum, EQUAL."""
    rows_by_normalization = {name: list_rows(name) for name in ("sum", "max")}
    rows = [row for named in rows_by_normalization.values() for row in named.values()]
    rows += [f"prioritized priority={EQUAL} criteria={EQUAL}"]
    flags = (*SYNTHETIC, *law)
    text = "; ".join(["prioritized priority=DS", *rows])
    results = run(folder / "seeds", *flags, f"--rows={text}", list_seeds(SEEDS))
    whole = compare_whole_runs(results)
    labels = iter(label for label in results.labels if label != "DS")
    for normalization, named in rows_by_normalization.items():
        steps_folder = folder / f"one_step_{normalization}"
        one_step = ("--priority=DS", "--counterfactuals=orderings")
        ds = run(steps_folder, *flags, *one_step, f"--normalization={normalization}")
        steps = pd.read_csv(steps_folder / "counterfactuals.csv")
        steps = steps.set_index("weighting")
        for weighting in named:
            yield {
                **describe_row(data, normalization, weighting, ds),
                "one_step": steps["accuracy_mean"][weighting],
                "one_step_interval": steps["accuracy_interval"][weighting],
                "one_step_p": steps["accuracy_p"][weighting],
                **whole.loc[next(labels)],
            }
    yield {**describe_row(data, "sum", EQUAL, ds), **whole.loc[next(labels)]}


def describe_row(data, normalization, weighting, ds) -> dict[str, Any]:
    """Returns the names of a row, and the mean share of weight that it moves from DS.

    `ds` is a run of DS with the normalization, over whose cohorts the mean is.
    """
    codes = [code for code in ds.setting("criteria") if code != EQUAL]
    moved, rule = [], normalization_of(ds.runs.iloc[0])
    for _, raw, shares in cohorts(ds):
        weights = np.full(len(shares), 1 / len(shares))
        if weighting != EQUAL:
            score = scores.prioritized(weighting.split(","), codes)
            raw = raw[:, : len(codes)]
            weights = scores.participant_weights(raw, score, rule)
        moved.append(scores.total_variation(weights, shares))
    return {
        "data": data,
        "normalization": normalization,
        "weighting": weighting,
        "weight_moved": np.mean(moved),
    }


def map_synthetic(goal):
    """Writes the table of the three synthetic federations."""
    rows = []
    for data, law in LAWS.items():
        name = "".join(letter for letter in data if letter.isalnum())
        rows += compare_synthetic(goal / name, data, law)
        table = pd.DataFrame(rows)
        table.to_csv(goal / "synthetic.csv", index=False)
    write_report(goal)


def write_roles(path, data_dir):
    """Writes a store of a share of each role's training examples, by the seed 0."""
    data = leaf_data.load("shakespeare", data_dir=data_dir)

    def draw(examples, name, share, most):
        client = examples.client(name)
        size = len(client["y"])
        number = min(most, round(share * size))
        rows = partition.draw_at_most(number, name, size, 0)
        return client["x"][rows], client["y"][rows]

    leaf_data.write_store(
        (
            (
                name,
                *draw(data.train_examples, name, TEXT_SHARE, sys.maxsize),
                *draw(data.test_examples, name, 1, MAX_TESTED),
            )
            for name in data.client_ids
        ),
        path,
        class_names=data.class_names,
        vocabulary=data.vocabulary,
    )


def map_shakespeare(goal, data_dir):
    """Writes the table of roles of Shakespeare."""
    store = goal / "roles"
    if not store.exists():
        write_roles(store, data_dir)
    flags = (*TEXT, f"--store={store}", f"--priority={';'.join(TEXT_ROWS)}")
    run(goal / "shakespeare_first", *flags, *TEXT_FIRST)
    weights = goal / "shakespeare_first" / "DS" / "model" / "weights.npz"
    flags = (*flags, *TEXT_SECOND, f"--initial_weights={weights}", list_seeds(SEEDS))
    results = row_titles.with_short_labels(run(goal / "shakespeare", *flags))
    ds = results.only(label="DS", seed=SEEDS[0])
    whole = compare_whole_runs(results).drop(index="DS")
    table = [
        {**describe_row("shakespeare", "sum", weighting, ds), **row}
        for weighting, row in whole.iterrows()
    ]
    pd.DataFrame(table).to_csv(goal / "shakespeare.csv", index=False)
    write_report(goal)


def write_report(goal):
    """Writes the tables of both kinds as one: CSV, Markdown and a figure."""
    paths = (goal / "synthetic.csv", goal / "shakespeare.csv")
    table = pd.concat([pd.read_csv(path) for path in paths if path.exists()])
    p = table[[f"{name}_p" for name in MEASURES]].to_numpy()
    tested = np.isfinite(p)
    corrected = np.full(p.shape, np.nan)
    corrected[tested] = counterfactual_statistics.holm(p[tested])
    for name, values in zip(MEASURES, corrected.T):
        table[f"{name}_holm"] = values
    table.to_csv(goal / "all_weightings.csv", index=False, float_format="%.6g")
    titles = " | ".join(["data", "weighting", "weight moved", "one step", *TITLES])
    lines = [
        "# All weightings, where sizes differ",
        "",
        "Differences from DS in points, mean over the second half of the rounds; ± is "
        "half of the 95 % interval over the seeds (Student's t), \\* where it excludes "
        f"0, \\*\\* where p by Holm's rule, over all {tested.sum()} comparisons, is "
        "below .05. One step: the mean over the rounds of one run of DS, under another "
        "seed; \\* by Holm's rule over eight weightings.",
        "",
        f"| {titles} |",
        f"| --- | --- |{' ---: |' * (2 + len(MEASURES))}",
    ]
    for row in table.to_dict("records"):
        note = ", max" if row["normalization"] == "max" else ""
        cells = [row["data"], row["weighting"] + note, f"{row['weight_moved']:.3f}"]
        step = row.get("one_step", np.nan)
        star = "\\*" if row.get("one_step_p", 1) < 0.05 else ""
        cells.append("" if np.isnan(step) else f"{step:+.2f}{star}")
        for name in MEASURES:
            half = row[f"{name}_interval"]
            text = f"{row[name]:+.2f}"
            if np.isfinite(half):
                text += f" ± {half:.2f}" + "\\*" * (abs(row[name]) > half)
                text += "\\*" * (row[f"{name}_holm"] < 0.05)
            cells.append(text)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "DS itself, in percent:", "", f"| data | {' | '.join(TITLES)} |"]
    lines.append(f"| --- |{' ---: |' * len(MEASURES)}")
    for data, part in table.groupby("data", sort=False):
        levels = " | ".join(f"{part[f'{name}_ds'].iloc[0]:.1f}" for name in MEASURES)
        lines.append(f"| {data} | {levels} |")
    (goal / "all_weightings.md").write_text("\n".join(lines) + "\n")
    draw_effects(table[np.isfinite(table["accuracy_interval"])]).savefig(
        goal / "all_weightings.png", dpi=74
    )


def draw_effects(table):
    """Returns a figure: one row of panels per data set, one column per measure."""
    from matplotlib.figure import Figure

    names = [*table["data"].unique()]
    figure = Figure(figsize=(9, 2.6 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), len(MEASURES), sharey=True, squeeze=False)
    order = [EQUAL, *SINGLE, *ORDERINGS]
    for axes_of_data, data in zip(grid, names):
        part = table[table["data"] == data]
        for axes, measure, title in zip(axes_of_data, MEASURES, TITLES):
            axes.axvline(0, color="0.6", linewidth=1)
            for kind, color, shift in (("sum", "C0", 0.0), ("max", "C1", 0.25)):
                rows = part[part["normalization"] == kind]
                axes.errorbar(
                    rows[measure],
                    [order.index(name) + shift for name in rows["weighting"]],
                    xerr=rows[f"{measure}_interval"],
                    **{"fmt": "o", "markersize": 3, "linewidth": 1, "color": color},
                    label=f"normalized by the {kind}",
                )
            axes.set_title(f"{data}: {title}", fontsize=9)
            axes.tick_params(labelsize=9)
            axes.set_yticks(range(len(order)), order)
    for axes in grid[-1]:
        axes.set_xlabel("points more than DS", fontsize=9)
    grid[0][0].invert_yaxis()
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center")
    return figure


def main():
    """Makes the runs of a kind of federation, and writes its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="the folder of the runs")
    kinds = ("digits", "synthetic", "shakespeare")
    parser.add_argument("--federations", choices=kinds, default="digits")
    parser.add_argument("--data_dir", help="the folder of Shakespeare")
    flags = parser.parse_args()
    maps = {
        "digits": map_digits,
        "synthetic": map_synthetic,
        "shakespeare": functools.partial(map_shakespeare, data_dir=flags.data_dir),
    }
    maps[flags.federations](flags.folder)


if __name__ == "__main__":
    main()
