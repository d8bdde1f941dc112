"""Criteria against NumPy, on values small enough to check by hand."""

import dataclasses
import re

import numpy as np
import pytest

from tff_pmc import criteria
from tff_pmc._lazy import tf, tff


def local_client(y=(0, 2, 2, 1), moved=((3.0, 4.0), (0.0,)), sharp=()):
    """A client whose model moved by the given tensors (a kernel, then a bias)."""
    kernel, bias = moved
    before = (tf.ones([len(kernel), 1]), tf.ones([len(bias)]))
    after = (before[0] + np.reshape(kernel, (-1, 1)), before[1] + np.array(bias))
    return criteria.LocalClient(
        tf.zeros([len(y), 4, 4], tf.uint8),
        tf.constant(y, tf.int32),
        tff.learning.models.ModelWeights(before, ()),
        tff.learning.models.ModelWeights(after, ()),
        example_attributes={"sharp": tf.constant(sharp, tf.float32)},
    )


def value(code, client):
    return float(criteria.named(code).value(client))


@pytest.mark.parametrize(
    ("code", "client", "expected"),
    [
        ("DS", {}, 4),
        ("DS", {"y": ()}, 0),
        ("LD", {}, 3),
        ("LD", {"y": (7, 7)}, 1),
        ("LD", {"y": ()}, 0),
        ("CB", {"y": (1, 1, 1)}, 0),
        ("CB", {"y": ()}, 0),
        ("CB", {"y": (0, 1, 1, 1)}, 1 / 3),
        ("CB", {"y": (7, 2, 2, 7, 5)}, 0.5),  # Three classes: ours.
        ("NP", {}, 4),
        # A label for each position, -1 for one that does not count.
        ("DS", {"y": ((7, -1), (2, 2), (-1, -1))}, 3),
        ("NP", {"y": ((7, -1), (2, 2), (-1, -1))}, 3),
        ("LD", {"y": ((7, -1), (2, 2), (-1, -1))}, 2),
        ("CB", {"y": ((7, -1), (2, 2), (-1, -1))}, 0.5),
        ("NP", {"y": ((-1,), (-1,))}, 0),
        ("LD", {"y": ((-1,), (-1,))}, 0),
        ("CB", {"y": ((-1,), (-1,))}, 0),
        ("IS", {}, 0),
        ("IS", {"sharp": (1, 0)}, 0.5),
        # Moved by (3, 4) and (12): one norm over all parameters, 13.
        ("MD", {"moved": ((3.0, 4.0), (12.0,))}, 14**-0.5),
        ("MD", {"moved": ((0.0,), (0.0,))}, 1),
        # Only the kernel's norm counts, 5, and no bias.
        ("MD_layers", {"moved": ((3.0, 4.0), (12.0,))}, 6**-0.5),
        ("DS^0.5", {}, 2),
        ("LD^-1", {}, 1 / 3),
        ("CB^-0.5", {"y": (1, 1, 1)}, np.inf),  # Such a client is excluded.
    ],
)
def test_values_by_hand(code, client, expected):
    assert value(code, local_client(**client)) == pytest.approx(expected, rel=1e-6)


def test_model_divergence_by_layer_takes_the_mean_of_norms():
    weights = tff.learning.models.ModelWeights
    client = criteria.LocalClient(
        None,
        None,
        weights((tf.zeros([2, 2]), tf.zeros([1, 3])), ()),
        weights((tf.ones([2, 2]), tf.fill([1, 3], 2.0)), ()),
    )
    mean = (2 + 12**0.5) / 2
    assert value("MD_layers", client) == pytest.approx((mean + 1) ** -0.5, rel=1e-6)


def test_codes_aliases_and_objects_resolve():
    new = criteria.Criterion("OWN", "mine", "this test", lambda client: 1.0)
    resolved = criteria.resolve(["DS", "MW", new])
    assert [c.code for c in resolved] == ["DS", "MD", "OWN"]
    for refused, message in (
        (lambda: criteria.resolve(["XX"]), "unknown criterion 'XX'"),
        (lambda: criteria.resolve(["MD", "MW"]), "MD is named twice"),
        (lambda: criteria.register(criteria.REGISTRY["DS"]), "criterion DS already"),
        (lambda: criteria.Criterion("a,b", "", "", None), "must be a word"),
    ):
        with pytest.raises(ValueError, match=message):
            refused()


