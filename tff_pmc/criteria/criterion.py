"""The form of a criterion, and the registry of those that settings name by code."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from declared_settings import Registry, require_sequence
from tff_pmc._lazy import tf
from tff_pmc.scores.score import ALIASES, unaliased

LARGEST_EXPONENT = 100
"""The largest power, of either sign, to which a criterion may be raised."""


RESERVED = ("all", "seed", "label", "round", "client", "excluded", "weight")
"""Words that cannot name a criterion or an attribute of clients: `all`, as flags use
it, and the other columns in `cohort.csv`, `read_results` and
`cohort_weights`."""

_FOLDERS = re.compile("seed_[0-9]+")  # Folders of the runs of several seeds.


def _raise_no_model(batch_metric: Callable[[Any, Any], Any]) -> Any:
    raise ValueError("the criterion uses the model: declare it with needs_model=True")


class CriterionError(ValueError):
    """Raised if a criterion fails or returns an invalid value; the message names it."""


@dataclasses.dataclass(frozen=True)
class LocalClient:
    """A client as it computes its criteria, in TensorFlow values.

    Attributes:
        x: its training inputs, `[n, ...]`, as they are stored (images uint8).
        y: its labels, int32 `[n]`, or as the model's input has them: `[n, T]`, one for
            each position, with -1 for a position that does not count, `[n, ...]`, or a
            structure of such tensors where it has several outputs.
        initial_weights: the `tff.learning.models.ModelWeights` it received.
        trained_weights: the `ModelWeights` after local training.
        attributes: the client's attributes besides its data, float32 scalars by name
            (PMC 4.2: trustworthiness of the device, commercial targets).
        example_attributes: attributes of each example besides x and y, float32 `[n]`
            by name: only those that the criteria name.
        steps: the number of steps of its optimizer, an int32 scalar.
        memory: its per-client state, if the process has the option `memory`.
        mean_on_received: `(batch_metric) -> float32`: evaluates the received model on
            the client's examples, batch by batch, and returns the mean over all
            examples of `batch_metric(output, y)`, a scalar that is a mean over the
            batch, or over its positions that count. `output` is the model's
            `tff.learning.models.BatchOutput` (`loss`, `predictions`), y the labels.
            Without examples it is 0. The model runs only if this is called, and once
            for each function.
        num_examples: the number of its examples, int32, as the model's loss counts
            them.
        mean_on_trained: as `mean_on_received`, for the model after local training.
    """

    x: Any
    y: Any
    initial_weights: Any
    trained_weights: Any
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    example_attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    steps: Any = None
    mean_on_received: Callable[[Callable[[Any, Any], Any]], Any] = _raise_no_model
    memory: Any = None
    num_examples: Any = None
    mean_on_trained: Callable[[Callable[[Any, Any], Any]], Any] = _raise_no_model


@dataclasses.dataclass(frozen=True)
class Criterion:
    """One criterion.

    Attributes:
        code: its name in flags, tables and orderings: a word, or the power of one.
        name: its name in words.
        source: the paper and the equation it comes from.
        value: a function of a `LocalClient` that returns a scalar tensor, not
            negative; it is traced into the client's TensorFlow graph.
        needs_model: whether it reads weights or `steps`, or runs a model, so that it
            can be computed only in a round.
        example_attributes: the names of the attributes of examples that it needs, in
            `LocalClient.example_attributes`.
        at_server: for a criterion that needs the server's examples: builds the bound
            criterion from `(model, x, y)`, the trained model and these examples; see
            `bind_to_server`.
        needs_classes: whether it reads labels as class numbers, so that a process
            raises an error for a regression, one-hot labels and several outputs.

    Raises:
        ValueError: (constructor) the code is invalid, see `check_code`.
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
        check_code(self.code)

    @property
    def needs_server_examples(self) -> bool:
        """Whether it is computed only once it is bound to the server's examples."""
        return self.at_server is not None


def check_code(code: str) -> None:
    """Raises a `ValueError` if a code cannot name a criterion in flags and tables.

    Raises:
        ValueError: the code is neither a word nor the power of one, or the word is one
            of `RESERVED` or the name of a seed's folder.
    """
    base, _, exponent = code.partition("^")
    if not base.replace("_", "").isalnum() or exponent.strip("-+.0123456789e"):
        raise ValueError(
            f"a criterion's code must be a word, such as DS, or its power, DS^2; got "
            f"{code!r}"
        )
    if base in RESERVED:
        raise ValueError(f"{base} is a column of the record: choose another code")
    if _FOLDERS.fullmatch(base):
        raise ValueError(f"{base} is the name of a seed's folder: choose another code")


REGISTRY: Registry[Criterion] = Registry("criterion", "tff_pmc.criteria")
"""The criteria by code."""


def register(criterion: Criterion) -> Criterion:
    """Registers a criterion by its code, for settings and for `resolve`.

    Args:
        criterion: the criterion.

    Returns:
        The criterion.

    Raises:
        ValueError: the code is taken.
    """
    if criterion.code in REGISTRY or criterion.code in ALIASES:
        raise ValueError(
            f"the criterion {criterion.code} already exists: choose another code"
        )
    return REGISTRY.register(criterion.code, criterion)


