"""Which worker gets which pack, what is sent again, and what travels."""

import types

import numpy as np
import pytest

from tff_pmc._lazy import tf


@pytest.fixture
def placed():
    """Places packs on workers, and tells where each is and in which order it came."""
    from tff_pmc.cluster.placed_packs import PacksOnWorkers

    client = types.SimpleNamespace(scatter=lambda *_, **options: options["workers"])
    kept = PacksOnWorkers(types.SimpleNamespace(client=client))
    packs = [[tf.constant([n, n], tf.int32)] for n in range(9)]

    def place(numbers, workers):
        before = kept.traffic.packs
        found = dict(kept.place([packs[n] for n in numbers], workers))
        where = "".join(found[k].worker for k in range(len(numbers)))
        return where, list(found), (kept.traffic.packs - before) // 8

    return place


def test_neighbours_are_together_and_the_workers_get_theirs_in_turn(placed):
    assert placed(range(5), "ab") == ("aaabb", [0, 3, 1, 4, 2], 5)


@pytest.mark.parametrize(
    "number, workers, expected",
    [(4, "abc", "aabc"), (2, "abc", "ab"), (9, "abcd", "aaabbccdd"), (3, "a", "aaa")],
)
def test_all_have_about_as_many(placed, number, workers, expected):
    assert placed(range(number), workers)[0] == expected


def test_what_returns_stays_where_it_is(placed):
    placed(range(5), "abc")
    assert placed(range(5), "abc") == ("aabbc", [0, 1, 2, 3, 4], 0)
    assert placed([4], "abc") == ("c", [0], 0)
    # 5 goes to who has least.
    assert placed([1, 2, 5], "abc") == ("abc", [0, 1, 2], 1)


def test_the_packs_of_a_worker_that_died_are_sent_again(placed):
    placed(range(6), "abc")
    assert placed(range(6), "ac") == ("aaaccc", [0, 1, 4, 5, 2, 3], 2)
    # The new worker gets its share.
    assert placed(range(6), "abc") == ("aabccb", [0, 1, 3, 4, 2, 5], 2)


def sent(*pack):
    """What arrives of a pack."""
    from tff_pmc.cluster import travel

    return [travel.decoded(travel.encoded(tensor)) for tensor in pack]


def test_a_pack_of_a_store_is_read_of_the_store(toy_examples, tmp_path):
    """With attributes of clients and examples, of which the latter do not travel."""
    import dataclasses

    import leaf_data
    import tff_pmc
    from tff_pmc.clients.stored_packs import Reference
    from tff_pmc.cluster import travel

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
    expected = tff_pmc.pack(examples, [4, 0, 5], **options)
    packs = tff_pmc.pack(stored, [4, 0, 5], **options)
    for pack, other in zip(packs, expected):
        assert pack.element_spec == other.element_spec
        part = travel.encoded(pack)
        assert isinstance(part, Reference) and travel.num_bytes(part) < 1000
        there = tf.data.experimental.from_variant(
            travel.decoded(part), pack.element_spec
        )
        for read in (pack, there):
            assert len(list(read)) == len(list(other))
            for mine, own in zip(read, other):
                tf.nest.map_structure(np.testing.assert_array_equal, mine, own)


def elements(variant, spec):
    return [x.numpy() for x in tf.data.experimental.from_variant(variant, spec)]


def test_what_is_read_is_what_was_written():
    data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).map(lambda x: x * 2)
    plain = [tf.constant([[1, 2]], tf.int64), tf.constant(["a", "b"]), tf.constant("c")]
    read, *others = sent(data, *plain)
    assert elements(read, tf.TensorSpec([], tf.float32)) == [2.0, 4.0, 6.0]
    for found, given in zip(others, plain):
        assert found.dtype == given.dtype
        np.testing.assert_array_equal(found.numpy(), given.numpy())


def test_batches_of_shuffled_examples_may_be_sent():
    """As TFF's tutorials make them; every example arrives once."""
    data = tf.data.Dataset.range(20).shuffle(20, seed=1).batch(8)
    (read,) = sent(data)
    batches = elements(read, tf.TensorSpec([None], tf.int64))
    assert [len(batch) for batch in batches] == [8, 8, 4]
    assert sorted(np.concatenate(batches)) == list(range(20))


@pytest.mark.parametrize("kind", ["python", "random"])
def test_what_depends_on_the_process_is_read_first(kind):
    """The elements travel, of whatever shapes, and are the same each time."""
    spec, rows = tf.TensorSpec([None], tf.float32), [[1.0], [], [2.0, 3.0]]
    data = tf.data.Dataset.range(3).map(lambda _: tf.random.uniform([2]))
    if kind == "python":
        data = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=spec)
    (read,) = sent(data)
    first, again = ([list(x) for x in elements(read, spec)] for _ in range(2))
    assert first == again and len(first) == 3
    if kind == "python":
        assert first == rows
