"""Readers of single files: arrays, images, lists, tables."""

from __future__ import annotations

import csv
import gzip
import io
import struct
import zipfile

import numpy as np
from fuzzing import register, same
from mutations import edit_jpeg, edit_lines, edit_png, edit_zip, flip
from PIL import Image

import leaf_data
from leaf_data.datasets import celeba_files
from leaf_data.formats import idx, image_folder

SHAPES = {"x": (4, 3, 3), "y": (4,)}
ARRAYS = {
    name: np.random.default_rng(0).integers(0, 10, shape).astype(np.uint8)
    for name, shape in SHAPES.items()
}


def _idx_seeds():
    header = struct.pack(">HBB3I", 0, 8, 3, *SHAPES["x"])
    return [header + ARRAYS["x"].tobytes()]


def _read_idx(folder, data):
    path = folder / "images"
    path.write_bytes(data)
    same(idx.read(str(path), SHAPES["x"]).reshape(-1), np.frombuffer(data[16:], "u1"))


def _read_gzip(folder, data):
    path = folder / "images.gz"
    path.write_bytes(data)
    found = idx.read(str(path), SHAPES["x"])
    same(found.reshape(-1), np.frombuffer(gzip.decompress(data)[16:], "u1"))


def _edit_gzip(source, data):
    if source.random() < 0.5:
        return flip(source, data)
    content = flip(source, gzip.decompress(data)) * source.choice((1, 1, 1, 9999))
    return gzip.compress(content, mtime=0) * source.choice((1, 1, 2, 999))


register("idx", _idx_seeds, flip, _read_idx)
register(
    "idx_gz",
    lambda: [gzip.compress(s, mtime=0) for s in _idx_seeds()],
    _edit_gzip,
    _read_gzip,
)


def _npz_seeds():
    made = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, **ARRAYS)
        made.append(file.getvalue())
    return made


def _read_npz(folder, data):
    path = folder / "mnist.npz"
    path.write_bytes(data)
    found = idx.read_npz(str(path), SHAPES)
    # Not numpy's own reader of archives, which wants nothing before the first array.
    with zipfile.ZipFile(path) as file:
        for name in SHAPES:
            same(found[name], np.load(io.BytesIO(file.read(f"{name}.npy"))))


register("npz", _npz_seeds, edit_zip, _read_npz)


def _image(form, **options):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3)).astype(np.uint8)
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    if form == "PNG" and options.pop("mode", ""):
        image = image.convert("P")
    image.save(file, form, **options)
    return file.getvalue()


def _read_image(folder, data):
    path = folder / "cats" / "a.jpg"
    path.parent.mkdir()
    path.write_bytes(data)
    found = image_folder.read("toy", str(folder), ["cats"], 16, None, resize=True)[0]
    assert found.x.shape == (1, 16, 16, 3) and found.x.dtype == np.uint8
    again = image_folder.read("toy", str(folder), ["cats"], 16, None, resize=True)[0]
    same(again.x, found.x)


register(
    "png",
    lambda: [_image("PNG"), _image("PNG", mode="P")],
    edit_png,
    _read_image,
)
register(
    "jpeg",
    lambda: [_image("JPEG"), _image("JPEG", progressive=True), _image("TIFF")],
    edit_jpeg,
    _read_image,
)


def _table_seeds():
    return [b"client,trusted,battery\na,true,0.5\nb,no,1\nf0001_41,0,0.25\n"]


def _read_table(folder, data):
    path = folder / "table.csv"
    path.write_bytes(data)
    table = leaf_data.read_client_table(str(path))
    text = io.StringIO(data.decode("utf-8-sig"), newline="")
    header, *rows = (row for row in csv.reader(text) if row)
    at = header.index("client")
    assert list(table.client_ids) == [row[at] for row in rows]
    assert [*table.values] == header[:at] + header[at + 1 :]
    for values in table.values.values():
        assert values.shape == (len(rows),) and 0 <= values.min() <= values.max() <= 1


register("client_table", _table_seeds, edit_lines, _read_table)


def _identity_seeds():
    return ["".join(f"{k:06d}.jpg {k % 3}\n" for k in range(9)).encode()]


def _attribute_seeds():
    lines = [f"{k:06d}.jpg -1  1 -1" for k in range(9)]
    return ["\r\n".join(["9", "Blurry Male Smiling ", *lines, ""]).encode()]


def _read_lists(folder, identities, attributes):
    (folder / "identity_CelebA.txt").write_bytes(identities)
    (folder / "list_attr_celeba.txt").write_bytes(attributes)
    photos = celeba_files.read_photos(str(folder))
    assert len(photos.names) == len(photos.identities) == len(set(photos.names))
    assert all(name.isdecimal() for name in photos.identities)
    assert set(photos.smiling) | set(photos.sharp) <= {0, 1}
    photos.by_identity()


def _edit_words(source, data):
    return edit_lines(source, data, b" ")


def _read_identities(folder, data):
    _read_lists(folder, data, *_attribute_seeds())


def _read_attributes(folder, data):
    _read_lists(folder, *_identity_seeds(), data)


register("celeba_identities", _identity_seeds, _edit_words, _read_identities)
register("celeba_attributes", _attribute_seeds, _edit_words, _read_attributes)
