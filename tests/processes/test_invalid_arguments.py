"""Invalid arguments of builders: each is named before anything is traced."""

import functools

import numpy as np
import pytest

import tff_pmc
from tff_pmc import criteria, scores
from tff_pmc._lazy import tf, tff

RANGES = {"DS": (0, 1000), "LD": (0, 10), "MD": (0, 1)}
RANGED = dict(normalization="range", criteria_ranges=RANGES)
X = np.zeros((40, 4, 4), np.uint8)
SERVER = dict(server_examples=(X, np.zeros(40, np.int32)), num_classes=3)


def with_criterion(value, code="OWN"):
    """Options with DS and a user's criterion."""
    return {"criteria": ("DS", criteria.Criterion(code, "mine", "this test", value))}


def private(**sums):
    return {"sums": tff_pmc.SumOptions(privacy=tff_pmc.GaussianSums(1.0), **sums)}


def scalars():
    return {"sums": tff_pmc.SumOptions(scalar_sum_factory=tff.aggregators.SumFactory())}


def scheduled():
    sgd = tff.learning.optimizers.build_sgdm(0.1)
    return tff.learning.optimizers.schedule_learning_rate(sgd, lambda step: 0.1)


def without_rate():
    class WithoutRate(tff.learning.optimizers.Optimizer):
        """An optimizer that names no learning rate."""

        def initialize(self, specs):
            return ()

        def next(self, state, weights, gradients):
            return state, weights

    return WithoutRate()


def six_criteria():
    return [criteria.Criterion(f"C{n}", "", "ours", lambda _: 1.0) for n in range(6)]