def test_invalid_names_of_criteria_and_attributes_are_rejected():
    from tff_pmc.clients.training_options import Training

    for name in (*criteria.RESERVED, "seed_0"):
        for refused in (
            lambda name=name: criteria.Criterion(name, "mine", "here", lambda _: 1.0),
            lambda name=name: criteria.Criterion(f"{name}^2", "mine", "here", None),
            lambda name=name: criteria.attribute(name),
            lambda name=name: Training(client_attributes=("vip", name)),
        ):
            with pytest.raises(ValueError, match=f"{name}.*(column|folder)"):
                refused()
    for name in ("DS", "MW", "a^2", "a b", ""):
        says = re.escape(f"{name!r} is not a valid attribute name")
        with pytest.raises(ValueError, match=says):
            criteria.attribute(name)
    for name in ("relative", "Weight", "seeds", "accuracy", "größe", "class"):
        assert criteria.attribute(name).code == name


def test_powers_are_criteria_like_their_base():
    powers = criteria.resolve(["DS", "DS^2", "MW^-0.5"])
    assert [c.code for c in powers] == ["DS", "DS^2", "MD^-0.5"]
    assert powers[2].needs_model and not powers[1].needs_model
    below = criteria.Criterion("BE", "below 0", "this test", lambda client: -2)
    # Not 4: it is refused like its base.
    assert float(criteria.power(below, 2).value(None)) == -2

    def bound(model, x, y):
        return criteria.Criterion("FIT", "bound", "this test", lambda _: 3)

    unbound = criteria.Criterion("FIT", "fit", "this test", None, at_server=bound)
    (fit,) = criteria.bind_to_server([criteria.power(unbound, 2)], None, None, None)
    assert fit.code == "FIT^2" and float(fit.value(None)) == 9


@pytest.mark.parametrize(
    ("value", "exponent", "expected"),
    [(60.0, -50, np.nan), (60.0, 50, np.inf), (0.0, 50, 0.0), (60.0, 0.5, 60**0.5)],
)
def test_a_power_too_small_for_float32_is_not_zero(value, exponent, expected):
    """A value that is not finite is excluded and counted; a true 0 is a value."""
    base = criteria.Criterion("BE", "base", "this test", lambda client: value)
    power = float(criteria.power(base, exponent).value(None))
    np.testing.assert_allclose(power, expected, rtol=1e-6)


def accuracy(scores, y):
    return (scores.argmax(1) == y).mean()


def inverse_square(scores, y):
    return 1 / (np.square(scores).mean() + 0.01)


def inverse_metric(model, x, y):
    """AdaFed's section 3.2: the inverse of the mean square of the scores."""
    return criteria.server_metric(
        "FIT",
        model,
        *(x, y),
        of_example=lambda output, y: tf.reduce_mean(tf.square(output), 1),
        quality=lambda mean: 1 / (mean + 0.01),
    )


ACC = criteria.REGISTRY["ACC"]
FIT = dataclasses.replace(ACC, code="FIT", at_server=inverse_metric)


@pytest.mark.parametrize(
    ("unbound", "by_hand"),
    [(ACC, accuracy), (FIT, inverse_square)],
    ids=["ACC", "FIT"],
)
def test_criteria_of_the_server_are_bound_to_its_examples(
    toy_model, toy_examples, unbound, by_hand
):
    """Whoever registers one says how; no code is special."""
    size, y = criteria.REGISTRY["DS"], toy_examples.y
    assert unbound.needs_server_examples and not size.needs_server_examples
    with pytest.raises(ValueError, match="bind_to_server"):
        unbound.value(local_client())
    kept, bound = criteria.bind_to_server((size, unbound), toy_model, toy_examples.x, y)
    assert kept is size and bound.code == unbound.code
    assert not bound.needs_server_examples
    weights = toy_model.initial_weights[0]
    scores = toy_examples.x.reshape(len(y), -1) / np.float32(255)
    expected = by_hand(scores @ weights[0] + weights[1], y)
    client = criteria.LocalClient(
        None, None, None, tff.learning.models.ModelWeights(weights, ())
    )
    assert float(bound.value(client)) == pytest.approx(expected, rel=1e-5)
    assert 0 < expected != 1


def test_the_percentage_error_agrees_with_numpy(toy_model, toy_examples):
    """Three numbers for each example, or a column with one number for each."""
    x, n = toy_examples.x, len(toy_examples.y)
    y = np.random.default_rng(2).uniform(-3, -1, (n, 3)).astype(np.float32)
    weights = toy_model.initial_weights[0]
    client = criteria.LocalClient(
        None, None, None, tff.learning.models.ModelWeights(weights, ())
    )
    output = x.reshape(n, -1) / np.float32(255) @ weights[0] + weights[1]
    expected = 1 / np.mean(np.abs((output - y) / y))
    value = criteria.server_percentage_error(toy_model, x, y).value(client)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    for wrong in (toy_examples.y, np.zeros((n, 3), np.float32)):
        with pytest.raises(ValueError, match="MAPE: .* numbers that are not 0"):
            criteria.server_percentage_error(toy_model, x, wrong)
