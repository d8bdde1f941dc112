"""The tool that measures distances of orderings from labels alone."""

import itertools
import operator
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

from leaf_data.datasets import drawn_faces

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


def weights_by_hand(clients, order):
    """PMC eq. 5 and 6 in plain numbers."""
    totals = {code: sum(client[code] for client in clients) for code in order}
    scores = []
    for client in clients:
        products = itertools.accumulate(
            (client[code] / totals[code] for code in order), operator.mul
        )
        scores.append(sum(products))
    return [score / sum(scores) for score in scores]


def moved(p, q):
    return sum(abs(a - b) for a, b in zip(p, q)) / 2


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
    weights = {order: weights_by_hand(clients, order) for order in orders}
    uniform = [1 / len(clients)] * len(clients)
    expected = {
        ",".join(order): (
            moved(own, uniform),
            moved(own, weights["DS",]),
            moved(own, weights[order[:1]]),
            max(
                moved(weights[p], weights[q])
                for p in orders
                for q in orders
                if p[0] == q[0] == order[0]
            ),
        )
        for order, own in weights.items()
    }
    table, apart = table.split("| from |")
    found = numbers(table)
    assert found.keys() == expected.keys()
    for label, row in expected.items():
        assert found[label] == pytest.approx(row, abs=6e-6), label
    square = numbers(apart)
    assert square.keys() == expected.keys()
    for (p, own), (q, other) in itertools.product(weights.items(), repeat=2):
        shown = square[",".join(p)][orders.index(q)]
        assert shown == pytest.approx(moved(own, other), abs=6e-6), (p, q)
    assert found["CB"][0] > 0.1 > found["CB,IS,DS"][2] > 0.001


def numbers(text):
    """ordering -> the numbers of its line."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()]
    return {
        cells[0]: tuple(map(float, cells[1:]))
        for cells in lines
        if len(cells) > 2 and cells[1][:1].isdigit()
    }
