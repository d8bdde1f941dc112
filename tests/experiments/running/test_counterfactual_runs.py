"""Runs whose rounds are judged under other weightings, too: the record stays."""

import pytest
from cli import SHORT, table

from declared_settings import SettingError
from tff_pmc.experiments import experiment as experiments
from tff_pmc.record.results import read_results
from tff_pmc.reports import REPORTS

ASKED = {
    "counterfactuals": ("orderings", "averages:0.5"),
    "counterfactual_rates": (0.5,),
    "counterfactual_every": 2,
}
CASES = {
    "plain": {},
    "asked": ASKED,
    "two stages": {
        **{
            "algorithm": "owa",
            "owa_quantifier": "most",
            "priority": ("DS", "LD", "MD"),
        },
        **{"counterfactuals": ("orderings",), "counterfactual_clients": 7},
        **{"rounds": 1},
    },
    "a step": {"algorithm": "fednova", "counterfactuals": ("orderings",), "rounds": 1},
    "searched": {"adjustment": "best_of_all", "priority": ("LD", "DS", "MD")},
    "searched, asked": {
        **{"adjustment": "best_of_all", "priority": ("LD", "DS", "MD")},
        **{"counterfactuals": ("averages:0.5",), "judge_on": "test"},
    },
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of a run of each case."""
    from tff_pmc.experiments.running import loop
    from tff_pmc.runtime import Runtime

    root = tmp_path_factory.mktemp("runs")
    data = None
    with Runtime():
        for name, changes in CASES.items():
            changes = {**SHORT, "clients_per_round": 5.0, **changes}
            settings = experiments.settings("quickstart", changes)
            data = data or settings.data.load()
            loop.run(settings, data, str(root / name), title=None)
    return {name: root / name for name in CASES}


@pytest.mark.parametrize(
    ("name", "other"),
    [("asked", "plain"), ("searched, asked", "searched")],
)
def test_the_record_equals_that_of_a_run_without_counterfactuals(folders, name, other):
    names = {path.name for path in folders[other].glob("*.csv")} - {"timing.csv"}
    written = {path.name for path in folders[name].glob("*.csv")}
    assert written == {*names, "timing.csv", "candidates.csv"}
    for file in names:
        rows, whole = (table(folders[n] / file) for n in (name, other))
        assert whole == [row for row in rows if row.get("kind") != "counterfactual"]


def test_the_requested_scores_are_judged_in_their_rounds_on_their_examples(folders):
    def judged(name, kind="counterfactual"):
        rows = results(name).candidates
        return rows[rows["kind"] == kind]

    def results(name):
        return read_results(str(folders[name]))

    candidates, correct = judged("asked"), results("asked").rounds["correct"]
    # Nine orderings, three averages that are not among them, and two rates.
    assert candidates["round"].tolist() == [1] * 24 + [2] * 24
    assert candidates["trial"].tolist() == 2 * [*range(1, 25)]
    labels = [*candidates["ordering"].unique()]
    assert len(labels) == 12 and "average[0.5,0.5,0]:DS,LD,MD" in labels
    assert candidates["rate"].tolist()[:4] == [1.0, 0.5] * 2
    in_force = candidates[candidates["kept"] == 1]
    assert in_force["ordering"].tolist() == ["DS"] * 2
    assert in_force["rate"].tolist() == [1.0] * 2
    assert in_force["correct"].tolist() == correct.tolist()[:2]
    assert {*judged("two stages")["examples"]} == {70}  # Seven clients judge.
    assert {*candidates["examples"]} == {1000}
    searched = judged("searched, asked")
    tested = judged("searched, asked", "trial").set_index(["round", "ordering"])
    for _, row in searched.iterrows():
        if (key := (row["round"], row["ordering"])) in tested.index:
            assert tested["correct"][key] == row["correct"]
    # Six orderings in each round, whichever the search takes.
    assert len(searched) == 3 * (6 + 6)
    assert len(judged("two stages")) == 1 + 9
    first, *others = judged("a step").to_dict("records")
    assert (first["ordering"], first["kept"]) == ("FedNova", 1) and len(others) == 9
    assert first["correct"] == results("a step").rounds["correct"][0]


def test_the_report_covers_all_runs_with_counterfactuals(folders):
    plain, counterfactual = (
        read_results(str(folders[name])) for name in ("plain", "asked")
    )
    report = REPORTS["counterfactuals"](counterfactual)
    assert len(report.tables["counterfactuals"]) == 23
    assert "too few" in report.text and list(report.figures) == ["counterfactuals"]
    assert not REPORTS["counterfactuals"](plain).tables


REFUSED = {
    "a kind": ({"counterfactuals": ("all",)}, "must be orderings, averages"),
    "a step": ({"counterfactuals": ("averages:0.3",)}, "must divide 1"),
    "no step": ({"counterfactuals": ("averages",)}, "must divide 1"),
    "many": ({"counterfactuals": ("averages:0.01",)}, "more than 200"),
    "more": ({"counterfactuals": ("averages:0.001",)}, "more than 200"),
    "ranges": ({"counterfactuals": ("ranges",)}, "needs --normalization=range"),
    "a rate": (
        {"counterfactuals": ("orderings",), "counterfactual_rates": (0.0,)},
        "above 0, and finite",
    ),
    "rates alone": ({"counterfactual_rates": (0.5,)}, "rates needs --counterfactuals"),
    "every alone": ({"counterfactual_every": 2}, "every needs --counterfactuals"),
    "the default": ({"counterfactual_every": 1}, "every needs --counterfactuals"),
    "judges alone": ({"counterfactual_clients": 5}, "clients needs --counterfactuals"),
    "an algorithm": (
        {"counterfactuals": ("orderings",), "algorithm": "simple_average"},
        "algorithm simple_average: its sums",
    ),
    "criteria": (
        {
            "counterfactuals": ("orderings",),
            "criteria": ("DS", "LD", "MD", "CB", "MD_layers"),
        },
        "more than four criteria",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_requests_are_rejected_before_a_folder_is_made(name):
    changes, words = REFUSED[name]
    with pytest.raises(SettingError, match=words):
        experiments.settings("quickstart", changes)
