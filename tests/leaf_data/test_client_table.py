"""Tables of client attributes, from a CSV and from a dict."""

import numpy as np
import pandas as pd
import pytest

import leaf_data


def write(path, text):
    path.write_text(text)
    return str(path)


def test_a_csv_is_read(tmp_path):
    path = write(tmp_path / "t.csv", "client,trusted,battery\na,true,0.5\nb,0,1\n")
    table = leaf_data.read_client_table(path).of(["b", "a"])
    np.testing.assert_array_equal(table.values["trusted"], [0, 1])
    np.testing.assert_array_equal(table.values["battery"], [1, 0.5])
    assert table.values["battery"].dtype == np.float32


def test_a_dict_is_accepted_as_a_table():
    table = leaf_data.ClientTable.from_dict({"a": {"vip": True}, "b": {"vip": False}})
    np.testing.assert_array_equal(table.values["vip"], [1, 0])


def by_client(**values):
    return pd.Series(values)


@pytest.mark.parametrize(
    "column",
    [
        by_client(a=0.1, b=0.2, c=0.3),
        by_client(x=0.9, c=0.3, a=0.1, b=0.2),  # A client more.
        {"c": 0.3, "a": 0.1, "b": 0.2},
        pd.Series([0.2, 0.1, 0.3], index=[0, 1, 2]),  # By number: b is 0.
        pd.Series([0.3, 0.2, 0.1], index=[2, 0, 1]),
        pd.Series([0.2, 0.1, 0.3]),
        [0.2, 0.1, 0.3],
    ],
)
def test_an_index_names_the_clients(column):
    table = leaf_data.ClientTable(("b", "a", "c"), {"q": column})
    np.testing.assert_array_equal(table.values["q"], np.float32([0.2, 0.1, 0.3]))
    np.testing.assert_array_equal(table.of(["c"]).values["q"], np.float32([0.3]))


@pytest.mark.parametrize(
    ("clients", "column", "says"),
    [
        ("ba", by_client(a=0.1), "q has no value for the client 'b'"),
        ("ba", pd.Series([1, 1, 0], index=[*"aab"]), "q has two values for 'a'"),
        ("ba", pd.Series([1, 1, 0], index=["a", 0, "b"]), "q has two values for 'b'"),
        ("ba", pd.Series([1, 0], index=[1, 2]), "q: 2 is not a client"),
        ("ba", pd.Series([1, 0], index=[0.5, 1.5]), "q: 0.5 is not a client"),
        ("12", pd.Series([1, 0], index=[1, 2]), "q: client 1 is the number of '2'"),
        ("10", pd.Series([1, 0]), "q: client 0 is the number of '1' and the name"),
        ("ba", np.ma.array([1, 0], mask=[0, 1]), "the attribute q has masked values"),
        ("ba", [0.5], "the attribute q must have a value for each of the 2 clients"),
        ("ba", pd.DataFrame({"a": [1]}, index=[0]), "no value for the client 'a'"),
    ],
)
def test_an_index_that_names_other_clients_is_rejected(clients, column, says):
    with pytest.raises(leaf_data.DataError, match=says):
        leaf_data.ClientTable(tuple(clients), {"q": column})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("client,vip\na,1.5\n", "client a: vip must be a boolean or in"),
        ("client,vip\na,\n", "client a: vip"),
        ("client,vip\na,0.1\nb,0_1\n", "line 3: client b: vip must be .* got '0_1'"),
        ("client,vip\na,\uff11\n", "line 2: client a: vip must be"),
        ("client,vip\na,\u0661\n", "line 2: client a: vip must be"),
        (",client,vip\n0,a,1\n1,b,0\n", "line 1: the column '' has no name: it may be"),
        ("Unnamed: 0,client,vip\n0,a,1\n", "'Unnamed: 0' has no name"),
        ("client,vip\na,nan\n", "client a: vip"),
        ("client,vip\na,1\na,0\n", "client a appears twice"),
        ("client,vip\na,1,2\n", "line 2 has 3 fields, not 2"),
        ("client;vip\na;1\n", "the column 'client', got .* commas must separate"),
        ("client,vip\n ,1\n", "line 2: the column client is empty"),
        ("name,vip\na,1\n", "the column 'client'"),
        ("client\na\n", "at least one attribute"),
        ("", "the column 'client'"),
        ("client,vip,vip\na,1,0\n", "the column vip appears twice"),
        ("client,vip\n", "and rows"),
        ("client,vip\n\nb,0\n\na,1,2\n", "line 5 has 3 fields, not 2"),
        ('client,vip\n"a\nb",1\n', r"line 3: the client 'a\\nb' has the control"),
        pytest.param(f"client,vip\n{'n' * 257},1\n", "257 characters", id="a name"),
        ("client,\x1b[1m\na,1\n", "the column .* has the control character U.001B"),
        pytest.param(f"client,vip\na,{'9' * 9999}\n", "got .9{39}$", id="9,999 digits"),
    ],
)
def test_an_invalid_table_is_rejected_with_its_file_and_client(tmp_path, text, says):
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(leaf_data.DataError, match=says) as error:
        leaf_data.read_client_table(path)
    assert path in str(error.value)


def test_a_missing_file_and_a_missing_client_are_named(tmp_path):
    with pytest.raises(leaf_data.DataError, match="nowhere.csv"):
        leaf_data.read_client_table(str(tmp_path / "nowhere.csv"))
    table = leaf_data.ClientTable.from_dict({"a": {"vip": 1}})
    with pytest.raises(leaf_data.DataError, match="no row for b"):
        table.of(["a", "b"])
    with pytest.raises(
        leaf_data.DataError, match="client b: some clients have the attribute old"
    ):
        leaf_data.ClientTable.from_dict({"a": {"vip": 1}, "b": {"old": 1}})
    for wrong in ("0_1", "\uff11", "inf", None):
        with pytest.raises(leaf_data.DataError, match="client a: vip must be"):
            leaf_data.ClientTable.from_dict({"a": {"vip": wrong}})
    with pytest.raises(leaf_data.DataError, match="must be non-empty text, got 1"):
        leaf_data.ClientTable.from_dict({1: {"vip": 1}})
    for wrong in ({"a": 1}, [1]):
        with pytest.raises(leaf_data.DataError, match="client: {name: value}}; got"):
            leaf_data.ClientTable.from_dict(wrong)
