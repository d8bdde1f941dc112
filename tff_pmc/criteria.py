"""Criteria: what a client reports of itself, as one number that is not negative.

A criterion is a code, a name, the equation it comes from, and a function from
what the client knows to a raw value. Criteria that look at the data and
criteria that look at the trained model have the same interface; the process
never sends a client's value anywhere but into sums.

Adding one is one definition (and a test):

    EVEN = tff_pmc.criteria.register(Criterion(
        code="EV", name="even labels", source="ours",
        value=lambda client: tf.reduce_mean(
            tf.cast(tf.equal(client.y % 2, 0), tf.float32)),
    ))

Use `tf.equal` and not `==`: in the graphs TFF builds, `==` on tensors compares
Python objects. (A process refuses a criterion that gives something else there.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from tff_pmc._lazy import tf


@dataclasses.dataclass(frozen=True)
class LocalClient:
    """What a client knows when it computes its criteria, as TensorFlow values.

    Attributes:
        x: its training inputs, `[n, ...]`, as they are stored (images uint8).
        y: its labels, int32 `[n]`.
        initial_weights: the `tff.learning.models.ModelWeights` it received.
        trained_weights: the `ModelWeights` after local training.
        attributes: what is known of the client beside its data, float32 scalars
            by name (PMC 4.2: trustworthiness of the device, commercial targets).
        example_attributes: what is known of each example beside x and y, float32
            `[n]` by name: those that the criteria name, and no others.
    """

    x: Any
    y: Any
    initial_weights: Any
    trained_weights: Any
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    example_attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Criterion:
    """One criterion.

    Attributes:
        code: what flags, tables and orderings call it.
        name: what it is, in words.
        source: paper and equation.
        value: a function of a `LocalClient` that gives a scalar tensor, not
            negative; it is traced into the client's TensorFlow graph.
        needs_model: whether it looks at the weights, so that it cannot be known
            before the client has trained.
        example_attributes: the names of what it needs to know of each example, in
            `LocalClient.example_attributes`.
    """

    code: str
    name: str
    source: str
    value: Callable[[LocalClient], Any]
    needs_model: bool = False
    example_attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.code or not self.code.replace("_", "").isalnum():
            raise ValueError(f"a criterion's code must be a word, got {self.code!r}")


def dataset_size(client: LocalClient) -> Any:
    """Number of local training examples `|D_k|`."""
    return tf.shape(client.y)[0]


def label_diversity(client: LocalClient) -> Any:
    """Number of distinct labels among the local training examples."""
    return tf.size(tf.unique(tf.reshape(client.y, [-1])).y)


def model_divergence(client: LocalClient) -> Any:
    """`1 / sqrt(||w - w_k||_2 + 1)`, one norm over all trainable parameters."""
    return tf.math.rsqrt(tf.linalg.global_norm(_difference(client)) + 1.0)


def model_divergence_by_layer(client: LocalClient) -> Any:
    """`1 / sqrt(mean_l ||K_l - K_kl||_2 + 1)` over the layers' kernels.

    As the authors' published code has it: a norm for each layer's kernel, no
    biases (tensors of rank below 2), and the mean over the layers.
    """
    kernels = [d for d in _difference(client) if len(d.shape) >= 2]
    norms = [tf.norm(tf.reshape(d, [-1])) for d in kernels]
    return tf.math.rsqrt(tf.reduce_mean(tf.stack(norms)) + 1.0)


def class_balance(client: LocalClient) -> Any:
    """Examples of the rarest of the client's classes over those of its commonest.

    0 for a client with one class. PMC has two classes, where this is its equation;
    for more it is ours: classes that the client lacks do not count.
    """
    classes, _, counts = tf.unique_with_counts(tf.reshape(client.y, [-1]))
    counts = tf.cast(counts, tf.float32)
    ratio = tf.math.divide_no_nan(tf.reduce_min(counts), tf.reduce_max(counts))
    return tf.where(tf.size(classes) > 1, ratio, 0.0)


def image_sharpness(client: LocalClient) -> Any:
    """The fraction of sharp images among the local training examples; 0 of none.

    The examples' attribute `sharp` is 1 or 0.
    """
    sharp = client.example_attributes["sharp"]
    return tf.math.divide_no_nan(
        tf.reduce_sum(sharp), tf.cast(tf.size(sharp), tf.float32)
    )


def _difference(client: LocalClient) -> list[Any]:
    before = client.initial_weights.trainable
    after = client.trained_weights.trainable
    return [a - b for a, b in zip(after, before)]


def attribute(name: str) -> Criterion:
    """A criterion that is an attribute of the client, boolean or in [0, 1].

    Args:
        name: of the attribute, and the criterion's code.

    Example:
        >>> build_prioritized_fed_avg(..., criteria=("DS", attribute("trusted")),
        ...     client_attributes=("trusted",), priority=("trusted", "DS"))
    """
    return Criterion(
        code=name,
        name=f"client attribute {name}",
        source="PMC section 4.2",
        value=lambda client: client.attributes[name],
    )


REGISTRY: dict[str, Criterion] = {}
ALIASES = {"MW": "MD"}
"""Other names in use: PMC's tables print the model divergence as MW."""


