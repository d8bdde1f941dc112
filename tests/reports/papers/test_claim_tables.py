"""The tables of claims: refused if they cannot be, and judged on single cases."""

import itertools

import pandas as pd
import pytest

from tff_pmc.experiments.experiment import EXPERIMENTS, values_of
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import claim_tables, judges, published
from tff_pmc.reports.papers.claim_tables import ClaimError, claims, headline_numbers
from tff_pmc.settings import RunSettings
from tff_pmc.settings.papers import PAPERS

TABLE = """
paper = "PMC"
[runs]
"both" = ["LD", "MD"]
[columns]
"at 70 %" = { 70 = "all" }
[[claim]]
place = "section 1"
says = "Some words."
experiments = ["mnist_iid"]
of = "rounds"
tolerance = 1.0
runs = "both"
columns = "at 70 %"
sign = "none"
[[headline]]
place = "Table 2"
experiment = "mnist_iid"
says = "a number"
printed = "7"
number = "round of half"
run = "DS"
target = 90
"""


@pytest.fixture
def read(tmp_path):
    """A function that reads the table with one text in the place of another."""

    def read_it(old="", new=""):
        assert old in TABLE
        path = tmp_path / "mine.toml"
        path.write_text(TABLE.replace(old, new, 1), encoding="utf-8")
        return claim_tables.read(path)

    return read_it


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tolerance", "tolerence", "got an unexpected keyword argument 'tolerence'"),
        ("[[claim]]", "[[claim]]\njudge = 'x'", "unknown judge 'x'; it has to be one "),
        ('"mnist_iid"]', '"mnist"]', "unknown experiment 'mnist'; it has to be one of"),
        ('"none"', '"never"', "unknown sign 'never'; it has to be one of more, less"),
        ('of = "rounds"', 'of = "x"', "unknown quantity 'x'; it has to be one of roun"),
        ('= "at 70 %"\n', '= "at 7 %"\n', "unknown set of columns 'at 7 %'; it has"),
        ("sign", "name = '{who}'\nsign", "unknown part of a name 'who'; it has to be"),
        ("sign", "measures = [{ sing = 1 }]\nsign", "unknown key of a measure 'sing'"),
        ("1.0", '"x"', "tolerance has to be a number, not 'x'"),
        ("sign", "printed = nan\nsign", "printed has to be a number, not nan"),
        ("sign", "within = 10\nsign", "within has to be two numbers, not 10"),
        ("sign", "within = [9, -9]\nsign", "two numbers, not [9, -9]"),
        ('"Some words."', "5", "'int' object has no attribute 'split'"),
        ("[runs]", "[claims]\n[runs]", "'claims' is none of paper, tables, settings"),
        ('runs = "both"', "", "'runs'"),
        ('place = "section 1"', "", "(without a place): the key 'place' is missing"),
        ("of half", "of all", "headline 1 (Table 2): unknown number 'round of all'"),
        ("target = 90", "", "headline 1 (Table 2): missing a required argument"),
        ("target = 90", "target = 90\nx = 1", "unexpected keyword argument 'x'"),
        ("[runs]", "[runs", "mine.toml: "),
    ],
)
def test_what_cannot_be_is_one_line_that_names_file_and_place(read, old, new, message):
    with pytest.raises(ClaimError) as error:
        read(old, new)
    text = str(error.value)
    assert text.startswith("mine.toml") and message in text and "\n" not in text
    assert "section 1" in text or "Table 2" in text or "place" in old or old == "[runs]"


def test_the_claims_of_all_papers_are_in_their_order_and_of_experiments():
    found = claims()
    assert list(dict.fromkeys(one.paper for one in found)) == list(PAPERS)
    for one in found:
        assert one.place and one.says.endswith((".", ".)"))
        assert one.experiments and set(one.experiments) <= set(EXPERIMENTS)
        for name in one.experiments:  # What makes a run the paper's is its experiment.
            for changes in [row.values for row in EXPERIMENTS[name].rows] or [{}]:
                own = {**values_of(name), **changes}
                own = RunSettings.of({}, inherited=own).by_flag()
                assert one.settings[name].items() <= own.items(), (name, one.says)
    figures = {word for one in claims("AdaFed") for word in one.place.split()}
    assert {word for word in figures if word.isdigit()} == set("123456")


def test_the_headline_numbers_are_as_printed():
    half = 0
    for one in headline_numbers():
        assert one.experiment in EXPERIMENTS and one.paper in PAPERS
        if set(one.measure.keywords) == {"target"}:
            marks = published.rounds_of_half(one.experiment, one.run)
            target = one.measure.keywords["target"]
            assert one.printed == f"{marks[target]:.0f}", one.says
            half += 1
    assert half == 7


