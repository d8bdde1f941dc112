"""Differences of our rounds from those of the authors' published code, per ordering.

    git clone https://github.com/sisinflab/ClientAware-FL
    python benchmarks/against_reference_code.py --reference_repo=ClientAware-FL

Their server, clients and models run as they are, on a few clients; ours run under
`--protocol=reference_code` with the same initial weights, data and cohort. For each of
the nine orderings, after one round:

    weights    max |p_k - theirs|, given their clients' trained models
    aggregate  relative L2 of the worst tensor, given their clients' trained models
    round      relative L2 of the worst tensor after a whole round: both sides train
    moved      relative L2 by which their round moved the tensor that it moved least;
               `round` says something only where it is much smaller

Exits with 1 where a bound is exceeded. Two things of theirs are mended in memory, none
in their files: the learning rate, which TensorFlow 2.11 to 2.15 ignore where it is
called `lr`, and CelebA's dropout, which is random and therefore 0 on both sides.

A whole round is usually equal to 1e-5. But where a ReLU's input, or the difference of
two values under max pooling, is within rounding of zero, the two sides may fall on
different sides of it, and with so few images that alone moves a tensor by up to 1e-2,
whoever is right. The default initial weights have no such case on the machine
where they were chosen; with others one is seen now and then. So several are to be
looked at, `--model_seeds=0,1,2,3,4`: then each has one line, with the largest of its
orderings and the median of `round`, and it is the median that the bound is for.
"""

import argparse
import itertools
import os
import pathlib
import random
import statistics
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from absl import logging
from reference_side import Reference, check_repo

import leaf_data
from tff_pmc import criteria, processes, scores
from tff_pmc.aggregation import SumPlan, combine
from tff_pmc.aggregation.contributions import ModelSums, RunningSums
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.clients import packing
from tff_pmc.clients.client_work import measure_contribution
from tff_pmc.experiments.experiment import settings
from tff_pmc.record import reference_code
from tff_pmc.runtime import Runtime

BOUNDS = {"weights": 1e-6, "aggregate": 1e-6, "round": 2e-4}
COLUMNS = (*BOUNDS, "moved")
# With these fractions, rounding up would give another cohort than rounding as they do.
SETTINGS = {
    "mnist": ("mnist_noniid", {"clients_per_round": 0.85}),
    "celeba": (
        "celeba",
        {"clients_per_round": 0.8, "local_epochs": 2, "dropout": 0.0, "num_packs": 1},
    ),
}


def digits():
    """Returns 12 clients of 40, 38, ..., 18 real digits."""
    data = leaf_data.load("digits5k", partition="noniid", seed=1).train_examples
    # From the end, so that a client keeps digits of both its shards.
    parts = [np.arange(end - 40 + 2 * k, end) for k, end in enumerate(data.row_splits)]
    return leaf_data.Examples.from_parts(
        data.x, data.y, parts[1:13], data.client_ids[:12]
    )


def faces():
    """Returns four clients of 8, 6, 7 and 5 random images."""
    # Most smile, so that the clients' output biases do not cancel.
    smiling = "11010110 111101 0101111 11001"
    sharp = "11011111 101101 1111110 01001"
    sizes = [len(part) for part in smiling.split()]
    y, is_sharp = (
        np.array([int(c) for c in text if c != " "]) for text in (smiling, sharp)
    )
    return leaf_data.Examples(
        np.random.default_rng(0).integers(0, 256, (len(y), 64, 64, 3), dtype=np.uint8),
        y.astype(np.int32),
        np.cumsum([0, *sizes], dtype=np.int64),
        ("a", "b", "c", "d"),
        {"sharp": is_sharp},
    )


def given_their_models(config, examples, cohort, before, trained):
    """Returns our weights p_k and aggregate of models that their clients trained."""
    score = config.algorithm.score(config)
    measured = config.aggregation.resolve_criteria()
    basis = scores.Basis.of([one.code for one in measured], [score])
    plan = SumPlan(basis)
    received = model_weights(before)
    sums, models = RunningSums.of_nobody(basis), ModelSums(len(basis), received)
    raw = []
    for k, weights in zip(cohort, trained):
        own = {name: tf.constant(value) for name, value in examples.client(k).items()}
        client = criteria.LocalClient(
            own["x"],
            own["y"],
            received,
            model_weights(weights),
            example_attributes={
                name: tf.cast(own[name], tf.float32) for name in examples.attributes
            },
        )
        size = tf.size(own["y"])
        contribution = measure_contribution(measured, plan, client, size)
        raw.append(contribution.raw.numpy())
        sums = sums.plus(contribution, size, 0.0)
        models.add(contribution)
    update, _ = combine(
        basis, basis.coefficients(score), sums.criteria, sums.monomials, models.read()
    )
    after = [w - d.numpy() for w, d in zip(before, update.trainable)]
    return scores.participant_weights(raw, score), after


