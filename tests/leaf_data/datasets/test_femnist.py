"""`femnist` of LEAF's files: parts, cache, sampling, splits, and what is refused."""

import glob
import hashlib
import os
import shutil

import numpy as np
import pytest
from leaf_documents import write_leaf as write
from made_up import assert_refused

import leaf_data
from leaf_data.datasets import femnist_leaf

pytestmark = pytest.mark.usefixtures("empty_home")

SPLIT = {  # client -> whose, train and test sizes; in order
    "c": (3, 18, 2),
    "b": (2, 8, 2),
    "e": (5, 0, 3),
    "d": (4, 9, 2),
    "a": (1, 1, 1),
}


def load(folder, **options):
    return leaf_data.load("femnist", folder, **options)


def images_of(number, size, first=0):
    """Examples that tell whose and which they are: two pixels and the label."""
    x = [[1.0] * 784 for _ in range(size)]
    for k, image in enumerate(x, first):
        image[0], image[783] = number / 255, k / 255
    return {"x": x, "y": [(number + k) % 62 for k in range(first, first + size)]}


def seen(examples):
    """client -> [(whose, which)] of its examples; the labels have to agree."""
    images_by_client = {}
    for client in examples.client_ids:
        arrays = examples.client(client)
        assert [(int(x[0, 0]) + int(x[27, 27])) % 62 for x in arrays["x"]] == list(
            arrays["y"]
        )
        images_by_client[client] = [(int(x[0, 0]), int(x[27, 27])) for x in arrays["x"]]
    return images_by_client


def numbered(number, start, stop):
    """What `seen` says of a run of a user's images."""
    return [(number, k) for k in range(start, stop)]


def write_split(folder):
    """Two files of three writers, files out of order; one has a test part only."""
    for file, clients in ((10, "da"), (2, "ceb")):
        parts = {"train": {}, "test": {}}
        for client in clients:
            number, train, test = SPLIT[client]
            if train:
                parts["train"][client] = images_of(number, train)
            parts["test"][client] = images_of(number, test, train)
        for part, users in parts.items():
            name = f"data/{part}/all_data_{file}_niid_05_keep_0_{part}_9.json"
            write(folder / name, users)


