"""`synthetic`: FedProx's law, its published files as an oracle, and what stays equal.

FedProx's authors publish a draw of each of four federations (litian96/FedProx, commit
d2a4501, `data/synthetic_*/data/test/mytest.json`). PUBLISHED has what was computed from
these test files, which are not here: the sizes of the 30 test sets; over clients, the
mean number of different labels and the mean share of the most frequent one; the mean
variance of the 60 means of a client, and the variance of the clients' mean means; the
lowest, the mean and the highest of the 60 variances within clients, times j^1.2, and
their largest correlation.
"""

import json
import os
import pathlib

import numpy as np
import pytest
from scipy import optimize, sparse, stats

import leaf_data
from leaf_data.datasets.synthetic import Synthetic

# fmt: off
PUBLISHED = {
    "0_0": {
        "sizes": [58, 5, 6, 6, 24, 163, 18, 10, 7, 9, 6, 6, 12, 14, 169, 55, 21, 8,
                  21, 82, 6, 56, 11, 6, 8, 15, 6, 72, 7, 10],
        "labels": 2.1, "share": 0.8034, "spread": 0.9806, "between": 0.01456,
        "correlation": 0.1217, "variances": (0.916, 1.005, 1.112),
    },
    "0.5_0.5": {
        "sizes": [5, 7, 40, 11, 6, 12, 8, 37, 21, 20, 10, 5, 33, 465, 8, 9, 20, 6,
                  11, 9, 6, 6, 62, 6, 15, 11, 19, 18, 11, 15],
        "labels": 2.233, "share": 0.7591, "spread": 1.01, "between": 0.2951,
        "correlation": 0.1006, "variances": (0.852, 1.006, 1.111),
    },
    "1_1": {
        "sizes": [8, 18, 9, 17, 16, 50, 14, 9, 6, 19, 17, 6, 9, 6, 7, 662, 6, 13, 7,
                  12, 8, 5, 6, 44, 6, 14, 31, 45, 8, 6],
        "labels": 2, "share": 0.787, "spread": 1.037, "between": 0.7044,
        "correlation": 0.1225, "variances": (0.922, 1.006, 1.122),
    },
    "iid": {
        "sizes": [6, 9, 9, 6, 8, 6, 71, 44, 6, 50, 6, 22, 360, 7, 10, 6, 10, 9, 7,
                  9, 6, 21, 6, 22, 16, 15, 17, 18, 8, 15],
        "labels": 5.067, "share": 0.452, "spread": 0.005515, "between": 4.611e-05,
        "correlation": 0.1316, "variances": (0.929, 1.011, 1.115),
    },
}
# fmt: on
INPUTS = np.arange(1, 61)


def measure(clients):
    """Computes what PUBLISHED has, but the sizes, from pairs of x and y."""
    sizes = np.array([len(y) for _, y in clients])
    means = np.array([x.mean(axis=0) for x, _ in clients])
    within = np.concatenate([x - x.mean(axis=0) for x, _ in clients])
    covariance = within.T @ within / (sizes.sum() - len(clients))
    deviations = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(deviations, deviations) - np.eye(60)
    counts = np.array([np.bincount(y, minlength=10) for _, y in clients])
    return {
        "labels": (counts > 0).sum(axis=1).mean(),
        "share": (counts.max(axis=1) / sizes).mean(),
        "spread": means.var(axis=1).mean(),
        "between": means.mean(axis=1).var(),
        "correlation": abs(correlations).max(),
        "variances": np.diag(covariance) * INPUTS**1.2,
    }


def draw(seed, **options):
    """Draws a federation as published; returns the test examples by client."""
    examples = leaf_data.load("synthetic", seed=seed, **options).test_examples
    pairs = (examples.client(client) for client in examples.client_ids)
    return [(pair["x"].astype(float), pair["y"]) for pair in pairs]


