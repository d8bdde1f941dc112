"""The form of a criterion, and the registry of those that settings name by code."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from leaf_data.declare import Registry


@dataclasses.dataclass(frozen=True)
class LocalClient:
    """A client as it computes its criteria, in TensorFlow values.

    Attributes:
        x: its training inputs, `[n, ...]`, as they are stored (images uint8).
        y: its labels, int32 `[n]`.
        initial_weights: the `tff.learning.models.ModelWeights` it received.
        trained_weights: the `ModelWeights` after local training.
        attributes: the facts known of the client beside its data, float32 scalars
            by name (PMC 4.2: trustworthiness of the device, commercial targets).
        example_attributes: the facts known of each example beside x and y, float32
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
        code: its name in flags, tables and orderings.
        name: its name in words.
        source: the paper and the equation it comes from.
        value: a function of a `LocalClient` that gives a scalar tensor, not
            negative; it is traced into the client's TensorFlow graph.
        needs_model: whether it looks at the weights, so that it cannot be known
            before the client has trained.
        example_attributes: the names of what it needs to know of each example, in
            `LocalClient.example_attributes`.
        at_server: for a criterion that measures a client's model on examples of the
            server's own: `(model, x, y)` of the model trained and these examples to
            the criterion that does; see `bind_to_server`.
        needs_classes: whether it looks at labels as classes, so that it says nothing
            of a regression.
    """

    code: str
    name: str
    source: str
    value: Callable[[LocalClient], Any]
    needs_model: bool = False
    example_attributes: tuple[str, ...] = ()
    at_server: Optional[Callable[[Any, Any, Any], Criterion]] = None
    needs_classes: bool = False

    def __post_init__(self) -> None:
        if not self.code or not self.code.replace("_", "").isalnum():
            raise ValueError(f"a criterion's code must be a word, got {self.code!r}")

    @property
    def needs_server_examples(self) -> bool:
        """Whether it is computed only once it is bound to the server's examples."""
        return self.at_server is not None


REGISTRY: Registry[Criterion] = Registry("criterion", "tff_pmc.criteria")
"""The criteria by code."""

ALIASES = {"MW": "MD"}
"""Other names in use: PMC's tables print the model divergence as MW."""


def register(criterion: Criterion) -> Criterion:
    """Makes a criterion known by its code.

    Raises:
        ValueError: the code is taken.
    """
    if criterion.code in REGISTRY or criterion.code in ALIASES:
        raise ValueError(f"there is a criterion {criterion.code} already")
    return REGISTRY.register(criterion.code, criterion)


def attribute(name: str) -> Criterion:
    """A criterion that is an attribute of the client, boolean or in [0, 1].

    Args:
        name: the name of the attribute, which is the criterion's code.

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


def bind_to_server(
    criteria: Sequence[Criterion], model: Any, x: Any, y: Any
) -> tuple[Criterion, ...]:
    """The criteria, with each that needs the server's examples bound to these.

    Args:
        criteria: the criteria, resolved.
        model: the `tff.learning.models.FunctionalModel` that is trained.
        x: the server's inputs.
        y: their labels.
    """
    return tuple(c.at_server(model, x, y) if c.at_server else c for c in criteria)


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
