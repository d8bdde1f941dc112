"""`mnist_adafed`: MNIST as AdaFed's three simulations deal it.

"Performance-based Adaptive Federated Learning" (Giuseppi et al. 2022): few clients
with many images, whose models the server tests on an evaluation set of its own.
"""

from __future__ import annotations

import dataclasses
import operator
import os
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data import by_class, mnist, partition
from leaf_data.client_table import ClientTable
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import SERVER, WHITE_ON_BLACK, FederatedDataset
from leaf_data.mislabel import mislabel

SIMULATIONS = ("1", "2", "3")
SERVER_SETS = ("reported", "apart")

TABLE_1 = (
    (10, 0, 30, 10, 30, 50, 20, 20, 10, 10),
    (10, 0, 0, 500, 100, 0, 0, 500, 100, 500),
    (0, 0, 30, 500, 100, 150, 500, 0, 0, 500),
    (0, 0, 30, 0, 100, 0, 500, 500, 100, 0),
    (0, 10, 30, 500, 0, 0, 500, 500, 0, 500),
    (0, 10, 10, 10, 10, 100, 10, 0, 10, 3000),
)
"""AdaFed's Table 1: simulation 2's images of each digit, a row a client."""

_NUM_CLASSES, _NUM_TRAIN = 10, 60_000
_PER_CLASS = 5500  # Of simulation 1.
# The numbers of clients that each may have, the default first.
_NUM_CLIENTS = {"1": (6, 8), "2": (6,), "3": (8,)}
# Streams of their own, each draw by itself: the clients are the same for any server
# set, and the same images are dealt however many labels are wrong.
_DEAL_STREAM, _MISLABEL_STREAM, _SERVER_STREAM = 610, 611, 612

IntArray = npt.NDArray[Any]  # Of any integer type.


@dataclasses.dataclass(frozen=True)
class _Adversity:
    """The options of simulation 3 with their defaults."""

    mislabeled_fraction: float = 0.0
    num_adversaries: int = 2
    images_per_client: int = 7500


def load(
    data_dir: Union[str, os.PathLike[str], None] = None,
    *,
    simulation: str = "1",
    num_clients: Union[int, None] = None,
    mislabeled_fraction: float = _Adversity.mislabeled_fraction,
    num_adversaries: int = _Adversity.num_adversaries,
    images_per_client: int = _Adversity.images_per_client,
    server_set: str = "reported",
    seed: int = 0,
) -> FederatedDataset:
    """Loads MNIST, which is looked for as `mnist.read` says, for one simulation.

    1. Each client has two digits, 5,500 images of each. The paper does not print
       which: here client k, from 0, has 2k mod 10 and 2k + 1 mod 10, so that of six
       clients the first and the last have the same two digits, and of eight so do
       three pairs. Each client draws by itself, without replacement, so these share
       images: MNIST has 5,421 to 6,742 of a digit. Of the fives, which are 5,421,
       a client has all. Six clients have 65,921 training images together, eight
       87,842.
    2. Six clients with as many images of each digit as Table 1 says, 10,110
       together; none is with two clients.
    3. Eight clients with images dealt at random, as many to each and none to two.
       The last `num_adversaries` of them are adversaries, which `client_table` says
       in its column `adversary`; a part of their training labels is replaced by wrong
       ones (see `mislabel`).

    The test images of MNIST are cut among the clients in file order, in equal parts
    (their sizes differ by at most one): counts over all clients are counts over the
    test set.

    Args:
        data_dir: the folder.
        simulation: "1", "2" or "3".
        num_clients: by default the paper's, 6, 6 and 8; simulation 1 can have 8.
        mislabeled_fraction: of simulation 3, 0 to 1; the paper has 0.5 and 1.
        num_adversaries: of simulation 3, from 0; 2 is our choice.
        images_per_client: of simulation 3; the default deals all of MNIST.
        server_set: the server's evaluation set. "reported": all the test images,
            which the clients are tested on too, as the paper has one set for both.
            "apart": a random half of each digit's test images, and the clients have
            the other half.
        seed: of all draws, 0 to 2**32 - 1.

    Returns:
        The data set: x uint8 [28, 28], 0 = background; ten classes; clients
        "client_1" and so on, as the paper counts them.

    Raises:
        DataError: no such simulation, server set, number or seed; an option of
            simulation 3 is set for another; or what `mnist.read` raises.
    """
    partition.random_state(seed)  # Checks it, before seconds are spent on files.
    if server_set not in SERVER_SETS:
        raise DataError(
            f"mnist_adafed: no server_set {server_set!r}: there are "
            f"{', '.join(SERVER_SETS)}"
        )
    adversity = _Adversity(mislabeled_fraction, num_adversaries, images_per_client)
    clients = _check(simulation, num_clients, adversity)
    arrays, origin = mnist.read(data_dir)
    x, y = arrays["x_train"], arrays["y_train"].astype(np.int32)
    ids = tuple(f"client_{number}" for number in range(1, clients + 1))
    random = partition.random_state(seed, _DEAL_STREAM)
    parts = _deal(simulation, y, clients, adversity, random)
    train = Examples.from_parts(x, y, parts, ids)
    options: dict[str, Any] = {"simulation": simulation, "num_clients": clients}
    table = ClientTable()
    if simulation == "3":
        options.update(dataclasses.asdict(adversity))
        adversary = np.arange(clients) >= clients - num_adversaries
        table = ClientTable(
            ids, {"adversary": adversary.astype(np.float32)}, "AdaFed's simulation 3"
        )
        train = _mislabeled(train, adversary, mislabeled_fraction, seed)
    test, server = _test_sets(arrays, ids, server_set, seed)
    return FederatedDataset(
        name="mnist_adafed",
        train_examples=train,
        test_examples=test,
        num_classes=_NUM_CLASSES,
        pixel_convention=WHITE_ON_BLACK,
        origin=origin,
        options={**options, "server_set": server_set, "seed": int(seed)},
        client_table=table,
        server_examples=server,
    )


