"""The baselines on their papers' data: numbers by hand, verdicts, and the page."""

import pathlib
import re

import numpy as np
import pandas as pd
import pytest
from cli import labels
from scipy import stats

from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.record.record_error import NotRecordedError
from tff_pmc.record.results import Results
from tff_pmc.reports.papers.baseline_papers import (
    BASELINE_PAPERS,
    claims_report,
    curves_report,
)

ROOT = pathlib.Path(__file__).resolve().parents[3]


def made(experiment, losses, clients=None, rounds=4):
    """Runs by label and seed, from the losses of their rounds."""
    runs, tables, by_client = [], [], []
    for label, seeds in losses.items():
        for seed, values in enumerate(seeds):
            values = np.resize(values, rounds)
            runs.append(
                {"seed": seed, "label": label, "title": label, "note": ""}
                | {"experiment": experiment, "rounds": rounds, "data_name": "synthetic"}
                | {"model": "softmax_regression", "client_optimizer": "sgd"}
                | {"learning_rate": 0.1, "local_epochs": 1, "batch_size": 10}
                | {"data_options": {}, "data_source": "made up", "evaluate_every": 1}
            )
            tables.append(
                pd.DataFrame(
                    {"seed": seed, "label": label, "round": range(1, rounds + 1)}
                    | {"accuracy": 1 - values / 10, "global_train_loss": values}
                )
            )
    for (label, seed), correct in (clients or {}).items():
        for name, value in enumerate(correct):
            by_client.append([seed, label, rounds, f"c{name}", value, 10])
    columns = ["seed", "label", "round", "client", "correct", "examples"]
    parts = {
        "rounds": pd.concat(tables, ignore_index=True),
        "clients": pd.DataFrame(by_client, columns=columns) if clients else None,
    }
    return Results(pd.DataFrame(runs), parts.get)


def claim_table(results):
    return claims_report(results).tables["baseline"].set_index(["place", "measure"])


STRAGGLERS = "Figure 1, 90 % stragglers"
DROPS, KEEPS = "FedAvg, stragglers 0.9", "FedProx, stragglers 0.9, mu 0"


@pytest.mark.parametrize(
    ("seeds", "gain", "verdict"),
    [
        (5, 0.5, "reproduced"),
        (5, -0.5, "not reproduced"),
        (4, 0.5, "not run far enough"),
    ],
)
def test_a_claim_is_judged_by_its_seeds(seeds, gain, verdict, monkeypatch):
    """The second half of 1, 9, 2, 3 is 2, 3; with the gain it is lower by that."""
    paper = BASELINE_PAPERS["fedprox_synthetic"]._replace(least_rounds=4)
    monkeypatch.setitem(BASELINE_PAPERS, "fedprox_synthetic", paper)
    curve = np.array([1, 9, 2, 3])
    noise = [0.01 * seed for seed in range(seeds)]
    results = made(
        "fedprox_synthetic",
        {
            DROPS: [curve + x for x in noise],
            KEEPS: [curve - gain + 2 * x for x in noise],
        },
    )
    table = claim_table(results)
    assert {place for place, _ in table.index} == {STRAGGLERS}
    loss = table.loc[[(STRAGGLERS, "training loss")]].iloc[0]
    assert loss["verdict"] == verdict and loss["seeds"] == seeds
    assert loss["mean"] == pytest.approx(-gain + np.mean(noise))


def test_fewer_rounds_than_the_authors_decide_nothing():
    curves = {DROPS: [[3.0, 2.0]] * 5, KEEPS: [[2.0, 1.0]] * 5}
    table = claim_table(made("fedprox_synthetic", curves))
    assert {*table["verdict"]} == {"not run far enough"}
    assert "the runs have 4 rounds, and the authors' 200" in table["why"].iloc[0]


