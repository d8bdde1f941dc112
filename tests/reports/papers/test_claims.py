"""The claims of the papers on made-up runs, compared with the same in NumPy.

`ROUNDS` says once more, in a few signs, what each claim about rounds takes. Random runs
are judged by the claim and by an oracle that reads these lines and uses nothing of the
package; and so are the published tables themselves.
"""

import functools
import itertools
import math
import re

import numpy as np
import pytest
from claim_runs import answer, given_arrivals, kept, rule, run

from tff_pmc.experiments.experiment import EXPERIMENTS, values_of
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import published
from tff_pmc.reports.papers.catalog import claims, headlines
from tff_pmc.reports.papers.claims.da_claims import soonest_epochs
from tff_pmc.reports.papers.claims.pmc_claims import AT_70
from tff_pmc.reports.papers.comparisons import rounds_saved
from tff_pmc.reports.papers.evidence import Runs, declared
from tff_pmc.reports.papers.judging import judged
from tff_pmc.settings import RunSettings
from tff_pmc.settings.papers import PAPERS

# The claim | experiments | what it is of | runs | compared with | columns | relation.
# Of it is "" (rounds), "mean" or "best" of all runs together, "share" of DS's rounds,
# "gain" in the first columns minus that in the second, or "lose", the share of columns.
# Runs and columns part by ";", columns are "target:shares", joined by "+"; "~1" is none
# within a round, "[1" one or more; what the text prints follows in parentheses.
ROUNDS = """
no_fifth_reaches_85            |femnist| |DS|=-1000|85:20|<=0
md_and_ld_are_comparable       |femnist|share|MD;LD|=0|L75;M75;L80;M80|~.21
md_and_ld_are_sooner_for_high  |femnist| |MD;LD|DS|H75|>
ds_first_is_the_best           |femnist|mean|DLM;DML|SIX|L75;M75;L80;M80|>
best_of_the_criteria_alone     |femnist|mean|DS|MD;LD|L75;M75;L80;M80|>
best_of_the_criteria_alone     |femnist|mean|LD|DS;MD|H75|>
best_for_high                  |femnist|mean|MDL|SIX|H75|>
ds_is_before_ld                |femnist|mean|DLM;DML;MDL|SIX|L75;M75;L80;M80;H75|>
best_adjusted_run              |femnist|mean|MDL*|SIX*|L75;M75;L80;M80;H75|>
adjusting_improves             |femnist|mean|SIX*|SIX|L75|>(2.5)
adjusting_improves             |femnist|mean|SIX*|SIX|M75|>(3.7)
adjusting_improves             |femnist|mean|SIX*|SIX|H75|>(64.2)
adjusting_improves             |femnist|mean|SIX*|SIX|L80|>(3.4)
adjusting_improves             |femnist|mean|SIX*|SIX|M80|>(4.1)
adjusting_improves_on_the_same |femnist| |MDL*|MDL|L75;M75;L80;M80;H75|>
adjusted_is_sooner_at_75       |femnist| |MDL*|DS|L75;M75|>
adjusted_is_sooner_at_80       |femnist| |MDL*|DS|L80;M80|>
adjusted_is_sooner_for_high    |femnist| |MDL*|DS|H75|>
criteria_improve_fedavg        |femnist| |MDL*|DS|L75|[1
alone_gain_nothing_on_iid      |mnist_iid| |LD;MD|DS|70;80;90|~1
alone_are_slower_on_iid        |mnist_iid| |LD;MD|DS|95:70,80,90|<
ds_is_the_best_at_the_end      |mnist_noniid|mean|DS|LD;MD|95:70,80,90|>
ld_is_sooner                   |mnist_noniid| |LD|DS|70+80|>(1,2)
md_is_sooner                   |mnist_noniid| |MD|DS|70+80|>(1,2)
ld_is_sooner_by_the_table      |mnist_noniid| |LD|DS|70;80|>
ld_is_sooner_by_the_table      |mnist_noniid| |MD|DS|70|>
ld_is_sooner_by_the_table      |mnist_noniid| |MD|DS|80|<
ds_is_sooner_at_90_and_95      |mnist_noniid| |LD;MD|DS|90+95|<(-12,-5)
ds_is_sooner_by_the_table      |mnist_noniid| |LD|DS|90|>
ds_is_sooner_by_the_table      |mnist_noniid| |LD|DS|95|<
ds_is_sooner_by_the_table      |mnist_noniid| |MD|DS|90;95|<
ld_is_alike_over_33_columns    |mnist_noniid| |LD|DS|70+80+90+95:10,20,30,40,50,60|~1
ld_is_alike_over_33_columns    |mnist_noniid| |MD|DS|70+80+90+95:10,20,30,40,50,60|<
ds_is_sooner_in_the_last_columns|mnist_noniid| |LD;MD|DS|95:70,80,90|<
cb_needs_less_than_half        |celeba|twice|CB|=0|85:50|>
cb_is_sooner_and_is_later      |celeba| |CB|DS|C70+C80+C85|>
cb_is_sooner_and_is_later      |celeba| |IS|DS|C70+C80+C85|<
gain_of_cb_grows               |celeba|gain|CB|CB|C80-C70|>
gain_of_cb_grows               |celeba|gain|CB|CB|C85-C80|>
orderings_gain_nothing_on_iid  |mnist_iid| |SIX|DS|70+80+90|~1
ld_md_ds_is_sooner_then_later  |mnist_iid| |LMD|DS|70+80+90|>
ld_md_ds_is_sooner_then_later  |mnist_iid| |LMD|DS|95:70,80,90|<
more_gains_are_negative_later  |mnist_noniid|lose|SIX|SIX|90+95-70+80|>
orderings_are_later_at_the_end |mnist_noniid| |DLM|DS|95:70,80,90|<
three_are_sooner_at_the_end    |mnist_noniid| |LDM;MDL;MLD|DS|95:70,80,90|>
ld_ds_md_is_sooner             |mnist_noniid| |LDM|DS|70;80;95|>
ld_ds_md_is_sooner             |mnist_noniid| |LDM|DS|90|~1
gain_of_ld_ds_md_falls         |mnist_noniid|gain|LDM|LDM|70+80-90+95|>
gain_of_md_ds_ld_grows         |mnist_noniid|gain|MDL|MDL|90+95-70+80|>
md_ds_ld_gains_later           |mnist_noniid| |MDL|DS|70;80|~1
md_ds_ld_gains_later           |mnist_noniid| |MDL|DS|90|>(2.1)
md_ds_ld_gains_later           |mnist_noniid| |MDL|DS|95|>(1.7)
md_ds_ld_gains_by_the_table    |mnist_noniid| |MDL|DS|90|>
md_ld_ds_gains_later           |mnist_noniid| |MLD|DS|70;80|~1
md_ld_ds_gains_later           |mnist_noniid| |MLD|DS|90;95|>
four_orderings_are_later       |celeba| |DIC;IDC;ICD;CID|DS|C70+C80+C85|<
is_last_is_sooner              |celeba| |DCI;CDI|DS|C70+C80+C85|>
is_last_is_sooner_than_cb      |celeba| |DCI;CDI|CB|C70+C80+C85|>
ds_cb_is_is_the_best           |celeba| |DCI|DS|C70;C80;C85|>
ld_brings_nothing              |mnist_noniid| |LD|DS|70+80+90+95|~1
md_gives_a_start               |mnist_noniid| |MD|DS|70|>
md_gives_a_start               |mnist_noniid| |MD|DS|95|<
criteria_improve_on_mnist      |mnist_noniid|best|LD;MD;SIX|DS|70+80+90+95|[1
criteria_improve_on_celeba     |celeba|best|CB;DCI;CDI|DS|C70+C80+C85|[1
gains_most_on_noniid           |mnist_noniid,mnist_iid|gains|LD;MD;SIX|LD;MD;SIX|70+80+90-70+80+90|>
"""  # noqa: E501
CODES = {"D": "DS", "L": "LD", "M": "MD", "I": "IS", "C": "CB"}
SIX = ["DLM", "DML", "LDM", "LMD", "MDL", "MLD"]
SETS = {"L75": "75:20,30", "M75": "75:40,50", "H75": "75:70,75", "L80": "80:20,30"}
SETS.update(M80="80:40,50", C70="70:10,20,30,40,50,60,70,80", C85="85:10,20,30,40,50")
SETS.update(C80="80:10,20,30,40,50,60")
TABLES = {"mnist_iid": "pmc_table2", "mnist_noniid": "pmc_table4"}
TABLES.update(celeba="pmc_table6", femnist="da_table1")
WORST_FIRST = ("not reproduced", "not run far enough", "open", "reproduced")
ALONE = {"DS": "Dataset size (base)", "MD": "Model divergence"}
ALONE["LD"] = "Label diversity"
SHARES = (*range(10, 100, 10), 75)


