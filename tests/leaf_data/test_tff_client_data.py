"""Data sets as TFF's `ClientData`."""

import collections
import functools

import pytest
from made_up import assert_refused, toy_dataset


def _elements(dataset):
    return [(e["x"].tolist(), int(e["y"])) for e in dataset.as_numpy_iterator()]


EXPECTED_C = [([6, 7], 0), ([8, 9], 1), ([10, 11], 2)]


def test_the_view_is_tffs_client_data(tff, tf):
    data = toy_dataset()
    assert isinstance(data.train, tff.simulation.datasets.ClientData)
    assert data.train is data.train and data.train is not data.test
    assert data.train.client_ids == ["a", "b", "c"]
    data.train.client_ids.append("d")
    assert data.train.client_ids == ["a", "b", "c"]
    dataset = data.train.create_tf_dataset_for_client("c")
    assert _elements(dataset) == EXPECTED_C
    assert _elements(data.test.create_tf_dataset_for_client("c")) == EXPECTED_C[:1]
    assert _elements(data.train.create_tf_dataset_for_client("b")) == []
    assert dataset.element_spec == data.train.element_type_structure
    assert isinstance(dataset.element_spec, collections.OrderedDict)
    assert dataset.element_spec == {
        "x": tf.TensorSpec([2], tf.uint8),
        "y": tf.TensorSpec([], tf.int32),
    }


def test_the_dataset_fn_is_traceable(tff, tf):
    fn = toy_dataset().train.serializable_dataset_fn
    assert _elements(fn("c")) == EXPECTED_C
    assert _elements(fn(tf.constant("c"))) == EXPECTED_C

    @tf.function
    def total(client):
        return fn(client).reduce(
            0, lambda s, e: s + tf.reduce_sum(tf.cast(e["x"], tf.int32))
        )

    assert [int(total(tf.constant(c))) for c in "abc"] == [15, 0, 51]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no client with the id"):
        total(tf.constant("nobody"))


def test_dataset_computation_runs_on_a_worker(tff, runtime):
    computation = toy_dataset().train.dataset_computation
    assert str(computation.type_signature) == "(str -> <x=uint8[2],y=int32>*)"
    assert _elements(computation("c")) == EXPECTED_C
    assert _elements(computation("a")) == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]


def test_all_clients_examples_are_in_tffs_order(tff):
    base = tff.simulation.datasets.ClientData
    view = toy_dataset().train
    for seed in (0, 1, 2, [3, 4]):
        ours = view.create_tf_dataset_from_all_clients(seed=seed)
        theirs = base.create_tf_dataset_from_all_clients(view, seed=seed)
        assert _elements(ours) == _elements(theirs)
        assert ours.element_spec == theirs.element_spec


def test_unknown_clients_of_the_view_are_rejected(tff, tf):
    view = toy_dataset().train
    for client in ("nobody", 0, b"c"):
        call = functools.partial(view.create_tf_dataset_for_client, client)
        assert_refused(call, repr(client))
    nobody = tf.constant("nobody")
    assert_refused(lambda: view.serializable_dataset_fn(nobody), "'nobody'")


def test_examples_too_large_for_a_graph_are_rejected(tff, tf, monkeypatch):
    from leaf_data import tff_client_data

    monkeypatch.setattr(tff_client_data, "_GRAPH_BYTES", 35)  # 12 of x and 24 of y
    view = toy_dataset().train
    words = "do not fit into a TensorFlow graph (2 GB)"
    assert_refused(lambda: view.dataset_computation, words)
    assert _elements(view.create_tf_dataset_for_client("c")) == EXPECTED_C
