"""Names that no record can hold, in every form of data that names clients."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leaf_data
from leaf_data import client_names
from leaf_data.splits import sampling

REFUSED = {
    "a\nb": "U+000A",
    "a\r": "U+000D",
    "\0": "U+0000",
    "a\0": "U+0000",
    "\x1b[31mred": "U+001B",
    "a\x7f": "U+007F",
    "a\x85b": "U+0085",
    "a\u2028b": "U+2028",
    "a\ud800": "U+D800",
    "n" * 257: "257 characters",
    "n" * 3_000_000: "3,000,000 characters",
}
ALLOWED = ("f0001_41", "2880", "=1+1|cmd", "é\u00a0 ,;\"'", "\U0001f600", "n" * 256)


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: ascii(name)[:12])
def test_names_that_are_refused(name, three_clients, assert_refused):
    found = REFUSED[name]
    assert_refused(lambda: client_names.check(name, "x: user"), "x: user ", found)
    assert_refused(
        lambda: three_clients(client_ids=("a", name, "c")), "client id ", found
    )


@pytest.mark.parametrize("name", ALLOWED, ids=lambda name: ascii(name)[:12])
def test_names_that_are_not(name, three_clients):
    assert client_names.check(name) == name
    assert three_clients(client_ids=("a", name, "c")).client_ids[1] == name


@pytest.mark.parametrize("where", ["user_data", "users", "both"])
@pytest.mark.parametrize("name", ["a\nb", "a\ud800", "n" * 257], ids=ascii)
def test_a_leaf_user_is_refused_by_name(
    tmp_path, empty_home, name, where, assert_refused
):
    path = tmp_path / "all_data" / "all_data_0.json"
    path.parent.mkdir()
    images = {"x": [[1.0] * 784] * 2, "y": [1, 2]}
    listed = ["f0001", name] if where != "user_data" else ["f0001"]
    held = ["f0001", name] if where != "users" else ["f0001"]
    document = {
        "users": listed,
        "num_samples": [2] * len(listed),
        "user_data": dict.fromkeys(held, images),
    }
    path.write_text(json.dumps(document))
    assert_refused(
        lambda: leaf_data.load("femnist", tmp_path), f"{path}: user ", REFUSED[name]
    )


def test_a_photo_of_leafs_is_refused_by_name(tmp_path, empty_home, assert_refused):
    path = tmp_path / "all_data" / "all_data_0.json"
    path.parent.mkdir()
    (tmp_path / "raw" / "img_align_celeba").mkdir(parents=True)
    document = {
        "users": ["1"],
        "num_samples": [1],
        "user_data": {"1": {"x": ["a\nb.jpg"], "y": [0.0]}},
    }
    path.write_text(json.dumps(document))
    assert_refused(
        lambda: leaf_data.load("celeba", tmp_path, source="leaf"),
        f"{path}: user 1: the photo 'a\\nb.jpg'",
    )


def test_half_a_character_is_a_name_as_any_other_to_the_split():
    train, test = sampling.split("\ud800", 10, seed=0)
    assert np.union1d(train, test).tolist() == list(range(10))
    # What a name that can be written gives is as it ever was.
    assert sampling.split("é", 10, seed=3)[1].tolist() == [0]
