"""Draws CSVs of twelve wearables, for who has none at hand."""

import csv
import pathlib

import numpy as np

TYPICAL = {
    "resting": (60, 1, 200, 40),
    "walking": (95, 12, 500, 60),
    "running": (150, 26, 700, 70),
}
random = np.random.default_rng(0)
folder = pathlib.Path("devices")
folder.mkdir()
for number in range(12):
    shares = random.dirichlet((0.6, 0.6, 0.6))
    with open(folder / f"device_{number:02}.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("activity", "pulse", "steps", "light", "noise"))
        for activity in random.choice(list(TYPICAL), random.integers(30, 90), p=shares):
            reading = random.normal(TYPICAL[activity], (12, 3, 180, 12))
            rows.writerow((activity, *np.maximum(reading, 0).round().astype(int)))
