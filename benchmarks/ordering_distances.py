"""Distances between the weights of orderings, computed from labels alone.

    python benchmarks/ordering_distances.py --data_dir=DIR

Nothing is trained and no image is read, so MD, which needs a trained model, is left
out. CelebA's clients are those of the published code (`client_rule=reference_code`);
of CelebA only `identity_CelebA.txt` and `list_attr_celeba.txt` are needed. Each
distance is a total variation, the mean over cohorts of as many seeds (of MNIST's
partition too): from equal weights, from those by DS, and from those by the ordering's
first criterion alone. A data set that is not in the folder is left out, and named.
"""

import argparse
import dataclasses
import itertools
import math
import pathlib
import sys
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np

import leaf_data
from leaf_data.datasets import celeba_clients
from leaf_data.formats import celeba_lists
from tff_pmc import scores
from tff_pmc.reports import pages

CRITERIA = {
    "DS": lambda y, sharp: len(y),
    "LD": lambda y, sharp: len(np.unique(y)),
    # Labels 0 and 1: the rarer over the other.
    "CB": lambda y, sharp: min(y.mean(), 1 - y.mean()) / max(y.mean(), 1 - y.mean()),
    "IS": lambda y, sharp: sharp.mean(),
}


def celeba(data_dir, unused_seed):
    """Returns (y, sharp) of each client, from the text files."""
    places = itertools.product((".", "celeba"), ("data/raw", "raw", "."))
    folders = [pathlib.Path(data_dir, *parts) for parts in places]
    found = [f for f in folders if (f / celeba_lists.IDENTITIES).exists()]
    if not found:
        raise leaf_data.DataError(f"{data_dir}: no {celeba_lists.IDENTITIES}")
    photos = celeba_lists.read_raw(str(found[0]))
    people = celeba_lists.by_identity(photos)
    clients = celeba_clients.reference_code(people, seed=0)
    smiling, sharp = (photos[name].to_numpy() for name in ("smiling", "sharp"))
    return [(smiling[train], sharp[train]) for train, _ in clients.values()]


def labels(name, **options):
    """Returns a function that gives (y, None) of each client of a data set."""

    def read(data_dir, seed):
        data = leaf_data.load(name, data_dir, **options, seed=seed).train_examples
        parts = np.split(data.y, data.row_splits[1:-1])
        return [(y, None) for y in parts if len(y)]

    return read


@dataclasses.dataclass
class Federation:
    """A data set, its criteria that need no model, and its cohorts."""

    criteria: tuple
    read: Callable  # (data_dir, seed) -> (y, sharp) of each client.
    partitioned: bool = False  # Whether its clients depend on the seed.
    cohort_size: int = 0  # 0: a tenth of the clients, as in the papers.


FEDERATIONS = {
    "CelebA": Federation(("DS", "CB", "IS"), celeba),
    "CelebA, small cohorts": Federation(("DS", "CB", "IS"), celeba, cohort_size=10),
    "MNIST non-IID": Federation(
        ("DS", "LD"), labels("mnist", partition="noniid"), partitioned=True
    ),
    "FEMNIST": Federation(("DS", "LD"), labels("femnist")),
}


def measure(clients, criteria):
    """Returns the raw criteria, [clients, m]."""
    rows = [[CRITERIA[code](*client) for code in criteria] for client in clients]
    return np.array(rows)


def cohorts_of(federation, data_dir, seeds):
    """Returns the criteria of the first cohort of each seed, and how many clients."""
    found = []
    for seed in range(seeds):
        if federation.partitioned or not found:
            raw = measure(federation.read(data_dir, seed), federation.criteria)
        size = federation.cohort_size or math.ceil(len(raw) / 10)
        generator = np.random.default_rng([seed, 1])  # As a run's first cohort.
        count = min(size, len(raw))
        found.append(raw[np.sort(generator.choice(len(raw), count, False))])
    return found, len(raw)


def orderings_of(criteria):
    """Returns each criterion alone, then every ordering of all."""
    return [(code,) for code in criteria] + list(itertools.permutations(criteria))


def distances(cohorts, criteria, ordering):
    """Returns how far an ordering's weights are from uniform, DS and its first."""
    found = []
    for raw in cohorts:
        own, of_ds, of_first = (
            scores.participant_weights(raw, scores.prioritized(order, criteria))
            for order in (ordering, ("DS",), ordering[:1])
        )
        uniform = np.full(len(own), 1 / len(own))
        others = uniform, of_ds, of_first
        found.append([scores.total_variation(own, other) for other in others])
    return np.mean(found, axis=0)


def main():
    """Prints a table for each federation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="as of run_experiments.py")
    parser.add_argument("--seeds", type=int, default=20, help="how many cohorts")
    options = parser.parse_args()
    for title, federation in FEDERATIONS.items():
        try:
            cohorts, total = cohorts_of(federation, options.data_dir, options.seeds)
        except leaf_data.DataError as error:
            print(f"\n{title} is left out: {error}")
            continue
        grid = [["ordering", "from uniform", "from DS", "from first"]]
        for ordering in orderings_of(federation.criteria):
            found = distances(cohorts, federation.criteria, ordering)
            grid.append([",".join(ordering), *map("{:.5f}".format, found)])
        size = len(cohorts[0])
        print(f"\n{title}: {size} of {total} clients, {len(cohorts)} cohorts\n")
        print(pages.markdown_table(grid))


if __name__ == "__main__":
    main()