# The builder; its options; the words. A criterion fails on a made-up client.
PRIORITIZED = [
    (
        lambda: with_criterion(lambda client: tf.constant(-0.5)),
        "OWN gave a negative value, -0.5, for a made-up",
    ),
    (
        lambda: with_criterion(lambda client: {}["boom"]),
        "OWN fails for .*: KeyError: boom$",
    ),
    (
        lambda: with_criterion(lambda client: client.y),
        "criterion OWN must return one number",
    ),
    (
        lambda: with_criterion(lambda c: c.attributes["battery"]),
        "OWN fails.*unknown attribute 'battery'",
    ),
    # `==` between tensors compares Python objects where TFF traces; also of labels
    # that the made-up client lacks.
    *(
        (
            lambda compare=compare: with_criterion(
                lambda c: tf.cast(compare(c), tf.float32), "EQ"
            ),
            says,
        )
        for compare, says in (
            (lambda c: c.y[0] == 0, "criterion EQ .*by tf.equal: in"),
            (lambda c: c.y[0] == 9, "criterion EQ .*by tf.equal: in"),
            (lambda c: c.y[0] != 9, "criterion EQ .*by tf.not_equal: in"),
        )
    ),
    (
        lambda: with_criterion(lambda c: 1.0 / c.y.shape[0]),
        r"OWN fails in a graph, .*: unsupported operand .* \(use tf.shape: the static",
    ),
    # Other failures have nothing to do with sizes.
    (
        lambda: with_criterion(lambda c: float(c.y.numpy()[0])),
        r"OWN fails in a graph.*numpy'$",
    ),
    # Numbers that wrap: given as they are, or cast too late.
    *(
        (
            lambda value=value: with_criterion(value),
            f"OWN .* {kind}.*, which cannot hold large nu",
        )
        for value, kind in (
            (lambda c: tf.reduce_sum(c.x), "a number of type uint8"),
            (lambda c: tf.cast(tf.size(c.y), tf.int16), "a number of type int16"),
            (lambda c: tf.cast(tf.size(c.y), tf.float16), "a number of type float16"),
            (lambda c: tf.cast(tf.reduce_sum(c.x), tf.float32), "Sum is of uint8"),
            (
                lambda c: tf.cast(tf.reduce_mean(c.x), tf.float32),
                "Mean is of uint8",
            ),
            (lambda c: tf.cast(tf.reduce_max(c.x * c.x), tf.float32), "Mul is of uint"),
            (lambda c: tf.cast(tf.reduce_max(c.x + c.x), tf.float32), "Add.* of uint8"),
            (
                lambda c: tf.cast(
                    tf.foldl(
                        lambda a, b: a + tf.reduce_max(b), c.x, tf.zeros([], c.x.dtype)
                    ),
                    tf.float32,
                ),
                "Add.* of uint8",
            ),
            (
                lambda c: tf.cast(
                    tf.reduce_max(tf.math.unsorted_segment_sum(c.x, c.y, 9)), tf.float32
                ),
                "UnsortedSegmentSum is of uint8",
            ),
        )
    ),
    *(
        (
            lambda draw=draw: with_criterion(draw),
            "OWN differs between two calls: if it is random",
        )
        for draw in (
            lambda c: tf.random.uniform([]),
            lambda c: tf.random.uniform([], seed=1),
            lambda c: np.random.default_rng().random(),
        )
    ),
    (
        lambda: {"priority": ("XX",)},
        "unknown criterion 'XX' in the ordering; the declared criteria are DS, LD, MD$",
    ),
    (lambda: {"priority": ("DS", "DS")}, "DS,DS names a criterion twice"),
    (lambda: {"criteria": ("DS", "DS")}, "DS is named twice"),
    # What a set's order is differs from one Python process to the next.
    *(
        (
            lambda name=name, kind=kind: {name: kind(["DS", "LD"])},
            f"{name} must be a sequence, got .*which has no order: give a list",
        )
        for name in ("priority", "criteria")
        for kind in (set, frozenset, dict.fromkeys)
    ),
    (
        lambda: {"score": scores.owa("most"), "criteria": ("DS", "LD")},
        "DS,LD,MD' weighs by the criterion MD, and the criteria here are DS, LD",
    ),
    (
        lambda: dict(criteria=("LD", "DS"), basis=scores.Basis.singles(("DS", "LD"))),
        "basis is over the criteria DS, LD, and those of the process are LD, DS",
    ),
    (
        lambda: dict(priority=("MD",), basis=scores.Basis.of(3, [scores.single(0)])),
        "needs the sums",
    ),
    *(
        (lambda name=name, value=value: {name: value}, f"{name} must be {says}")
        for name, value, says in (
            ("local_epochs", 0, r"at least 1, below 2\^31, got 0"),
            *(("local_epochs", v, "a whole number, got") for v in (1.5, True, "3")),
            *(("batch_size", v, "a whole number, got") for v in (1.5, "10")),
            ("prox_mu", "x", "a number, got 'x'"),
            ("seed", 1.5, "a whole number, got 1.5"),
            ("packed", "no", "True or False, got 'no'"),
            ("report_cohort", "no", "a whole number, got 'no'"),
            ("client_attributes", "trusted", "a sequence, got 'trusted'"),
            ("client_attributes", {"trusted": [1.0]}, "a sequence, got .*no order"),
            ("client_attributes", {"trusted"}, "a sequence, got {'trusted'}, which"),
            ("keep_own_model", "yes", "a sequence, got 'yes'"),
            ("keep_own_model", 5, "a sequence, got 5"),
        )
    ),
    # TFF's schedule counts the steps of a client, which begin anew in every round.
    (
        lambda: {"client_optimizer_fn": scheduled()},
        "client_optimizer_fn has a learning-rate schedule by local",
    ),
    *(
        (
            lambda fn=fn: {"client_learning_rate_fn": fn},
            f"must return one .*returns {says}",
        )
        for fn, says in (
            (lambda n: [0.1, 0.2], r"\[0.1 0.2\]$"),
            (lambda n: -0.5, "-0.5$"),
            (lambda n: np.nan, "nan$"),
        )
    ),
    (
        lambda: {
            "client_learning_rate_fn": lambda n: 0.1,
            "client_optimizer_fn": without_rate(),
        },
        "client_optimizer_fn, a WithoutRate, has no learning_rate in its hparams",
    ),
    (lambda: {"keep_own_model": (1.5,)}, "of keep_own_model must be a whole number"),
    (lambda: {"prox_mu": np.inf}, "prox_mu must be 0 or more, finite, got inf"),
    (lambda: {"packed": False, "batch_size": 3}, "batch_size"),
    (lambda: {"packed": False, "epochs_by_client": True}, "epochs_by_client"),
    (lambda: {"epochs_by_client": 1}, "epochs_by_client must be True or False, got 1"),
    (
        lambda: {"packed": False, "criteria": ("DS", "IS")},
        r"\(sharp\), which only packed clients",
    ),
    (lambda: private(), "declared range for every criterion"),
    (lambda: private(normalization="max"), "declared range for every criterion"),
    (lambda: private(**RANGED), "needs clip_norm"),
    (
        lambda: {**private(**RANGED, clip_norm=1.0), "report_cohort": 6},
        "report_cohort cannot be combined with privacy",
    ),
    (lambda: {**scalars(), "report_cohort": 6}, "scalar_sum_factory"),
    (
        lambda: {**scalars(), "keep_own_model": (1,)},
        "keep_own_model cannot be combined with privacy",
    ),
    *(
        (
            lambda n=n: dict(
                score=scores.owa("most"), sums=tff_pmc.SumOptions(n), packed=False
            ),
            "two stages .* packed clients",
        )
        for n in ("sum", "max")
    ),
]
TWO_STAGE = [
    (
        lambda: dict(scalars(), score=scores.owa("most")),
        "scalar_sum_factory cannot be combined with",
    ),
    (lambda: {"score": "owa"}, "scores.Score"),
    (lambda: {"client_step": lambda *_: None}, "client_step needs an aggregator"),
]
FACTORY = [
    (lambda: {"criteria": ("LD",)}, "DS"),
    (
        lambda: {"sums": tff_pmc.SumOptions("max")},
        "only option it follows is clip_norm",
    ),
    (lambda: {"priority": ("DS",)}, "either aggregator or priority, not both"),
]
ADAFED = [
    (lambda: {"power": 0}, "power must be above 0"),
    (lambda: {"epsilon": 0}, "epsilon must be above 0, got 0"),
    (lambda: {"server_examples": (X, [])}, "x has 40 examples and y has 0"),
    *(
        (
            lambda size=size: {"server_examples": (X, np.zeros((40, size), int))},
            rf"numbers of classes, one for each input, got the shape \[40, {size}\]",
        )
        for size in (1, 3)
    ),
    (lambda: {"keep_own_model": (1, 1)}, "each once"),
    (
        lambda: {"packed": False, "keep_own_model": (1,), "adapt_loss": False},
        "only appl(y|ies) to packed clients",
    ),
    (lambda: {"packed": False}, "only apply to packed clients"),
    (lambda: {"score": "ACC"}, "score must be a scores.Score, got str"),
    (lambda: {"criteria": ("DS", "ACC")}, "ACC is named twice"),
]
ONLINE = [
    (lambda: {"policy": "greedy"}, "policy must be one of fixed, backtracking"),
    (lambda: {"candidates": []}, "candidates is empty"),
    (
        lambda: {"priority": ("DS",), "candidates": [scores.single("DS")]},
        "either priority or candidates",
    ),
    (lambda: {"priority": ("DS", "DS")}, "twice"),
    (
        lambda: {"priority": ("DS", "LD"), "first": scores.single("DS")},
        "either priority or first, not both",
    ),
    (
        lambda: {"first": scores.single("DS"), "criteria": ("LD", "DS")},
        "first is the score 'DS', .* not among the candidates LD,DS; DS,LD$",
    ),
    (lambda: {"candidates": [("DS",)]}, "candidates must be a scores.Score, got tuple"),
    (
        lambda: {"candidates": dict(a=scores.single("DS"))},
        "candidates must be a sequence, got .*no order",
    ),
    (lambda: {"others": {"DS": scores.single("DS")}}, "others must be a sequence"),
    (
        lambda: {"others": [scores.single("MD")], "criteria": ("LD", "DS")},
        "'MD' weighs by the criterion MD",
    ),
    (lambda: {"criteria": six_criteria()}, "at most 5 criteria"),
]
# The default judge's counts would undo what privacy and secure sums promise.
HIDDEN = [
    (
        lambda: private(**RANGED, clip_norm=1.0),
        "privacy cannot be combined with the default judge",
    ),
    (lambda: scalars(), "scalar_sum_factory cannot be combined with the default"),
]
CASES = [
    *(("build_prioritized_fed_avg", *case) for case in PRIORITIZED),
    *(("build_prioritized_fed_avg", *case) for case in TWO_STAGE),
    *(
        (
            "build_prioritized_fed_avg",
            lambda options_of=options_of: {
                "aggregator": tff_pmc.aggregation.median(),
                **options_of(),
            },
            says,
        )
        for options_of, says in FACTORY
    ),
    *(("build_adafed", *case) for case in ADAFED),
    *(("build_online_adjusted_fed_avg", *case) for case in [*ONLINE, HIDDEN[0]]),
    (
        "build_online_adjusted_fed_avg",
        lambda: {**scalars(), "num_clients": 6},
        HIDDEN[1][1],
    ),
    *(("build_online_adjusted_iterative_process", *case) for case in HIDDEN),
]