def register(criterion: Criterion) -> Criterion:
    """Makes a criterion known by its code.

    Raises:
        ValueError: the code is taken.
    """
    if criterion.code in REGISTRY or criterion.code in ALIASES:
        raise ValueError(f"there is a criterion {criterion.code} already")
    REGISTRY[criterion.code] = criterion
    return criterion


register(Criterion("DS", "dataset size", "DA section 4, PMC section 4", dataset_size))
register(
    Criterion("LD", "label diversity", "DA section 4, PMC section 4", label_diversity)
)
register(
    Criterion(
        "MD",
        "model divergence",
        "DA section 4, PMC section 4",
        model_divergence,
        needs_model=True,
    )
)
register(
    Criterion(
        "MD_layers",
        "model divergence, mean over the layers' kernels",
        "the authors' published code, MNIST/Server.py",
        model_divergence_by_layer,
        needs_model=True,
    )
)
register(Criterion("CB", "class balance", "PMC eq. 9", class_balance))
register(
    Criterion(
        "IS",
        "image sharpness",
        "PMC section 5",
        image_sharpness,
        example_attributes=("sharp",),
    )
)


def _needs_the_server(client: LocalClient) -> Any:
    raise ValueError(
        "ACC needs the server's examples: use server_criteria.server_accuracy(...)"
    )


register(
    Criterion(
        "ACC",
        "accuracy on the server's examples",
        "AdaFed section 3.1; Dual",
        _needs_the_server,
        needs_model=True,
    )
)


def example_attributes(criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """The attributes of examples that any of the criteria needs, sorted."""
    return tuple(sorted({name for c in criteria for name in c.example_attributes}))


def canonical(code: str) -> str:
    """The registered code for a code or an alias.

    Raises:
        ValueError: there is no such criterion.
    """
    code = ALIASES.get(code, code)
    if code not in REGISTRY:
        known = ", ".join([*REGISTRY, *(f"{a} (= {b})" for a, b in ALIASES.items())])
        raise ValueError(f"unknown criterion {code!r}; there are {known}")
    return code


def resolve(criteria: Sequence[str | Criterion]) -> tuple[Criterion, ...]:
    """Criteria from codes, aliases or `Criterion` objects, in the order given.

    Raises:
        ValueError: a code is unknown or named twice.
    """
    found = tuple(
        item if isinstance(item, Criterion) else REGISTRY[canonical(item)]
        for item in criteria
    )
    codes = [criterion.code for criterion in found]
    for code in codes:
        if codes.count(code) > 1:
            raise ValueError(f"the criterion {code} is named twice")
    return found
