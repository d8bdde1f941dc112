"""CelebA's text files: those that are damaged, or disagree with one another."""

from __future__ import annotations

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("no_download")


def _without_column(name):
    return lambda lines: [lines[0], lines[1].replace(name, ""), *lines[2:]]


def _line(number, text):
    return lambda lines: [*lines[: number - 1], text, *lines[number:]]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_without_column("Smiling"), "line 2 has no column Smiling"),
        (_without_column("Blurry"), "line 2 has no column Blurry"),
        (_without_column("Male"), "line 3 has 6 fields, not a photo and 4 attributes"),
        (lambda lines: lines[:-1], "line 1 says 60 photos, 59 follow"),
        (lambda lines: [], "line 2 has no column Smiling"),
        (_line(5, "000003.jpg 1 -1 1 0 1"), "line 5: an attribute is 1 or -1, not '0'"),
        (_line(5, "000001.jpg 1 -1 1 1 1"), "line 5: 000001 is there twice"),
        (_line(5, "\x1b[1m.jpg 1 -1 1 1 1"), "line 5: the photo '\\x1b[1m.jpg' has"),
        (
            _line(2, "Smiling Blurry Smiling Male Young"),
            "line 2 has the column Smiling",
        ),
        (_line(1, "\x1b" + "9" * 5000), "line 1 says \\x1b9999"),
        (_line(5, "1 " * 10_000), "line 5 is too long"),
    ],
)
def test_attribute_files_that_are_refused(raw, edit, message, assert_refused, toy):
    toy.write_attributes(raw, edit)
    assert_refused(lambda: toy.load(raw), f"{raw / 'list_attr_celeba.txt'}: {message}")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_line(3, "000003.jpg"), "line 3 has to be a photo and a number"),
        (_line(3, "000003.jpg Ann"), "line 3 has to be a photo and a number, not '0"),
        (_line(3, "000001.jpg 10"), "line 3: 000001 is there twice"),
        (_line(3, "000003.jpg " + "1" * 5000), "line 3 has to be a photo and a number"),
        (_line(3, "000003.jpg " + "1" * 20), "line 3 has to be a photo and a number"),
        (_line(3, "a" * 300 + ".jpg 10"), "line 3: the photo 'aaaa"),
        (lambda lines: [], "lists no photo"),
    ],
)
def test_identity_files_that_are_refused(raw, edit, message, assert_refused, toy):
    toy.write_identities(raw, edit)
    assert_refused(lambda: toy.load(raw), f"{raw / 'identity_CelebA.txt'}: {message}")


def test_files_that_disagree_are_refused(raw, assert_refused, toy):
    toy.write_identities(raw, lambda lines: lines[1:])
    assert_refused(
        lambda: toy.load(raw), raw, "000001 is in list_attr_celeba.txt, not in ident"
    )
    toy.write_identities(raw, lambda lines: [*lines, "000099.jpg 10"])
    assert_refused(
        lambda: toy.load(raw), raw, "000099 is in identity_CelebA.txt, not in list_"
    )
    toy.write_identities(raw)
    images = raw / "img_align_celeba"
    Image.new("RGB", (5, 5)).save(images / "0001.png")
    assert_refused(
        lambda: toy.load(raw), images, "0001.png, one of 1 images, is not in identity"
    )
    (images / "0001.png").rename(images / "000001.jpg")
    assert_refused(
        lambda: toy.load(raw), images, "holds both 000001.jpg and 000001.png"
    )
