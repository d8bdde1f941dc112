"""Runs whose rounds are judged under other weightings, too: the record stays."""

import pytest
from cli import SHORT, table

from leaf_data.declare import SettingError
from tff_pmc.experiments import experiment as experiments
from tff_pmc.record import read
from tff_pmc.reports import REPORTS

ASKED = {
    "counterfactuals": ("orderings", "averages:0.5"),
    "counterfactual_rates": (0.5,),
    "counterfactual_every": 2,
}
CASES = {
    "plain": {},
    "asked": ASKED,
    "few judge": {**ASKED, "counterfactual_clients": 7, "counterfactual_rates": ()},
    "two stages": {
        **{"system": "owa", "owa_quantifier": "most", "priority": ("DS", "LD", "MD")},
        **{"counterfactuals": ("orderings",), "rounds": 1},
    },
    "a step": {"system": "fednova", "counterfactuals": ("orderings",), "rounds": 1},
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
    [("asked", "plain"), ("few judge", "plain"), ("searched, asked", "searched")],
)
def test_the_record_is_that_of_the_run_without(folders, name, other):
    names = {path.name for path in folders[other].glob("*.csv")} - {"timing.csv"}
    assert {path.name for path in folders[name].glob("*.csv")} == {
        *names,
        "timing.csv",
        "weightings.csv",
    }
    for file in names:
        assert (folders[name] / file).read_bytes() == (
            folders[other] / file
        ).read_bytes()


def test_who_is_judged_when_and_on_what(folders):
    found, run = (
        table(folders["asked"] / "weightings.csv"),
        read.read_run(str(folders["asked"])),
    )
    # Nine orderings, three averages that are none of them, and two rates.
    assert [row["round"] for row in found] == ["1"] * 24 + ["2"] * 24
    labels = dict.fromkeys(row["weighting"] for row in found)
    assert len(labels) == 12 and "average[0.5,0.5,0]:DS,LD,MD" in labels
    assert [row["rate"] for row in found[:4]] == ["1.0", "0.5"] * 2
    for row in found:
        if row["in_force"] == "1":
            assert (row["weighting"], row["rate"]) == ("DS", "1.0")
            assert int(row["correct"]) == run.correct[int(row["round"]) - 1].sum()
            assert float(row["total_variation"]) == 0
    assert sum(row["in_force"] == "1" for row in found) == 2
    few = table(folders["few judge"] / "weightings.csv")
    assert {int(row["examples"]) for row in few} == {70}
    assert {int(row["examples"]) for row in found} == {1000}
    searched = table(folders["searched, asked"] / "weightings.csv")
    own = read.read_run(str(folders["searched, asked"]))
    tested = own.candidates.set_index(["round", "ordering"])["correct"]
    for row in searched:
        if (key := (int(row["round"]), row["weighting"])) in tested.index:
            assert tested[key] == int(row["correct"])
    # Six orderings in each round, whichever the search takes.
    assert len(searched) == 3 * (6 + 6)
    assert len(table(folders["two stages"] / "weightings.csv")) == 1 + 9
    in_force, *others = table(folders["a step"] / "weightings.csv")
    assert (in_force["weighting"], in_force["in_force"]) == ("FedNova", "1")
    stepped = read.read_run(str(folders["a step"]))
    assert int(in_force["correct"]) == stepped.correct[0].sum() and len(others) == 9


def test_the_report_is_of_all_runs_that_asked(folders):
    runs = [read.read_run(str(folders[name])) for name in ("plain", "asked")]
    report = REPORTS["counterfactuals"](runs)
    made = report.tables["counterfactuals"]
    assert set(made["run"]) == {"DS"} and len(made) == 23
    assert "too few" in report.text and list(report.figures) == ["counterfactuals"]
    assert not REPORTS["counterfactuals"](runs[:1]).tables


REFUSED = {
    "a kind": ({"counterfactuals": ("all",)}, "it is orderings, averages"),
    "a step": ({"counterfactuals": ("averages:0.3",)}, "has to divide 1"),
    "no step": ({"counterfactuals": ("averages",)}, "has to divide 1"),
    "many": ({"counterfactuals": ("averages:0.01",)}, "more than 200"),
    "more": ({"counterfactuals": ("averages:0.001",)}, "more than 200"),
    "ranges": ({"counterfactuals": ("ranges",)}, "without --normalization=range"),
    "a rate": ({"counterfactual_rates": (0.0,)}, "above 0, and finite"),
    "rates alone": ({"counterfactual_rates": (0.5,)}, "rates needs --counterfactuals"),
    "every alone": ({"counterfactual_every": 2}, "every needs --counterfactuals"),
    "judges alone": ({"counterfactual_clients": 5}, "clients needs --counterfactuals"),
    "a system": (
        {"counterfactuals": ("orderings",), "system": "simple_average"},
        "system simple_average no other weighting",
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
def test_what_cannot_be_asked_is_refused_before_a_folder_is_made(name):
    changes, words = REFUSED[name]
    with pytest.raises(SettingError, match=words):
        experiments.settings("quickstart", changes)
