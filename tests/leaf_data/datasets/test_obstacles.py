"""The obstacle pictures, on drawn ones: places, parts, labels, damaged pictures."""

import csv
import os
import pathlib

import numpy as np
import pytest
from made_up import assert_refused
from PIL import Image

import leaf_data
from leaf_data.datasets import drawn_obstacles, obstacles


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("obstacles")
    drawn_obstacles.write(str(path), pictures=20, seed=4)
    return path


def load(folder, tmp_path, **options):
    return leaf_data.load("obstacles", folder, cache_dir=tmp_path, **options)


def _files(folder):
    """The pictures of a folder, resized by Pillow alone, and their labels; sorted."""
    found = []
    for label, word in enumerate(("free", "blocked")):
        for path in (folder / word).glob("*.png"):
            image = Image.open(path).resize((64, 64), Image.Resampling.BICUBIC)
            found.append((np.asarray(image).tobytes(), label))
    return sorted(found)


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
    found = {(x.tobytes(), int(y)) for part in parts for x, y in zip(part.x, part.y)}
    expected = {pair for place in data.client_ids for pair in _files(folder / place)}
    assert found == expected and len(found) == 120


def test_a_drawing_says_that_it_is_one_and_the_seed_decides_the_split(folder, tmp_path):
    one, same, other = (load(folder, tmp_path, seed=s) for s in (0, 0, 1))
    assert one.name == "drawn_obstacles" and "no photographs" in one.describe()
    assert leaf_data.load("drawn_obstacles", pictures=10).name == "drawn_obstacles"
    np.testing.assert_array_equal(one.test_examples.x, same.test_examples.x)
    assert (one.test_examples.x != other.test_examples.x).any()


def test_photographs_are_not_called_drawings(folder, tmp_path):
    for path in folder.glob("*/*/*.png"):
        target = tmp_path / "photos" / path.relative_to(folder).parent
        target.mkdir(parents=True, exist_ok=True)
        os.link(path, target / path.name.replace("drawn_", "IMG_"))
    assert load(tmp_path / "photos", tmp_path).name == "obstacles"


def test_a_split_that_is_given_is_taken_as_it_is(tmp_path):
    """A tenth of the paper's sets, by the files' own pictures."""
    counts = {
        name: (free // 10, blocked // 10)
        for name, (free, blocked) in drawn_obstacles.printed_counts().items()
    }
    drawn_obstacles.write_sets(str(tmp_path), counts, seed=1)
    data = load(tmp_path, tmp_path / "cache")
    assert data.name == "drawn_obstacles"

    def pictures(examples):
        return sorted((x.tobytes(), y) for x, y in zip(examples["x"], examples["y"]))

    for place in obstacles.PLACES:
        own = data.train_examples.client(place)
        assert pictures(own) == _files(tmp_path / "training" / place)
    server, test = data.server_examples, data.test_examples
    assert pictures(vars(server)) == _files(tmp_path / "evaluation")
    assert pictures(vars(test)) == _files(tmp_path / "validation")
    assert np.ptp(data.test_examples.sizes) <= 1
    assert "split as given (NOT the numbers" in data.origin.source
    assert "evaluation 45, 47 % blocked, not 452, 47 %" in data.origin.source


def test_the_printed_numbers_are_those_of_the_published_tables():
    """Each printed share is that of a whole number of pictures."""
    tables = pathlib.Path(__file__).parents[3] / "results" / "paper"
    printed = {}
    for number, key in ((2, "environment"), (3, "dataset")):
        with open(tables / f"dualcriterion_table{number}.csv", newline="") as file:
            for row in csv.DictReader(file):
                name = row[key].lower().replace("-", "_")
                name = f"training/{name}" if number == 2 else name.split("_")[0]
                printed.setdefault(name, {})[row["quantity"]] = float(row["value"])
    assert {
        name: (cells["Total"], round(100 * cells["blocked"]))
        for name, cells in printed.items()
    } == obstacles.PRINTED
    for name, (free, blocked) in drawn_obstacles.printed_counts().items():
        total = free + blocked
        assert total == printed[name]["Total"]
        assert round(blocked / total, 2) == printed[name]["blocked"]
        assert round(free / total, 2) == printed[name]["free"]


def test_the_papers_numbers_of_pictures_are_recognized(tmp_path, monkeypatch):
    """Drawn to numbers of a hundredth of the size, and one picture too many."""
    small = {name: (6, 33) for name in obstacles.PRINTED}
    monkeypatch.setattr(obstacles, "PRINTED", small)
    drawn_obstacles.write_sets(str(tmp_path), drawn_obstacles.printed_counts())
    source = load(tmp_path, tmp_path / "cache").origin.source
    assert source.endswith(
        "split as given (the numbers of the paper's Tables II and III)"
    )
    extra = tmp_path / "validation" / "free"
    os.link(extra / "drawn_0000.png", extra / "drawn_9999.png")
    source = load(tmp_path, tmp_path / "cache").origin.source
    assert "III: validation 7, 29 % blocked, not 6, 33 %)" in source


@pytest.mark.parametrize(
    ("remove", "message"),
    [(slice(None), "holds no .jpg or .png"), (slice(2, -2), "pictures are too few")],
)
def test_places_with_too_few_pictures(tmp_path, remove, message):
    drawn_obstacles.write(str(tmp_path), pictures=10)
    for path in sorted(tmp_path.glob("hospital/*/*"))[remove]:
        path.unlink()
    path = tmp_path / "hospital"
    assert_refused(lambda: load(tmp_path, tmp_path / "cache"), path, message)


def test_a_picture_in_two_parts_of_the_split_is_refused(tmp_path):
    counts = dict.fromkeys(obstacles.PRINTED, (4, 4))
    drawn_obstacles.write_sets(str(tmp_path), counts)
    load(tmp_path, tmp_path / "cache")
    picture = tmp_path / "training" / "hospital" / "free" / "drawn_0000.png"
    os.link(picture, tmp_path / "validation" / "free" / "copy.png")
    first = f"{tmp_path}: training/hospital/free/drawn_0000.png and "
    second = "validation/free/copy.png are one picture"
    assert_refused(lambda: load(tmp_path, tmp_path / "cache"), first, second)
