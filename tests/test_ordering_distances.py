"""The tool that measures distances of orderings from labels alone."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from leaf_data import drawn_faces

TOOL = pathlib.Path(__file__).parents[1] / "benchmarks" / "ordering_distances.py"


def test_criteria_from_labels_and_attributes(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    import ordering_distances

    clients = [
        (np.array([0, 1, 1, 1]), np.array([1, 0, 1, 1])),
        (np.array([1, 1]), np.array([0, 0])),
        (np.array([0, 1]), np.array([1, 1])),
    ]
    raw = ordering_distances.measure(clients, ("CB", "DS", "IS", "LD"))
    expected = [[1 / 3, 4, 0.75, 2], [0, 2, 0, 1], [1, 2, 1, 2]]
    assert raw.tolist() == pytest.approx(np.array(expected))


def test_the_tool_needs_no_images_and_says_what_is_left_out(tmp_path):
    drawn_faces.write(tmp_path / "celeba", 24, 12, seed=1)
    (images,) = tmp_path.rglob("img_align_celeba")
    for image in images.iterdir():
        image.unlink()
    images.rmdir()
    done = subprocess.run(
        [sys.executable, str(TOOL), f"--data_dir={tmp_path}", "--seeds=2"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert ", 2 cohorts" in done.stdout
    assert "CelebA, small cohorts: " in done.stdout
    assert done.stdout.count("| CB,DS,IS | ") == 2
    for name in ("MNIST non-IID", "FEMNIST"):
        assert f"{name} is left out: " in done.stdout
