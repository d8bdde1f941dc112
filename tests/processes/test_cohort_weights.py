"""Which client had which weight: of packs, and of datasets of batches."""

import importlib.util
import pathlib

import numpy as np
import pytest

import tff_pmc
from tff_pmc import criteria, scores

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "own_code" / "local_against_federated.py"
COHORT = [3, 0, 5, 1, 4, 2]
CODES = ("DS", "LD")
SCORE = scores.prioritized(CODES, CODES)


@pytest.fixture
def example(monkeypatch):
    """The module of the documents, whose criteria are forgotten afterwards."""
    len(criteria.REGISTRY)
    monkeypatch.setattr(criteria.REGISTRY, "_things", dict(criteria.REGISTRY))
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def round_of(process, examples, datasets, packed, size=50):
    clients = datasets(examples, COHORT, size)
    if packed:
        clients = tff_pmc.pack(examples, COHORT, num_packs=2)
    return process.next(process.initialize(), clients)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("order", [("DS", "LD"), ("LD", "DS")])
def test_weights_are_those_of_the_formula(
    runtime, toy_examples, toy_model, build_prioritized, datasets, packed, order
):
    """In the order of the cohort; c = r / total, and s = c_1 + c_1 c_2."""
    options = {"criteria": CODES, "priority": order, "report_cohort": len(COHORT) + 3}
    process = build_prioritized(toy_model, packed=packed, **options)
    output = round_of(process, toy_examples, datasets, packed)
    labels = [toy_examples.client(k)["y"] for k in COHORT]
    raw = {
        "DS": np.array([len(y) for y in labels], float),
        "LD": np.array([len(set(y.tolist())) for y in labels], float),
    }
    share = {code: values / values.sum() for code, values in raw.items()}
    score = share[order[0]] * (1 + share[order[1]])
    out = raw["DS"] == 0
    assert len({*raw["DS"]}) > 3
    table = tff_pmc.cohort_weights(
        output.metrics,
        CODES,
        score=scores.prioritized(order, CODES),
        clients=[f"client {k}" for k in COHORT],
    )
    assert list(table) == ["client", "DS", "LD", "excluded", "weight"]
    assert list(table["client"]) == [f"client {k}" for k in COHORT]
    assert list(table["excluded"]) == out.astype(int).tolist()
    for code in CODES:
        np.testing.assert_array_equal(table[code], raw[code])
    np.testing.assert_allclose(table["weight"], score / score.sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "arguments", "says"),
    [
        ({}, {"criteria": CODES}, "build the process with report_cohort"),
        (
            {"report_cohort": 6},
            {"criteria": ("DS",)},
            "has the codes DS, but the metrics have DS, LD",
        ),
        (
            {"report_cohort": 6},
            {"criteria": CODES, "clients": ["a", "b"]},
            "clients has 2 names, but the cohort has 6 clients",
        ),
        *(
            ({"report_cohort": 6}, {"criteria": codes, "score": SCORE}, says)
            for codes, says in (
                (("DS", "weight"), "has the codes DS, weight"),
                (("client", "DS"), "has the codes client, DS"),
                (("DS", "DS"), "has the codes DS, DS"),
            )
        ),
    ],
)
def test_metrics_that_lack_the_criteria_or_the_score_raise(
    runtime,
    toy_examples,
    toy_model,
    build_prioritized,
    datasets,
    options,
    arguments,
    says,
):
    process = build_prioritized(toy_model, packed=False, criteria=CODES, **options)
    metrics = round_of(process, toy_examples, datasets, False).metrics
    with pytest.raises(ValueError, match=says):
        tff_pmc.cohort_weights(metrics, **arguments)


@pytest.mark.parametrize(
    "metrics", [None, [], ("state", {}), {}, {"train": {}}, {"client_work": {}}]
)
def test_metrics_of_something_else_raise(metrics):
    with pytest.raises(ValueError, match="not those of a round"):
        tff_pmc.cohort_weights(metrics)


def test_a_cohort_larger_than_report_cohort_is_reported_by_name(
    runtime, toy_examples, toy_model, build_prioritized, datasets
):
    process = build_prioritized(toy_model, criteria=CODES, report_cohort=4)
    with pytest.raises(ValueError, match="report_cohort=4 is too small: .* is [45]"):
        round_of(process, toy_examples, datasets, True)


@pytest.mark.parametrize("packed", [True, False])
def test_criteria_of_the_local_and_the_federated_model(
    runtime, toy_examples, toy_model, build_prioritized, datasets, numpy_sgd, example,
    packed,
):  # fmt: skip
    """Each client's training in NumPy; one batch of all its examples."""
    codes = ("DS", "FEDERATED", "LOCAL")
    options = {"criteria": codes, "priority": ("DS",), "report_cohort": len(COHORT)}
    process = build_prioritized(toy_model, packed=packed, **options)
    output = round_of(process, toy_examples, datasets, packed)
    score = scores.prioritized(("DS",), codes)
    table = tff_pmc.cohort_weights(output.metrics, codes, score=score)
    weights = toy_model.initial_weights[0]

    def accuracy(kernel, bias, client):
        x = client["x"].reshape(len(client["y"]), -1) / 255.0
        return np.mean(np.argmax(x @ kernel + bias, 1) == client["y"])

    for row, k in zip(table.to_dict("records"), COHORT):
        client = toy_examples.client(k)
        if not len(client["y"]):
            assert (row["FEDERATED"], row["LOCAL"], row["excluded"]) == (0, 0, 1)
            continue
        trained = numpy_sgd(weights, client)
        assert row["FEDERATED"] == pytest.approx(accuracy(*weights, client))
        assert row["LOCAL"] == pytest.approx(accuracy(*trained, client))
    assert (table["FEDERATED"] != table["LOCAL"]).any()