class Ours:
    """Our process on one data set, for all nine orderings."""

    def __init__(self, config, examples):
        self._basis = scores.Basis.all_subsets(config.aggregation.criteria)
        federation = leaf_data.FederatedDataset(
            name=config.experiment,
            train_examples=examples,
            test_examples=examples,
            num_classes=int(examples.y.max()) + 1,
            pixel_convention=leaf_data.pixels.PHOTOGRAPH,
            origin=leaf_data.Origin("the benchmark's clients", (), ""),
            options={},
        )
        setup = RunContext.of(config, federation)
        self._process = config.algorithm.build_process(setup, self._basis)
        self._initial = self._process.initialize()
        self._examples = examples

    def whole_round(self, config, cohort, before):
        """Returns the weights after a round begun from `before`."""
        score = config.algorithm.score(config)
        state = processes.with_score(self._initial, self._basis, score)
        state = self._process.set_model_weights(state, model_weights(before))
        names = criteria.example_attributes(config.aggregation.resolve_criteria())
        packs = packing.pack(
            self._examples,
            cohort,
            num_packs=config.training.num_packs,
            example_attributes=names,
        )
        state, _ = self._process.next(state, packs)
        return self._process.get_model_weights(state).trainable


def model_weights(weights):
    return tff.learning.models.ModelWeights(tuple(map(tf.constant, weights)), ())


def distances(found, expected):
    """Returns the relative L2 of each tensor; 1 where only `expected` is zero."""
    for a, b in zip(found, expected):
        a, b = np.asarray(a, float), np.asarray(b, float)
        yield np.linalg.norm(a - b) / (np.linalg.norm(b) or np.linalg.norm(a) or 1.0)


def compare(reference, ours, config, examples, index):
    """Returns the differences of one ordering, by column."""
    reference.begin(index, config)
    random.seed(index)  # Of the shuffle that makes their cohort.
    before = reference.weights()
    cohort, p, trained = reference.next()
    after = reference.weights()
    if len(cohort) != config.training.cohort_size(examples.num_clients, config.dataset):
        sys.exit(f"their cohort has {len(cohort)} clients; ours has another size")
    own_p, aggregate = given_their_models(config, examples, cohort, before, trained)
    return {
        "weights": np.abs(own_p - p).max(),
        "aggregate": max(distances(aggregate, after)),
        "round": max(distances(ours.whole_round(config, cohort, before), after)),
        "moved": min(distances(after, before)),
    }


def compare_all(repo, name, examples, model_seeds):
    """Yields each seed of initial weights, index, ordering and its differences."""
    experiment, changed = SETTINGS[name]
    own = {**changed, "model_seed": model_seeds[0]}
    config = settings(experiment, own, "reference_code")
    reference = Reference(repo, name, config, examples)
    ours = Ours(config, examples)
    for seed in model_seeds:
        for index, order in enumerate(reference_code.orderings(name)):
            each = config.replaced(priority=order, model_seed=seed)
            found = compare(reference, ours, each, examples, index)
            yield seed, index, each.label, found


def over_orderings(found):
    """Merges lines: the largest values, the median of `round`, the least `moved`."""
    columns = {name: [each[name] for each in found] for name in COLUMNS}
    return {
        **{name: max(columns[name]) for name in BOUNDS},
        "moved": min(columns["moved"]),
        "median": statistics.median(columns["round"]),
    }


def line(start, found):
    cells = "".join(f"{value:11.1e}" for value in found.values())
    print(f"{start:20}{cells}", flush=True)


def exceeded(name, found):
    """Returns the columns of a line that are over their bounds."""
    # Of several orderings and initial weights, the median of `round` counts.
    judged = {**found, "round": found.get("median", found["round"])}
    return [
        f"{name}: {column}"
        for column, bound in BOUNDS.items()
        if not judged[column] <= bound  # NaN too.
    ]


def main():
    """Compares both data sets and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference_repo", required=True, help="their repository")
    parser.add_argument(
        "--model_seeds",
        type=lambda text: [int(seed) for seed in text.split(",")],
        default=[2],
        help="of the initial weights; of several, a line each (default: 2)",
    )
    options = parser.parse_args()
    check_repo(parser, options.reference_repo)
    logging.set_verbosity(logging.ERROR)  # Keras warns of `lr`, model by model.
    several, over = len(options.model_seeds) > 1, []
    columns = (*COLUMNS, "median") if several else COLUMNS
    print(f"{'':20}" + "".join(f"{column:>11}" for column in columns))
    print(f"{'bound':20}" + "".join(f"{bound:11.0e}" for bound in BOUNDS.values()))
    with Runtime():
        for name, make in (("mnist", digits), ("celeba", faces)):
            rows = compare_all(
                options.reference_repo, name, make(), options.model_seeds
            )
            for seed, group in itertools.groupby(rows, key=lambda row: row[0]):
                found = []
                for _, index, label, each in group:
                    found.append(each)
                    if not several:
                        line(f"{name:7}{index} {label}", each)
                        over += exceeded(f"{name} {index}", each)
                if several:
                    line(f"{name:7}seed {seed}", over_orderings(found))
                    over += exceeded(f"{name} seed {seed}", over_orderings(found))
    print("exceeded: " + "; ".join(over) if over else "all within the bounds")
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
