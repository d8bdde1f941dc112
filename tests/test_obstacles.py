"""The loader of Dual's obstacle pictures, on drawn ones."""

import os

import numpy as np
import pytest
from PIL import Image

import leaf_data
from leaf_data import drawn_obstacles, obstacles


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("obstacles")
    drawn_obstacles.write(str(path), pictures=20, seed=4)
    return path


def load(folder, tmp_path, **options):
    return leaf_data.load("obstacles", folder, cache_dir=tmp_path, **options)


def test_the_places_are_the_clients_and_the_parts_are_apart(folder, tmp_path):
    data = load(folder, tmp_path)
    assert data.client_ids == ("hospital", "simple_room", "warehouse")
    # Of 20 of each place and class 4 are for the test; of the other 16, 1.6, so 2, are
    # the server's.
    assert list(data.test_examples.sizes) == [8, 8, 8]
    assert data.server_examples.num_examples == 12
    assert list(data.train_examples.sizes) == [28, 28, 28]
    assert data.element_shape == (64, 64, 3)
    parts = (data.train_examples, data.test_examples, data.server_examples)
    for part in parts:
        assert np.bincount(part.y).tolist() == [part.num_examples / 2] * 2
    pictures = {x.tobytes() for part in parts for x in part.x}
    assert len(pictures) == 120


def test_labels_are_the_folders_names(folder, tmp_path):
    """The mean picture of each label, against the files by themselves."""
    data = load(folder, tmp_path)
    for label, name in enumerate(("free", "blocked")):
        found = [
            part.x[part.y == label]
            for part in (data.train_examples, data.test_examples, data.server_examples)
        ]
        files = sorted(folder.glob(f"*/{name}/*.png"))
        expected = [
            np.asarray(Image.open(f).resize((64, 64), Image.Resampling.BICUBIC), float)
            for f in files
        ]
        mean = np.concatenate(found).astype(float).mean(axis=0)
        np.testing.assert_allclose(mean, np.mean(expected, axis=0), atol=1e-9)


def test_a_drawing_says_that_it_is_one(folder, tmp_path):
    data = load(folder, tmp_path)
    assert data.name == "drawn_obstacles"
    assert "no photographs" in data.describe()
    assert leaf_data.load("drawn_obstacles", pictures=10).name == "drawn_obstacles"


def test_the_seed_decides_the_split(folder, tmp_path):
    one, same, other = (load(folder, tmp_path, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.test_examples.x, same.test_examples.x)
    assert (one.test_examples.x != other.test_examples.x).any()


def test_photographs_are_not_called_drawings(folder, tmp_path):
    for path in folder.glob("*/*/*.png"):
        target = tmp_path / "photos" / path.relative_to(folder).parent
        target.mkdir(parents=True, exist_ok=True)
        os.link(path, target / path.name.replace("drawn_", "IMG_"))
    assert load(tmp_path / "photos", tmp_path).name == "obstacles"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "hospital" / "free" / "x.png").write_text("no"), "x.png"),
        (lambda f: [p.unlink() for p in (f / "warehouse" / "free").iterdir()], "free"),
        (
            lambda f: [p.unlink() for p in sorted(f.glob("hospital/*/*"))[2:-2]],
            "hospital",
        ),
    ],
    ids=["corrupt", "empty_class", "too_few"],
)
def test_bad_pictures_are_one_line_that_names_them(tmp_path, damage, message):
    drawn_obstacles.write(str(tmp_path / "o"), pictures=10)
    damage(tmp_path / "o")
    with pytest.raises(leaf_data.DataError, match=message) as error:
        load(tmp_path / "o", tmp_path)
    assert "\n" not in str(error.value)


def test_no_data_says_what_was_looked_for(tmp_path):
    with pytest.raises(leaf_data.DataError, match=r"hospital, simple_room, warehouse"):
        leaf_data.load("obstacles", tmp_path)
    with pytest.raises(leaf_data.DataError, match="from 10, not 3"):
        drawn_obstacles.write(str(tmp_path), pictures=3)
    assert obstacles.CLASSES[1] == "blocked"
