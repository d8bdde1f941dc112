"""Whole clients in packs: how many, how large, from where; and read back."""

import collections
import dataclasses

import numpy as np
import pandas as pd
import pytest

import leaf_data
import tff_pmc
from tff_pmc._lazy import tf, tff


def test_an_uneven_cohort_packs_and_an_empty_one_is_rejected(toy_examples):
    assert len(tff_pmc.pack(toy_examples, [0], num_packs=4)) == 1
    with pytest.raises(ValueError, match="is empty"):
        tff_pmc.pack(toy_examples, [])
    with pytest.raises(ValueError, match="no attribute 'sharp'.*they have none"):
        tff_pmc.pack(toy_examples, [0], example_attributes=("sharp",))
    with pytest.raises(ValueError, match="client 'toy_2' has label 2, but there are 2"):
        tff_pmc.pack(toy_examples, [0, 2], num_classes=2)


def numbers_of(packs):
    return sorted(int(e["client"]) for pack in packs for e in pack)


def test_clients_are_named_or_numbered(toy_examples):
    named = tff_pmc.pack(toy_examples, ["toy_4", "toy_1"], num_packs=1)
    for pack, other in zip(named, tff_pmc.pack(toy_examples, [4, 1], num_packs=1)):
        for element, counterpart in zip(pack, other):
            assert int(element["client"]) == int(counterpart["client"]) in (4, 1)
            assert (element["x"].numpy() == counterpart["x"].numpy()).all()
    mixed = np.array([3], np.int64).tolist() + ["toy_0"] + list(np.arange(5, 6))
    assert numbers_of(tff_pmc.pack(toy_examples, mixed)) == [0, 3, 5]
    assert numbers_of(tff_pmc.pack(toy_examples, toy_examples.client_ids)) == [
        *range(6)
    ]


@pytest.mark.parametrize(
    ("cohort", "says"),
    [
        (
            ["toy_1", "toy_9"],
            "unknown client 'toy_9': the 6 clients are 'toy_0' to 'toy_5'",
        ),
        ([6], "unknown client 6: the 6 clients are"),
        ([-1], "unknown client -1: the 6 clients are"),
        ("toy_1", "clients must be a sequence, got 'toy_1': give a list"),
        ({"toy_1"}, "clients must be a sequence, got {'toy_1'}, which has no order"),
        ([0, "toy_2", 2], "client 'toy_2' is in the cohort 2 times"),
    ],
)
def test_an_unknown_client_is_named(toy_examples, cohort, says, assert_one_line):
    assert_one_line(ValueError, lambda: tff_pmc.pack(toy_examples, cohort), says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"num_packs": 0}, "num_packs must be at least 1, got 0"),
        ({"num_packs": 1.5}, "num_packs must be a whole number, got 1.5"),
        ({"max_bytes": np.nan}, "max_bytes must be a whole number, got nan"),
        *(
            (
                {"attributes": {"t": values}},
                "t must be [6], one value per client, got [",
            )
            for values in ([0.5] * 7, [0.5], 0.5)
        ),
        ({"attributes": leaf_data.ClientTable()}, "has no row for toy_0"),
        *(
            ({"attributes": columns}, "attributes must be a leaf_data.ClientTable or a")
            for columns in (["t"], pd.Series([0.5, 0.5], index=["toy_0", "toy_1"]))
        ),
        ({"examples": {}}, "examples must be leaf_data.Examples, as data.train_"),
        *(
            ({"local_epochs": epochs}, f"local_epochs must be {says}")
            for epochs, says in [
                (
                    [1],
                    "[2], a whole number for each client of the cohort, got int64 [1]",
                ),
                (
                    [1.0, 2.0],
                    "[2], a whole number for each client of the cohort, got fl",
                ),
                (3, "[2], a whole number for each client of the cohort, got int64 []"),
                ([2, -1], "0 or more, got -1"),
            ]
        ),
    ],
)
def test_invalid_arguments_of_pack_are_named(
    toy_examples, options, says, assert_one_line
):
    options = {"examples": toy_examples, "clients": [0, 1], **options}
    assert_one_line(Exception, lambda: tff_pmc.pack(**options), says)


def test_packs_are_cut_by_bytes(toy_examples):
    """16 bytes an image: 33 images do not fit into two packs of 200 bytes."""
    clients = range(6)
    packs = tff_pmc.pack(toy_examples, clients, num_packs=1, max_bytes=200)
    packed = [[int(e["client"]) for e in pack] for pack in packs]
    assert sorted(sum(packed, [])) == list(clients)
    for pack in packs:
        assert sum(e["x"].shape.num_elements() for e in pack) <= 200
    with pytest.raises(ValueError, match="client 'toy_0' has 128 bytes"):
        tff_pmc.pack(toy_examples, clients, max_bytes=100)