@pytest.mark.parametrize("sub", ["", "femnist"])
def test_split_data(tmp_path, sub, caplog):
    write_split(tmp_path / "in" / sub)
    data = load(tmp_path / "in")
    train, test = seen(data.train_examples), seen(data.test_examples)
    assert list(train) == list(SPLIT)
    for client, (number, first, second) in SPLIT.items():
        assert train[client] == numbered(number, 0, first)
        assert test[client] == numbered(number, first, first + second)
    assert "1 of 5 users have no training examples" in caplog.text
    assert (data.num_classes, data.element_shape) == (62, (28, 28))
    assert (data.train_examples.x.dtype, data.train_examples.y.dtype) == ("u1", "i4")
    convention = data.pixel_convention
    assert (convention.background, convention.ink) == (255, 0)
    assert np.mean(data.train_examples.x == 255) > 0.99
    assert list(data.options) == ["source", "sample_fraction", "min_samples", "seed"]
    assert data.origin.source == "LEAF JSON (train and test)"
    assert data.origin.folder == str(tmp_path / "in" / sub / "data")
    names = [name for name, _ in data.origin.files]
    assert [name.split("_")[2] for name in names] == ["2", "2", "10", "10"]
    for name, digest in data.origin.files:
        (path,) = glob.glob(os.path.join(data.origin.folder, "*", name))
        with open(path, "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest


def test_the_cache_serves_every_option(tmp_path, monkeypatch):
    write_split(tmp_path)
    caches = tmp_path / "caches"
    first = load(tmp_path)
    load(tmp_path, cache_dir=caches)
    monkeypatch.setattr(femnist_leaf, "read", None)  # From here on the caches.
    for again in (load(tmp_path), load(tmp_path, cache_dir=caches)):
        np.testing.assert_array_equal(first.train_examples.x, again.train_examples.x)
        assert first.describe() == again.describe()
    load(tmp_path, sample_fraction=0.5, min_samples=3, seed=4)
    assert (tmp_path / "data" / "femnist_cache" / "femnist").is_dir()
    assert list((caches / "femnist_cache").iterdir())


def test_unsplit_data_is_sampled_and_split_by_leafs_rule(tmp_path):
    sizes = {"one": 1, "two": 2, "ten": 10, "nineteen": 19, "none": 0, "fifty": 50}
    numbers = {user: place for place, user in enumerate(sizes)}
    users = {user: images_of(numbers[user], size) for user, size in sizes.items()}
    write(tmp_path / "data" / "all_data" / "all_data_0.json", users)
    data = load(tmp_path)
    train, test = seen(data.train_examples), seen(data.test_examples)
    sizes_by_user = {u: (len(train[u]), len(test[u])) for u in train}
    assert sizes_by_user == dict(
        two=(1, 1), ten=(9, 1), nineteen=(17, 2), fifty=(45, 5)
    )
    for user in train:
        images = numbered(numbers[user], 0, sizes[user])
        assert sorted(train[user] + test[user]) == images
        assert train[user] == sorted(train[user]) and test[user] == sorted(test[user])
    assert data.origin.source == "LEAF JSON (all_data, split here)"
    assert seen(load(tmp_path).test_examples) == test
    other = seen(load(tmp_path, seed=1).test_examples)
    assert other["fifty"] != test["fifty"]
    # A user's split does not depend on who else is there.
    fewer = seen(load(tmp_path, min_samples=11).test_examples)
    assert fewer == {u: test[u] for u in ("nineteen", "fifty")}
    for seed in range(4):
        half = load(tmp_path, sample_fraction=0.5, seed=seed)
        total = half.train_examples.num_examples + half.test_examples.num_examples
        assert 39 <= total <= 41  # A writer left with one image is excluded.


def test_sampling_split_data(tmp_path):
    write_split(tmp_path)
    whole = load(tmp_path)
    for seed in range(6):
        data = load(tmp_path, sample_fraction=0.5, seed=seed)
        train, test = seen(data.train_examples), seen(data.test_examples)
        assert list(train) == [client for client in SPLIT if client in train]
        total = {u: len(train[u]) + len(test[u]) for u in train}
        in_2 = sum(total.get(u, 0) for u in "cbe")
        in_10 = sum(total.get(u, 0) for u in "da")
        assert (in_2, in_10) == (int(0.5 * 33), int(0.5 * 13))
        for sampled, source in (
            (train, whole.train_examples),
            (test, whole.test_examples),
        ):
            for user, images in sampled.items():  # The first of each part.
                assert images == seen(source)[user][: len(images)]


def test_min_samples_counts_both_parts_after_sampling(tmp_path):
    write_split(tmp_path)
    assert load(tmp_path, min_samples=10).client_ids == ("c", "b", "d")
    assert load(tmp_path, min_samples=11).client_ids == ("c", "d")
    assert load(tmp_path, min_samples=20).client_ids == ("c",)
    for seed in range(6):
        options = {"sample_fraction": 0.5, "seed": seed}
        sampled = load(tmp_path, **options)
        sizes = sampled.train_examples.sizes + sampled.test_examples.sizes
        kept = [u for u, n in zip(sampled.client_ids, sizes) if n >= 4]
        assert list(load(tmp_path, min_samples=4, **options).client_ids) == kept
    words = "no writer in", "sample_fraction=1.0 and min_samples=21"
    assert_refused(lambda: load(tmp_path, min_samples=21), *words)
    assert_refused(lambda: load(tmp_path, sample_fraction=0.001), "no writer in")


def test_a_writer_in_several_files(tmp_path, caplog):
    write(tmp_path / "all_data" / "all_data_1.json", {"b": images_of(2, 4)})
    write(
        tmp_path / "all_data" / "all_data_2.json",
        {"a": images_of(1, 3), "b": images_of(2, 5, 4), "c": images_of(3, 2)},
    )
    write(tmp_path / "all_data" / "all_data_3.json", {"c": images_of(3, 2)})
    data = load(tmp_path)
    assert data.client_ids == ("b", "a", "c")
    train, test = seen(data.train_examples), seen(data.test_examples)
    assert sorted(train["b"] + test["b"]) == numbered(2, 0, 9)
    assert sorted(train["c"] + test["c"]) == numbered(3, 0, 2)
    assert "all_data_2.json: user b appears again: these" in caplog.text
    assert "all_data_3.json: user c appears again with the same examples" in caplog.text


@pytest.mark.parametrize(
    "names",
    [
        ("all_data_1_niid_05.json", "all_data_1_niid_1.json"),
        ("all_data_1.json", "all_data_2.json"),
    ],
)
@pytest.mark.parametrize(("first", "refused"), [(4, False), (3, False), (2, True)])
def test_files_of_two_samples_are_recognized_by_their_examples(
    tmp_path, names, first, refused
):
    """LEAF writes one image of a writer twice, so that one may be in two files."""
    for name, images in zip(names, (images_of(2, 4), images_of(2, 4, first))):
        write(tmp_path / "all_data" / name, {"b": images})
    if refused:
        words = f"{names[1]}: user b has 2 examples in two files: they come from"
        return assert_refused(lambda: load(tmp_path), words)
    data = load(tmp_path)
    total = data.train_examples.num_examples + data.test_examples.num_examples
    assert total == 8


@pytest.mark.parametrize(("first", "refused"), [(4, False), (3, False), (2, True)])
def test_training_and_test_files_must_come_from_one_sample(tmp_path, first, refused):
    write(tmp_path / "train" / "a.json", {"b": images_of(2, 4)})
    write(tmp_path / "test" / "b.json", {"b": images_of(2, 4, first)})
    if refused:
        words = f"{tmp_path}: user b has 2 examples in two files: they come from"
        return assert_refused(lambda: load(tmp_path), words)
    assert seen(load(tmp_path).test_examples) == {"b": numbered(2, first, first + 4)}


def test_a_few_equal_images_are_accepted_as_leaf_has_some(tmp_path):
    """`-s iid` mixes writers, of each of whom LEAF writes one image twice."""
    write(tmp_path / "train" / "a.json", {"b": images_of(2, 20)})
    write(tmp_path / "test" / "b.json", {"b": images_of(2, 10, 17)})
    assert load(tmp_path).test_examples.num_examples == 10


def test_a_user_without_any_example_is_named(tmp_path):
    write_split(tmp_path)
    for part, first in (("train", 0), ("test", 3)):
        name = f"data/{part}/all_data_7_niid_05_keep_0_{part}_9.json"
        write(tmp_path / name, {"f": images_of(6, 3, first), "g": images_of(7, 0)})
    words = "7_niid_05_keep_0_train_9.json: user g: has no examples in any file"
    assert_refused(lambda: load(tmp_path), words)


def test_one_file_as_train_and_test_is_rejected(tmp_path):
    write_split(tmp_path)
    names = [f"all_data_10_niid_05_keep_0_{part}_9.json" for part in ("train", "test")]
    train, test = (tmp_path / "data" / n.split("_")[-2] / n for n in names)
    shutil.copy(train, test)
    assert_refused(lambda: load(tmp_path), f"{train} and {test} are the same")


def test_pixels_are_rounded_from_floats_and_ints(tmp_path):
    image = [k % 256 / 255 for k in range(784)]
    image[256:260] = [0, 1, 0.3, 0.999]
    for part, label in (("train", 61), ("test", 60)):
        user = {"x": [image], "y": [label]}
        write(tmp_path / part / f"all_data_0_{part}_9.json", {"a": user})
    pixels = load(tmp_path).train_examples.x.reshape(-1)
    expected = [k % 256 for k in range(784)]
    expected[256:260] = [0, 255, 76, 255]  # 76.5 goes to the even one.
    assert pixels.tolist() == expected


def _with(place, value):
    """A user whose second of three images has this value."""
    x = [[1.0] * 784 for _ in range(3)]
    x[1][place] = value
    return {"x": x, "y": [1, 2, 3]}


@pytest.mark.parametrize(
    "user, message",
    [
        *(
            (_with(5, value), f"image 1 has the value {value!r}")
            for value in (255, 1.0001, -0.5, float("nan"), "0.5", None, True)
        ),
        (_with(5, 10**400), "an image has a value that is not in [0, 1]"),
        ({"x": [[1.0] * 783], "y": [1]}, "image 0 is 783 values, not 784 values"),
        ({"x": ["f.png"], "y": [1]}, "image 0 is 'f.png', not 784 values"),
        *(
            ({"x": [[1.0] * 784], "y": [label]}, f"label 0 is {label!r}, not one of 0")
            for label in (62, -1, 1.5, "A", False)
        ),
    ],
)
def test_users_of_another_data_set_are_rejected(tmp_path, user, message):
    path = tmp_path / "all_data" / "all_data_0.json"
    write(path, {"good": images_of(2, 2), "bad": user})
    assert_refused(lambda: load(tmp_path), f"{path}: user bad: {message}")
    assert not list(tmp_path.rglob("*.npz"))