def test_the_change_of_the_loss_is_that_of_the_second_half():
    """Of 5, 1, 2, 4 the last two rounds change by 1 and by 2: 1.5 per round."""
    curves = {"FedAvg": [[5.0, 1.0, 2.0, 4.0]], "FedProx, mu 1": [[5.0, 1.0, 2.0, 2.0]]}
    table = claim_table(made("fedprox_synthetic", curves))
    change = table.loc[[("Figure 2", "change of the loss per round")]].iloc[0]
    assert change["mean"] == pytest.approx(0.5 - 1.5)


def test_statistics_over_devices_are_those_of_table_1():
    """Of 20 devices the worst and the best 10 % are two; the variance is population."""
    shares = [0, 1, *[5] * 16, 9, 10]
    losses = {"q-FedAvg, q 0": [[1.0]], "q-FedAvg, q 1": [[1.0]]}
    clients = {(label, 0): shares for label in losses}
    report = claims_report(made("qffl_synthetic", losses, clients))
    rows = [line.split() for line in report.text.splitlines()]
    variance = np.var(np.array(shares) * 10.0)
    expected = ["50.0", "5.0", "95.0", f"{variance:.0f}"]
    assert ["q-FedAvg,", "q", "0", *expected] in rows
    assert "q-FedAvg, q 0, paper 80.8 18.8 100.0 724".split() in rows


@pytest.mark.parametrize(
    ("experiment", "reports", "words"),
    [
        ("fednova_synthetic", (claims_report, curves_report), "--noglobal_train_loss"),
        ("qffl_synthetic", (claims_report,), "--record_clients=none"),
    ],
)
def test_what_was_not_recorded_is_named(experiment, reports, words):
    """A command then says which reports are not made, and makes the others."""
    whole = made(experiment, {"FedAvg": [[1.0]]})
    rounds = whole.rounds.drop(columns="global_train_loss")
    clients = pd.DataFrame(columns=["seed", "label"])
    results = Results(whole.runs, {"rounds": rounds, "clients": clients}.get)
    for report in reports:
        with pytest.raises(NotRecordedError, match=words):
            report(results)


def test_other_runs_have_neither_report():
    results = made("quickstart", {"FedAvg": [[1.0]]})
    for report in (claims_report, curves_report):
        assert not report(results).tables and not report(results).figures


@pytest.mark.parametrize("name", BASELINE_PAPERS)
def test_each_line_of_a_panel_and_of_a_claim_is_a_row_of_the_experiment(name):
    """The labels are those of a command, without what all rows have in common."""
    paper = BASELINE_PAPERS[name]
    common = re.compile(", (drawn by size|100 clients|stragglers 1 kept)")
    rows = {common.sub("", label) for label in labels(f"--experiment={name}")}
    assert EXPERIMENTS[name].reports == ("baseline_curves", "baseline_claims")
    named = {label for lines in paper.panels.values() for label in lines.values()}
    named |= {label for claim in paper.claims for label in (claim.row, claim.baseline)}
    assert rows == named | {*paper.printed}


@pytest.mark.parametrize(
    "folder", ["baselines_fedprox", "baselines_qffl", "baselines_fednova"]
)
def test_the_page_has_the_kept_numbers(folder):
    """Each row of the kept tables stands on the page, and so does each verdict."""
    page = (ROOT / "docs" / "baselines.md").read_text("utf-8")
    kept = (ROOT / "results" / "reproduced" / folder / "baseline.md").read_text("utf-8")
    assert f"results/reproduced/{folder}" in page
    lines = re.findall(r"^\| .+ \|$", kept, re.MULTILINE)
    lines = [x for x in lines if not x.startswith(("| ---", "| row ", "| place "))]
    assert lines
    for line in lines:
        assert line in page, line


