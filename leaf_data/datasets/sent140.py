"""`sent140`: tweets that are positive or not; each account is a client.

LEAF (Caldas et al. 2018) made it of Sentiment140 (Go et al. 2009). An example of its
files is a row of fields of a tweet, of which the fifth is the text. As LEAF's models
read it, the text is split into words (`text.split_words`), and the first 25 are the
input; unknown words, and what a shorter text lacks, have one id, the last. LEAF takes
the vocabulary of downloaded vectors; here it is made of the training examples.

LEAF's other model has a bag of words as its input: the number of times that each word
occurs. A model computes it from this input, as the sum over the positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from declared_settings import Range, setting
from leaf_data import leaf_clients, partition
from leaf_data.dataset import Dataset, register
from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset
from leaf_data.formats import data_files
from leaf_data.formats.cache import Arrays
from leaf_data.formats.data_files import Folder
from leaf_data.formats.leaf_json import LeafFile
from leaf_data.pixels import NO_PIXELS
from leaf_data.text import UNKNOWN, Vocabulary, count_words, split_words

_TEXT = 4  # The field of the text: id, date, query, user, text.
# By label, also in quotes, as FedProx's script writes it. LEAF's scripts make the
# neutral tweets, 2, of Sentiment140's test set 0.
_CLASSES = {0: 0, 1: 1, 2: 0, 4: 1, "0": 0, "1": 1, "2": 0, "4": 1}


@dataclasses.dataclass(frozen=True)
class Sent140(Dataset):
    """Sentiment140, in which each account is a client.

    Files that are not split are split as LEAF does: of each account 90 % of the tweets,
    drawn at random, are trained on, and accounts with one tweet are excluded.

    The vocabulary has the most frequent words of all clients' training examples, the
    first by name of equally frequent ones; `max_client_examples` does not change it.
    """

    cached = True

    vocabulary_size: int = setting(
        10_000,
        "The maximum number of words in the vocabulary of sent140, with one id for all "
        "other words.",
        within=Range(lambda n: 2 <= n <= 2**20, "from 2 to 1048576"),
    )
    max_words: int = setting(
        25,
        "The number of words of a tweet of sent140 that are an input: the first ones.",
        within=Range(lambda n: 1 <= n <= 280, "from 1 to 280"),
    )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x int32 [max_words], ids of words; y 1 = positive."""
        arrays, origin = leaf_clients.load_cached(
            "sent140",
            data_files.folders("sent140", data_dir),
            self._read,
            cache_dir,
            max_words=self.max_words,
        )
        arrays = dict(arrays)
        words = (
            arrays.pop("words").tobytes().decode("utf-8", "surrogatepass").split("\n")
        )
        parts = leaf_clients.split_examples(
            arrays,
            origin.folder,
            lambda user, size: partition.leaf_split(user, size, self.seed),
        )
        ids, tokens = count_words(parts[0].x, words, self.vocabulary_size)
        train, test = (dataclasses.replace(part, x=ids[part.x]) for part in parts)
        return FederatedDataset(
            "sent140",
            train,
            test,
            num_classes=2,
            pixel_convention=NO_PIXELS,
            origin=origin,
            options=self.options(),
            class_names=("negative", "positive"),
            vocabulary=Vocabulary("words", tokens),
        )

    def _read(self, files: Sequence[LeafFile]) -> Arrays:
        """Reads the files: words by the order in which they first occur."""
        ids = {UNKNOWN: 0}  # Which pads.

        def to_arrays(
            x: list[Any], y: list[Any]
        ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
            inputs = np.zeros((len(x), self.max_words), np.int32)
            for index, row in enumerate(x):
                text = row[_TEXT] if isinstance(row, list) and len(row) > _TEXT else row
                if not isinstance(text, str) or text is row:
                    raise DataError(
                        f"x[{index}] is {row!r:.40}, not a list of a tweet's fields, "
                        "of which the fifth is the text"
                    )
                words = split_words(text)[: self.max_words]
                inputs[index, : len(words)] = [
                    ids.setdefault(word, len(ids)) for word in words
                ]
            for index, label in enumerate(y):
                if type(label) not in (int, str) or label not in _CLASSES:
                    raise DataError(f"y[{index}] is {label!r:.40}, not 0, 1, 2 or 4")
            return inputs, np.array([_CLASSES[label] for label in y], np.int32)

        arrays = leaf_clients.read_arrays(files, to_arrays)
        text = "\n".join(ids).encode("utf-8", "surrogatepass")
        return {**arrays, "words": np.frombuffer(text, np.uint8)}


register("sent140", Sent140)
