"""Runs whose rounds are judged under other weightings, too: the record stays."""

import pytest
from cli import SHORT, table

from leaf_data.declare import SettingError
from tff_pmc import read_results
from tff_pmc.experiments import experiment as experiments
from tff_pmc.record.results import join_results
from tff_pmc.reports import one_step_effects

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
    names = {path.name for path in folders[other].glob("*.csv")}
    assert {path.name for path in folders[name].glob("*.csv")} - names <= {
        "candidates.csv"
    }
    for file in names - {"timing.csv", "candidates.csv"}:
        one, without = (folders[case] / file for case in (name, other))
        assert one.read_bytes() == without.read_bytes()
    trials = [
        [
            row
            for row in table(folders[case] / "candidates.csv")
            if row["kind"] == "trial"
        ]
        for case in (name, other)
        if (folders[case] / "candidates.csv").exists()
    ]
    assert trials[0] == (trials[1] if len(trials) > 1 else [])


def judged(folder):
    """The judged weightings of a run, and its correct examples by round."""
    run = read_results(str(folder))
    found = run.candidates[run.candidates["kind"] == one_step_effects.JUDGED]
    return found, run.rounds.set_index("round")["correct"]


def test_who_is_judged_when_and_on_what(folders):
    found, correct = judged(folders["asked"])
    # Nine orderings, three averages that are none of them, and two rates.
    assert found["round"].tolist() == [1] * 24 + [2] * 24
    labels = found["ordering"].unique()
    assert len(labels) == 12 and "average[0.5,0.5,0]:DS,LD,MD" in labels
    assert found["rate"][:4].tolist() == [1.0, 0.5] * 2
    kept = found[found["kept"] == 1]
    assert set(zip(kept["ordering"], kept["rate"])) == {("DS", 1.0)}
    assert kept["correct"].tolist() == correct[[1, 2]].tolist()
    assert set(found["examples"]) == {1000}
    assert set(judged(folders["few judge"])[0]["examples"]) == {70}
    searched, _ = judged(folders["searched, asked"])
    every = read_results(str(folders["searched, asked"])).candidates
    tested = every[every["kind"] == "trial"].set_index(["round", "ordering"])["correct"]
    for row in searched.itertuples():
        if (key := (row.round, row.ordering)) in tested.index:
            assert tested[key] == row.correct
    # Six orderings in each round, whichever the search takes.
    assert len(searched) == 3 * (6 + 6)
    assert len(judged(folders["two stages"])[0]) == 1 + 9
    found, correct = judged(folders["a step"])
    in_force = found.iloc[0]
    assert (in_force["ordering"], in_force["kept"]) == ("FedNova", 1)
    assert in_force["correct"] == correct[1] and len(found) == 1 + 9


def test_the_report_is_of_all_runs_that_asked(folders):
    plain, asked = (read_results(str(folders[name])) for name in ("plain", "asked"))
    both = join_results({"plain": plain, "asked": asked})
    report = one_step_effects.report(both)
    made = report.tables["counterfactuals"]
    assert set(made["run"]) == {"asked"} and len(made) == 23
    # Of the weighting in force with another rate, which moves no weight.
    moved = made.set_index("weighting")["total_variation"]
    assert moved["DS at rate 0.5"] < 1e-6 < moved["LD"]
    assert "too few" in report.text and list(report.figures) == ["counterfactuals"]
    assert not one_step_effects.report(plain).tables


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
