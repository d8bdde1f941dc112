"""`sent140`: tweets that are positive or not; each account is a client.

LEAF (Caldas et al. 2018) made it of Sentiment140 (Go et al. 2009). An example of its
files is a row of fields of a tweet, of which the fifth is the text. As LEAF's models
read it, the text is split into words (`text.split_words`), and the first 25 are the
input; unknown words, and what a shorter text lacks, have one id, the last. LEAF takes
the vocabulary of downloaded vectors; here it is built from the training examples.

LEAF's other model has a bag of words as its input: the number of times that each word
occurs. A model computes it from this input, as the sum over the positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data import leaf_clients, partition
from leaf_data.dataset import register
from leaf_data.datasets.words import TweetSettings, WordsDataset
from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import NO_PIXELS
from leaf_data.text import Vocabulary, split_words

_TEXT = 4  # The field of the text: id, date, query, user, text.
# By label, also in quotes, as FedProx's script writes it. LEAF's scripts make the
# neutral tweets, 2, of Sentiment140's test set 0.
_CLASSES = {0: 0, 1: 1, 2: 0, 4: 1, "0": 0, "1": 1, "2": 0, "4": 1}


@dataclasses.dataclass(frozen=True)
class Sent140(TweetSettings, WordsDataset):
    """Sentiment140, in which each account is a client.

    Files that are not split are split as LEAF does: of each account 90 % of the tweets,
    drawn at random, are trained on, and accounts with one tweet are excluded.
    """

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x int32 [max_words], ids of words; y 1 = positive."""
        loaded = self._load_words(
            "sent140",
            data_dir,
            cache_dir,
            self._to_arrays,
            lambda user, size: partition.leaf_split(user, size, self.seed),
            lambda examples: examples.x,
            max_words=self.max_words,
        )
        return FederatedDataset(
            "sent140",
            loaded.train,
            loaded.test,
            num_classes=2,
            pixel_convention=NO_PIXELS,
            origin=loaded.origin,
            options=self.options(),
            class_names=("negative", "positive"),
            vocabulary=Vocabulary("words", loaded.tokens),
        )

    def _to_arrays(self, ids: Mapping[str, int]) -> leaf_clients.Convert:
        """Returns the conversion of an account's tweets and their labels."""

        def to_arrays(
            x: list[Any], y: list[Any]
        ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
            inputs = np.zeros((len(x), self.max_words), np.int32)
            for index, row in enumerate(x):
                if not leaf_clients.is_tweet(row):
                    raise DataError(
                        f"x[{index}] is {row!r:.40}, not a list of a tweet's fields: "
                        "a number, date, query, user and text"
                    )
                words = split_words(row[_TEXT])[: self.max_words]
                inputs[index, : len(words)] = [ids[word] for word in words]
            for index, label in enumerate(y):
                if type(label) not in (int, str) or label not in _CLASSES:
                    raise DataError(f"y[{index}] is {label!r:.40}, not 0, 1, 2 or 4")
            return inputs, np.array([_CLASSES[label] for label in y], np.int32)

        return to_arrays


register("sent140", Sent140)
