"""Damaged files of data: each reader ends in one line, or in a right federation.

A reader is given good inputs with random changes, a function of the seed, for
`FUZZ_SECONDS` seconds of all readers together: `make fuzz SECONDS=3600` tries an hour.
What is a fault is kept in a folder that the failure names.
"""

import faulthandler
import functools
import gzip
import io
import json
import os
import pathlib
import random
import struct
import tempfile
import time
import unicodedata

import numpy as np
import pytest
from PIL import Image

import leaf_data
from leaf_data import csv_clients
from leaf_data.formats import idx, image_folder

SECONDS = float(os.environ.get("FUZZ_SECONDS", "60"))
SEED = os.environ.get("FUZZ_SEED", "0")
HANGS_AFTER = 60  # Seconds on the clock, after which the process ends.
LONGEST_MESSAGE = 1000

SHAPES = {"x": (4, 3, 3), "y": (4,)}
ARRAYS = {name: np.arange(np.prod(s), dtype="u1").reshape(s) % 10
          for name, s in SHAPES.items()}  # fmt: skip
IDX = struct.pack(">HBB3I", 0, 8, 3, *SHAPES["x"]) + ARRAYS["x"].tobytes()
TEXTS = (
    *("", "a\nb", "a\0", "\x1b[2J", "=1+1", "\u2028", "\ud800", "n" * 300, "é" * 257),
    *("../a", "nan", "inf", "-1", "1.9", "1e999", "9" * 5000, "0x10", "1_0", "٣"),
    *("true", "client", " ", "\ufeff", '"', ",", "\r"),
)
NUMBERS = (
    *(0, -1, 2, 61, 62, 255, 2**31 - 1, 2**31, 2**53, 2**63, 2**64, 10**30, 10**400),
    *(0.5, -0.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan")),
)


def flip(source, data):
    """Changes, cuts, repeats or inserts bytes."""
    data = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 8))):
        start = source.randrange(len(data) + 1)
        end = min(len(data), start + source.choice((1, 1, 4, 64, 4096)))
        kind = source.randrange(5)
        if kind == 0 and start < len(data):
            data[start] ^= 1 << source.randrange(8)
        elif kind == 1:
            del data[start:]
        elif kind == 2:
            del data[start:end]
        elif kind == 3:
            data[start:start] = data[start:end] * source.choice((1, 2, 50))
        else:
            data[start:end] = source.randbytes(end - start)
    return bytes(data)


def edit_lines(source, data):
    """Changes fields and lines of a table."""
    if source.random() < 0.2:
        return flip(source, data)
    lines = [line.split(b",") for line in data.split(b"\n")]
    for _ in range(source.choice((1, 1, 2, 4))):
        place, other = (source.randrange(len(lines)) for _ in range(2))
        field, kind = source.randrange(len(lines[place]) or 1), source.randrange(6)
        if kind == 0:
            lines.insert(place, list(lines[other]))
        elif kind == 1 and len(lines) > 1:
            del lines[place]
        elif kind == 2:
            del lines[place][field : field + 1]
        else:
            text = source.choice(TEXTS).encode(errors="surrogatepass")
            lines[place][field : field + 1] = [text]
    return b"\n".join(map(b",".join, lines))


def edit_json(source, data):
    """Replaces, removes or adds values anywhere in a document."""
    if source.random() < 0.2:
        return flip(source, data)
    document = json.loads(data)
    for _ in range(source.choice((1, 1, 2, 4))):
        place = document
        while place:
            key = source.choice([*place] if isinstance(place, dict) else [0, -1])
            if isinstance(place[key], (dict, list)) and source.random() < 0.8:
                place = place[key]
                continue
            if source.random() < 0.2:
                del place[key]
            elif isinstance(place, dict) and source.random() < 0.2:
                place[source.choice(TEXTS)] = place[key]
            else:
                values = (*TEXTS, *NUMBERS, None, True, [], {}, [[]], {"x": 1})
                place[key] = source.choice(values)
            break
    return json.dumps(document).encode()