def labels(text):
    """DLM;LD -> DS,LD,MD and LD; a star is an adjusted run."""
    found = []
    for one in text.split(";"):
        star = " (backtracking)" if one.endswith("*") else ""
        one = one.rstrip("*")
        for name in SIX if one == "SIX" else [one]:
            ordering = len(name) == 3
            name = ",".join(CODES[code] for code in name) if ordering else name
            found.append(name + star)
    return found


def cells(text):
    """70+80:10,20 -> (target, share) of each column."""
    found = []
    for part in text.split("+"):
        target, _, shares = SETS.get(part, part).partition(":")
        of = map(int, shares.split(",")) if shares else range(10, 100, 10)
        found += [(int(target), share) for share in of]
    return found


def table_of_rounds():
    """(claim, experiments) -> its rows: kind, runs, base, sets of columns, relation."""
    found = {}
    for line in ROUNDS.strip().splitlines():
        name, experiments, kind, own, base, sets, relation = (
            part.strip() for part in line.split("|")
        )
        base = float(base[1:]) if base.startswith("=") else labels(base)
        sets, _, minus = sets.partition("-")
        sets = [cells(one) for one in sets.split(";")]
        sign, limit, printed = re.fullmatch(
            r"([<>~\[]=?)([\d.]*)(?:\((.*)\))?", relation
        ).groups()
        printed = [float(one) for one in printed.split(",")] if printed else []
        row = kind, labels(own), base, sets, cells(minus) if minus else [], sign
        found.setdefault((name, experiments), []).append(
            (*row, float(limit or 0), printed)
        )
    return found