def test_a_client_of_a_store_may_be_of_any_size(toy_examples, tmp_path):
    """Its pack refers to what is mapped: the limit only deals clients to packs."""
    parts = ((str(k), toy_examples.client(k)) for k in range(3))
    leaf_data.write_store(
        ((k, p["x"], p["y"], p["x"][:1], p["y"][:1]) for k, p in parts), tmp_path / "s"
    )
    stored = leaf_data.open_store(tmp_path / "s").train_examples
    packs = tff_pmc.pack(stored, range(3), num_packs=1, max_bytes=20)
    packed = [[int(e["client"]) for e in pack] for pack in packs]
    assert sorted(packed) == [[0], [1], [2]]


def test_an_attribute_out_of_range_is_rejected(toy_examples):
    part = toy_examples.client(0)
    dataset = tf.data.Dataset.from_tensor_slices((part["x"], part["y"])).batch(2)
    with pytest.raises(ValueError, match="attribute battery must be in"):
        tff_pmc.with_attributes(dataset, {"battery": 1.5})
    with pytest.raises(ValueError, match="attribute battery must be in"):
        tff_pmc.pack(toy_examples, [0], attributes={"battery": [7.0] * 6})


QUALITY = {f"toy_{k}": 0.1 * k for k in range(6)}


@pytest.mark.parametrize(
    "attributes",
    [
        {"q": pd.Series(QUALITY)[::-1]},
        {"q": QUALITY},
        {"q": pd.Series([*QUALITY.values()], index=range(6))[::-1]},  # By number.
        {"q": np.array([*QUALITY.values()])},
        pd.DataFrame({"q": QUALITY, "vip": 1.0})[::-1],
        leaf_data.ClientTable(tuple(QUALITY)[::-1], {"q": pd.Series(QUALITY)}),
    ],
)
def test_an_index_assigns_attributes_to_the_clients_that_it_names(
    toy_examples, attributes
):
    source = tff_pmc.data_source(toy_examples, attributes=attributes)
    data = tff.simulation.datasets.TestClientData(
        {name: {"x": np.ones((1, 2)), "y": [0]} for name in QUALITY}
    )
    for packs in (
        tff_pmc.pack(toy_examples, [4, "toy_1", 0], attributes=attributes),
        source.iterator().select(3),
        tff_pmc.pack_client_data(data, ["toy_5", "toy_2"], attributes=attributes),
    ):
        for element in (element for pack in packs for element in pack):
            expected = np.float32(0.1 * int(element["client"]))
            assert float(element["attributes"]["q"]) == expected


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pd.Series(QUALITY)[1:], "attribute q has no value for the client 'toy_0'"),
        (pd.Series([0.5] * 6, index=range(1, 7)), "attribute q: 6 is not a client"),
        (np.ma.array([0.5] * 6, mask=[1, *[0] * 5]), "attribute q has masked values"),
        (["0_1"] * 6, "attribute q must be booleans or numbers, got "),
        (pd.Series([pd.NA] * 6, dtype="Float32"), r"attribute q must be in \[0, 1\]"),
    ],
)
def test_an_attribute_of_other_clients_is_rejected(toy_examples, column, says):
    with pytest.raises(ValueError, match=says):
        tff_pmc.pack(toy_examples, [0], attributes={"q": column})


def test_a_number_that_is_also_a_name_is_rejected(toy_examples):
    """Clients of the names 1 to 6; what the package draws are numbers."""
    ids = tuple("123456")
    examples = dataclasses.replace(toy_examples, client_ids=ids)
    with pytest.raises(ValueError, match="client 1 is the number of '2' and the name"):
        tff_pmc.pack(examples, [1, 2])
    assert numbers_of(tff_pmc.pack(examples, ["1", "2"])) == [0, 1]
    data = tff.simulation.datasets.TestClientData(
        {name: {"x": np.ones((1, 2)), "y": [0]} for name in ids}
    )
    assert numbers_of(tff_pmc.pack_client_data(data, ["1", "2"])) == [0, 1]
    for clients, says in (
        ([1], "unknown client 1: client_data"),
        ("12", "must be a sequence"),
    ):
        with pytest.raises(ValueError, match=says):
            tff_pmc.pack_client_data(data, clients)
    drawn = tff_pmc.data_source(examples, seed=5).iterator().select(3)
    expected = tff_pmc.data_source(toy_examples, seed=5).iterator().select(3)
    assert numbers_of(drawn) == numbers_of(expected)