OPTIONS = {
    "0_0": {"alpha": 0.0, "beta": 0.0},
    "0.5_0.5": {"alpha": 0.5, "beta": 0.5, "labels": "drawn"},
    "1_1": {"labels": "drawn"},
    "iid": {"iid": 1.0},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_files_are_plausible_draws(name):
    published = PUBLISHED[name]
    draws = [draw(seed, **OPTIONS[name]) for seed in range(25)]
    sizes = [len(y) for clients in draws for _, y in clients]
    assert stats.ks_2samp(published["sizes"], sizes).pvalue > 0.01
    # In a draw, variances of n - 30 degrees of freedom: all 60 in the limits.
    freedom = sum(published["sizes"]) - 30
    low, high = stats.chi2.ppf([1e-5, 1 - 1e-5], freedom) / freedom
    lowest, mean, highest = published["variances"]
    assert low < lowest < highest < high
    measured = [measure(clients) for clients in draws]
    of_draws = np.mean([m["variances"] for m in measured], axis=0)
    assert abs(of_draws.mean() - mean) < 0.03 and abs(of_draws - 1).max() < 0.06
    for quantity in ("labels", "share", "spread", "between", "correlation"):
        values = np.array([m[quantity] for m in measured])
        distance = (published[quantity] - values.mean()) / values.std()
        assert abs(distance) < 3.5, (quantity, published[quantity], values)


def test_a_draw_from_another_law_is_not_plausible():
    """What the test above can see: other inputs, other clients, other labels."""
    published = PUBLISHED["1_1"]
    for options, quantity in (
        ({"beta": 0.0}, "between"),
        ({"beta": 3.0}, "between"),
        ({"iid": 1.0}, "spread"),
        ({"iid": 1.0}, "labels"),
    ):
        values = np.array([measure(draw(k, **options))[quantity] for k in range(10)])
        assert abs(published[quantity] - values.mean()) > 3.5 * values.std()
    sizes = [len(y) for k in range(10) for _, y in draw(k, size_spread=0.0)]
    assert stats.ks_2samp(published["sizes"], sizes).pvalue < 0.01


def test_labels_are_the_highest_score_or_drawn_by_the_softmax():
    """Of clients that share one labeling, found here by the sizes of its effects."""
    highest, drawn = (
        leaf_data.load("synthetic", iid=1.0, labels=labels)
        for labels in ("argmax", "drawn")
    )
    np.testing.assert_array_equal(highest.train_examples.x, drawn.train_examples.x)
    x, y = highest.train_examples.x.astype(float), highest.train_examples.y
    random = np.random.RandomState([0, 61])  # The stream of the shared labeling.
    scores = x @ random.standard_normal((60, 10)) + random.standard_normal(10)
    np.testing.assert_array_equal(y, scores.argmax(axis=1))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    counts = np.bincount(drawn.train_examples.y, minlength=10)
    variances = (chances * (1 - chances)).sum(axis=0)
    assert (abs(counts - chances.sum(axis=0)) < 5 * np.sqrt(variances)).all()
    hits = chances[np.arange(len(x)), drawn.train_examples.y]
    expected = (chances**2).sum()
    deviation = np.sqrt(
        ((chances**3).sum(axis=1) - (chances**2).sum(axis=1) ** 2).sum()
    )
    assert abs(hits.sum() - expected) < 5 * deviation


def test_a_federation_has_the_published_form():
    data = leaf_data.load("synthetic", num_clients=7, seed=3)
    assert data.client_ids == tuple(f"f_{k:05d}" for k in range(7))
    sizes = data.train_examples.sizes + data.test_examples.sizes
    assert (sizes >= 50).all()
    assert data.train_examples.sizes.tolist() == [9 * n // 10 for n in sizes.tolist()]
    assert (data.train_examples.x.dtype, data.element_shape) == (np.float32, (60,))
    assert data.num_classes == 10 and "FedProx" in data.describe()
    assert data.options["num_clients"] == 7


@pytest.mark.parametrize(
    ("changed", "same_x", "same_y"),
    [({"num_clients": 40}, True, True), ({"labels": "drawn"}, True, False),
     # It is added to all ten scores of an example.
     ({"alpha": 0.0}, True, True), ({"alpha": 9.0}, True, True),
     ({"seed": 1}, False, False), ({"beta": 0.0}, False, False)],
)  # fmt: skip
def test_each_option_changes_only_what_it_should(changed, same_x, same_y):
    before = leaf_data.load("synthetic").train_examples.client("f_00028")
    after = leaf_data.load("synthetic", **changed).train_examples.client("f_00028")
    assert np.array_equal(before["x"], after["x"]) == same_x
    assert np.array_equal(before["y"], after["y"]) == same_y


def test_the_first_clients_of_a_hybrid_are_iid():
    """Their inputs have mean 0 (q-FFL's hybrid: one half of 100)."""
    data = leaf_data.load("synthetic", num_clients=20, iid=0.5, size_spread=1.0)
    means = [
        abs(data.train_examples.client(k)["x"].mean(axis=0)).max() for k in range(20)
    ]
    assert max(means[:10]) < 0.7 < min(means[10:])


@pytest.mark.parametrize(
    "options",
    [{"alpha": -1.0}, {"beta": float("nan")}, {"iid": 1.5}, {"labels": "softmax"},
     {"size_spread": 9.0}, {"num_clients": -1}],
)  # fmt: skip
def test_invalid_options_are_rejected(options):
    with pytest.raises(leaf_data.SettingError, match="must be"):
        Synthetic(**options)


def published_clients(name):
    folder = pathlib.Path(os.environ.get("TFF_PMC_DATA_DIR", "nowhere"))
    path = folder / f"synthetic_{name}" / "data" / "test" / "mytest.json"
    if not path.exists():
        pytest.skip(f"needs FedProx's {path} in the folder that TFF_PMC_DATA_DIR names")
    document = json.loads(path.read_text())
    users = [document["user_data"][user] for user in document["users"]]
    return [(np.array(user["x"]), np.array(user["y"], int)) for user in users]


@pytest.mark.parametrize("name", PUBLISHED)
def test_statements_about_the_published_files_hold(name):
    clients = published_clients(name)
    published = dict(PUBLISHED[name])
    assert published.pop("sizes") == [len(y) for _, y in clients]
    measured = measure(clients)
    low_mean_high = [f(measured["variances"]) for f in (np.min, np.mean, np.max)]
    assert published.pop("variances") == pytest.approx(low_mean_high, abs=6e-4)
    assert {key: measured[key] for key in published} == pytest.approx(published, 1e-3)


@pytest.mark.parametrize(("name", "size"), [("0.5_0.5", 465), ("1_1", 662)])
def test_no_linear_model_has_the_labels_of_a_published_client(name, size):
    """So that they are not the highest of 10 linear scores, as printed."""
    clients = published_clients(name)
    x, y = max(clients, key=lambda client: len(client[1]))
    assert len(y) == size
    for labels, solvable in ((y, False), (np.argmax(x[:, :10], axis=1), True)):
        rows = []
        inputs = np.concatenate([x, np.ones((size, 1))], axis=1)
        for row, label in zip(inputs, labels):
            for other in set(labels) - {label}:
                signs = np.zeros(10)
                signs[label], signs[other] = -1, 1
                rows.append(sparse.csr_matrix(np.kron(signs, row)))
        bounds = -np.ones(len(rows))
        solution = optimize.linprog(
            np.zeros(610), sparse.vstack(rows), bounds, bounds=(None, None)
        )
        assert solution.success == solvable


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({}, ""),
        ({"num_clients": 100}, "100 clients"),
        ({"alpha": 0.0, "beta": 0.0}, "alpha 0, beta 0"),
        ({"beta": 0.5}, "alpha 1, beta 0.5"),
        ({"iid": 1.0, "alpha": 0.0}, "IID"),
        ({"iid": 0.5}, "50 % IID"),
        (
            {"iid": 0.5, "alpha": 0.0, "num_clients": 9},
            "9 clients, 50 % IID, alpha 0, beta 1",
        ),
    ],
)
def test_runs_on_other_laws_are_told_apart(options, note):
    assert Synthetic(**options).note == note