def judged(words, runs, paper="PMC", **keys):
    """Judges the one claim that says these words, with other keys where given."""
    (claim,) = [one for one in claims(paper) if words in " ".join(one.says.split())]
    judge = type(claim.judge)(claim.judge, **keys)
    of = {name: [] for name in claim.experiments}
    for run in runs:
        of[run.settings["experiment"]].append(run)
    return judge(of)


CELLS = dict.fromkeys(itertools.product((70, 80, 90, 95), range(10, 100, 10)), 9)


@pytest.mark.parametrize(
    ("lead", "same", "system", "words"),
    [
        (0, True, "prioritized", ["not reproduced", "reproduced"]),
        (4, True, "prioritized", ["not reproduced", "reproduced"]),
        (4, False, "prioritized", ["reproduced", "not reproduced"]),
        (4, True, "momentum", ["reproduced", "not reproduced"]),
    ],
)
def test_runs_of_equal_weights_in_every_round_are_one_algorithm(
    kept, lead, same, system, words
):
    def cohort(last):
        weights = {"weight": [0.5, 0.5, 1 - last, last]}
        return pd.DataFrame({"round": [1, 1, 2, 2], "client": [3, 4] * 2, **weights})

    runs = []
    later = {cell: nine + lead for cell, nine in CELLS.items()}
    for seed in range(5):
        lasts = {"DS": 0.5, "LD": 0.5 if same or seed else 0.4, "MD": 0.3}
        for label, last in lasts.items():
            reached = CELLS if label == "DS" else later
            own = cohort(last)
            of = {"system": system if label == "LD" else "prioritized"}
            runs.append(kept(label, seed, "mnist_iid", reached, cohort=own, **of))
    said = ("slightly slower than DS", "LD and MW gain close")
    (claim,) = (one for one in claims("PMC") if said[1] in one.says)
    first = claim.judge.keywords["measures"][0]
    only = [first._replace(runs=["LD"])]
    assert judged(said[0], runs)[1] == words[0]
    assert judged(said[1], runs, measures=only)[1] == words[1]


def test_other_epochs_are_held_against_the_longest_run_of_a_seed(kept):
    """E = 1 arrives two rounds later; the other reading is not its pair."""

    def run(epochs, arrives, rounds, seed, relu=False):
        reached = {(75, 20): arrives, (75, 30): arrives and arrives + 1}
        settings = {"local_epochs": epochs, "batch_size": 10, "model": "mnist_cnn"}
        settings["conv_activation"] = "relu" if relu else "none"
        return kept("DS", seed, "femnist", reached, rounds, **settings)

    def pairs(seeds, *more):
        return [run(*own, *more, k) for k in seeds for own in ((5, 2), (1, 4))]

    def judge(runs):
        cells = {"Low": [(75, 20), (75, 30)]}
        return judges.epochs_and_batches({"femnist": runs}, own=[5, 10], columns=cells)

    answer = "Low, over E = 1, B = 10 +2.0 ± 0.0", "reproduced"
    longer = [run(5, 3, 30, seed) for seed in range(5)]
    nearer = "Low, over E = 1, B = 10 +1.0 ± 0.0", "reproduced"
    assert judge([*longer, *pairs(range(5), 20)])[:2] == nearer
    # One part in the paper's reading refutes, and the others need not be in it.
    sooner = [run(20, 1, 14, seed) for seed in range(5)]
    told = judge([*longer, *sooner, run(1, 7, 40, 0, True), run(5, 6, 40, 0, True)])
    assert told[:2] == (
        "Low, over E = 1, B = 10 +1.0; Low, over E = 20, B = 10 -2.0 ± 0.0",
        "not reproduced",
    )
    relu = [run(e, 7, 40, k, True) for k in range(5) for e in (5, 1)]
    assert judge([*pairs(range(5), 20), *relu])[:2] == answer
    # Two lengths under three seeds are three seeds.
    assert judge([*pairs(range(3), 20), *pairs(range(3), 25)])[1:3] == (
        *("not run far enough", "3 seeds; below five nothing is decided"),
    )
    for runs, message in (
        (longer, "^only E = 5 and B = 10 is kept"),
        ([*longer, run(1, 3, 20, 7)], "has the seed of the one with E = 1"),
        ([*longer, run(1, None, 20, 0)], "E = 1 and B = 10 ends in round 20, before"),
        ([run(5, None, 20, 0), run(1, 3, 20, 0)], "E = 5 and B = 10 ends in round 20"),
    ):
        with pytest.raises(RecordError, match=message):
            judge(runs)
