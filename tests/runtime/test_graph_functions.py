"""What is compiled of a process serves an equal one, and no other."""

import collections

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff


@pytest.fixture
def compiled(monkeypatch):
    """The federated computations that are compiled, one after another."""
    from tff_pmc.runtime import local

    computations, real = [], local.MapReduceComputation

    def count_compilation(computation, *other_arguments):
        if computation.type_signature.parameter is not None:  # No initial state.
            computations.append(computation)
        return real(computation, *other_arguments)

    monkeypatch.setattr(local, "MapReduceComputation", count_compilation)
    monkeypatch.setattr(local.LocalEngine, "_cache", collections.OrderedDict())
    return computations


@pytest.fixture
def build(toy_model):
    """Builds a process with some options replaced."""

    def built(rate=0.1, clip_norm=0.0, **options):
        options = {"seed": 0, "batch_size": 2, "local_epochs": 2, **options}
        optimizer = tff.learning.optimizers.build_sgdm(rate)
        return tff_pmc.build_prioritized_fed_avg(
            toy_model,
            client_optimizer_fn=optimizer,
            sums=tff_pmc.SumOptions(clip_norm=clip_norm),
            **options,
        )

    return built


def digest(computation):
    from tff_pmc.runtime import graph_functions

    return graph_functions.digest(tff.framework.serialize_computation(computation))


def test_processes_of_two_seeds_share_a_compilation_and_differ_in_bits(
    build, compiled, toy_examples, assert_same_bits
):
    from tff_pmc.runtime import Runtime, local

    def rounds(process):
        state, outputs = process.initialize(), []
        for _ in range(2):
            output = process.next(state, tff_pmc.pack(toy_examples, range(6)))
            state = output.state
            outputs.append(output)
        return outputs

    with Runtime("local"):
        first = rounds(build(seed=0))
        second = rounds(build(seed=1))
    assert len(compiled) == 1
    with Runtime("local"):
        assert_same_bits(second, rounds(build(seed=1)))
        assert len(compiled) == 1  # Another engine has it, too.
        local.LocalEngine._cache.clear()
        assert_same_bits(second, rounds(build(seed=1)))
    assert len(compiled) == 2
    kernels = [
        outputs[-1].state.global_model_weights.trainable[0]
        for outputs in (first, second)
    ]
    assert np.abs(kernels[0] - kernels[1]).max() > 0


@pytest.mark.parametrize(
    ("changes", "are_equal"),
    [
        ({"seed": 7}, True),
        ({"rate": 0.2}, False),  # A constant in a function of a function.
        ({"batch_size": 3}, False),
        ({"local_epochs": 3}, False),
        ({"clip_norm": 1.0}, False),
    ],
)
def test_different_computations_have_different_digests(build, changes, are_equal):
    original, changed = digest(build().next), digest(build(**changes).next)
    assert (original == changed) == are_equal and None not in (original, changed)


def test_a_random_stream_continues_and_is_not_shared():
    """Two computations with the same seed both start at the first number."""
    from tff_pmc.runtime import Runtime

    def noisy():
        @tff.tensorflow.computation(np.float32)
        def add_noise(value):
            return value + tf.random.uniform([], seed=5)

        @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
        def total(values):
            return tff.federated_sum(tff.federated_map(add_noise, values))

        return total

    assert digest(noisy()) is None
    with Runtime("local"):
        first, second = noisy(), noisy()
        assert first([0.0]) == second([0.0]) != first([0.0])


def test_the_cache_of_compilations_is_small(compiled):
    from tff_pmc.runtime import Runtime, local

    def adding(number):
        @tff.tensorflow.computation(np.int32)
        def add(value):
            return value + number

        @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
        def total(values):
            return tff.federated_sum(tff.federated_map(add, values))

        return total

    numbers = [*range(local._CACHE_SIZE + 2), 0]  # The first is not kept until the end.
    with Runtime("local") as running:
        for number in numbers:
            assert adding(number)([1, 2]) == 3 + 2 * number
        assert len(running.engine._cache) == local._CACHE_SIZE
    assert len(compiled) == len(numbers)
