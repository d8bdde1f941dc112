"""What a client sends to the server in a round: one named type."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

from tff_pmc.aggregation.tff_utils import without_autograph

MEASUREMENTS = {
    "clients": np.int32,
    "excluded": np.int32,
    "examples": np.int32,
    "loss_sum": np.float32,
}
"""The types of the measurements in a message, by name; each is a scalar.

With a label per position, `examples` are the positions that count, whose losses are
summed.
"""


class ClientMessage(NamedTuple):
    """What a client sends to the server in a round, as tensors or as their types.

    Client k trains the received model to an update `d_k` (received minus trained
    weights) and measures m criteria `r[k, i]`. For each of the B sums S of the basis
    its update has the weight `r_S[k]`, the product of its criteria in S, or their
    minimum. A field that is not sent is `()`.

        updates       U*B             `r_S[k] d_k` for each S
        criteria      float32[m]      `r[k, i]`; normalized, if by declared ranges or in
                                      the second of two stages
        monomials     float32[B]      `r_S[k]`, the weight of each update
        maxima        float32[m]      `r[k, i]`, only for the normalization `max`
        measurements  `MEASUREMENTS`  counts of clients and examples, the sum of losses;
                                      with a `scalar_sum_factory` the count of clients
        metrics       of the model    its metrics, before they are finalized
        control       like trainable  `c_k+ - c_k`, with SCAFFOLD alone: the change of
                                      the client's control variate

    A pack of clients sends one message: the sum of its clients' messages, with the
    largest of their `maxima`. An excluded client sends zeros and counts in `excluded`.

    With two stages a client sends two messages. The first has only `criteria` (and
    `maxima`); the server broadcasts their totals, or maxima, and the second message is
    computed from criteria divided by them. With an `aggregator` there is one update,
    `d_k` itself, and its number of examples, a float32, instead of the monomials.

    A simulation that records single clients also reports the criteria of each client,
    and the per-client memory. These are not part of the message, and no deployment
    sends them.
    """

    updates: Any
    criteria: Any
    monomials: Any
    maxima: Any = ()
    measurements: Any = ()
    metrics: Any = ()
    control: Any = ()

    @classmethod
    def of_sums(
        cls, update_type: tff.Type, num_criteria: int, num_sums: int, method: str
    ) -> ClientMessage:
        """Returns the types of a message for these sums; `method` normalizes them."""
        per_criterion = tff.TensorType(np.float32, [num_criteria])
        return cls(
            updates=tff.to_type((update_type,) * num_sums),
            criteria=per_criterion,
            monomials=tff.TensorType(np.float32, [num_sums]),
            maxima=per_criterion if method == "max" else (),
        )

    @property
    def update_weight(self) -> collections.OrderedDict:
        """The scalars that are sent with the updates, by name."""
        scalars = collections.OrderedDict(
            criteria=self.criteria, monomials=self.monomials
        )
        if not isinstance(self.maxima, tuple):
            scalars["maxima"] = self.maxima
        return scalars

    @property
    def client_result(self) -> tff.learning.templates.ClientResult:
        """The updates and their weights, as a TFF aggregation takes them."""
        return tff.learning.templates.ClientResult(self.updates, self.update_weight)

    @without_autograph
    def outputs(self) -> collections.OrderedDict:
        """Returns the message as a client work sends it: by how it is aggregated.

        It is the `result`, which the aggregation takes, the `measurements`, which are
        summed, and the `metrics`, if any.
        """
        outputs = collections.OrderedDict(
            result=self.client_result, measurements=self.measurements
        )
        if self.metrics:
            outputs["metrics"] = self.metrics
        return outputs

    def describe(self) -> str:
        """Returns one line per field that is sent, of a message of types."""
        types = {name: tff.to_type(part) for name, part in self._asdict().items()}
        lines = {name: str(type_) for name, type_ in types.items()}
        if self.updates:
            lines["updates"] = f"{len(self.updates)} x {types['updates'][0]}"
        return "\n".join(
            f"{name:12}  {text}" for name, text in lines.items() if text != "<>"
        )