CASES = [
    pytest.param("DA" if "femnist" in of else "PMC", name, of.split(","), rows, id=name)
    for (name, of), rows in table_of_rounds().items()
]


def limits(sign, limit):
    """The least and the most that a relation allows."""
    return {"~": (-limit, limit), "[": (limit, math.inf), "<=": (-math.inf, limit)}.get(
        sign, ()
    )


@functools.cache
def printed_gain(page, table, label, cell):
    """What a published table has a run save over DS in a column; NaN for nothing."""
    (target, share), row = cell, label.replace(",", "≻")
    if table != "da_table1":
        line = page.by_line(table[-1])[
            row.replace("MD", "MW") + " (baseline)" * (label == "DS"), target
        ]
        return 0.0 * line[f"{share}%"] if label == "DS" else line[f"{share}%"]
    found, order = page.cells(table), label.partition(" ")[0]
    study = "Final" if " " in label else "MCA" if "," in label else "Ind"
    row = ALONE.get(label) or order.title().replace(",", "≻")
    base, own = (
        page.rounds(found.get((str(target), *key, f"{share}%"), "—"))
        for key in (("Ind", ALONE["DS"]), (study, row))
    )
    return np.nan if math.inf in (base, own) else float(base - own)


def printed_rounds(page, table):
    """The rounds that DS needs in a published table, by its columns."""
    if table == "da_table1":
        own = page.cells(table).items()
        own = {k: page.rounds(v) for k, v in own if k[1:3] == ("Ind", ALONE["DS"])}
        lines = {(int(k[0]), k[3]): float(v) for k, v in own.items()}
    else:
        own = page.by_line(table[-1]).items()
        lines = {(t, c): n for (x, t), v in own if "base" in x for c, n in v.items()}
    found = {(t, int(c[:-1])): n for (t, c), n in lines.items() if c[-1] == "%"}
    return {cell: n for cell, n in found.items() if math.isfinite(n)}


