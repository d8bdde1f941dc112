"""Where q-FFL's objective is least on Synthetic, as after any number of rounds.

    .venv/bin/python benchmarks/qffl_objective.py OUT.csv --seeds=0,1,2,3,4

The objective `sum_k p_k F_k^(q+1) / (q+1)`, with p_k the client's share of the
training examples and F_k its mean loss (Li et al. 2020, eq. 2), is minimized by L-BFGS,
with NumPy and SciPy alone: a softmax regression is convex. The table has, per spread of
the clients' sizes, seed and q, the statistics of Table 1 over the clients' test
accuracies, in percent.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from typing import Any

import numpy as np
from scipy import optimize

import leaf_data
from tff_pmc.record.client_statistics import worst_tenth

COLUMNS = ("size_spread", "seed", "q", "average", "worst", "best", "variance")
_CLASSES = 10


def main() -> None:
    """Writes the table, a row per spread, seed and q."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="the CSV that is written")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--size_spreads", default="1,2")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=800)
    options = parser.parse_args()
    rows = []
    seeds = map(int, options.seeds.split(","))
    spreads = map(float, options.size_spreads.split(","))
    for spread, seed in itertools.product(spreads, seeds):
        data = leaf_data.load(
            "synthetic", num_clients=options.clients, size_spread=spread, seed=seed
        )
        for q in (0, 1):
            weights = minimize(data.train_examples, q, options.iterations)
            numbers = statistics(weights, data.test_examples)
            rows.append([f"{spread:g}", seed, q, *numbers])
            print(*rows[-1], flush=True)
    with open(options.out, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


def minimize(examples: Any, q: int, iterations: int) -> Any:
    """Returns the weights, [inputs + 1, classes], at which the objective is least."""
    x, y, owner = _arrays(examples)
    sizes = examples.sizes
    share, rows = sizes / sizes.sum(), np.arange(len(y))

    def objective(flat: Any) -> tuple[float, Any]:
        scores = x @ flat.reshape(-1, _CLASSES)
        scores -= scores.max(axis=1, keepdims=True)
        normalizer = np.exp(scores).sum(axis=1)
        losses = np.log(normalizer) - scores[rows, y]
        loss = np.bincount(owner, losses, len(sizes)) / sizes
        slopes = np.exp(scores) / normalizer[:, None]
        slopes[rows, y] -= 1
        slopes *= (share * loss**q / sizes)[owner, None]
        return share @ loss ** (q + 1) / (q + 1), (x.T @ slopes).ravel()

    limits = {"maxiter": iterations, "maxfun": 2 * iterations}
    start = np.zeros(x.shape[1] * _CLASSES)
    result = optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", options=limits
    )
    return result.x.reshape(-1, _CLASSES)


def statistics(weights: Any, examples: Any) -> list[float]:
    """Returns average, worst and best tenth, and variance of clients' accuracies."""
    x, y, owner = _arrays(examples)
    correct = np.argmax(x @ weights, axis=1) == y
    shares = 100 * np.bincount(owner, correct, len(examples.sizes)) / examples.sizes
    values = shares.mean(), worst_tenth(shares), -worst_tenth(-shares), shares.var()
    return [round(float(value), 4) for value in values]


def _arrays(examples: Any) -> tuple[Any, Any, Any]:
    """Returns inputs with a column of ones, labels, and each example's client."""
    x = np.asarray(examples.x, float)
    owner = np.repeat(np.arange(len(examples.sizes)), examples.sizes)
    return np.column_stack([x, np.ones(len(x))]), np.asarray(examples.y), owner


if __name__ == "__main__":
    main()