def test_the_page_has_the_least_objectives():
    """Means over the seeds, and the paired differences, of the benchmark's table."""
    folder = ROOT / "results" / "reproduced" / "baselines_qffl"
    table = pd.read_csv(folder / "optimum.csv")
    page = (ROOT / "docs" / "baselines.md").read_text("utf-8")
    digits = {"average": 1, "worst": 1, "best": 1, "variance": 0}
    for (spread, q), rows in table.groupby(["size_spread", "q"]):
        means = (f"{rows[name].mean():.{n}f}" for name, n in digits.items())
        row = f"| minimum, q = {q}, size spread {spread}"
        assert f"{row} | {' | '.join(means)} |" in page
    for spread, rows in table.groupby("size_spread"):
        runs = rows.set_index(["seed", "q"])
        gain = (runs.xs(1, level="q") - runs.xs(0, level="q"))[["variance", "worst"]]
        assert (gain["variance"] < 0).all()
        half = stats.t.ppf(0.975, 4) * gain.sem()
        variance, worst = (
            f"{gain[x].mean():+.{n}f} ± {half[x]:.{n}f}"
            for x, n in (("variance", 0), ("worst", 1))
        )
        assert f"{variance} and {worst} points with the spread {spread}" in (
            " ".join(page.split())
        )


def test_the_page_says_how_often_sizes_are_those_of_the_papers_table():
    """100 clients with 12,697 examples, whose standard deviation is 73."""
    page = " ".join((ROOT / "docs" / "baselines.md").read_text("utf-8").split())
    random = np.random.default_rng(0)
    shares = []
    for spread in (1, 2):
        sizes = 50 + np.floor(random.lognormal(4, spread, (20_000, 100)))
        few = sizes.sum(axis=1) <= 12_697
        shares += [few.mean(), (few & (sizes.std(axis=1) <= 73)).mean()]
    assert shares[2] == 0 and "Of 20,000 federations with the first sizes none" in page
    words = f"the second {shares[0]:.0%} have no more, and {shares[1]:.0%} also differ"
    assert words.replace("%", " %") in page


def mean_and_half(values):
    return values.mean(), stats.t.ppf(0.975, len(values) - 1) * values.sem()


def by_test(folder):
    """Average, worst tenth and variance by q, seed and round; and the last test."""
    path = ROOT / "results" / "reproduced" / folder / "clients.csv.gz"
    clients = pd.read_csv(path)
    clients["q"] = clients["label"].str.extract(r"q (\d),").astype(int)
    clients["share"] = 100 * clients["correct"] / clients["examples"]
    shares = clients.groupby(["q", "seed", "round"])["share"]
    table = pd.DataFrame(
        {
            "average": shares.mean(),
            "worst": shares.apply(lambda x: np.sort(x)[:10].mean()),
            "variance": shares.var(ddof=0),
        }
    )
    return table, clients[clients["round"] == 20_000]


def test_the_page_has_the_other_numbers_of_qffl():
    page = " ".join((ROOT / "docs" / "baselines.md").read_text("utf-8").split())
    table, last = by_test("baselines_qffl")
    counts = last.groupby(["q", "seed"])[["correct", "examples"]].sum()
    all_examples = 100 * counts["correct"] / counts["examples"]
    texts = ["{:.1f} ± {:.1f}".format(*mean_and_half(all_examples[q])) for q in (0, 1)]
    assert f"ours are {texts[0]} with q = 0 and {texts[1]} with q = 1" in page
    rising = table.loc[(1, 3), "average"]
    words = f"from {rising[10_000]:.0f} after 10,000 rounds to {rising[20_000]:.0f}"
    assert words in page
    late = table[table.index.get_level_values("round") > 10_000]
    means = late.groupby(["q", "seed"]).mean()
    gain = means.loc[1] - means.loc[0]
    variance = "{:+.0f} ± {:.0f}".format(*mean_and_half(gain["variance"]))
    worst = "{:+.1f} ± {:.1f}".format(*mean_and_half(gain["worst"]))
    assert f"differ by {variance} and {worst} points" in page
    table, last = by_test("baselines_qffl_script_sizes")
    assert (table["worst"] == 0).all() and len(table.loc[(0, 0)]) == 21
    wrong = (last["share"] == 0).groupby([last["q"], last["seed"]]).sum()
    assert f"{wrong.min()} to {wrong.max()} devices" in page
    averages = last.groupby("q")["share"].mean()
    assert f"{averages[0]:.1f} with q = 0 and {averages[1]:.1f} with q = 1" in page