def number(kind, runs, which, of):
    """What a kind is of some runs, with less rounds as more."""
    mine = np.array([[runs[x][c] for c in of] for x in which], float)
    base = np.array([runs["DS"][c] for c in of], float)
    if kind == "share":
        return mine.mean() / base.mean() - 1
    if kind == "twice":
        return base.mean() - 2 * mine.mean()
    if kind in ("gain", "gains"):
        return (base - mine).mean()
    if kind == "lose":
        return 100 * (mine > base).mean()
    return max(-mine.mean(axis=1)) if kind == "best" else -mine.mean()


def made(experiments, rows, rng):
    """Random rounds of all labels and columns under five seeds, some never reached."""
    names = {"DS"}
    for _, own, base, *_ in rows:
        names |= {*own, *(base if isinstance(base, list) else [])}
    lead = {label: rng.integers(-6, 7) for label in sorted(names)}

    def drawn(label):
        arrives = rng.random() < 0.98
        return int(rng.integers(20, 24) + lead[label]) if arrives else None

    every = [*itertools.product((70, 75, 80, 85, 90, 95), SHARES)]
    return {
        (experiment, seed): {x: {cell: drawn(x) for cell in every} for x in lead}
        for experiment in experiments
        for seed in range(5)
    }


def runs_of(data):
    """Kept runs of the rounds of (experiment, seed) -> label -> column."""
    return kept(
        *(
            [
                run(label, seed, reached=reached, experiment=experiment)
                for (experiment, seed), of in data.items()
                if experiment == name
                for label, reached in of.items()
            ]
            for name in dict.fromkeys(experiment for experiment, _ in data)
        )
    )


def expected(experiments, rows, data, page):
    """Of each difference: values, what is printed, columns of how many, limits."""
    seeds = [[data[one, seed] for one in experiments] for seed in range(5)]
    tables = [TABLES[one] for one in experiments]
    for kind, runs, base, sets, minus, sign, limit, text in rows:
        together = kind in ("mean", "best", "lose", "gains")
        ds = ["DS"] if kind in ("share", "gain", "gains", "lose", "twice") else []
        for own, of in itertools.product(
            [runs] if together else [[x] for x in runs], sets
        ):
            others = (
                [] if isinstance(base, float) else [x for x in base if x not in own]
            )
            others = others or ([] if isinstance(base, float) else own)
            asked, left = (of, minus or of), []
            for columns, at, which in ((asked[0], 0, own), (asked[1], -1, others)):
                needed = [seed[at][x] for seed in seeds for x in [*which, *ds]]
                left.append([c for c in columns if all(one[c] for one in needed)])
            if not minus:
                left = [[c for c in left[0] if c in left[1]]] * 2
            values, printed = [], []
            if all(left):
                for seed in seeds:
                    theirs = (
                        base if not others else number(kind, seed[-1], others, left[1])
                    )
                    values.append(number(kind, seed[0], own, left[0]) - theirs)
                whole = [*map(len, left)] == [*map(len, asked)]
                if whole and text:  # What the text prints is of all columns.
                    printed = text
                elif others and kind != "share":
                    sides = zip((tables[0], tables[-1]), (own, others), left)
                    one, other = (
                        np.array(
                            [[printed_gain(page, t, x, c) for c in cs] for x in xs]
                        )
                        for t, xs, cs in sides
                    )
                    best = np.max if kind == "best" else np.mean
                    if kind == "lose":
                        one, other = (
                            np.where(np.isnan(x), x, 100.0 * (x < 0))
                            for x in (one, other)
                        )
                    size = best(one.mean(axis=1)) - best(other.mean(axis=1))
                    printed = [] if np.isnan([*one.flat, *other.flat]).any() else [size]
            yield values, printed, left, asked, sign, limits(sign, limit)