def test_any_client_data_can_be_packed(toy_examples):
    client_data = tff.simulation.datasets.TestClientData(
        {
            f"user_{k}": collections.OrderedDict(
                x=toy_examples.client(k)["x"], y=toy_examples.client(k)["y"]
            )
            for k in range(6)
        }
    )
    packs = tff_pmc.pack_client_data(client_data, ["user_4", "user_1"], num_packs=2)
    packed = {int(e["client"]): e for pack in packs for e in pack}
    assert sorted(packed) == [1, 4]
    np.testing.assert_array_equal(packed[4]["x"], toy_examples.client(4)["x"])
    np.testing.assert_array_equal(packed[4]["y"], toy_examples.client(4)["y"])


@pytest.mark.parametrize("names", [("x", "y"), ("pixels", "label"), ("image", "label")])
def test_input_and_label_are_distinguished_by_name(names):
    """TFF's EMNIST has the label before the pixels, in the alphabet's order."""
    x, y = np.arange(12, dtype=np.float32).reshape(3, 2, 2), np.array([5, 6, 7])
    client_data = tff.simulation.datasets.TestClientData(
        {"a": collections.OrderedDict(sorted(zip(names, (x, y))))}
    )
    (element,) = next(iter(tff_pmc.pack_client_data(client_data))).batch(1)
    np.testing.assert_array_equal(element["x"][0], x)
    np.testing.assert_array_equal(element["y"][0], y)


@pytest.mark.parametrize(
    ("of_a", "says"),
    [
        ({"first": [0.0], "second": [0.0]}, "cannot tell input from label"),
        ({"x": [0.0], "y": [2**32 + 1]}, "client 'a' has a label outside int32"),
    ],
)
def test_elements_without_a_clear_input_and_label_are_rejected(of_a, says):
    arrays = collections.OrderedDict((k, np.array(v)) for k, v in of_a.items())
    client_data = tff.simulation.datasets.TestClientData({"a": arrays})
    with pytest.raises(ValueError, match=says):
        tff_pmc.pack_client_data(client_data)


def test_batches_and_unknown_clients_of_client_data_are_named(assert_one_line):
    arrays = {"a": collections.OrderedDict(x=np.zeros([3, 2]), y=np.arange(3))}
    client_data = tff.simulation.datasets.TestClientData(arrays)
    batched = client_data.preprocess(lambda dataset: dataset.batch(2))
    pack = tff_pmc.pack_client_data
    assert_one_line(ValueError, lambda: pack(batched), "client 'a' have an axis of unk")
    assert_one_line(
        ValueError, lambda: pack(client_data, ["b"]), "unknown client 'b': client_data"
    )


@pytest.fixture
def read():
    """The clients of a pack, read in a graph as training does."""
    from tff_pmc.clients.pack_reader import PackedClients

    @tf.function
    def element(pack, place):
        return PackedClients.read(pack)[place]

    @tf.function
    def count(pack):
        return PackedClients.read(pack).count

    def all_of(pack):
        return [element(pack, tf.constant(k)) for k in range(int(count(pack)))]

    return all_of


def test_every_client_is_read_as_it_was_packed(toy_examples, read):
    (pack,) = tff_pmc.pack(toy_examples, range(6), num_packs=1)
    elements = read(pack)
    assert [int(element["client"]) for element in elements] == list(range(6))
    for k, element in enumerate(elements):
        client = toy_examples.client(k)
        np.testing.assert_array_equal(element["x"], client["x"])
        np.testing.assert_array_equal(element["y"], client["y"])
        assert element["x"].dtype == client["x"].dtype


def test_an_empty_pack_has_no_client(toy_examples, read):
    (pack,) = tff_pmc.pack(toy_examples, range(6), num_packs=1)
    assert read(pack.take(0)) == []


def test_a_second_axis_of_unknown_size_stays_a_tensor(read):
    """Sentences of a client's own length, as a next-word model has them."""
    sentences = [np.arange(6).reshape(2, 3), np.arange(20).reshape(4, 5)]
    spec = {
        "x": tf.TensorSpec([None, None], tf.int64),
        "client": tf.TensorSpec([], tf.int32),
    }
    pack = tf.data.Dataset.from_generator(
        lambda: ({"x": x, "client": k} for k, x in enumerate(sentences)),
        output_signature=spec,
    )
    for element, expected in zip(read(pack), sentences):
        assert isinstance(element["x"], tf.Tensor)
        np.testing.assert_array_equal(element["x"], expected)
