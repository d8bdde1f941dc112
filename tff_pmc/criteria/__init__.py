"""Criteria: functions of a client to one number that is not negative.

A criterion is a code, a name, the equation it comes from, and a function from
the client's data and models to a raw value. Criteria on the data and criteria on the
trained model have the same interface; the process only ever sums clients' values.

A new criterion is one definition (and a test):

    tff_pmc.criteria.register(Criterion(
        code="EV", name="even labels", source="ours",
        value=lambda client: tf.reduce_mean(
            tf.cast(tf.equal(client.y % 2, 0), tf.float32)),
    ))

Use `tf.equal` and not `==`: in the graphs TFF builds, `==` on tensors compares
Python objects. (A process raises a `CriterionError` if a criterion returns anything
but a number there.)
"""

from tff_pmc.criteria.criterion import (
    LARGEST_EXPONENT,
    REGISTRY,
    RESERVED,
    Criterion,
    CriterionError,
    LocalClient,
    attribute,
    bind_to_server,
    canonical,
    check_attribute_name,
    check_code,
    example_attributes,
    named,
    power,
    register,
    resolve,
)
from tff_pmc.criteria.server_criteria import (
    server_accuracy,
    server_metric,
    server_percentage_error,
)
from tff_pmc.scores.score import ALIASES, unaliased

__all__ = [
    "ALIASES",
    "LARGEST_EXPONENT",
    "REGISTRY",
    "RESERVED",
    "Criterion",
    "CriterionError",
    "LocalClient",
    "attribute",
    "bind_to_server",
    "canonical",
    "check_attribute_name",
    "check_code",
    "example_attributes",
    "named",
    "power",
    "register",
    "resolve",
    "server_accuracy",
    "server_metric",
    "server_percentage_error",
    "unaliased",
]