@pytest.mark.parametrize(("paper", "name", "experiments", "rows"), CASES)
def test_rounds_are_judged_as_numpy_judges_them(
    paper, name, experiments, rows, page, monkeypatch
):
    given_arrivals(monkeypatch)
    rng = np.random.default_rng(len(name))
    for _ in range(2):
        data = made(experiments, rows, rng)
        words, numbers, parts = [], [], []
        for values, printed, left, asked, sign, limit in expected(
            experiments, rows, data, page
        ):
            part = [*map(len, left)] != [*map(len, asked)]
            words.append("not run far enough")
            if values:
                kind = "~" if sign in "~[" else sign
                words[-1] = rule(values, kind, limit, printed, part)
                numbers += [np.mean(values), *printed]
                counts = dict.fromkeys(zip(map(len, left), map(len, asked)))
                parts += [f"{n} of {m}" for n, m in counts if n < m]
        text, verdict, *_ = answer(paper, name, runs_of(data))
        # One that is refuted refutes the claim, one that is open leaves it open.
        assert verdict == next(word for word in WORST_FIRST if word in words), text
        assert re.findall(r"(\d+ of \d+) columns", text) == parts
        found = [float(one) for one in re.findall(r" ([+-]\d+\.\d+)", text)]
        assert found == pytest.approx(numbers, abs=0.051)


def test_the_papers_tables_show_what_the_text_says_but_where_it_is_noted(
    page, monkeypatch
):
    """A sign or a set of columns that is turned in a claim shows here."""
    given_arrivals(monkeypatch)
    found, signs = {}, dict(zip(WORST_FIRST, "-?=+"))
    for paper, name, experiments, rows in (case.values for case in CASES):
        data = {}
        for experiment in experiments:
            base = printed_rounds(page, TABLES[experiment])
            names = {x for row in rows for x in row[1]}
            names |= {x for row in rows if isinstance(row[2], list) for x in row[2]}
            of = {
                label: {
                    cell: None if np.isnan(gain) else base[cell] - gain
                    for cell in base
                    for gain in [printed_gain(page, TABLES[experiment], label, cell)]
                }
                for label in {"DS", *names}
            }
            data.update({(experiment, seed): of for seed in range(5)})
        word = answer(paper, name, runs_of(data)).verdict
        found[paper] = found.get(paper, "") + signs[word]
    # Only one adjusted run is printed in DA. In PMC an ordering gains 1.2 rounds on IID
    # data, CB≻DS≻IS is later than CB, and non-IID data gain no more than IID.
    assert found == {
        "DA": "?++++++??+++++",
        "PMC": "+" * 13 + "-" + "+" * 12 + "-+++++-",
    }


def test_the_claims_of_all_papers_are_in_their_order_and_of_experiments():
    found = claims()
    assert list(dict.fromkeys(one.paper for one in found)) == list(PAPERS)
    assert [len(claims(paper)) for paper in PAPERS] == [17, 43, 17, 16]
    for one in found:
        assert one.place and one.says.endswith((".", ".)"))
        assert {*one.experiments} <= {*EXPERIMENTS}
        for name in one.experiments:  # What makes a run the paper's is its experiment.
            for changes in [row.values for row in EXPERIMENTS[name].rows] or [{}]:
                own = {**values_of(name), **changes}
                own = RunSettings.of({}, inherited=own).by_flag()
                assert declared(name).settings.items() <= own.items(), name
    figures = {word for one in claims("AdaFed") for word in one.place.split()}
    assert {word for word in figures if word.isdigit()} == set("123456")
    with pytest.raises(RecordError, match="no experiment 'mnist': there are adafed"):
        Runs.of("mnist", kept())


def test_the_headline_numbers_are_as_printed():
    halves = [("femnist", "DS", 75), ("femnist", "MD,DS,LD (backtracking)", 75)]
    halves += [("mnist_iid", x, 90) for x in ("DS", "LD,DS,MD")]
    halves += [("mnist_iid", x, 95) for x in ("DS", "LD,MD,DS")]
    halves += [("mnist_noniid", x, 90) for x in ("DS", "LD,DS,MD")]
    halves += [("mnist_noniid", x, 95) for x in ("DS", "LD", "MD")]
    halves.append(("celeba", "DS", 85))
    found = [one for one in headlines() if "half of the devices" in one.says]
    for one, (experiment, label, target) in zip(found, halves):
        assert f"{target} %" in one.says
        half = published.rounds_of_half(experiment, label)[target]
        assert one.printed == f"{half:.0f}"
    assert len(found) == len(halves) and len(headlines()) == 21


