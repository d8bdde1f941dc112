"""`celeba` of its own files: clients, the cache, missing images, settings, folders."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
from PIL import Image

from leaf_data.datasets.celeba import celeba_clients
from leaf_data.formats import image_folder

pytestmark = pytest.mark.usefixtures("no_download")


@pytest.mark.parametrize("rule", celeba_clients.RULES)
def test_the_raw_layout(raw, tmp_path, rule, toy):
    photos = {
        str(i): np.array([k for k in range(1, toy.COUNT + 1) if toy.identity(k) == i])
        for i in range(10, 70, 10)
    }
    # As the identity file has them first.
    order = dict.fromkeys(str(toy.identity(k)) for k in range(1, toy.COUNT + 1))
    photos = {identity: photos[identity] for identity in order}
    expected = celeba_clients.by_name(rule, photos, 4)
    for folder in (tmp_path, tmp_path / "data", raw):
        data = toy.load(folder, client_rule=rule, seed=4)
        found = toy.all_photos(data)
        assert list(found) == list(expected)
        for client, parts in expected.items():
            assert found[client] == [part.tolist() for part in parts]
    assert data.name == "celeba"
    assert data.num_classes == 2
    assert data.options == {
        "client_rule": rule,
        "source": "raw",
        "missing_images": "skip",
        "seed": 4,
    }
    assert str(data.pixel_convention) == "photograph"
    assert data.origin.source == "CelebA's files"
    digests = dict(data.origin.files)
    for name in ("identity_CelebA.txt", "list_attr_celeba.txt"):
        assert digests[name] == hashlib.sha256((raw / name).read_bytes()).hexdigest()
    assert data.train_examples.attributes["sharp"].dtype == np.uint8


def test_the_paper_is_the_default(raw, toy):
    assert toy.load(raw).options["client_rule"] == "paper"
    assert sum(toy.load(raw).train_examples.sizes) == 24  # 0.8 of 30.


def test_images_are_decoded_once(raw, tmp_path, monkeypatch, caplog, toy):
    first = toy.load(raw)
    assert (raw / "celeba_cache" / "celeba.npz").is_file()
    monkeypatch.setattr(image_folder, "_decode", None)  # From here on the cache.
    again = toy.load(raw, client_rule="reference_code", seed=2)
    assert again.origin == first.origin
    toy.all_photos(again)
    monkeypatch.undo()
    changed = raw / "img_align_celeba" / "000002.png"
    Image.new("RGB", (17, 21), (9, 9, 9)).save(changed)
    os.utime(changed, ns=(1, 1))
    assert toy.load(raw).origin != first.origin
    toy.load(raw, cache_dir=tmp_path / "caches")
    assert list((tmp_path / "caches" / "celeba_cache").iterdir())
    assert not caplog.records  # Nothing to warn of.


def test_missing_images_are_counted_and_skipped(raw, caplog, assert_refused, toy):
    complete = toy.all_photos(toy.load(raw, client_rule="reference_code"))
    first, second, third = complete
    gone = [complete[first][0][0], *complete[second][0], *complete[third][1]]
    for k in gone:
        (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    words = (
        f"INCOMPLETE: {30 - len(gone)} of the 30 images of its clients are there, "
        "1 of 3 clients left"
    )
    caplog.clear()
    data = toy.load(raw, client_rule="reference_code")
    # One lost a photo. The others lost all of a part, and are left out.
    assert toy.all_photos(data) == {first: [complete[first][0][1:], complete[first][1]]}
    assert [words in record.message for record in caplog.records] == [True]
    assert words in data.describe()
    assert words in data.origin.source
    assert_refused(
        lambda: toy.load(raw, client_rule="reference_code", missing_images="refuse"),
        raw / "img_align_celeba",
        words,
    )


def test_other_peoples_missing_images_do_not_matter(raw, caplog, toy):
    clients = toy.all_photos(toy.load(raw, client_rule="reference_code"))
    for k in range(1, toy.COUNT + 1):
        if str(toy.identity(k)) not in clients:
            (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    data = toy.load(raw, client_rule="reference_code", missing_images="refuse")
    assert toy.all_photos(data) == clients
    assert not caplog.records


def test_no_client_is_left(raw, assert_refused, toy):
    clients = toy.load(raw, client_rule="reference_code").client_ids
    for k in range(1, toy.COUNT + 1):
        if str(toy.identity(k)) in clients:
            (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    assert_refused(
        lambda: toy.load(raw, client_rule="reference_code"),
        "INCOMPLETE: 0 of the 30 images of its clients are there, 0 of 3 clients left",
    )


def test_folders_that_are_refused(raw, tmp_path, assert_refused, toy):
    assert_refused(lambda: toy.load(None), "pass data_dir or set TFF_PMC_DATA_DIR")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert_refused(lambda: toy.load(empty), "no img_align_celeba in", empty)
    (raw / "list_attr_celeba.txt").unlink()
    assert_refused(
        lambda: toy.load(raw), f"{raw}: has img_align_celeba but no list_attr_celeba"
    )
    for path in (raw / "img_align_celeba").iterdir():
        path.unlink()
    toy.write_attributes(raw)
    assert_refused(
        lambda: toy.load(raw), "img_align_celeba: holds no .jpg or .png image"
    )
