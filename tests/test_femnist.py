"""`femnist`: LEAF's JSON and TFF's database, the options, and every error message."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from small_data import assert_refused

import leaf_data
from leaf_data import femnist_leaf, femnist_tff, sampling

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No data by environment, no cache of the user, no download."""
    monkeypatch.delenv("TFF_PMC_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))

    def refuse(folder):
        raise AssertionError("tried to download")

    monkeypatch.setattr(femnist_tff, "_download", refuse)


def _user(number, size, first=0):
    """Examples that tell whose and which they are: two pixels and the label."""
    x = [[1.0] * 784 for _ in range(size)]
    for k, image in enumerate(x, first):
        image[0], image[783] = number / 255, k / 255
    return {"x": x, "y": [(number + k) % 62 for k in range(first, first + size)]}


def _write(path, users):
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "users": list(users),
        "num_samples": [len(data["y"]) for data in users.values()],
        "user_data": dict(reversed(list(users.items()))),
    }
    path.write_text(json.dumps(document))


def _seen(examples):
    """client -> [(whose, which)] of its examples; the labels have to agree."""
    found = {}
    for client in examples.client_ids:
        own = examples.client(client)
        assert [(int(x[0, 0]) + int(x[27, 27])) % 62 for x in own["x"]] == list(
            own["y"]
        )
        found[client] = [(int(x[0, 0]), int(x[27, 27])) for x in own["x"]]
    return found


def _run(number, start, stop):
    return [(number, k) for k in range(start, stop)]


def _write_split(folder):
    """Two files of three writers, files out of order; one has a test part only."""
    name = "data/{0}/all_data_{1}_niid_05_keep_0_{0}_9.json"
    _write(folder / name.format("train", 10), {"d": _user(4, 9), "a": _user(1, 1)})
    _write(folder / name.format("test", 10), {"d": _user(4, 2, 9), "a": _user(1, 1, 1)})
    _write(folder / name.format("train", 2), {"c": _user(3, 18), "b": _user(2, 8)})
    _write(
        folder / name.format("test", 2),
        {"c": _user(3, 2, 18), "e": _user(5, 3), "b": _user(2, 2, 8)},
    )


SPLIT = {  # client -> whose, train and test sizes; in order
    "c": (3, 18, 2),
    "b": (2, 8, 2),
    "e": (5, 0, 3),
    "d": (4, 9, 2),
    "a": (1, 1, 1),
}


def _load(folder, **options):
    return leaf_data.load("femnist", folder, **options)


# ---------------------------------------------------------------------- LEAF


