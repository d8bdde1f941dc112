"""`synthetic`: federations drawn at random; alpha and beta set how clients differ.

The law is that of FedProx (Li et al. 2020, section 5.1, and its published code) and of
q-FFL (Li et al. 2020, "Fair Resource Allocation in Federated Learning"). Client k has

  n_k = 50 + floor(exp(N(4, 2^2)))                    examples,
  x ~ N(v_k, S),  S diagonal, S_jj = j^-1.2           60 inputs,
  v_kj ~ N(B_k, 1),  B_k ~ N(0, beta^2),
  y = argmax(W_k x + b_k)                             one of 10 classes,
  W_k and b_k ~ N(u_k, 1) in each entry,  u_k ~ N(0, alpha^2).

An IID client has v_k = 0, and W and b ~ N(0, 1) that all such clients share. The
published federations are, with the flags that draw others of their kind:

  FedProx (0,0), (.5,.5), (1,1)  30 clients: `synthetic_alpha` and `synthetic_beta`
  FedProx IID                    30 clients: `synthetic_iid=1`
  q-FFL Synthetic, its script    100 clients, (1,1)
  q-FFL Synthetic, as quoted     the same with `synthetic_size_spread=1`
  q-FFL IID                      100 clients: `synthetic_iid=1 synthetic_size_spread=1`
  q-FFL Hybrid                   100 clients, (1,1): the same with `synthetic_iid=0.5`

The numbers of examples with which q-FFL's paper is quoted fit the lower spread
(docs/baselines.md). As in the code, alpha and beta are standard deviations; the paper
writes N(0, alpha), which is the same for 0 and 1. The published draws have no seed:
ours are others of the same law. Alpha changes no label: u_k is one number, which all
ten scores of an example have in the same way, so that the highest stays the highest.
Labelings differ all the same, because each client draws its W_k and b_k; what (0,0) and
(1,1) differ in is beta.

In FedProx's published files (.5,.5) and (1,1) labels are not those of the printed law:
of their largest test clients, with 465 and 662 examples, no linear model separates the
classes (a linear program has no solution), as one would if y were the argmax. They are
as if drawn with the probabilities softmax(W_k x + b_k), which `synthetic_labels=drawn`
does. The labels of the IID file are those of the printed law; the test file (0,0) fits
both.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from declared_settings import FROM_0_TO_1, Range, setting
from leaf_data import partition
from leaf_data.dataset import register
from leaf_data.datasets.partitioned import DealtDataset
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import NO_PIXELS

NUM_INPUTS, NUM_CLASSES = 60, 10
_NUM_CLIENTS = 30
_MIN_SIZE, _LOG_SIZE = 50, 4.0
_MAX_SIZE = 10**6  # With the default spread one client in two million has more.
_DEVIATIONS = np.arange(1, NUM_INPUTS + 1) ** -0.6  # The square roots of j^-1.2.
# Separate streams: a client is the same however many there are.
_CLIENT_STREAM, _SHARED_STREAM = 60, 61
_FINITE = Range(lambda x: 0 <= x <= 100, "from 0 to 100")


@dataclasses.dataclass(frozen=True)
class Synthetic(DealtDataset):
    """A federation of `num_clients` clients, by default 30, drawn by FedProx's law.

    The first `floor(0.9 n)` of a client's n examples are trained on, the others test.
    The first `floor(iid * num_clients)` clients are IID. With another number of clients
    the first ones stay the same, and with another alpha sizes and inputs do.
    """

    reads_folder = False

    alpha: float = setting(
        1.0,
        "The standard deviation of the mean of a client's weights in synthetic. By the "
        "published law it shifts all scores of an example alike: labels do not depend "
        "on it.",
        flag="synthetic_alpha",
        within=_FINITE,
    )
    beta: float = setting(
        1.0,
        "How much the inputs of synthetic's clients differ: the standard deviation of "
        "the mean of a client's inputs.",
        flag="synthetic_beta",
        within=_FINITE,
    )
    iid: float = setting(
        0.0,
        "The part of synthetic's clients, the first ones, that share one labeling and "
        "have inputs of mean 0, whatever alpha and beta are.",
        flag="synthetic_iid",
        within=FROM_0_TO_1,
    )
    size_spread: float = setting(
        2.0,
        "How much the sizes of synthetic's clients differ: the standard deviation of "
        "the logarithm of the number of examples beyond 50.",
        flag="synthetic_size_spread",
        within=Range(lambda x: 0 <= x <= 3, "from 0 to 3"),
    )

    labels: str = setting(
        "argmax",
        "How synthetic's labels follow from the 10 scores of an example: the highest "
        "one, as printed; or drawn with the probabilities of their softmax, as in two "
        "of FedProx's published files.",
        flag="synthetic_labels",
        choices=("argmax", "drawn"),
    )

    @property
    def note(self) -> str:
        """The number of clients, where it is set, and a law that is not (1,1)."""
        parts = [super().note]
        if self.iid:
            parts.append("IID" if self.iid == 1 else f"{100 * self.iid:g} % IID")
        if self.iid < 1 and (self.alpha, self.beta) != (1.0, 1.0):
            parts.append(f"alpha {self.alpha:g}, beta {self.beta:g}")
        return ", ".join(filter(None, parts))

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x float32 [60]; ten classes."""
        count = self.num_clients or _NUM_CLIENTS
        num_iid = partition.floor_share(self.iid, count)
        clients = [self._draw(k, k < num_iid) for k in range(count)]
        ids = tuple(f"f_{k:05d}" for k in range(count))
        sizes = [len(y) for _, y in clients]
        x, y = (np.concatenate(arrays) for arrays in zip(*clients))
        train, test = [], []
        for start, size in zip(np.cumsum([0, *sizes]), sizes):
            cut = start + partition.floor_share(0.9, size)
            train.append(np.arange(start, cut))
            test.append(np.arange(cut, start + size))
        return FederatedDataset(
            "synthetic",
            Examples.from_parts(x, y, train, ids),
            Examples.from_parts(x, y, test, ids),
            num_classes=NUM_CLASSES,
            pixel_convention=NO_PIXELS,
            origin=Origin("drawn by FedProx's law", (), ""),
            options={**self.options(), "num_clients": count},
        )

    def _draw(
        self, client: int, is_iid: bool
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Draws the examples of a client."""
        random = partition.random_state(self.seed, _CLIENT_STREAM, client)
        beyond = np.exp(_LOG_SIZE + self.size_spread * random.standard_normal())
        size = _MIN_SIZE + int(min(beyond, _MAX_SIZE))
        mean = self.beta * random.standard_normal()
        means = mean + random.standard_normal(NUM_INPUTS)
        weights_mean = self.alpha * random.standard_normal()
        weights = weights_mean + random.standard_normal((NUM_INPUTS, NUM_CLASSES))
        bias = weights_mean + random.standard_normal(NUM_CLASSES)
        if is_iid:
            shared = partition.random_state(self.seed, _SHARED_STREAM)
            means = np.zeros(NUM_INPUTS)
            weights = shared.standard_normal((NUM_INPUTS, NUM_CLASSES))
            bias = shared.standard_normal(NUM_CLASSES)
        x = means + _DEVIATIONS * random.standard_normal((size, NUM_INPUTS))
        scores = x @ weights + bias
        if self.labels == "drawn":  # The highest of these is a draw of the softmax.
            scores += random.gumbel(size=scores.shape)
        y = np.argmax(scores, axis=1)
        return x.astype(np.float32), y.astype(np.int32)


register("synthetic", Synthetic)
