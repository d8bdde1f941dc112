"""Which worker gets which pack, what is sent again, and what travels."""

import types

import numpy as np
import pytest

from tff_pmc._lazy import tf


class Future:
    status = "finished"


@pytest.fixture
def kept():
    """Packs on workers without a cluster, whose futures are always finished."""
    from tff_pmc.cluster.worker_packs import PacksOnWorkers

    connection = types.SimpleNamespace(calls=0)

    def send(parts, worker):
        connection.calls += 1
        return Future()

    connection.send = send
    return PacksOnWorkers(connection)


def place(kept, numbers, workers):
    """Returns the worker of each pack, their order, and the number of sent packs."""
    before = kept.connection.calls
    packs = [[tf.constant([n, n], tf.int32)] for n in numbers]
    placed = dict(kept.place(packs, workers))
    where = "".join(placed[k].worker for k in range(len(packs)))
    return where, list(placed), kept.connection.calls - before


@pytest.mark.parametrize(
    ("number", "workers", "expected", "order"),
    [
        (5, "ab", "aaabb", [0, 3, 1, 4, 2]),  # Neighbours together, workers in turn.
        (4, "abc", "aabc", [0, 3, 2, 1]),
        (2, "abc", "ab", [0, 1]),
        (9, "abcd", "aaabbccdd", [0, 7, 5, 3, 1, 8, 6, 4, 2]),
        (3, "a", "aaa", [0, 1, 2]),
    ],
)
def test_each_worker_has_about_equally_many_consecutive_packs(
    kept, number, workers, expected, order
):
    assert place(kept, range(number), workers) == (expected, order, number)
    assert place(kept, range(number), workers) == (expected, order, 0)


def test_moved_lost_and_least_recently_used_packs_are_sent_again(kept):
    assert place(kept, range(6), "abc")[0] == "aabbcc"
    # One worker died, and then another came: those that changed their place are sent.
    assert place(kept, range(6), "ac")[::2] == ("aaaccc", 2)
    assert place(kept, range(6), "acd")[::2] == ("aaccdd", 3)
    next(iter(kept.placed.values())).future.status = "lost"
    kept.trim()
    assert place(kept, range(6), "acd")[2] == 1
    kept.trim(limit=5 * 8)
    assert len(kept.placed) == 5 and place(kept, range(6), "acd")[2] == 1


def sent(*pack):
    """Returns a pack that was encoded and decoded."""
    from tff_pmc.cluster import pack_encoding

    return [pack_encoding.decode(pack_encoding.encode(tensor)) for tensor in pack]


def test_a_pack_of_a_store_is_read_from_the_store(toy_examples, tmp_path):
    """With attributes of clients and of examples; the latter are not sent."""
    import dataclasses

    import leaf_data
    import tff_pmc
    from tff_pmc.clients.stored_packs import StoredPackReference
    from tff_pmc.cluster import pack_encoding

    sharp = {"sharp": np.linspace(0, 1, len(toy_examples.y))}
    examples = dataclasses.replace(toy_examples, attributes=sharp)
    others = dataclasses.replace(examples, x=255 - examples.x)
    data = leaf_data.FederatedDataset(
        *("toy", others, examples, 3, leaf_data.PixelConvention("none", None, None)),
        *(leaf_data.Origin("made up", (), ""), {}),
    )
    leaf_data.write_store(data, tmp_path / "store")
    stored = leaf_data.open_store(tmp_path / "store").test_examples
    options = dict(num_packs=2, example_attributes=["sharp"])
    options["attributes"] = {"battery": np.linspace(0, 1, 6)}
    options["local_epochs"] = [3, 0, 2]
    expected = tff_pmc.pack(examples, [4, 0, 5], **options)
    packs = tff_pmc.pack(stored, [4, 0, 5], **options)
    for pack, other in zip(packs, expected):
        assert pack.element_spec == other.element_spec
        part = pack_encoding.encode(pack)
        assert isinstance(part, StoredPackReference)
        assert pack_encoding.num_bytes(part) < 1000
        there = tf.data.experimental.from_variant(
            pack_encoding.decode(part), pack.element_spec
        )
        for read in (pack, there):
            assert len(list(read)) == len(list(other))
            for client, expected_client in zip(read, other):
                tf.nest.map_structure(
                    np.testing.assert_array_equal, client, expected_client
                )


def elements(variant, spec):
    return [x.numpy() for x in tf.data.experimental.from_variant(variant, spec)]


def test_decoded_packs_equal_the_encoded_ones():
    data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).map(lambda x: x * 2)
    plain = [tf.constant([[1, 2]], tf.int64), tf.constant(["a", "b"]), tf.constant("c")]
    read, *others = sent(data, *plain)
    assert elements(read, tf.TensorSpec([], tf.float32)) == [2.0, 4.0, 6.0]
    for decoded, original in zip(others, plain):
        assert decoded.dtype == original.dtype
        np.testing.assert_array_equal(decoded.numpy(), original.numpy())


def test_batches_of_shuffled_examples_may_be_sent():
    """As in TFF's tutorials; every example is received once."""
    data = tf.data.Dataset.range(20).shuffle(20, seed=1).batch(8)
    (read,) = sent(data)
    batches = elements(read, tf.TensorSpec([None], tf.int64))
    assert [len(batch) for batch in batches] == [8, 8, 4]
    assert sorted(np.concatenate(batches)) == list(range(20))


@pytest.mark.parametrize("kind", ["python", "random"])
def test_datasets_that_depend_on_the_process_are_read_first(kind):
    """Their elements are sent, of any shapes, and are equal each time."""
    spec, rows = tf.TensorSpec([None], tf.float32), [[1.0], [], [2.0, 3.0]]
    data = tf.data.Dataset.range(3).map(lambda _: tf.random.uniform([2]))
    if kind == "python":
        data = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=spec)
    (read,) = sent(data)
    first, again = ([list(x) for x in elements(read, spec)] for _ in range(2))
    assert first == again and len(first) == 3
    if kind == "python":
        assert first == rows