@pytest.mark.parametrize("sub", ["", "femnist"])
def test_split_data(tmp_path, sub, caplog):
    _write_split(tmp_path / "in" / sub)
    data = _load(tmp_path / "in")
    train, test = _seen(data.train_examples), _seen(data.test_examples)
    assert list(train) == list(SPLIT)
    for client, (number, first, second) in SPLIT.items():
        assert train[client] == _run(number, 0, first)
        start = 0 if client == "e" else first
        assert test[client] == _run(number, start, start + second)
    assert "1 of 5 users have no training examples" in caplog.text
    assert (data.num_classes, data.element_shape) == (62, (28, 28))
    assert (data.train_examples.x.dtype, data.train_examples.y.dtype) == ("u1", "i4")
    convention = data.pixel_convention
    assert (convention.background, convention.ink) == (255, 0)
    assert np.mean(data.train_examples.x == 255) > 0.99
    assert data.options == {
        "source": "leaf",
        "sample_fraction": 1.0,
        "min_samples": 0,
        "seed": 0,
    }
    assert data.origin.source == "LEAF JSON (train and test)"
    assert data.origin.folder == str(tmp_path / "in" / sub / "data")
    names = [name for name, _ in data.origin.files]
    assert [name.split("_")[2] for name in names] == ["2", "2", "10", "10"]
    for name, digest in data.origin.files:
        (path,) = glob.glob(os.path.join(data.origin.folder, "*", name))
        with open(path, "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest


def test_pixels_are_rounded_from_floats_and_ints(tmp_path):
    image = [k % 256 / 255 for k in range(784)]
    image[256:260] = [0, 1, 0.3, 0.999]
    user = {"x": [image], "y": [61]}
    for part in ("train", "test"):
        _write(tmp_path / part / f"all_data_0_{part}_9.json", {"a": user})
    found = _load(tmp_path).train_examples.x.reshape(-1)
    expected = [k % 256 for k in range(784)]
    expected[256:260] = [0, 255, 76, 255]  # 76.5 goes to the even one.
    assert found.tolist() == expected


def test_the_cache_serves_every_option_and_notices_changes(tmp_path, monkeypatch):
    _write_split(tmp_path)
    calls = []
    read = femnist_leaf.read
    monkeypatch.setattr(
        femnist_leaf, "read", lambda files: calls.append(files) or read(files)
    )
    first = _load(tmp_path)
    again = _load(tmp_path)
    np.testing.assert_array_equal(first.train_examples.x, again.train_examples.x)
    assert first.describe() == again.describe()
    _load(tmp_path, sample_fraction=0.5, min_samples=3, seed=4)
    assert len(calls) == 1
    assert (tmp_path / "data" / "femnist_cache" / "femnist.npz").is_file()
    _load(tmp_path, cache_dir=tmp_path / "caches")
    _load(tmp_path, cache_dir=tmp_path / "caches")
    assert len(calls) == 2
    path = next((tmp_path / "data" / "test").glob("all_data_10_*"))
    _write(path, {"d": _user(4, 3, 9), "a": _user(1, 1, 1)})
    assert len(_seen(_load(tmp_path).test_examples)["d"]) == 3
    assert len(calls) == 3


def test_unsplit_data_is_split_by_leafs_rule(tmp_path):
    sizes = {"one": 1, "two": 2, "ten": 10, "nineteen": 19, "none": 0, "fifty": 50}
    numbers = {user: place for place, user in enumerate(sizes)}
    users = {user: _user(numbers[user], size) for user, size in sizes.items()}
    _write(tmp_path / "data" / "all_data" / "all_data_0.json", users)
    data = _load(tmp_path)
    train, test = _seen(data.train_examples), _seen(data.test_examples)
    assert {u: (len(train[u]), len(test[u])) for u in train} == {
        "two": (1, 1),
        "ten": (9, 1),
        "nineteen": (17, 2),
        "fifty": (45, 5),
    }
    for user in train:
        assert sorted(train[user] + test[user]) == _run(numbers[user], 0, sizes[user])
        assert train[user] == sorted(train[user]) and test[user] == sorted(test[user])
    assert data.origin.source == "LEAF JSON (all_data, split here)"
    assert _seen(_load(tmp_path).test_examples) == test
    other = _seen(_load(tmp_path, seed=1).test_examples)
    assert other["fifty"] != test["fifty"]
    # A user's split does not depend on who else is there.
    fewer = _seen(_load(tmp_path, min_samples=11).test_examples)
    assert fewer == {u: test[u] for u in ("nineteen", "fifty")}


def test_every_example_is_in_the_test_part_of_some_seed():
    drawn = {int(k) for seed in range(60) for k in sampling.split("a", 10, seed)[1]}
    assert drawn == set(range(10))
    first, second = (sampling.split(user, 50, 0)[1].tolist() for user in "ab")
    assert first != second


def _federation(tmp_path):
    """Three unsplit files of five writers, 1 to 15 images each."""
    sizes = {}
    for number in range(3):
        users = {}
        for k in range(5):
            sizes[f"f{number}_{k}"] = size = 5 * number + k + 1
            users[f"f{number}_{k}"] = _user(5 * number + k, size)
        _write(tmp_path / "all_data" / f"all_data_{number}.json", users)
    return sizes


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("fraction", [0.34, 0.5, 0.93])
def test_sampling_by_leafs_niid_rule(tmp_path, fraction, seed):
    sizes = _federation(tmp_path)
    data = _load(tmp_path, sample_fraction=fraction, seed=seed)
    train, test = _seen(data.train_examples), _seen(data.test_examples)
    # Writers left with one image are taken by the sampling but cannot be split.
    kept = {user: len(train[user]) + len(test[user]) for user in train}
    assert list(kept) == [user for user in sizes if user in kept]
    for number in range(3):
        own = {u: n for u, n in sizes.items() if u.startswith(f"f{number}")}
        budget = int(fraction * sum(own.values()))
        taken = {u: kept[u] for u in own if u in kept}
        cut = [u for u in taken if taken[u] != own[u]]
        assert budget - 2 <= sum(taken.values()) <= budget and len(cut) <= 1
        for user in cut:  # Its first images.
            found = sorted(which for _, which in train[user] + test[user])
            assert found == list(range(taken[user]))


def test_sampling_takes_exactly_the_fraction_and_shuffles():
    sizes = np.array([5, 9, 3, 8, 1, 7, 7, 7])
    files = np.array([3, 3, 3, 3, 3, 0, 0, 0])
    draws = set()
    for seed in range(30):
        taken = sampling.niid(sizes, files, 0.6, seed)
        assert taken[files == 3].sum() == 15 and taken[files == 0].sum() == 12
        for own in (files == 3, files == 0):
            part = (taken[own] > 0) & (taken[own] < sizes[own])
            assert part.sum() <= 1 and (taken <= sizes).all()
        # Another file's users change nothing.
        alone = sampling.niid(sizes[:5], files[:5], 0.6, seed)
        np.testing.assert_array_equal(alone, taken[:5])
        draws.add(tuple(taken))
    assert len(draws) > 15
    np.testing.assert_array_equal(sampling.niid(sizes, files, 1.0, 0), sizes)


def test_a_cut_writer_keeps_the_proportion_of_train_and_test():
    sizes = np.array([[90, 10], [90, 10], [0, 4], [4, 0], [0, 0], [7, 3]])
    taken = np.array([50, 9, 3, 3, 0, 10])
    assert sampling.cut_parts(sizes, taken).tolist() == [
        [45, 5],
        [9, 0],
        [0, 3],
        [3, 0],
        [0, 0],
        [7, 3],
    ]


def test_sampling_split_data(tmp_path):
    _write_split(tmp_path)
    whole = _load(tmp_path)
    for seed in range(6):
        data = _load(tmp_path, sample_fraction=0.5, seed=seed)
        train, test = _seen(data.train_examples), _seen(data.test_examples)
        assert list(train) == [client for client in SPLIT if client in train]
        total = {u: len(train[u]) + len(test[u]) for u in train}
        in_2 = sum(total.get(u, 0) for u in "cbe")
        in_10 = sum(total.get(u, 0) for u in "da")
        assert (in_2, in_10) == (int(0.5 * 33), int(0.5 * 13))
        for user in train:  # The first of each part.
            for found, source in ((train, whole.train_examples), (test, None)):
                source = source or whole.test_examples
                assert found[user] == _seen(source)[user][: len(found[user])]


def test_min_samples_counts_both_parts_after_sampling(tmp_path):
    _write_split(tmp_path)
    assert _load(tmp_path, min_samples=10).client_ids == ("c", "b", "d")
    assert _load(tmp_path, min_samples=11).client_ids == ("c", "d")
    assert _load(tmp_path, min_samples=20).client_ids == ("c",)
    for seed in range(6):
        options = {"sample_fraction": 0.5, "seed": seed}
        sampled = _load(tmp_path, **options)
        sizes = sampled.train_examples.sizes + sampled.test_examples.sizes
        kept = [u for u, n in zip(sampled.client_ids, sizes) if n >= 4]
        assert list(_load(tmp_path, min_samples=4, **options).client_ids) == kept
    assert_refused(
        lambda: _load(tmp_path, min_samples=21),
        "no writer in",
        "sample_fraction=1.0 and min_samples=21",
    )
    assert_refused(lambda: _load(tmp_path, sample_fraction=0.001), "no writer in")


def test_a_writer_in_several_files(tmp_path, caplog):
    _write(tmp_path / "all_data" / "all_data_1.json", {"b": _user(2, 4)})
    _write(
        tmp_path / "all_data" / "all_data_2.json",
        {"a": _user(1, 3), "b": _user(2, 5, 4), "c": _user(3, 2)},
    )
    _write(tmp_path / "all_data" / "all_data_3.json", {"c": _user(3, 2)})
    data = _load(tmp_path)
    assert data.client_ids == ("b", "a", "c")
    train, test = _seen(data.train_examples), _seen(data.test_examples)
    assert sorted(train["b"] + test["b"]) == _run(2, 0, 9)
    assert sorted(train["c"] + test["c"]) == _run(3, 0, 2)
    assert "all_data_2.json: user b: joined" in caplog.text
    assert "all_data_3.json: user c: the same examples as before" in caplog.text


def test_progress_is_shown_on_stderr_for_long_work(tmp_path, monkeypatch, capsys):
    _write_split(tmp_path)
    _load(tmp_path)
    assert capsys.readouterr().err == ""
    bar = femnist_leaf.tqdm.tqdm
    monkeypatch.setattr(femnist_leaf.tqdm, "tqdm", lambda **k: bar(**{**k, "delay": 0}))
    _load(tmp_path, cache_dir=tmp_path / "elsewhere")
    captured = capsys.readouterr()
    assert "FEMNIST, once: 100%" in captured.err and captured.out == ""


def test_loading_imports_no_tensorflow(tmp_path):
    _write_split(tmp_path)
    code = (
        "import sys, leaf_data\n"
        f"leaf_data.load('femnist', {str(tmp_path)!r}, sample_fraction=0.5)\n"
        "sys.exit('tensorflow' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# -------------------------------------------------------------------- errors


def test_options_that_cannot_be(tmp_path):
    for source in ("emnist", "", None):
        assert_refused(
            lambda s=source: _load(tmp_path, source=s),
            f"femnist: no source {source!r}: there are leaf, tff",
        )
    for fraction in (0, -0.1, 1.01, float("nan"), "0.5", None, True):
        assert_refused(
            lambda f=fraction: _load(tmp_path, sample_fraction=f),
            f"femnist: sample_fraction has to be in (0, 1], not {fraction!r}",
        )
    for number in (-1, 1.5, "3", None, True):
        assert_refused(
            lambda n=number: _load(tmp_path, min_samples=n),
            f"femnist: min_samples has to be an integer from 0, not {number!r}",
        )
    assert_refused(lambda: _load(tmp_path, seed=-1), "seed has to be an integer")


def test_folders_without_data(tmp_path):
    assert_refused(
        lambda: _load(tmp_path / "none"), "femnist: data_dir", "is not a folder"
    )
    assert_refused(
        lambda: _load(tmp_path),
        f"femnist: no LEAF data in {tmp_path} or {tmp_path / 'femnist'}",
    )
    (tmp_path / "data" / "all_data").mkdir(parents=True)
    assert_refused(
        lambda: _load(tmp_path), f"without any: {tmp_path / 'data' / 'all_data'}"
    )
    assert_refused(
        lambda: leaf_data.load("femnist"), "pass data_dir or set TFF_PMC_DATA_DIR"
    )


def _with(place, value):
    user = _user(1, 3)
    user["x"][1][place] = value
    return user


_HUGE = 10**400


@pytest.mark.parametrize(
    "user, message",
    [
        (_with(5, 255), "image 1 has the value 255, not in [0, 1]"),
        (_with(5, 1.0001), "image 1 has the value 1.0001, not in [0, 1]"),
        (_with(5, -0.5), "image 1 has the value -0.5, not in [0, 1]"),
        (_with(5, float("nan")), "image 1 has the value nan, not in [0, 1]"),
        (_with(5, float("inf")), "image 1 has the value inf, not in [0, 1]"),
        (_with(5, _HUGE), "an image has a value that is not in [0, 1]"),
        (_with(5, "0.5"), "image 1 has the value '0.5'"),
        (_with(5, None), "image 1 has the value None"),
        (_with(5, True), "image 1 has the value True"),
        (_with(5, [1]), "image 1 has the value [1]"),
        ({"x": [[1.0] * 783], "y": [1]}, "image 0 is 783 values, not 784 values"),
        ({"x": [[[1.0] * 28] * 28], "y": [1]}, "image 0 is 28 values, not 784"),
        ({"x": ["f.png"], "y": [1]}, "image 0 is 'f.png', not 784 values"),
        ({"x": [[1.0] * 784], "y": [62]}, "label 0 is 62, not one of 0 to 61"),
        ({"x": [[1.0] * 784], "y": [-1]}, "label 0 is -1, not one of 0 to 61"),
        ({"x": [[1.0] * 784], "y": [1.5]}, "label 0 is 1.5, not one of"),
        ({"x": [[1.0] * 784], "y": ["A"]}, "label 0 is 'A', not one of"),
        ({"x": [[1.0] * 784], "y": [False]}, "label 0 is False, not one of"),
        ({"x": [[1.0] * 784], "y": [1, 2]}, "1 examples but 2 labels"),
    ],
)
def test_users_that_are_not_femnists(tmp_path, user, message):
    path = tmp_path / "all_data" / "all_data_0.json"
    _write(path, {"good": _user(2, 2), "bad": user})
    assert_refused(lambda: _load(tmp_path), f"{path}: user bad: {message}")
    assert not list(tmp_path.rglob("*.npz"))


def test_files_that_are_damaged(tmp_path):
    _write_split(tmp_path)
    path = next((tmp_path / "data" / "train").glob("all_data_10_*"))
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    assert_refused(lambda: _load(tmp_path), f"{path}: user d: truncated or not JSON")
    path.write_text(text.replace('"users": ["d",', '"users": ["x",'))
    assert_refused(lambda: _load(tmp_path), f"{path}: user x: is in users but not in")
    path.write_text("")
    assert_refused(lambda: _load(tmp_path), f"{path}: truncated or not JSON")
    shutil.copy(path, path.with_name("all_data_10_niid_1_keep_0_train_9.json"))
    assert_refused(lambda: _load(tmp_path), "different runs of preprocess.sh")


# ----------------------------------------------------------- LEAF, real files


@pytest.fixture(scope="module")
def real_folder():
    folder = os.environ.get("TFF_PMC_DATA_DIR")
    if folder:
        for sub in ("femnist/data", "data", "femnist", ""):
            if glob.glob(os.path.join(folder, sub, "train", "all_data_*_train_*.json")):
                return os.path.join(folder, sub)
    pytest.skip("needs LEAF's FEMNIST: set TFF_PMC_DATA_DIR to its folder")


@pytest.fixture(scope="module")
def real(real_folder, tmp_path_factory):
    caches = tmp_path_factory.mktemp("caches")
    return _load(real_folder, cache_dir=caches), caches


def test_real_files_example_by_example(real, real_folder):
    data, _ = real
    seen = 0
    for part, examples in (
        ("train", data.train_examples),
        ("test", data.test_examples),
    ):
        for path in glob.glob(os.path.join(real_folder, part, "*.json")):
            with open(path) as file:
                document = json.load(file)
            for user, count in zip(document["users"], document["num_samples"]):
                own = examples.client(user)
                expected = document["user_data"][user]
                assert own["y"].tolist() == expected["y"] and count == len(own["y"])
                seen += count
                # Exact: LEAF divided bytes by 255.
                back = own["x"][:3].reshape(-1, 784) / 255
                assert back.tolist() == expected["x"][:3]
    assert seen == data.train_examples.num_examples + data.test_examples.num_examples
    # Row 0 is the top: letters stand in the middle and are taller than wide.
    ink = data.train_examples.x < 128
    assert np.mean(data.train_examples.x == 255) > 0.7
    assert ink.any(axis=2).sum() > ink.any(axis=1).sum()


def test_the_real_writers(real, real_folder):
    data, _ = real
    if data.train_examples.num_clients != 105:
        pytest.skip("other writers than those of the counts below")
    assert data.train_examples.num_examples == 14708
    assert data.test_examples.num_examples == 1685
    assert (data.train_examples.sizes.min(), data.train_examples.sizes.max()) == (
        4,
        165,
    )
    assert data.client_ids[:2] == ("f3313_11", "f3137_47")
    assert set(data.train_examples.y) == set(range(62))
    # What leaf_data.femnist says of LEAF: one image of every writer is there twice.
    for client in data.client_ids:
        images = [
            image.tobytes()
            for examples in (data.train_examples, data.test_examples)
            for image in examples.client(client)["x"]
        ]
        assert len(images) - len(set(images)) == 1


def test_real_files_sampled(real, real_folder):
    data, caches = real
    half = _load(real_folder, cache_dir=caches, sample_fraction=0.5, seed=1)
    assert 0.45 < half.train_examples.num_examples / data.train_examples.num_examples
    assert half.train_examples.num_examples < 0.55 * data.train_examples.num_examples
    assert set(half.client_ids) < set(data.client_ids)


def test_a_user_without_any_example_is_named(tmp_path):
    _write_split(tmp_path)
    name = "data/{0}/all_data_7_niid_05_keep_0_{0}_9.json"
    _write(tmp_path / name.format("train"), {"f": _user(6, 3), "g": _user(7, 0)})
    _write(tmp_path / name.format("test"), {"f": _user(6, 1, 3), "g": _user(7, 0)})
    assert_refused(
        lambda: _load(tmp_path),
        "all_data_7_niid_05_keep_0_train_9.json: user g: has no examples in any file",
    )
