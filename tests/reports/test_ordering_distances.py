"""The tool that measures distances of orderings from labels alone."""

import itertools
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest
from noise_images import write_celeba

TOOL = pathlib.Path(__file__).parents[2] / "benchmarks" / "ordering_distances.py"


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


def criteria_by_hand(folder):
    """DS, CB and IS of each client of the published code, from the two text files."""
    identities = (folder / "identity_CelebA.txt").read_text().split()
    attributes = (folder / "list_attr_celeba.txt").read_text().splitlines()
    codes = attributes[1].split()
    marks = {line.split()[0]: line.split()[1:] for line in attributes[2:]}
    photos = {}
    for name, identity in zip(identities[::2], identities[1::2]):
        photos.setdefault(int(identity), []).append(marks[name])
    chosen = sorted(photos)
    random.Random(0).shuffle(chosen)
    clients = []
    for identity in chosen[: len(chosen) // 2]:
        total = len(photos[identity])
        if total < 10:
            continue
        train = photos[identity][round(0.2 * total) :]
        smiles = sum(mark[codes.index("Smiling")] == "1" for mark in train)
        sharp = sum(mark[codes.index("Blurry")] == "-1" for mark in train)
        rarer = min(smiles, len(train) - smiles)
        balance = rarer / (len(train) - rarer)
        clients.append({"DS": len(train), "CB": balance, "IS": sharp / len(train)})
    return clients


def test_the_tool_needs_no_images_and_says_what_is_left_out(tmp_path):
    write_celeba(tmp_path / "celeba", 24, seed=1)
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
    for name in ("MNIST non-IID", "FEMNIST"):
        assert f"{name} is left out: " in done.stdout
    clients = criteria_by_hand(tmp_path / "celeba")
    # A tenth of so few is one client, whose weight nothing can move.
    head, table = done.stdout.split("CelebA, small cohorts: ")
    assert f"CelebA: 1 of {len(clients)} clients, 2 cohorts" in head
    assert {*itertools.chain(*numbers(head).values())} == {0}
    # Ten would be more than there are, so that every cohort is all of them.
    assert 5 < len(clients) <= 10
    assert table.startswith(f"{len(clients)} of {len(clients)} clients, 2 cohorts")
    singles = [("DS",), ("CB",), ("IS",)]
    orders = [*singles, *itertools.permutations(["DS", "CB", "IS"])]
    found = numbers(table)
    assert [*found] == [",".join(order) for order in orders]
    for order in orders:
        own = weights_by_hand(clients, order)
        others = ("DS",), order[:1]
        apart = [moved(own, weights_by_hand(clients, other)) for other in others]
        uniform = [1 / len(clients)] * len(clients)
        expected = [moved(own, uniform), *apart]
        assert found[",".join(order)] == pytest.approx(expected, abs=6e-6)
    assert found["CB"][0] > 0.1 > found["CB,DS,IS"][2] > 0.001


def weights_by_hand(clients, order):
    """PMC eq. 5 and 6 client by client, in plain numbers."""
    totals = {code: sum(client[code] for client in clients) for code in order}
    values = []
    for client in clients:
        score, product = 0.0, 1.0
        for code in order:
            product *= client[code] / totals[code]
            score += product
        values.append(score)
    return [value / sum(values) for value in values]


def moved(p, q):
    """The total variation of two sets of weights, in plain numbers."""
    return sum(abs(a - b) for a, b in zip(p, q)) / 2


def numbers(text):
    """ordering -> the numbers of its line."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()]
    return {
        cells[0]: tuple(map(float, cells[1:]))
        for cells in lines
        if len(cells) > 2 and cells[1][:1].isdigit()
    }
