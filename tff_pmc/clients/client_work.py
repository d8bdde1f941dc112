"""The TFF client work that both forms of local training share."""

from __future__ import annotations

import collections
from typing import Any, Callable

import numpy as np
import tensorflow_federated as tff

_STATE_TYPE = tff.to_type(
    collections.OrderedDict(
        seed=tff.TensorType(np.int32), round=tff.TensorType(np.int32)
    )
)


def build_client_work(
    weights_type: tff.Type,
    data_type: tff.Type,
    train_shard: Callable[[Any, Any, Any], tuple[Any, Any]],
    *,
    seed: int,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work around a function that trains one placement.

    With `W` the type of the model's weights and `W*B` a tuple of B of them, the
    `next` of the result has the type

        (<state=<seed=int32,round=int32>@SERVER, W@CLIENTS, data_type@CLIENTS>
         -> <state@SERVER,
             result=<update=W*B, update_weight=<criteria=float32[m],
                     monomials=float32[B]>>@CLIENTS,
             measurements=<train=<clients=int32, excluded=int32, examples=int32,
                                  loss_sum=float32>>@SERVER>)

    The state is the seed of the batches and the number of rounds done.

    Args:
        weights_type: the type of the model's `ModelWeights`.
        data_type: the sequence at each placement.
        train_shard: `(state, received weights, sequence) -> (ClientResult,
            measurements)` in TensorFlow; the measurements are summed.
        seed: the initial seed.
    """

    @tff.tensorflow.computation(_STATE_TYPE, weights_type, data_type)
    def work(state, received, shard):
        return train_shard(state, received, shard)

    @tff.tensorflow.computation(_STATE_TYPE)
    def advance(state):
        return collections.OrderedDict(seed=state["seed"], round=state["round"] + 1)

    @tff.federated_computation
    def initialize():
        return tff.federated_value(
            collections.OrderedDict(seed=seed, round=0), tff.SERVER
        )

    @tff.federated_computation(
        tff.FederatedType(_STATE_TYPE, tff.SERVER),
        tff.FederatedType(weights_type, tff.CLIENTS),
        tff.FederatedType(data_type, tff.CLIENTS),
    )
    def next_fn(state, received, shards):
        results, measured = tff.federated_map(
            work, (tff.federated_broadcast(state), received, shards)
        )
        # Under `train`, as TFF's own algorithms have it and its programs expect.
        measurements = collections.OrderedDict(train=tff.federated_sum(measured))
        return tff.templates.MeasuredProcessOutput(
            tff.federated_map(advance, state), results, tff.federated_zip(measurements)
        )

    return tff.learning.templates.ClientWorkProcess(initialize, next_fn)