def put(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def check(data):
    """Checks what holds of every federation."""
    for examples in (data.train_examples, data.test_examples):
        assert examples.num_examples == examples.sizes.sum() == len(examples.x)
        lowest = -1 if examples.has_positions else 0
        assert not len(examples.y) or lowest <= examples.y.min() <= examples.y.max()
        assert data.num_classes > examples.y.max(initial=-1)
    for name in data.client_ids:
        assert 0 < len(name) <= 256 and "\n" not in name and "\0" not in name


def leaf_json():
    users = {name: {"x": [[k % 2] * 700 + [0.25] * 84] * 3, "y": [k, 61, 0]}
             for k, name in enumerate("abc")}  # fmt: skip
    document = {"users": [*users], "num_samples": [3, 3, 3], "user_data": users}
    return json.dumps(document).encode()


def read_leaf_json(folder, data):
    put(folder, "all_data/all_data_0.json", data)
    check(leaf_data.load("femnist", folder))


def leaf_text():
    windows = {"x": ["abcdefgh" * 10] * 3, "y": ["a", "b", " "]}
    document = {"users": ["a", "b"], "num_samples": [3, 3]}
    return json.dumps({**document, "user_data": {"a": windows, "b": windows}}).encode()


def read_leaf_text(folder, data):
    put(folder, "train/mytrain.json", data)
    put(folder, "test/mytest.json", leaf_text() + b" ")
    check(leaf_data.load("shakespeare", folder))


def leaf_tweets():
    rows = [[*"123", "ann", text, "training"] for text in ("so bad.", "good", "it's")]
    tweets = {"x": rows, "y": [0, 4, 4]}
    document = {"users": ["a", "b"], "num_samples": [3, 3]}
    return json.dumps({**document, "user_data": {"a": tweets, "b": tweets}}).encode()


def read_leaf_tweets(folder, data):
    put(folder, "all_data.json", data)
    check(leaf_data.load("sent140", folder))


def leaf_comments():
    rows = [["<BOS>", "it", "is"], ["so", "<EOS>", "<PAD>"]]
    targets = [["it", "is", "so"], ["<EOS>", "<PAD>", "<PAD>"]]
    label = {"target_tokens": targets, "count_tokens": [[1.0] * 3, [1.0, 1.0, 0]]}
    comments = {"x": [rows] * 2, "y": [label] * 2}
    document = {"users": ["a", "b"], "num_samples": [9, 9]}
    return json.dumps(
        {**document, "user_data": {"a": comments, "b": comments}}
    ).encode()


def read_leaf_comments(folder, data):
    put(folder, "train/mytrain.json", data)
    put(folder, "test/mytest.json", leaf_comments() + b" ")
    check(leaf_data.load("reddit", folder))


def read_idx(name, folder, data):
    assert idx.read(put(folder, name, data), SHAPES["x"]).shape == SHAPES["x"]


def npz_file():
    np.savez_compressed(file := io.BytesIO(), **ARRAYS)
    return file.getvalue()


def read_npz(folder, data):
    arrays = idx.read_npz(put(folder, "mnist.npz", data), SHAPES)
    assert {name: array.shape for name, array in arrays.items()} == SHAPES


def image_file(form, **options):
    file, pixels = io.BytesIO(), np.arange(3600, dtype=np.uint8).reshape(40, 30, 3)
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


def read_image(folder, data):
    put(folder, "cats/a.jpg", data)
    x, *_ = image_folder.read("t", str(folder), ["cats"], 16, None, resize=True)
    assert x.shape == (1, 16, 16, 3) and x.dtype == np.uint8


def read_table(folder, data):
    table = leaf_data.read_client_table(put(folder, "table.csv", data))
    for values in table.values.values():
        assert values.shape == (len(table.client_ids),)
        assert 0 <= values.min() <= values.max() <= 1


def read_csv(folder, data):
    put(folder, "csvs/a.csv", data)
    arguments = str(folder / "csvs"), "kind"
    clients = csv_clients.read_clients(*arguments, csv_clients.read_classes(*arguments))
    leaf_data.write_store(clients, folder / "store", test_fraction=0.5)
    check(leaf_data.open_store(folder / "store"))


@functools.cache
def store():
    x = np.arange(12, dtype=np.int32).reshape(6, 2)
    words = leaf_data.Vocabulary("words", tuple(f"w{k}" for k in range(12)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "store")
        clients = [(name, x, np.arange(6) % 3) for name in ("a", "bb", "ü")]
        leaf_data.write_store(clients, path, test_fraction=0.5, vocabulary=words)
        return {file.name: file.read_bytes() for file in path.iterdir()}


def read_store(name, folder, data):
    for file, content in {**store(), name: data}.items():
        put(folder, file, content)
    check(leaf_data.open_store(folder))


TARGETS = {  # What makes a good input, what changes it, and what reads it.
    "leaf_json": (leaf_json, edit_json, read_leaf_json),
    "leaf_text": (leaf_text, edit_json, read_leaf_text),
    "leaf_comments": (leaf_comments, edit_json, read_leaf_comments),
    "leaf_tweets": (leaf_tweets, edit_json, read_leaf_tweets),
    "idx": (lambda: IDX, flip, functools.partial(read_idx, "x")),
    "idx_gz": (lambda: gzip.compress(IDX), flip, functools.partial(read_idx, "x.gz")),
    "npz": (npz_file, flip, read_npz),
    "png": (lambda: image_file("PNG"), flip, read_image),
    "jpeg": (lambda: image_file("JPEG", progressive=True), flip, read_image),
    "client_table": (lambda: b"client,vip,age\na,true,0.5\nb,no,1\nc,0,0.25\n",
                     edit_lines, read_table),
    "csv": (lambda: b"a,b,kind\n1,2.5,0\n-1,0,1\n3,4,2\n0,0,1\n", edit_lines, read_csv),
    **{f"store_{name}": (functools.partial(lambda name: store()[name], name), edit,
                         functools.partial(read_store, name))
       for name, edit in (("header.json", edit_json), ("client_ids.npy", flip),
                          ("train_row_splits.npy", flip), ("test_y.npy", flip))},
}  # fmt: skip


def judge(read, data):
    """Returns whether an input is accepted; what is a fault raises."""
    with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
        try:
            read(pathlib.Path(folder), data)
        except leaf_data.DataError as error:
            bad = [c for c in str(error) if unicodedata.category(c) in ("Cc", "Cs")]
            assert not bad and len(str(error)) <= LONGEST_MESSAGE, ascii(error)
            return False
    return True


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_an_error_in_one_line_or_a_valid_federation(name, caplog):
    caplog.set_level("CRITICAL")
    good, change, read = TARGETS[name]
    seed, refused, number = good(), 0, 0
    assert judge(read, seed)
    end = time.monotonic() + SECONDS / len(TARGETS)
    while time.monotonic() < end:
        number += 1
        data = change(random.Random(f"{name} {SEED} {number}"), seed)
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
        try:
            refused += not judge(read, data)
        except BaseException:
            kept = pathlib.Path(tempfile.mkdtemp(prefix="fuzz_found_"), name)
            kept.write_bytes(data)
            print(f"The input is {kept}.")
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
    assert refused
