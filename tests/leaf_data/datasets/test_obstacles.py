"""The obstacle pictures, on noise: places, parts, labels, missing pictures."""

import numpy as np
import pytest
from made_up import assert_refused
from noise_images import write_obstacles
from PIL import Image

import leaf_data


@pytest.fixture
def folder(tmp_path):
    write_obstacles(tmp_path / "pictures", 20)
    return tmp_path / "pictures"


def _files(folder):
    """The pictures of a folder, resized by Pillow alone, and their labels."""
    for label, word in enumerate(("free", "blocked")):
        for path in (folder / word).glob("*.png"):
            image = Image.open(path).resize((64, 64), Image.Resampling.BICUBIC)
            yield np.asarray(image).tobytes(), label


def test_places_are_clients_and_parts_are_disjoint(folder):
    data, again, other = (
        leaf_data.load("obstacles", folder, seed=s) for s in (0, 0, 1)
    )
    assert data.client_ids == ("hospital", "simple_room", "warehouse")
    # Of 20 of each place and class 4 are for the test; of the other 16, 1.6, so 2, are
    # the server's.
    assert list(data.test_examples.sizes) == [8, 8, 8]
    assert data.server_examples.num_examples == 12
    assert list(data.train_examples.sizes) == [28, 28, 28]
    assert data.element_shape == (64, 64, 3) and str(data.pixel_convention)
    parts = (data.train_examples, data.test_examples, data.server_examples)
    for part in parts:
        assert np.bincount(part.y).tolist() == [part.num_examples / 2] * 2
    labeled = {(x.tobytes(), int(y)) for part in parts for x, y in zip(part.x, part.y)}
    expected = {pair for place in data.client_ids for pair in _files(folder / place)}
    assert labeled == expected and len(labeled) == 120
    np.testing.assert_array_equal(data.test_examples.x, again.test_examples.x)
    assert (data.test_examples.x != other.test_examples.x).any()


@pytest.mark.parametrize(
    ("remove", "message"),
    [(slice(None), "contains no .jpg or .png"), (slice(2, -2), "too few pictures")],
)
def test_places_with_too_few_pictures_are_rejected(folder, remove, message):
    for path in sorted(folder.glob("hospital/*/*"))[remove]:
        path.unlink()
    assert_refused(lambda: leaf_data.load("obstacles", folder), "hospital", message)