@pytest.fixture
def build(toy_packed_model, sgd):
    """Builds by name, with what each needs."""

    def build(name, model=toy_packed_model, **options):
        needed = {"build_adafed": lambda: SERVER}.get(name, dict)()
        options = {"client_optimizer_fn": sgd(), **needed, **options}
        return getattr(tff_pmc, name)(model, **options)

    return build


@pytest.mark.parametrize(
    ("name", "options", "message"),
    CASES,
    ids=[f"{name}-{message}" for name, _, message in CASES],
)
def test_invalid_arguments_are_named(build, name, options, message):
    with pytest.raises(ValueError, match=message):
        build(name, **options())


def keras_model(labels):
    """A Keras model of labels of these specs; the loss is never computed of most."""
    size = 1 if isinstance(labels, tf.TensorSpec) and labels.dtype.is_floating else 3
    dense = tf.keras.layers.Dense(size, input_shape=(4,))
    return tff.learning.models.from_keras_model(
        tf.keras.Sequential([dense]),
        tf.keras.losses.MeanSquaredError(),
        input_spec=(tf.TensorSpec([None, 4]), labels),
    )


@pytest.mark.parametrize(
    ("name", "model", "message"),
    [
        ("build_prioritized_fed_avg", "maker", "pass its result, as models"),
        ("build_adafed", "toy", "PackedModel with example_losses"),
        ("build_online_adjusted_fed_avg", None, "with a model_fn, pass a judge"),
        ("build_prioritized_fed_avg", None, "need a tff.learning.models.Functional"),
        ("build_prioritized_fed_avg", "keras", "it is a Sequential"),
        ("build_prioritized_fed_avg", "keras_fn", "it returns a Sequential"),
        ("build_prioritized_fed_avg", "variable", "it is a _ModelFrom"),
        ("build_prioritized_fed_avg", "number", "it is a int"),
        (
            "build_prioritized_fed_avg",
            "regression",
            "LD needs class numbers .* or real numbers",
        ),
        ("build_prioritized_fed_avg", "one_hot", "LD needs .* not one-hot vectors or"),
        ("build_prioritized_fed_avg", "pair", "LD needs class numbers as labels"),
        ("build_prioritized_fed_avg", "mapping", r"a mapping \(a, b\).* as a tuple"),
        ("build_prioritized_fed_avg", "several", "one tensor of labels.* packed=False"),
    ],
)
def test_an_unsupported_model_is_named(build, toy_model, name, model, message):
    with_packs = ("maker", "keras", "keras_fn", "variable", "number", None)
    by_packs = "prioritized" in name and model in with_packs
    options = {"packed": True} if by_packs else {}
    model_fn = functools.partial(tff.learning.models.model_from_functional, toy_model)
    keras = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    models = {"toy": toy_model, "maker": lambda: toy_model, "number": 5}
    models |= {"keras": keras, "keras_fn": lambda: keras}
    classes = tf.TensorSpec([None, 3], tf.int32)
    two = [tf.TensorSpec([None], tf.int32)] * 2
    for kind, labels in {
        "regression": tf.TensorSpec([None, 1]),
        "one_hot": classes,
        "pair": tuple(two),
        "mapping": dict(zip("ab", two)),
    }.items():
        models[kind] = functools.partial(keras_model, labels)
    if model == "several":
        models[model] = tff.learning.models.FunctionalModel(
            initial_weights=toy_model.initial_weights,
            predict_on_batch_fn=toy_model.predict_on_batch,
            loss_fn=toy_model.loss,
            input_spec=(toy_model.input_spec[0], tuple(two)),
        )
        options = {"criteria": ("DS",)}
    if model == "variable":
        models[model] = model_fn()
    with pytest.raises(ValueError, match=message):
        build(name, models.get(model, model_fn), **options)


def test_arguments_of_the_wrong_type_are_named(build):
    with pytest.raises(TypeError, match="client_optimizer_fn"):
        keras = tf.keras.optimizers.SGD(0.1)
        build("build_prioritized_fed_avg", client_optimizer_fn=keras)
    with pytest.raises(TypeError, match="aggregator .* got str"):
        build("build_prioritized_fed_avg", aggregator="median")
    for name, value in {"sums": {}, "memory": True}.items():
        with pytest.raises(TypeError, match=f"{name} must be a .*, got (dict|bool)"):
            build("build_prioritized_fed_avg", **{name: value})
    with pytest.raises(TypeError, match="unexpected keyword argument 'epochs'"):
        build("build_prioritized_fed_avg", epochs=2)


def test_nearby_valid_arguments_are_accepted(build):
    """An alias, and a user's judge with sums that hide."""
    process = build("build_prioritized_fed_avg", priority=("MW", "DS"))
    assert isinstance(process, tff.learning.templates.LearningProcess)
    judged = functools.partial(build, judge=lambda *_: np.int32(1))
    for options, _ in HIDDEN:
        assert judged("build_online_adjusted_fed_avg", **options())
