"""The JSON stream reads what `json` reads, and names what it cannot."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaf_data.formats import json_stream

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def _read_all(path):
    """The object in a file: the values of objects in it key by key, too."""
    found = {}
    with json_stream.Reader(str(path)) as stream:
        for key in stream.keys():
            if key == "nested":
                found[key] = {inner: stream.value() for inner in stream.keys()}
            else:
                found[key] = stream.value()
        digest = stream.finish()
    with open(path, "rb") as file:
        assert digest == hashlib.sha256(file.read()).hexdigest()
    return found


@settings(max_examples=150, deadline=None)
@given(
    document=st.dictionaries(st.text(max_size=6), _VALUES, max_size=4),
    nested=st.dictionaries(st.text(max_size=4), _VALUES, max_size=3),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
    block=st.integers(1, 40),
)
def test_the_stream_reads_what_json_reads(
    document, nested, ascii_only, indent, block, tmp_path_factory, assert_refused
):
    text = json.dumps(
        {**document, "nested": nested}, ensure_ascii=ascii_only, indent=indent
    )
    path = tmp_path_factory.mktemp("stream") / "file.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_BLOCK", block)
        try:
            expected = json.loads(path.read_bytes().decode())
        except UnicodeDecodeError:  # Half a surrogate is no UTF-8.
            assert_refused(lambda: _read_all(path), path, "cannot be read")
            return
        # NaN is not itself, so the texts are compared.
        assert json.dumps(_read_all(path)) == json.dumps(expected)


@pytest.mark.parametrize("block", range(1, 20))
def test_numbers_that_a_block_cuts(tmp_path, monkeypatch, block):
    monkeypatch.setattr(json_stream, "_BLOCK", block)
    path = tmp_path / "file.json"
    path.write_text('{"a":0.5,"b":1e-5,"c":-12E+3,"d":false,"e":345}')
    assert _read_all(path) == {"a": 0.5, "b": 1e-5, "c": -12e3, "d": False, "e": 345}


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_every_truncated_file_is_named(tmp_path, monkeypatch, block, assert_refused):
    monkeypatch.setattr(json_stream, "_BLOCK", block)
    text = '{"a": [1.5, true, "x\\n", -Infinity], "nested": {"b": {}, "c": 12}}'
    path = tmp_path / "file.json"
    path.write_text(text)
    assert list(_read_all(path)) == ["a", "nested"]
    for length in range(len(text)):
        path.write_text(text[:length])
        assert_refused(lambda: _read_all(path), path, "truncated or not JSON")


@pytest.mark.parametrize(
    "text, message",
    [
        ("[1]", "{ should be here, character 1)"),
        ("{1: 2}", "a name in quotes should be here, character 2)"),
        ('{"a" 1}', ": should be here, character 6)"),
        ('{"a": 1 "b": 2}', ", or } should be here, character 9)"),
        ('{"a": 1,}', "a name in quotes should be here, character 9)"),
        ('{"a": 1} {', "nothing more should follow, character 10)"),
        ('{"a": [1, 2; 3]' + " " * 90 + "}", "',' delimiter, character 12)"),
        ('{"a": ' + "[" * 99999, "truncated or not JSON"),
        ("", "it ends too early"),
    ],
)
def test_text_that_is_no_json(tmp_path, monkeypatch, text, message, assert_refused):
    path = tmp_path / "file.json"
    path.write_text(text)
    for block in (4, 1 << 24):
        monkeypatch.setattr(json_stream, "_BLOCK", block)
        assert_refused(lambda: _read_all(path), path, message)


def test_files_that_cannot_be_read(tmp_path, assert_refused):
    assert_refused(
        lambda: _read_all(tmp_path / "none"), tmp_path / "none", "cannot be read"
    )
    assert_refused(lambda: _read_all(tmp_path), tmp_path, "cannot be read")
    (tmp_path / "file").write_bytes(b'{"a": "\xff"}')
    assert_refused(lambda: _read_all(tmp_path / "file"), "cannot be read", "utf-8")


def test_an_error_early_in_a_file_is_found_early(tmp_path, monkeypatch, assert_refused):
    monkeypatch.setattr(json_stream, "_BLOCK", 100)
    path = tmp_path / "file.json"
    path.write_text('{"a": [1, 2; 3' + ", 4" * 10000 + "]}")
    read = []
    with json_stream.Reader(str(path), read.append) as stream:
        assert_refused(
            lambda: [stream.value() for _ in stream.keys()], path, "character 12)"
        )
    assert sum(read) < 1000
