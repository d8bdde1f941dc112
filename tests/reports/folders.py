"""Run folders of ours: what several tests write into them."""

import json
import shutil

import numpy as np
import pandas as pd

WRONG = 3  # A label that none of the clients has.
SETTINGS = dict(partition="noniid", priority=["LD", "DS", "MD"], clients_per_round=0.1)
SETTINGS.update(local_epochs=5, batch_size=0, learning_rate=0.1, rounds=3)
SETTINGS.update(normalization="sum", algorithm="prioritized", experiment="mnist_noniid")


def write_ours(folder, clients, rounds, data="mnist", predictions=True, **settings):
    """Writes a run of ours: clients are tuples of labels, rounds how many are right."""
    settings = {**SETTINGS, **settings}
    info = {"label": ",".join(settings["priority"]), "settings": settings}
    info["data"] = {"name": data, "clients": len(clients)}
    predicted = [
        [
            label if place < right else WRONG
            for labels, right in zip(clients, counts)
            for place, label in enumerate(labels)
        ]
        for counts in rounds
    ]
    splits = np.cumsum([0, *map(len, clients)])
    y, shares = np.concatenate(clients), {"p10": 0.4, "p90": 0.6}
    write_folder(folder, info, y, splits, predicted, **shares)
    if not predictions:
        shutil.rmtree(folder / "predictions")
    return folder


def write_folder(folder, info, y, splits, predicted, names=None, **columns):
    """Writes a run's record and predictions; `columns` are more of `rounds.csv`.

    `y` are the labels of the test examples, of which `splits` says whose they are, and
    `predicted` the answers, [rounds, examples].
    """
    names = names or [f"client_{k}" for k in range(len(splits) - 1)]
    record = folder / "predictions"
    record.mkdir(parents=True)
    np.savez(record / "labels.npz", y=y, row_splits=splits, client_ids=names)
    rows, totals = ["round,client,correct,examples"], []
    for number, answers in enumerate(np.array(predicted, np.uint8), start=1):
        np.savez(record / f"round_{number:04d}.npz", predicted=answers)
        totals.append((answers == y).sum())
        for name, start, end in zip(names, splits, splits[1:]):
            right = (answers == y)[start:end].sum()
            rows.append(f"{number},{name},{right},{end - start}")
    (folder / "clients.csv").write_text("\n".join(rows) + "\n")
    counts = {"correct": totals, "examples": len(y)}
    accuracy = {"accuracy": np.array(totals) / len(y)}
    table = pd.DataFrame(
        {"round": range(1, len(predicted) + 1), **accuracy, **columns, **counts}
    )
    table.to_csv(folder / "rounds.csv", index=False)
    (folder / "run.json").write_text(json.dumps(info))
    return folder
