"""Files with the names of images: what Pillow is given, and what it is spared."""

import io
import os

import pytest
from made_up import assert_refused
from PIL import Image

from leaf_data.formats import image_folder


def _encoded(form, size=(20, 20), mode="RGB", **options):
    file = io.BytesIO()
    Image.new(mode, size, 77).save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("form", "suffix", "mode"), [("JPEG", ".png", "L"), ("PNG", ".jpg", "RGB")]
)
def test_the_content_decides_the_format_not_the_name(tmp_path, form, suffix, mode):
    path = tmp_path / ("a" + suffix)
    path.write_bytes(_encoded(form, mode=mode))
    image = image_folder.decode(str(path))
    assert image.mode == "RGB" and image.size == (20, 20)


@pytest.mark.parametrize("form", ["TIFF", "JPEG2000", "GIF", "BMP", "WEBP", "EPS"])
def test_other_image_formats_are_rejected(tmp_path, form):
    path = tmp_path / "a.jpg"
    path.write_bytes(_encoded(form))
    words = f"{path}: cannot be decoded (it is not a JPEG or PNG image)"
    assert_refused(lambda: image_folder.decode(str(path)), words)
    Image.open(path)  # Pillow by itself knows it.


def test_names_that_no_record_can_hold(tmp_path):
    try:
        with open(os.path.join(os.fsencode(tmp_path), b"a\xff.png"), "wb") as file:
            file.write(_encoded("PNG"))
    except OSError:
        pytest.skip("this file system has no such names")
    words = f"{tmp_path}: the image 'a\\udcff.png' has the control character U+DCFF"
    assert_refused(lambda: image_folder.find(str(tmp_path)), words)


def test_one_picture_in_two_formats_is_rejected(tmp_path):
    for name in ("b.png", "b.JPG"):
        (tmp_path / name).write_bytes(_encoded("PNG"))
    words = tmp_path, "holds both b.JPG and b.png"
    assert_refused(lambda: image_folder.find(str(tmp_path)), *words)
    (tmp_path / "b.png").unlink()
    assert image_folder.find(str(tmp_path)) == {"b": "b.JPG"}
