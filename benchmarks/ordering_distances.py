"""How much can an ordering matter? Distances of weights, from labels alone.

    python benchmarks/ordering_distances.py --data_dir=DIR

Nothing is trained and no image is read, so MD, which needs a trained model, is left
out. CelebA's clients are those of the published code (`client_rule=reference_code`);
of CelebA only `identity_CelebA.txt` and `list_attr_celeba.txt` are needed. Each
distance is a total variation, the mean over cohorts of as many seeds (of MNIST's
partition too). A data set that is not in the folder is left out, and said to be.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np

import leaf_data
from leaf_data import celeba_clients, celeba_files
from tff_pmc.experiments import named
from tff_pmc.experiments.cohorts import cohort
from tff_pmc.experiments.parsing import all_orderings
from tff_pmc.reports.ordering_distances import COLUMNS, ordering_distances

CRITERIA = {
    "DS": lambda y, sharp: len(y),
    "LD": lambda y, sharp: len(np.unique(y)),
    # Labels 0 and 1: the rarer over the other.
    "CB": lambda y, sharp: min(y.mean(), 1 - y.mean()) / max(y.mean(), 1 - y.mean()),
    "IS": lambda y, sharp: sharp.mean(),
}


def celeba(data_dir, unused_seed):
    """(y, sharp) of each client, from the text files."""
    folder = pathlib.Path(data_dir)
    places = [folder / sub for sub in ("celeba/data/raw", "data/raw", "raw", "")]
    found = [p for p in places if (p / celeba_files.IDENTITIES).exists()]
    if not found:
        raise leaf_data.DataError(f"{data_dir}: no {celeba_files.IDENTITIES}")
    photos = celeba_files.read_photos(str(found[0]))
    clients = celeba_clients.by_name("reference_code", photos.by_identity(), seed=0)
    return [
        (photos.smiling[train], photos.sharp[train]) for train, _ in clients.values()
    ]


def labels(name, **options):
    """A function that gives (y, None) of each client of a data set."""

    def read(data_dir, seed):
        data = leaf_data.load(name, data_dir, **options, seed=seed).train_examples
        parts = np.split(data.y, data.row_splits[1:-1])
        return [(y, None) for y in parts if len(y)]

    return read


# Title: (experiment, criteria, clients, whether the seed changes them, cohort).
SETTINGS = {
    "CelebA": ("celeba", ("DS", "CB", "IS"), celeba, False, None),
    "CelebA, smaller cohorts": ("celeba", ("DS", "CB", "IS"), celeba, False, 10),
    "MNIST non-IID": (
        *("mnist_noniid", ("DS", "LD")),
        *(labels("mnist", partition="noniid"), True, None),
    ),
    "FEMNIST": ("femnist", ("DS", "LD"), labels("femnist"), False, None),
}


def measure(clients, criteria):
    """Raw criteria [clients, m]."""
    rows = [[CRITERIA[code](*client) for code in criteria] for client in clients]
    return np.array(rows)


def main():
    """Prints a table a setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="as of run_experiments.py")
    parser.add_argument("--seeds", type=int, default=20, help="how many cohorts")
    options = parser.parse_args()
    for title, (experiment, criteria, read, seeded, wanted) in SETTINGS.items():
        try:
            raw = measure(read(options.data_dir, 0), criteria)
            cohorts = []
            for seed in range(options.seeds):
                if seeded:
                    raw = measure(read(options.data_dir, seed), criteria)
                config = named.experiment(experiment)
                size = wanted or config.cohort_size(len(raw))
                cohorts.append(raw[cohort(seed, 1, len(raw), size)])
        except leaf_data.DataError as error:
            print(f"\n{title} is left out: {error}")
            continue
        table = ordering_distances(cohorts, criteria, all_orderings(criteria))
        print(f"\n{title}: {size} of {len(raw)} clients, {len(cohorts)} cohorts\n")
        names = [name.replace("_", " ") for name in COLUMNS]
        print(f"| ordering | {' | '.join(names)} |\n|---|{'---:|' * len(COLUMNS)}")
        for ordering, row in table.iterrows():
            print(f"| {ordering} | {' | '.join(f'{value:.5f}' for value in row)} |")


if __name__ == "__main__":
    main()
