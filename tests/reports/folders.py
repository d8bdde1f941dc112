"""Run folders of ours: what several tests write into them."""

import json

import numpy as np
import pandas as pd


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