def check_attribute_name(name: str) -> None:
    """Raises a `ValueError` if a name cannot be that of an attribute of clients.

    An attribute may become a criterion, by `attribute`.

    Raises:
        ValueError: the name is not a word, is a criterion's code or alias, or is one of
            `RESERVED`.
    """
    taken = name in REGISTRY or name in ALIASES or name in RESERVED
    if taken or not name.isidentifier() or _FOLDERS.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid attribute name: use a word that is neither a "
            f"criterion's code nor a column of the record ({', '.join(RESERVED)})"
        )


def attribute(name: str) -> Criterion:
    """Builds the criterion of an attribute of the client, boolean or in [0, 1].

    The process must be built with `client_attributes=(name,)`, and `pack` must get
    the values.

    Args:
        name: the name of the attribute, which is the criterion's code.

    Raises:
        ValueError: see `check_attribute_name`.

    Examples:
        >>> [criterion.code for criterion in resolve(("DS", attribute("trusted")))]
        ['DS', 'trusted']
    """
    check_attribute_name(name)
    return Criterion(
        code=name,
        name=f"client attribute {name}",
        source="PMC section 4.2",
        value=lambda client: client.attributes[name],
    )


def power(criterion: Criterion, exponent: float | str) -> Criterion:
    """Builds the power of a criterion, with a code such as `DS^0.5`.

    Flags and all functions that take codes accept `DS^0.5`, too. A product of powers is
    the `scores.product` of such criteria. A client is excluded if float32 cannot hold
    its power: it is infinite, such as 0 to a negative exponent, or too small.

    Args:
        criterion: the criterion that is raised to the power.
        exponent: a number from -100 to 100.

    Raises:
        ValueError: the exponent is not a number in this range.
    """
    try:
        number = float(exponent)
    except ValueError:
        number = float("nan")
    if not abs(number) <= LARGEST_EXPONENT:
        raise ValueError(
            f"the exponent of {criterion.code}^{exponent} must be a number from "
            f"-{LARGEST_EXPONENT} to {LARGEST_EXPONENT}"
        )

    def value(client: LocalClient) -> Any:
        raw = tf.cast(criterion.value(client), tf.float32)
        # A negative value stays negative, so that the client is excluded.
        return tf.where(raw < 0, raw, nan_if_underflowed(tf.pow(raw, number), raw > 0))

    def at_server(*examples: Any) -> Criterion:
        assert criterion.at_server is not None
        return power(criterion.at_server(*examples), exponent)

    return dataclasses.replace(
        criterion,
        code=f"{criterion.code}^{exponent}",
        name=f"{criterion.name}, to the power {exponent}",
        value=value,
        at_server=at_server if criterion.at_server else None,
    )


def nan_if_underflowed(value: Any, positive: Any) -> Any:
    """Returns the value, or NaN where it underflowed to 0 although it is `positive`.

    A criterion of 0 is valid, so a client whose value underflows is excluded, like one
    whose value overflows.
    """
    return tf.where(positive & tf.equal(value, 0.0), math.nan, value)


def bind_to_server(
    criteria: Sequence[Criterion], model: Any, x: Any, y: Any
) -> tuple[Criterion, ...]:
    """Binds the criteria that need the server's examples to these; returns all.

    Args:
        criteria: the criteria, resolved.
        model: the trained `tff.learning.models.FunctionalModel`.
        x: the server's inputs.
        y: their labels.
    """
    return tuple(c.at_server(model, x, y) if c.at_server else c for c in criteria)


def example_attributes(criteria: Sequence[Criterion]) -> tuple[str, ...]:
    """Returns the attributes of examples that any of the criteria needs, sorted."""
    return tuple(sorted({name for c in criteria for name in c.example_attributes}))


def canonical(code: str) -> str:
    """Returns the registered code for a code, an alias or the base of a power.

    Raises:
        ValueError: the criterion is unknown.

    Examples:
        >>> canonical("MW^2")
        'MD'
    """
    code = unaliased(code).partition("^")[0]
    if code not in REGISTRY:
        codes = ", ".join([*REGISTRY, *(f"{a} (= {b})" for a, b in ALIASES.items())])
        raise ValueError(f"unknown criterion {code!r}; known: {codes}")
    return code


def named(code: str, base: Optional[Criterion] = None) -> Criterion:
    """Returns the criterion with a code or an alias, or a power (of `base`, if given).

    Args:
        code: `DS`, `MW` (an alias of `MD`) or `DS^0.5`, for example.
        base: the criterion that is raised to the power, instead of the registered one.

    Raises:
        ValueError: the criterion is unknown, or the exponent is not a number.

    Examples:
        >>> named("MW").code, named("DS^0.5").code
        ('MD', 'DS^0.5')
    """
    _, is_power, exponent = code.partition("^")
    criterion = base or REGISTRY[canonical(code)]
    return power(criterion, exponent) if is_power else criterion


def resolve(criteria: Sequence[str | Criterion]) -> tuple[Criterion, ...]:
    """Resolves codes, aliases and `Criterion` objects to criteria, in this order.

    Args:
        criteria: codes such as `DS`, aliases, powers such as `DS^0.5`, or objects.

    Raises:
        ValueError: a code is unknown or named twice, or the criteria have no order, as
            a set.

    Examples:
        >>> [criterion.name for criterion in resolve(("DS", "MW"))]
        ['dataset size', 'model divergence']
    """
    resolved = tuple(
        item if isinstance(item, Criterion) else named(item)
        for item in require_sequence("criteria", criteria)
    )
    codes = [criterion.code for criterion in resolved]
    for code in codes:
        if codes.count(code) > 1:
            raise ValueError(f"the criterion {code} is named twice: name it once")
    return resolved