@pytest.mark.parametrize(
    ("lead", "same", "algorithm", "words"),
    [
        (0, True, "prioritized", ["not reproduced", "reproduced"]),
        (4, True, "prioritized", ["not reproduced", "reproduced"]),
        (4, False, "prioritized", ["reproduced", "not reproduced"]),
        (4, True, "momentum", ["reproduced", "not reproduced"]),
    ],
)
def test_runs_of_equal_weights_in_every_round_are_one_algorithm(
    lead, same, algorithm, words, monkeypatch
):
    """Slower by `lead`, LD has the weights of DS but in one round of a seed."""
    given_arrivals(monkeypatch)
    every = [*itertools.product((70, 80, 90, 95), range(10, 100, 10))]
    runs = []
    for seed in range(5):
        lasts = {"DS": 0.5, "LD": 0.5 if same or seed else 0.4, "MD": 0.3}
        for label, last in lasts.items():
            weights = [0.5, 0.5, 1 - last, last]
            cohort = {"round": [1, 1, 2, 2], "client": [3, 4] * 2, "weight": weights}
            later = 9 + (label != "DS") * lead
            own = {"experiment": "mnist_iid", "tables": {"cohort": cohort}}
            own["algorithm"] = algorithm if label == "LD" else "prioritized"
            runs.append(run(label, seed, reached=dict.fromkeys(every, later), **own))
    found = rounds_saved(Runs.of("mnist_iid", kept(runs)), "LD", AT_70)
    assert [judged(of).verdict for of in (found.is_less(), found.is_none(1))] == words


@pytest.mark.parametrize(("late", "seeds"), [(90, 5), (9, 8)])
def test_seeds_of_shorter_runs_count_where_all_columns_are_reached(
    late, seeds, monkeypatch
):
    """Runs of five seeds have 90 rounds, and those of three others 30."""
    given_arrivals(monkeypatch)

    def runs(seeds, length):
        for seed, label in itertools.product(seeds, ("DS", "LD")):
            reached = {(70, k): 5 if label == "DS" else 4 for k in range(10, 90, 10)}
            if late <= length:
                reached[70, 90] = late
            own = {"length": length, "experiment": "mnist_noniid"}
            yield run(label, seed, reached=reached, **own)

    of = Runs.of("mnist_noniid", kept([*runs(range(5), 90)], [*runs((5, 6, 7), 30)]))
    (found,) = rounds_saved(of, "LD", AT_70)
    assert len(found.own) == seeds and not found.part


def test_other_epochs_are_compared_with_the_longest_run_of_a_seed(monkeypatch):
    """E = 1 arrives two rounds later; the other reading is not its pair."""
    given_arrivals(monkeypatch)

    def ds(epochs, arrives, length, seed, relu=False):
        reached = {(75, 20): arrives, (75, 30): arrives and arrives + 1}
        own = {"local_epochs": epochs, "batch_size": 10, "model": "mnist_cnn"}
        own["conv_activation"] = "relu" if relu else "none"
        own["experiment"] = "femnist"
        return run("DS", seed, length=length, reached=reached, **own)

    def pairs(seeds, length, relu=False):
        both = ((5, 2), (1, 4))
        return [ds(*own, length, seed, relu) for seed in seeds for own in both]

    def judge(runs):
        made = Runs.of("femnist", kept(*([one] for one in runs)), {})
        return judged(soonest_epochs(made, 5, 10).is_more())

    low = "Low at 75 %, over E = 1, B = 10"
    longer = [ds(5, 3, 30, seed) for seed in range(5)]
    sooner = [ds(20, 1, 14, seed) for seed in range(5)]
    relu = [ds(e, 7, 40, k, True) for k in range(5) for e in (5, 1)]
    for runs, ours, verdict in (
        ([*longer, *pairs(range(5), 20)], f"{low} +1.0 ± 0.0", "reproduced"),
        # One part in the paper's reading refutes, and the others need not be in it.
        (
            [*longer, *sooner, ds(1, 7, 40, 0, True), ds(5, 6, 40, 0, True)],
            f"{low} +1.0; Low at 75 %, over E = 20, B = 10 -2.0 ± 0.0",
            "not reproduced",
        ),
        ([*pairs(range(5), 20), *relu], f"{low} +2.0 ± 0.0", "reproduced"),
        # Two lengths under three seeds are three seeds.
        (
            [*pairs(range(3), 20), *pairs(range(3), 25)],
            f"{low} +2.0",
            "not run far enough",
        ),
    ):
        assert judge(runs)[:2] == (ours, verdict)
    for runs, message in (
        (longer, "^only E = 5 and B = 10 is kept"),
        ([*longer, ds(1, 3, 20, 7)], "has the seed of the one with E = 1"),
        ([*longer, ds(1, None, 20, 0)], "E = 1 and B = 10 ends in round 20, before"),
        ([ds(5, None, 20, 0), ds(1, 3, 20, 0)], "E = 5 and B = 10 ends in round 20"),
    ):
        with pytest.raises(RecordError, match=message):
            judge(runs)


