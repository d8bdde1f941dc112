"""`mnist_adafed`: MNIST as AdaFed's three simulations deal it.

"Performance-based Adaptive Federated Learning" (Giuseppi et al. 2022): few clients
with many images, whose models the server tests on a separate evaluation set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from declared_settings import Needs, setting
from leaf_data import partition
from leaf_data.client_table import ClientTable
from leaf_data.dataset import Dataset, register
from leaf_data.datasets import mnist
from leaf_data.examples import Examples
from leaf_data.federated import SERVER, FederatedDataset
from leaf_data.formats.data_files import Folder
from leaf_data.partition import IntArray
from leaf_data.pixels import WHITE_ON_BLACK

# AdaFed's Table 1: simulation 2's images of each digit, a row a client.
TABLE_1 = (
    (10, 0, 30, 10, 30, 50, 20, 20, 10, 10),
    (10, 0, 0, 500, 100, 0, 0, 500, 100, 500),
    (0, 0, 30, 500, 100, 150, 500, 0, 0, 500),
    (0, 0, 30, 0, 100, 0, 500, 500, 100, 0),
    (0, 10, 30, 500, 0, 0, 500, 500, 0, 500),
    (0, 10, 10, 10, 10, 100, 10, 0, 10, 3000),
)
# Simulation 3 has two clients more, with the numbers of clients 3 and 4, and the share
# of each client's labels that is wrong.
_SIMULATION_3 = (*TABLE_1, TABLE_1[2], TABLE_1[3])
_WRONG_LABELS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0)
# The digits of simulation 1's first five clients; the paper prints no pairs.
_PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
_FEW = {0: 100, 5: 200}  # Of whatever client has the digit.
_OF_TWO_DIGITS, _OF_EACH_DIGIT = 5500, 500
# How simulation 1's "5500 samples from two classes" can be read.
_READINGS = ("a_client", "a_class")
_NUM_CLASSES = 10
# Separate streams, each draw by itself: the clients are the same for any server
# set, and simulation 3 has the images of simulation 2.
_DEAL_STREAM, _MISLABEL_STREAM, _SERVER_STREAM = 610, 611, 612


@dataclasses.dataclass(frozen=True)
class MnistAdafed(Dataset):
    """MNIST as one of AdaFed's three simulations has it (its sections 4.0.1 to 4.0.3).

    1. Six clients. The first five have two digits each, 5,500 images in all, of 0 only
       100 and of 5 only 200; the sixth has 500 images of each digit. Together 32,500.
       `reading` has what else the sentence can mean.
    2. Six clients with as many images of each digit as in Table 1, together 10,110.
    3. Simulation 2's clients with their images, and two adversaries: client 7 has as
       many images of each digit as client 3, half of them with wrong labels, client 8
       as many as client 4, all of them with wrong labels. Together 13,120. The column
       `adversary` of `client_table` is 1 for these two.

    No image is dealt to two clients.

    The server's set is "reported", all of MNIST's test images, as printed (section 4),
    or "apart", a random half of each digit's test images; the clients have the other
    half then. What the clients have of the test images is cut among them in file
    order, in equal parts (their sizes differ by at most one): counts over all clients
    are counts over the test set.
    """

    simulation: str = setting(
        "1", "Which of AdaFed's simulations deals the images.", choices=("1", "2", "3")
    )
    reading: str = setting(
        "a_client",
        "How simulation 1's 5,500 samples from two classes are read: 5,500 images a "
        "client; or 5,500 a class, which leaves the sixth client 342 to 458 of the "
        "digits 2, 4, 6, 8 and 9 instead of 500.",
        flag="adafed_reading",
        choices=_READINGS,
        needs=Needs("--simulation=1", lambda on: on.simulation == "1"),
    )
    server_set: str = setting(
        "reported",
        "The images that AdaFed's server measures models on: those that accuracy is "
        "reported on, as in the paper, or others, kept apart from these.",
        choices=("reported", "apart"),
    )

    @property
    def note(self) -> str:
        """The reading of simulation 1, where it is not the default."""
        return "" if self.reading == _READINGS[0] else "5,500 a class"

    def options(self) -> dict[str, Any]:
        """Returns the settings of the simulation by name."""
        options = super().options()
        if self.simulation != "1":
            del options["reading"]
        return options

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set; clients are "client_1" and so on, as in the paper."""
        arrays, origin = mnist.read(data_dir)
        x, y = arrays["x_train"], arrays["y_train"].astype(np.int32)
        if self.simulation == "1":
            counts = simulation_1(self.reading, np.bincount(y, minlength=_NUM_CLASSES))
        else:
            counts = TABLE_1 if self.simulation == "2" else _SIMULATION_3
        ids = tuple(f"client_{number}" for number in range(1, len(counts) + 1))
        rows = deal(y, counts, partition.random_state(self.seed, _DEAL_STREAM))
        table = ClientTable()
        if self.simulation == "3":
            random = partition.random_state(self.seed, _MISLABEL_STREAM)
            for client_rows, share in zip(
                rows, _WRONG_LABELS
            ):  # No image has two clients.
                if share:  # Else nothing is drawn.
                    y[client_rows] = partition.mislabel(
                        y[client_rows], share, _NUM_CLASSES, random
                    )
            adversary = np.array(_WRONG_LABELS) > 0
            table = ClientTable(
                ids,
                {"adversary": adversary.astype(np.float32)},
                "AdaFed's simulation 3",
            )
        x_test, y_test = arrays["x_test"], arrays["y_test"]
        clients = server = np.arange(len(y_test))
        if self.server_set == "apart":
            random = partition.random_state(self.seed, _SERVER_STREAM)
            server, clients = partition.split_classes(y_test, 0.5, random)
        test_rows = np.array_split(clients, len(ids))
        return FederatedDataset(
            "mnist_adafed",
            Examples.from_parts(x, y, rows, ids),
            Examples.from_parts(x_test, y_test, test_rows, ids),
            num_classes=_NUM_CLASSES,
            pixel_convention=WHITE_ON_BLACK,
            origin=origin,
            options=self.options(),
            client_table=table,
            server_examples=Examples.from_parts(x_test, y_test, [server], [SERVER]),
        )