def _check(simulation: str, num_clients: Any, adversity: _Adversity) -> int:
    """Refuses what cannot be, and returns the number of clients."""
    if simulation not in SIMULATIONS:
        raise DataError(
            f"mnist_adafed: no simulation {simulation!r}: there are "
            f"{', '.join(SIMULATIONS)}"
        )
    possible = _NUM_CLIENTS[simulation]
    clients = possible[0] if num_clients is None else num_clients
    if clients not in possible:
        raise DataError(
            f"mnist_adafed: simulation {simulation} has "
            f"{' or '.join(map(str, possible))} clients, num_clients cannot be "
            f"{num_clients!r}"
        )
    if simulation != "3":
        for option, default in dataclasses.asdict(_Adversity()).items():
            if getattr(adversity, option) != default:
                raise DataError(
                    f"mnist_adafed: {option} is of simulation 3, not of {simulation}"
                )
        return int(clients)
    _in_range("num_adversaries", adversity.num_adversaries, 0, clients)
    most = _NUM_TRAIN // clients
    _in_range("images_per_client", adversity.images_per_client, 1, most)
    return int(clients)


def _in_range(option: str, number: Any, least: int, most: int) -> None:
    try:
        value = operator.index(number)
    except TypeError:
        value = least - 1
    if not least <= value <= most:
        raise DataError(
            f"mnist_adafed: {option} has to be an integer from {least} to {most}, not "
            f"{number!r}"
        )


def _deal(
    simulation: str,
    y: IntArray,
    clients: int,
    adversity: _Adversity,
    random: np.random.RandomState,
) -> list[IntArray]:
    """The rows of each client's training images, in random order."""
    if simulation == "3":
        order = random.permutation(len(y))
        size = adversity.images_per_client
        return [order[size * k : size * (k + 1)] for k in range(clients)]
    rows_of = [np.flatnonzero(y == digit) for digit in range(_NUM_CLASSES)]
    if simulation == "1":
        parts = [
            np.concatenate(
                [
                    random.permutation(rows_of[digit % _NUM_CLASSES])[:_PER_CLASS]
                    for digit in (2 * k, 2 * k + 1)
                ]
            )
            for k in range(clients)
        ]
    else:
        shuffled = [random.permutation(rows) for rows in rows_of]
        ends = np.cumsum(TABLE_1, axis=0)
        parts = [
            np.concatenate(
                [
                    rows[end - count : end]
                    for rows, end, count in zip(shuffled, ends[k], TABLE_1[k])
                ]
            )
            for k in range(clients)
        ]
    return [random.permutation(part) for part in parts]


def _mislabeled(
    train: Examples, adversary: npt.NDArray[np.bool_], fraction: float, seed: int
) -> Examples:
    y, random = train.y.copy(), partition.random_state(seed, _MISLABEL_STREAM)
    for k in np.flatnonzero(adversary):
        rows = slice(train.row_splits[k], train.row_splits[k + 1])
        y[rows] = mislabel(y[rows], fraction, _NUM_CLASSES, random)
    return dataclasses.replace(train, y=y)


def _test_sets(
    arrays: dict[str, npt.NDArray[np.uint8]],
    ids: tuple[str, ...],
    server_set: str,
    seed: int,
) -> tuple[Examples, Examples]:
    """The clients' test examples, and the server's."""
    x, y = arrays["x_test"], arrays["y_test"]
    clients = server = np.arange(len(y))
    if server_set == "apart":
        random = partition.random_state(seed, _SERVER_STREAM)
        server, clients = by_class.split(y, 0.5, random)
    return (
        Examples.from_parts(x, y, np.array_split(clients, len(ids)), ids),
        Examples.from_parts(x, y, [server], [SERVER]),
    )
