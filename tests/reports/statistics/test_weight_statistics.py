"""How unequal the weights of orderings were, and results by group of clients."""

import numpy as np
import pytest

import leaf_data
from tff_pmc import scores
from tff_pmc.record.results import read_results
from tff_pmc.reports.statistics import derived
from tff_pmc.reports.statistics.client_groups import groups
from tff_pmc.reports.statistics.weight_statistics import (
    recorded_orderings,
    weight_figures,
)


@pytest.fixture
def results(tmp_path):
    """A run on disk, of whose cohort no client was excluded in round 2."""
    (tmp_path / "run.json").write_text(
        '{"label": "LD", "settings": {"aggregation": {"criteria": ["DS", "LD"]}}, '
        '"data": {}}'
    )
    cohort = [
        "round,client,DS,LD,excluded,weight",
        *("1,a,30.0,1.0,0,0.25", "1,b,10.0,3.0,0,0.75", "1,c,inf,nan,1,0.0"),
        *("2,a,30.0,1.0,0,0.5", "2,b,10.0,1.0,0,0.5"),
    ]
    rounds = ["round,accuracy,ordering", "1,0.5,LD", "2,0.5,w=0.5"]
    clients = [
        "round,client,correct,examples",
        *("1,a,5,10", "1,b,9,10", "1,c,1,10", "1,d,3,5"),
    ]
    for name, lines in [("cohort", cohort), ("rounds", rounds), ("clients", clients)]:
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return read_results(str(tmp_path))


def test_weight_figures_follow_from_the_cohort(results):
    """By hand: DS gives 3/4 and 1/4, LD 1/4 and 3/4; so half of the weight moves."""
    figures = weight_figures(results).set_index(["round", "ordering"])
    assert figures.loc[1, "in_force"].to_dict() == {
        **{"DS": 0, "LD": 1, "DS,LD": 0, "LD,DS": 0}
    }
    ds, ld = figures.loc[1, "DS"], figures.loc[1, "LD"]
    assert (ds["total_variation"], ld["total_variation"]) == (0.5, 0)
    assert ds["effective_clients"] == ld["effective_clients"] == 1.6
    assert ds["coefficient_of_variation"] == 0.5
    p = scores.participant_weights([[30, 1], [10, 3]], scores.prioritized((1, 0)))
    moved = 0.5 * np.abs(p - [0.25, 0.75]).sum()
    assert figures.loc[(1, "LD,DS"), "total_variation"] == pytest.approx(
        moved, rel=1e-6
    )
    # A score in force that is no ordering is there, too.
    last = figures.loc[(2, "w=0.5")]
    assert (last["in_force"], last["effective_clients"]) == (1, 2)
    assert len(figures) == 4 + 5
    assert len(recorded_orderings(("DS", "LD", "MD", "CB"))) == 4 + 24
    assert len(recorded_orderings(("DS", "LD", "MD", "a", "b"))) == 5


def test_accuracy_by_group_by_hand(results):
    attributes = {"vip": (1, 0, 1, 0), "battery": (0.1, 0.3, 0.3, 0.9)}
    table = leaf_data.ClientTable.from_dict(
        {
            client: {name: float(values[k]) for name, values in attributes.items()}
            for k, client in enumerate("abcd")
        }
    )
    by_group = groups(results, table).set_index(["attribute", "group"])
    assert by_group["accuracy"].to_dict() == {
        ("vip", "0"): 0.8,  # 12 of 15
        ("vip", "1"): 0.3,  # 6 of 20
        ("battery", "below median"): 0.5,  # 5 of 10
        ("battery", "median or above"): 0.52,  # 13 of 25
    }
    assert by_group["clients"].tolist() == [2, 2, 1, 3]
    with pytest.raises(leaf_data.DataError, match="has no row for"):
        groups(results, leaf_data.ClientTable())


def test_the_old_module_works():
    assert derived.weight_figures is weight_figures and derived.groups is groups