FEDAVG, ADAFED, ONLY = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = f"{ONLY}, times samples"


@pytest.mark.parametrize(
    ("name", "runs", "message"),
    [
        ("about_three_points_ahead", [(FEDAVG, 2), (ONLY, 2)], f"^not run: {ADAFED}$"),
        ("its_loss_has_the_highest_f1", [(x, 2) for x in (FEDAVG, ONLY, ADAFED)],
         "^the run of AdaFed has not recorded what is compared$"),
        ("few_images_are_told_apart_better", [(x, 2) for x in (FEDAVG, ONLY, ADAFED)],
         "^a run has no F1 of its classes on record$"),
        ("sixth_client_is_ahead", [(TIMES, 1)],
         f"^the run of {TIMES} has not recorded what is compared$"),
        ("adversaries_cost_fedavg", [(FEDAVG, 2, 0), (FEDAVG, 3, 1)],
         "^the runs of adafed_2 and adafed_3 have no seed in common$"),
    ],
)  # fmt: skip
def test_what_a_record_lacks_is_reported(name, runs, message):
    folders = {}
    for label, number, *seed in runs:
        own = run(label, *seed, length=20, experiment=f"adafed_{number}")
        folders.setdefault(number, []).append(own)
    with pytest.raises(RecordError, match=message):
        answer("AdaFed", name, kept(*folders.values()))


@pytest.mark.parametrize(
    ("reached", "rounds", "number", "verdict"),
    [
        (12, 20, "less than twelve +0.00", "reproduced"),
        (11, 20, "less than twelve +1.00", "not reproduced"),
        (30, 20, "less than twelve -9.00", "reproduced"),
        (3, 3, "less than twelve +9.00", "not reproduced"),
        (30, 3, "", "not run far enough"),
    ],
)
def test_the_second_round_and_the_twelfth(reached, rounds, number, verdict):
    runs = []
    for seed in range(5):
        line = [*[0.5] * (reached - 1), *[0.8] * rounds][:rounds]
        runs.append(run(FEDAVG, seed, line, experiment="adafed_1"))
        runs.append(run(TIMES, seed, [0.7, 0.8, 0.9], experiment="adafed_1"))
    found = answer("AdaFed", "second_round_is_the_twelfth", kept(runs))
    assert number in found.ours and found.verdict == verdict


def test_a_rank_correlation_is_of_the_first_criterion():
    """LD varies most between the clients, and MD least; an adjusted run is left out."""
    cohort = {"DS": [1.0, 2.0], "LD": [1.0, 9.0], "MD": [3.0, 3.0], "round": [1, 1]}
    cohort.update(excluded=[0, 0], client=[3, 4], weight=[0.5, 0.5])
    clients = {"round": [1], "client": [3], "correct": [1], "examples": [2]}
    best = {"DS": 0.6, "LD": 0.9, "MD": 0.5, "LD,DS,MD": 0.8, "LD (x)": 1.0}
    runs = [
        run(
            label,
            0,
            [0.1, top, 0.2],
            experiment="mnist_iid",
            criteria=("DS", "LD", "MD"),
            columns={"correct": [1, 10 * top, 2], "examples": [10] * 3},
            tables={"cohort": cohort, "clients": clients},
        )
        for label, top in best.items()
    ]
    found = answer("PMC", "variance_helps_on_iid", kept(runs))
    ranks = np.corrcoef([2, 3.5, 1, 3.5], [2, 4, 1, 3])[0, 1]
    assert found.ours == f"rank correlation with the best accuracy {ranks:+.2f}"
    assert found.why.startswith("the kept runs have 3 rounds, and the claim takes 100")


