"""The statements of the README, the guide for programs and SECURITY.md are true."""

import collections
import csv
import re

import numpy as np
import pandas as pd
import pytest
from commands import ROOT, python
from scipy import stats

README = (ROOT / "README.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "own_code.md").read_text("utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "own_code" / "keras_model.py"
UNDECIDED = ("open", "not run far enough", "cannot be tested here")


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_python_of_the_readme_runs():
    done = python("-c", *blocks(README))
    assert done.returncode == 0 and done.stdout.count("\n") == 3, done.stderr


@pytest.mark.slow
def test_the_python_of_the_readme_learns_with_more_rounds_and_small_batches():
    """The likeliest edits work: enough clients remain, and the rate suits both."""
    (code,) = blocks(README)
    for old, new in (
        ("range(3)", "range(11)"),
        ("tff_pmc.models.mnist_cnn(),", "tff_pmc.models.mnist_cnn(), batch_size=10,"),
    ):
        assert code.count(old) == 1
        code = code.replace(old, new)
    print_metrics = (
        "print(*(float(metrics['client_work']['train'][name]) for name in {}))"
    )
    names = ("loss_sum", "examples", "excluded")
    done = python("-c", f"{code}\n{print_metrics.format(names)}")
    assert done.returncode == 0, done.stderr
    loss, examples, excluded = map(float, done.stdout.splitlines()[-1].split())
    assert excluded == 0 and loss / examples < 0.5  # At first it is 2.3.


@pytest.mark.slow
def test_the_python_of_the_guide_runs():
    """Its blocks run in order, and the module that it links to."""
    code = [*blocks(GUIDE), EXAMPLE.read_text("utf-8")]
    assert len(code) == 11 and f"({EXAMPLE.relative_to(ROOT / 'docs')})" in GUIDE
    done = python("-c", "\n".join(code))
    assert done.returncode == 0, done.stderr
    assert 1 < float(done.stdout.split()[-1]) < 3  # The loss of ten classes, at first.
    # The page shows the output; other processors round differently.
    printed, shown = (
        re.findall(r"correct: (\d+)", text) for text in (done.stdout, GUIDE)
    )
    assert len(printed) == len(shown) == 3 and abs(int(printed[0]) - int(shown[0])) < 20
    table = re.findall(r"(?m)^    (\d  client_.*)$", GUIDE)
    assert len(table) == 2
    sentence = (
        r"LD,DS,MD: accuracy ([-+.\d]+) points \(.*\) against FedAvg \(DS\) over five"
    )
    printed, shown = (re.findall(sentence, text) for text in (done.stdout, GUIDE))
    assert len(printed) == len(shown) == 1
    assert abs(float(printed[0]) - float(shown[0])) < 1.5
    for line in (*table, "trusted 6.0", "[0.303 0.603 0.095]"):
        assert line in done.stdout and line in GUIDE, line


def test_the_readme_counts_the_claims_as_their_table_does():
    path = ROOT / "results" / "reproduced" / "claims.csv"
    with path.open(newline="") as file:
        pairs = [(row["paper"], row["verdict"]) for row in csv.DictReader(file)]
    counts = collections.Counter(verdict for _, verdict in pairs)
    assert set(counts) <= {"reproduced", "not reproduced", *UNDECIDED}
    is_open, short, cannot = (counts[verdict] for verdict in UNDECIDED)
    text = " ".join(README.split())
    assert (
        f"Of their {len(pairs)} claims, {counts['reproduced']} were reproduced, "
        f"{counts['not reproduced']} were not, and {is_open + short + cannot} are "
        f"undecided: {is_open + short} need longer, other or more runs, and {cannot} "
    ) in text
    for paper in dict.fromkeys(paper for paper, _ in pairs):
        paper_counts = collections.Counter(
            verdict for name, verdict in pairs if name == paper
        )
        (stated,) = re.findall(
            rf"\*\*\[{paper}\]\([^)]*\) [^(]*\((\d+) of (\d+) claims reproduced, "
            r"(\d+) not, (\d+) undecided\)",
            text,
        )
        undecided = sum(paper_counts[verdict] for verdict in UNDECIDED)
        expected = (
            paper_counts["reproduced"],
            sum(paper_counts.values()),
            paper_counts["not reproduced"],
            undecided,
        )
        assert tuple(map(int, stated)) == expected, paper


def test_the_readmes_effects_are_those_of_the_claims():
    """To one decimal, without the sign, which the sentence expresses."""
    path = ROOT / "results" / "reproduced" / "claims.csv"
    effect = r"(\d+\.\d+) ± (\d+\.\d+)"
    with path.open(newline="") as file:
        effects_by_claim = [
            re.findall(effect, row["ours"]) for row in csv.DictReader(file)
        ]
    kept = {
        tuple(f"{float(n):.1f}" for n in pair)
        for pairs in effects_by_claim
        for pair in pairs
    }
    shown = re.findall(effect, README)
    assert len(shown) == 9 and set(shown) <= kept


def test_the_readme_is_short_and_begins_with_a_command_and_code():
    lines = README.splitlines()
    assert len(lines) <= 140
    assert any(line.startswith("    make quickstart ") for line in lines[:12])
    assert "```python" in lines[:20]


def test_the_first_run_shows_the_weights_of_the_formula():
    page = (ROOT / "docs" / "start.md").read_text("utf-8")
    (head,) = re.findall(r"^\| client \| (DS .*) \|$", page, re.MULTILINE)
    shown = np.array(re.findall(r"^\| \d \|" + 7 * r" ([\d.]+) \|", page, re.MULTILINE))
    raw, weights = np.split(shown.astype(float), [3], axis=1)
    orderings = re.findall(r"by ([A-Z,]+)", head)
    for ordering, column in zip(orderings, weights.T):
        shares = raw / raw.sum(axis=0)
        order = ["DS LD MD".split().index(code) for code in ordering.split(",")]
        score = np.cumprod(shares[:, order], axis=1).sum(axis=1)
        np.testing.assert_allclose(column, score / score.sum(), atol=6e-4)
    assert len(orderings) == 4


def test_the_first_run_shows_the_kept_runs_rounds():
    page = (ROOT / "docs" / "start.md").read_text("utf-8")
    folder = ROOT / "results" / "reproduced" / "quickstart"
    kept = (folder / "results.md").read_text("utf-8")
    for label in ("FedAvg (DS)", "LD,DS,MD"):
        row = rf"^70 % +{re.escape(label)} ([ \d]+)$"
        (shown,) = re.findall(row, page, re.MULTILINE)
        assert f"| 70 % | {label} | {' | '.join(shown.split())} |" in kept


def test_the_numbers_on_when_it_helps_are_those_of_its_table():
    page = " ".join((ROOT / "docs" / "when_it_helps.md").read_text("utf-8").split())
    folder = ROOT / "results" / "reproduced" / "when_it_helps"
    with (folder / "when_it_helps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    moved, half, half_interval, full, full_interval = (
        np.array([row[name] for row in rows], float)
        for name in (
            *("weight_moved", "accuracy", "accuracy_interval"),
            *("all_rounds", "all_rounds_interval"),
        )
    )
    worse, worse_in_all = half < -half_interval, full < -full_interval
    assert not (half > half_interval).any() and not (full > full_interval).any()
    little = moved < 0.06
    for words in (
        f"worse than DS in {worse.sum()} of {len(rows)} federations, by "
        f"{-half[worse].max():.1f} to {-half[worse].min():.1f} points",
        f"worse in {worse_in_all.sum()}, by up to {-full[worse_in_all].min():.1f}",
        f"In the {little.sum()} of {len(rows)} federations below in which it was less "
        f"than 6 %, full runs differed from DS by about {abs(half[little]).max():.1f}",
        f"full runs differ by up to {abs(full[little]).max():.1f} points",
        f"{stats.spearmanr(moved, abs(half))[0]:+.2f} over the second half",
        f"it is {stats.spearmanr(moved, half)[0]:+.2f} (p",
    ):
        assert words in page, words


def test_the_comparison_of_sizes_says_what_its_tables_have():
    page = " ".join((ROOT / "docs" / "when_it_helps.md").read_text("utf-8").split())
    folder = ROOT / "results" / "reproduced" / "when_it_helps_sizes"
    whole = pd.read_csv(folder / "all_weightings.csv")
    is_text = whole["data"] == "shakespeare"
    table, text = whole[~is_text], whole[is_text]
    is_led = ~table["weighting"].str.startswith("DS")
    is_iid = table["data"] == "synthetic IID"
    led, iid = table[is_led & ~is_iid], table[is_led & is_iid]
    is_equal = table["weighting"] == "DS^0"
    after_ds = table[~is_equal & table["weighting"].str.startswith("DS")]
    gain, steps = led["client_mean"], table.dropna(subset=["one_step"])
    names = ("accuracy", "client_mean", "worst_tenth")
    p = whole[[f"{name}_p" for name in names]].to_numpy()
    p = p[np.isfinite(p)]
    # Holm's rule, written out: the k-th smallest p counts n - k + 1 times.
    counted = np.sort(p) * np.arange(len(p), 0, -1)
    passed = int((np.maximum.accumulate(counted) < 0.05).sum())
    holm = whole[[f"{name}_holm" for name in names]] < 0.05
    assert holm.to_numpy().sum() == passed
    assert not holm["accuracy_holm"][table.index][~is_iid].any()
    num_passed = holm["client_mean_holm"][led.index].sum()
    above = (gain > led["client_mean_interval"]).sum()
    below = (iid["accuracy"] < -iid["accuracy_interval"]).sum()
    by_ld, by_md = (
        gain[led["weighting"].str.startswith(code)] for code in ("LD", "MD")
    )
    for words in (
        f"The {len(led)} rows in which LD or MD is first gain {gain.min():.1f} to "
        f"{gain.max():.1f} points",
        f"{above} of their intervals are above 0, and {num_passed} differ by Holm's "
        f"rule over all {len(p)} comparisons",
        f"the same rows lose {-iid['accuracy'].max():.1f} to "
        f"{-iid['accuracy'].min():.1f} points of accuracy, and "
        f"{-iid['client_mean'].max():.1f} to {-iid['client_mean'].min():.1f} of the",
        f"{below} of {len(iid)} intervals of accuracy are below 0, and by Holm's rule "
        f"{holm['accuracy_holm'][iid.index].sum()} remains",
        f"gains up to {led['worst_tenth'].max():.1f} points",
        f"changes by {led['accuracy'].min():.1f} to {led['accuracy'].max():+.1f}",
        f"begin with LD gain {by_ld.min():.1f} to {by_ld.max():.1f}",
        f"for small clients, {by_md.min():.1f} to {by_md.max():.1f}",
        f"at most {100 * after_ds['weight_moved'].max():.0f} % of the weight",
        f"is {stats.spearmanr(steps['one_step'], steps['accuracy'])[0]:+.2f} for acc",
        f"{stats.spearmanr(steps['weight_moved'], steps['accuracy'])[0]:+.2f} and "
        f"{stats.spearmanr(steps['weight_moved'], steps['client_mean'])[0]:+.2f}.",
    ):
        assert words in page, words
    for data, rows in table.groupby("data", sort=False):
        (equal,) = rows.loc[rows["weighting"] == "DS^0", "client_mean"]
        assert f"{abs(equal):.1f}" in page, data
    titles = {"DS^0": "equal weights"}
    for row in text.to_dict("records"):
        cells = [f"{row[name]:+.1f} ± {row[f'{name}_interval']:.1f}" for name in names]
        title = titles.get(row["weighting"], row["weighting"])
        line = f"| {title} | {row['weight_moved']:.2f} | {' | '.join(cells)} |"
        assert line in page, line
    gain = text["accuracy"]
    assert (gain > text["accuracy_interval"]).all()
    num_passed = holm["accuracy_holm"][text.index].sum()
    assert f"{gain.min():.1f} to {gain.max():.1f} points of accuracy" in page
    assert f"the {len(p)} comparisons where sizes differ, {num_passed} of the" in page
    start = pd.read_csv(folder / "shakespeare_start.csv")
    last = start[(start["seed"] == 0) & (start["round"] == 100)]
    for name, accuracy in last[["weighting", "accuracy"]].to_numpy():
        assert f"{titles.get(name, name)} {accuracy:.1f}" in page, name
    runs = start[start["start"] != "random weights"]
    # A test counts until the next one: in rounds 26 to 29 it is that of round 20.
    late = runs[runs["round"] >= 20].pivot_table(
        "accuracy", "round", ["weighting", "learning_rate"]
    )
    mean = late.apply(lambda run: np.average(run, weights=[4, 10, 10, 1]))
    by_rate, by_weights = (
        mean["DS", 0.5] - mean["DS", 2],
        mean["DS^0", 2] - mean["DS", 2],
    )
    assert f"DS gains {by_rate:.1f} points under seed 1" in page
    assert f"equal weights gain {by_weights:.1f} with the rate 2" in page


def test_each_promise_names_existing_tests():
    head = (ROOT / "SECURITY.md").read_text("utf-8").split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| (`.+) \|$", head, re.MULTILINE)
    assert len(rows) == head.count("\n|") - 2
    for promise, cell in rows:
        for named in cell.split(", "):
            path, name = re.fullmatch(r"`(.+\.py)::(test_\w+)`", named).groups()
            text = (ROOT / "tests" / path).read_text("utf-8")
            assert f"\ndef {name}(" in text, f"{promise}: {named}"
