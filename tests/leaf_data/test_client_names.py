"""Names that no record can hold, in every form of data that names clients."""

from __future__ import annotations

import json

import pytest

from leaf_data.errors import check_name
from leaf_data.formats import leaf_json

REFUSED = {
    "a\nb": "U+000A",
    "a\0": "U+0000",
    "\x1b[31mred": "U+001B",
    "a\x85b": "U+0085",
    "a\u2028b": "U+2028",
    "a\ud800": "U+D800",
    "n" * 257: "257 characters",
}
ALLOWED = ("f0001_41", "2880", "=1+1|cmd", "é\u00a0 ,;\"'", "\U0001f600", "n" * 256)


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: ascii(name)[:12])
def test_names_that_are_refused(name, three_clients, assert_refused):
    found = REFUSED[name]
    assert_refused(lambda: check_name(name, "x: user"), "x: user ", found)
    assert_refused(
        lambda: three_clients(client_ids=("a", name, "c")), "client id ", found
    )


@pytest.mark.parametrize("name", ALLOWED, ids=lambda name: ascii(name)[:12])
def test_names_that_are_not(name, three_clients):
    assert check_name(name) == name
    assert three_clients(client_ids=("a", name, "c")).client_ids[1] == name


@pytest.mark.parametrize("where", ["user_data", "users"])
@pytest.mark.parametrize("name", ["a\nb", "a\ud800", "n" * 257], ids=ascii)
def test_a_leaf_user_is_refused_by_name(tmp_path, name, where, assert_refused):
    path = tmp_path / "all_data_0.json"
    users, data = ["f0001"], {"f0001": {"x": [[1]], "y": [1]}}
    if where == "users":
        users.append(name)
    else:
        data[name] = data["f0001"]
    document = {"users": users, "num_samples": [1] * len(users), "user_data": data}
    path.write_text(json.dumps(document))
    words = f"{path}: user ", REFUSED[name]
    assert_refused(lambda: leaf_json.read(str(path), lambda x, y: x), *words)
