"""The tree in which packs are summed, and packs that are trained at the same time."""

import re

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff


@pytest.mark.parametrize(
    ("count", "tree"),
    [
        (1, "0"),
        (2, "(0+1)"),
        (3, "((0+1)+2)"),
        (4, "((0+1)+(2+3))"),
        (7, "(((0+1)+(2+3))+((4+5)+6))"),
    ],
)
def test_the_number_of_packs_determines_the_tree(count, tree):
    from tff_pmc.runtime.pack_sums import merge_in_tree

    waiting = []  # Each is merged as soon as its neighbour is there.

    def leaves():
        for number in range(count):
            waiting.append(str(number))
            assert len(waiting) <= number.bit_length() + 1
            yield waiting[-1]

    def merge(a, b):
        waiting.remove(a)
        waiting[waiting.index(b)] = f"({a}+{b})"
        return f"({a}+{b})"

    assert merge_in_tree(leaves(), merge) == tree and waiting == [tree]


def test_concurrent_packs_give_identical_bits(toy_model, toy_examples, monkeypatch):
    """Five packs, one by one and four at a time."""
    from tff_pmc.runtime import Runtime, local

    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        priority=("LD", "DS", "MD"),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
    )
    weights_by_run = []
    for at_once in (1, 4):
        monkeypatch.setattr(local, "PACKS_AT_ONCE", at_once)
        with Runtime("local"):
            state = process.initialize()
            for _ in range(3):
                packs = tff_pmc.pack(toy_examples, range(6), num_packs=5)
                state, metrics = process.next(state, packs)
            weights_by_run.append(tf.nest.flatten(process.get_model_weights(state)))
        assert metrics["client_work"]["train"]["clients"] == 6
    for alone, concurrent in zip(*weights_by_run):
        np.testing.assert_array_equal(alone, concurrent)


def test_the_error_of_the_failing_pack_is_raised_not_a_cancellation():
    """If a call fails, TensorFlow cancels concurrent calls, and merges, too."""
    from tff_pmc.runtime import local

    cancelled = tf.errors.CancelledError(None, None, "cancelled")

    def work(item):
        if isinstance(item, Exception):
            raise item
        return item

    def merge_is_cancelled(*_):
        raise cancelled

    wrong = ValueError("a negative value")
    for items, merge in (
        ([cancelled, wrong], max),
        ([1, 2, wrong], merge_is_cancelled),
    ):
        with pytest.raises(ValueError, match="a negative value"):
            local._sum_concurrently(work, iter(items), merge)
    for items, merge in (([cancelled, cancelled], max), ([1, 2], merge_is_cancelled)):
        with pytest.raises(tf.errors.CancelledError):
            local._sum_concurrently(work, iter(items), merge)


def test_graphs_of_two_processes_may_have_functions_of_the_same_names():
    """Both number their functions from the same start; bodies call bodies here."""
    from google.protobuf import text_format

    from tff_pmc.runtime import pack_sums

    def build(factor):
        @tf.function
        def grown(x):
            return tf.while_loop(
                lambda k, _: k < 3, lambda k, x: (k + 1, factor * x), (0, x)
            )[1]

        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, [], "x")
            result = tf.identity(grown(x), "result")
        del result
        text = text_format.MessageToString(graph.as_graph_def())
        names = re.findall(r'signature {\s*name: "(\w+)"', text)
        for number, name in enumerate(sorted(names, key=len, reverse=True)):
            text = text.replace(f'"{name}"', f'"taken_{number}"')
        content = text_format.Parse(text, tf.compat.v1.GraphDef()).SerializeToString()
        return pack_sums.GraphParts(content, ("x:0",), ("result:0",), "")

    for factor in (2.0, 3.0, 2.0):
        graph = pack_sums.ImportedGraph(build(factor), foreign=True)
        assert [float(tensor) for tensor in graph([tf.constant(1.0)])] == [factor**3]
