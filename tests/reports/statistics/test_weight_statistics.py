"""How unequal the weights of orderings were, and results by group of clients."""

import numpy as np
import pytest
from scipy import stats

import leaf_data
from tff_pmc import scores
from tff_pmc.record.results import read_results
from tff_pmc.reports.statistics import derived
from tff_pmc.reports.statistics.client_groups import groups
from tff_pmc.reports.statistics.weight_statistics import (
    QUARTILES,
    recorded_orderings,
    weight_figures,
    weights_by_client,
    weights_by_criterion,
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
    # A current score that is not an ordering is there, too.
    last = figures.loc[(2, "w=0.5")]
    assert (last["in_force"], last["effective_clients"]) == (1, 2)
    assert len(figures) == 4 + 5
    assert len(recorded_orderings(("DS", "LD", "MD", "CB"))) == 4 + 24
    assert len(recorded_orderings(("DS", "LD", "MD", "a", "b"))) == 5


def record(tmp_path, rows, label="LD"):
    """Writes a run with a cohort and reads it; a row is a list of `cohort.csv`."""
    (tmp_path / "run.json").write_text(
        f'{{"label": "{label}", "settings": {{"aggregation": {{}}}}, "data": {{}}}}'
    )
    lines = ["round,client,DS,LD,excluded,weight"]
    lines += [",".join(map(str, row)) for row in rows]
    (tmp_path / "cohort.csv").write_text("\n".join(lines) + "\n")
    rounds = sorted({row[0] for row in rows})
    lines = ["round,accuracy,ordering", *(f"{number},0.5,LD" for number in rounds)]
    (tmp_path / "rounds.csv").write_text("\n".join(lines) + "\n")
    return read_results(str(tmp_path))


@pytest.mark.parametrize("step", [1, 0.003], ids=["shares", "a step length"])
def test_weights_by_criterion_equal_scipys_and_numpys(tmp_path, step):
    """Of 12 rounds of 9 among 21 clients, with ties in LD and a criterion that falls.

    The weights are noisy shares of LD, of which DS is an exact negative.
    """
    random = np.random.default_rng(5)
    labels = random.integers(1, 6, 21)
    rows, weights, criteria = [], {}, {}
    for number in range(1, 13):
        chosen = random.choice(21, 9, replace=False)
        falling = np.round(labels[chosen] / number, 5)
        score = np.maximum(falling + 0.3 * random.random(9) / number, 0)
        shares = score / score.sum()
        for client, value, share in zip(chosen, falling, shares):
            rows.append([number, f"c{client}", 7, value, 0, f"{step * share:.12g}"])
            weights.setdefault(client, []).append(9 * share)
            criteria.setdefault(client, []).append(value / falling.mean())
        rows.append([number, "x", 7, 99, 1, 0])  # An excluded client.
    table = weights_by_criterion(record(tmp_path, rows)).set_index("criterion")
    x = np.array([round(np.mean(criteria[k]), 6) for k in weights])
    y = np.array([np.mean(weights[k]) for k in weights])
    row = table.loc["LD"]
    assert row["clients"] == len(weights)
    rank = np.corrcoef(stats.rankdata(x), stats.rankdata(np.round(y, 6)))[0, 1]
    assert row["rank_correlation"] == pytest.approx(rank)
    assert 0.5 < rank < 1
    quarters = np.array_split(y[np.argsort(x)], 4)
    np.testing.assert_allclose(
        row[[*QUARTILES]].astype(float), [q.mean() for q in quarters], rtol=1e-5
    )
    assert table.loc["DS", ["rank_correlation", *QUARTILES]].isna().all()


def test_clients_with_equal_values_share_their_weight(tmp_path):
    """Six of one label and two of two labels: no order among the six is made up."""
    weights = np.array([1, 2, 3, 4, 5, 6, 8, 7]) / 36
    labels = [1, 1, 1, 1, 1, 1, 2, 2]
    rows = [[1, f"c{k}", 7, labels[k], 0, weights[k]] for k in range(8)]
    table = weights_by_criterion(record(tmp_path, rows)).set_index("criterion")
    mean = 3.5 / 36 * 8
    assert table.loc["LD", [*QUARTILES]].tolist() == pytest.approx(
        [mean, mean, mean, 7.5 / 36 * 8], rel=1e-5
    )


@pytest.mark.parametrize(
    ("rows", "clients", "correlation"),
    [
        # Three clients: a correlation, and no quartiles.
        ([[1, k, 7, k + 1, 0, (3 - k) / 6] for k in range(3)], 3, -1),
        # Weights that are all alike.
        ([[1, k, 7, k + 1, 0, 0.2] for k in range(5)], 5, None),
        # In the second round no client has labels: it counts for the weight alone.
        (
            [[1, k, 7, k + 1, 0, (k + 1) / 6] for k in range(3)]
            + [[2, k, 7, 0, 0, 1 / 3] for k in range(3)],
            3,
            1,
        ),
        # In the second round no client has a weight.
        (
            [[1, k, 7, k + 1, 0, (k + 1) / 6] for k in range(3)]
            + [[2, k, 7, 3 - k, 0, 0] for k in range(3)],
            3,
            1,
        ),
    ],
)
def test_statistics_of_too_few_clients_are_missing(
    tmp_path, rows, clients, correlation
):
    row = weights_by_criterion(record(tmp_path, rows)).set_index("criterion").loc["LD"]
    assert row["clients"] == clients
    if correlation is None:
        assert np.isnan(row["rank_correlation"])
        assert row[[*QUARTILES]].tolist() == [1, 1, 1, 1]
    else:
        assert row["rank_correlation"] == pytest.approx(correlation)
        assert row[[*QUARTILES]].isna().all()


def test_a_clients_means_are_over_its_rounds(results):
    means = weights_by_client(results).droplevel(["seed", "label"])
    assert means.to_dict("index") == {
        "a": {"rounds": 2, "weight": 0.75, "DS": 30, "LD": 1},
        "b": {"rounds": 2, "weight": 1.25, "DS": 10, "LD": 2},
    }


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


def test_the_earlier_module_name_works():
    assert derived.weight_figures is weight_figures and derived.groups is groups
