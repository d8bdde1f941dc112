"""Divisions of examples among clients: pure functions of labels, counts and a seed.

The partitions return a list with one index array (int64) per client; together they hold
every example exactly once. `iid` and `sorted_shards` follow McMahan et al. 2017
("Communication-Efficient Learning of Deep Networks from Decentralized Data",
section 3), which "Prioritized Multi-Criteria Federated Learning" (section 5.1) says
it uses for MNIST. `dirichlet` is similar to that of Hsu, Qi, Brown 2019 ("Measuring the
Effects of Non-Identical Data Distribution for Federated Visual Classification", section
3), whose alpha is shared among the classes: with ten, theirs is ten times ours.

LEAF's `preprocess.sh` first samples (`leaf_sample`), then removes small users, then
splits each user's examples (`leaf_split`). The rules are LEAF's; the random numbers are
not: LEAF draws in the order `os.listdir` gives, so its seeds do not mean the same on
every machine.

All draw from `numpy.random.RandomState`, whose stream is frozen, so that a seed
means the same under every numpy.
"""

from __future__ import annotations

import fractions
import operator
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError

IntArray = npt.NDArray[Any]  # Of any integer type.
# Separate streams: the sizes do not change with the shares of the classes.
_DIRICHLET_STREAM, _SIZES_STREAM = 1905, 1906
_LIMIT_STREAM = 1908
_ROUNDING = 1e-12  # Of a fraction: the differences of some floats.


def iid(labels: IntArray, sizes: IntArray, seed: int = 0) -> list[IntArray]:
    """Shuffles N examples and deals client k `sizes[k]` of them; the sizes sum to N."""
    order = random_state(seed).permutation(len(labels)).astype(np.int64)
    return np.split(order, np.cumsum(sizes)[:-1])


def sorted_shards(
    labels: IntArray, num_clients: int = 100, seed: int = 0
) -> list[IntArray]:
    """Sorts by label, cuts into equal shards, deals two shuffled shards to a client.

    If the labels do not divide evenly, the first shards have one more.
    With MNIST's 60,000 labels and 100 clients there are 200 shards of 300 images.
    MNIST's digits are not multiples of 300, so nine of the 200 shards, one at
    each border between digits, hold two digits. A client therefore has one to
    four labels, where PMC (section 6.3) says two at most: 77 to 90 of the 100 have two
    (seeds 0 to 9), 6 to 8 have three, the rest, whose shards are of one digit, one;
    in 111 of the seeds 0 to 999 some client has four (the first is seed 15).
    """
    order = np.argsort(labels, kind="stable").astype(np.int64)
    shards = np.array_split(order, 2 * num_clients)
    pairs = random_state(seed).permutation(2 * num_clients).reshape(num_clients, 2)
    return [np.concatenate([shards[first], shards[second]]) for first, second in pairs]


def dirichlet(
    labels: IntArray, sizes: IntArray, alpha: float, seed: int
) -> list[IntArray]:
    """Deals each client `sizes[k]` examples, from classes that it prefers.

    Labels are [N], sizes [K], which sum to N. A client's shares of the classes are
    drawn from a Dirichlet distribution, `alpha` for each class: with 0.1 most examples
    of a client have one class or two, with 100 all classes are nearly equal. Examples
    are dealt one at a time, to clients in random order: the class is drawn by the
    client's shares, among the classes with examples left. So no client is last and gets
    only the remainder.
    """
    random = random_state(seed, _DIRICHLET_STREAM)
    classes, of_class = np.unique(labels, return_inverse=True)
    num_left = np.bincount(of_class)
    shares = random.dirichlet([alpha] * len(classes), len(sizes))
    counts_by_client = np.zeros(shares.shape, np.int64)
    turns = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    for client, point in zip(turns, random.random_sample(len(turns))):
        ends = np.cumsum(shares[client] * (num_left > 0))
        if not ends[-1] > 0:  # All classes that it prefers are used up.
            ends = np.cumsum(num_left)
        chosen = np.searchsorted(ends, point * ends[-1], side="right")
        counts_by_client[client, chosen] += 1
        num_left[chosen] -= 1
    rows = np.lexsort((random.permutation(len(labels)), of_class))
    begins = np.concatenate([[0], np.cumsum(counts_by_client.sum(axis=0))[:-1]])
    ends = begins + np.cumsum(counts_by_client, axis=0)
    return [
        np.concatenate([rows[end - n : end] for end, n in zip(row, counts)])
        for row, counts in zip(ends, counts_by_client)
    ]


def power_law(num_examples: int, num_clients: int, seed: int) -> IntArray:
    """Draws sizes of clients that fall as 1 / rank (Zipf's law), in random order, [K].

    They sum to the number of examples, and each is at least 1: with 4,000 examples and
    100 clients the largest has 753, half have 16 or fewer, and the smallest 9.
    """
    shares = 1 / np.arange(1, num_clients + 1)
    exact = (num_examples - num_clients) * shares / shares.sum()
    sizes = 1 + exact.astype(np.int64)
    # The remainder of rounding is dealt to the clients that lost most by it.
    most = np.argsort(sizes - 1 - exact, kind="stable")
    sizes[most[: num_examples - int(sizes.sum())]] += 1
    return random_state(seed, _SIZES_STREAM).permutation(sizes)