ABOVE, BELOW = (0, math.inf), (-math.inf, 0)
POINTS = [
    # The claim, its runs, what they are compared with, and the least and the most.
    ("PMC", "ld_is_ds_on_iid", "mnist_iid", ["LD"], "DS", (0, 0)),
    (
        "PMC",
        "curves_cannot_be_told_apart",
        "mnist_iid",
        ["LD", "MD", *labels("SIX")],
        "DS",
        (-0.5, 0.5),
    ),
    ("PMC", "cb_is_right_on_fewer", "celeba", ["CB"], "DS", BELOW),
    ("PMC", "is_is_right_on_as_many", "celeba", ["IS"], "DS", (-0.5, 0.5)),
    ("PMC", "curve_is_above_ds", "celeba", ["DS,CB,IS"], "DS", ABOVE),
    ("PMC", "curve_is_above_cb", "celeba", ["DS,CB,IS"], "CB", ABOVE),
    ("AdaFed", "ahead_in_the_first_round", "adafed_1", [TIMES], FEDAVG, ABOVE),
    ("AdaFed", "converges_faster", "adafed_1", [TIMES], FEDAVG, ABOVE),
    (
        "AdaFed",
        "about_three_points_ahead",
        "adafed_2",
        [ONLY, ADAFED],
        FEDAVG,
        (1.5, 6),
    ),
    ("AdaFed", "its_loss_converges_faster", "adafed_2", [ADAFED], ONLY, ABOVE),
]
POINTS += [
    ("Dual", name, "dual_criterion", [own], base, found)
    for name, own, base, found in (
        ("quantization_keeps_accuracy", "quantized", "simple_average", (-1, 1)),
        ("momentum_is_behind", "momentum", "weighted_mean", BELOW),
        ("momentum_is_behind_with_four", "momentum", "weighted_mean", BELOW),
        ("better_than_the_simple_average", "dual", "simple_average", ABOVE),
        ("better_than_the_weighted_mean", "dual", "weighted_mean", ABOVE),
        ("better_than_the_simple_average_with_four", "dual", "simple_average", ABOVE),
        ("better_than_the_weighted_mean_with_four", "dual", "weighted_mean", ABOVE),
        ("comparable_to_personalized", "dual", "personalized", (-1, math.inf)),
        (
            "comparable_to_personalized_with_four",
            "dual",
            "personalized",
            (-1, math.inf),
        ),
    )
]
POINTS += [
    ("Dual", name, "dual_criterion_obstacles", ["dual"], base, found)
    for name, base, found in (
        ("comparable_on_obstacles", "personalized", (-1, math.inf)),
        ("better_on_obstacles_than_the_average", "simple_average", ABOVE),
        ("better_on_obstacles_than_the_mean", "weighted_mean", ABOVE),
    )
]


@pytest.mark.parametrize(
    ("paper", "name", "experiment", "own", "base", "found"),
    [pytest.param(*one, id=one[1]) for one in POINTS],
)
def test_points_are_reproduced_within_their_limits_alone(
    paper, name, experiment, own, base, found
):
    """All runs of a side have one accuracy, in all rounds and under all seeds."""
    low, high = found
    leads = [(low - 0.1, False), (low + 0.1, True), (high - 0.1, True)]
    leads += [(high + 0.1, False)]
    leads = [(lead, holds) for lead, holds in leads if math.isfinite(lead)]
    for lead, holds in [(0, True)] if low == high else leads:
        settings = {"experiment": experiment, "judge_on": "test"}
        settings["data_clients"] = 4 if name.endswith("_four") else 3
        runs = [
            run(label, seed, [accuracy] * 100, algorithm=label, **settings)
            for seed in range(5)
            for labels, accuracy in ((own, 0.5 + lead / 100), ([base], 0.5))
            for label in labels
        ]
        verdict = answer(paper, name, kept(runs)).verdict
        assert verdict == ("reproduced" if holds else "not reproduced"), lead