register("mnist_adafed", MnistAdafed)


def simulation_1(
    reading: str, available: Sequence[int] | IntArray
) -> tuple[tuple[int, ...], ...]:
    """Returns simulation 1's images of each digit, a row for each of six clients."""
    rows = []
    for pair in _PAIRS:
        few = {digit: _FEW[digit] for digit in pair if digit in _FEW}
        most = _OF_TWO_DIGITS
        if reading == "a_client":
            most = (_OF_TWO_DIGITS - sum(few.values())) // (len(pair) - len(few))
        counts = {digit: few.get(digit, most) for digit in pair}
        rows.append(tuple(counts.get(digit, 0) for digit in range(len(available))))
    dealt = [sum(column) for column in zip(*rows)]
    sixth = tuple(
        min(_OF_EACH_DIGIT, int(there) - taken)
        for there, taken in zip(available, dealt)
    )
    return (*rows, sixth)


def deal(
    labels: IntArray, counts: Sequence[Sequence[int]], random: np.random.RandomState
) -> list[IntArray]:
    """Deals each client the numbers of images of each digit in a table.

    Clients added at a table's end do not change the others' images.
    """
    digits = range(len(counts[0]))
    shuffled = [random.permutation(np.flatnonzero(labels == d)) for d in digits]
    parts = []
    for row, ends in zip(counts, np.cumsum(counts, axis=0)):
        runs = zip(shuffled, ends, row)
        parts.append(np.concatenate([rows[end - n : end] for rows, end, n in runs]))
    return [random.permutation(part) for part in parts]