def mislabel(
    labels: IntArray, fraction: float, num_classes: int, random: np.random.RandomState
) -> npt.NDArray[np.int32]:
    """Returns a copy of labels, a part of them wrong, with equally likely errors."""
    wrong = labels.astype(np.int32)
    rows = random.permutation(len(labels))[: round(fraction * len(labels))]
    # A step of 1 to num_classes - 1 around the circle of labels changes each label.
    steps = random.randint(1, num_classes, len(rows))
    wrong[rows] = (wrong[rows] + steps) % num_classes
    return wrong


def random_state(seed: int, *stream: int) -> np.random.RandomState:
    """Returns the generator of a seed; each `stream` is a separate sequence."""
    try:
        value = operator.index(seed)
    except TypeError:
        value = -1
    if isinstance(seed, bool) or not 0 <= value < 2**32:
        raise DataError(f"seed must be an integer from 0 to 2**32 - 1, got {seed!r}")
    return np.random.RandomState([value, *stream] if stream else value)


def floor_share(fraction: float, size: int) -> int:
    """Returns `floor(fraction * size)`, with the fraction as written in decimals.

    Floats differ a little from their decimals: `0.29 * 100` is 28.999999999999996 and
    `(1 - 0.8) * 5` is 0.9999999999999998. A product this close to a whole number is
    rounded to it.
    """
    exact = fractions.Fraction(str(fraction)) * int(size)
    nearest = round(exact)
    return nearest if abs(exact - nearest) <= _ROUNDING * size else int(exact)


def leaf_sample(
    sizes: IntArray, files: IntArray, fraction: float, seed: int
) -> IntArray:
    """Samples as LEAF's `-s niid --sf FRACTION`: whole users until it is reached.

    For each file separately, its users are shuffled and taken one after another until
    `int(fraction * examples of the file)` is reached; of the last user only the first
    examples that are missing. The product is LEAF's, in floats.
    """
    taken = np.zeros(len(sizes), np.int64)
    for number in np.unique(files):
        users = np.flatnonzero(files == number)
        missing = int(fraction * int(sizes[users].sum()))
        for user in random_state(seed, int(number)).permutation(users):
            taken[user] = min(int(sizes[user]), missing)
            missing -= taken[user]
    return taken


def leaf_cut(sizes: IntArray, taken: IntArray) -> IntArray:
    """Divides the sampled number of each user between train and test, in proportion."""
    total = np.maximum(sizes.sum(axis=1), 1)
    test = taken * sizes[:, 1] // total
    return np.stack([taken - test, test], axis=1)


def leaf_split(
    user: str, size: int, seed: int, train_fraction: float = 0.9
) -> tuple[IntArray, IntArray]:
    """Splits a user's examples as LEAF's `-t sample --tf 0.9` into train and test.

    `max(1, int(train_fraction * size))` of them, drawn at random, are the train
    examples, the others the test examples; both stay in their order. The product is
    LEAF's, in floats.
    """
    # Half of a surrogate pair is a valid name here.
    stream = zlib.crc32(user.encode(errors="surrogatepass"))
    state = random_state(seed, stream)
    order = state.permutation(size).astype(np.int64)
    count = max(1, int(train_fraction * size))
    return np.sort(order[:count]), np.sort(order[count:])


def leaf_split_text(size: int, gap: int) -> tuple[IntArray, IntArray]:
    """Splits a role's windows as LEAF's `-t sample --tf 0.9` does for Shakespeare.

    The first `max(1, int(0.9 * size))` are the train examples. The `gap` windows after
    them, which overlap the last of these, are excluded; the rest are test examples.
    """
    count = min(size, max(1, int(0.9 * size)))
    return np.arange(count), np.arange(min(size, count + gap), size)


def draw_at_most(max_size: int, user: str, size: int, seed: int) -> IntArray:
    """Draws at most `max_size` of a user's `size` examples; they stay in their order.

    The draw depends on the seed, the user and the size, and on no other user.
    """
    if size <= max_size:
        return np.arange(size)
    stream = zlib.crc32(user.encode(errors="surrogatepass"))
    state = random_state(seed, _LIMIT_STREAM, stream)
    return np.sort(state.permutation(size)[:max_size].astype(np.int64))


def split_classes(
    labels: IntArray, fraction: float, random: np.random.RandomState
) -> tuple[IntArray, IntArray]:
    """Draws a part of every class; returns its indices and the others', int64."""
    counts = np.bincount(labels)
    chosen = _ranks(labels, random) < np.rint(fraction * counts)[labels]
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def mixed_classes(labels: IntArray, random: np.random.RandomState) -> IntArray:
    """Returns a random order in which the classes take turns until they run out.

    With classes of equal size, any run of the order has equally many of each class,
    within one.
    """
    order: IntArray = np.lexsort((labels, _ranks(labels, random)))
    return order


def equal_parts(
    rows: IntArray, labels: IntArray, parts: int, random: np.random.RandomState
) -> list[IntArray]:
    """Cuts rows into parts of equal size, within one, each with all classes."""
    return np.array_split(rows[mixed_classes(labels[rows], random)], parts)


def _ranks(labels: IntArray, random: np.random.RandomState) -> IntArray:
    """Returns each example's rank, from 0, in a random order of its class, [N]."""
    ranks = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        ranks[rows] = random.permutation(len(rows))
    return ranks
