"""The base class of data sets of words, and their vocabulary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

import numpy as np
import numpy.typing as npt

from declared_settings import Range, Settings, setting
from leaf_data import leaf_clients
from leaf_data.dataset import Dataset
from leaf_data.examples import Examples
from leaf_data.federated import Origin
from leaf_data.formats import data_files
from leaf_data.formats.cache import Arrays
from leaf_data.formats.data_files import Folder
from leaf_data.formats.leaf_json import LeafFile
from leaf_data.text import UNKNOWN, count_words


class LoadedWords(NamedTuple):
    """Examples whose words are ids of a vocabulary."""

    train: Examples
    test: Examples
    tokens: tuple[str, ...]  # Of which `UNKNOWN` is the last, which also pads.
    ids: npt.NDArray[np.int32]  # The id of each word by that of the conversion.
    origin: Origin


@dataclasses.dataclass(frozen=True)
class VocabularySettings(Settings):
    """The size of a vocabulary, for data sets of words and for models of them."""

    vocabulary_size: int = setting(
        10_000,
        "The maximum number of words in the vocabulary of sent140 or reddit, with one "
        "id for all other words. A model of words has a weight for each.",
        within=Range(lambda n: 2 <= n <= 2**20, "from 2 to 1048576"),
    )


@dataclasses.dataclass(frozen=True)
class TweetSettings(Settings):
    """The number of words of an input, for `sent140` and for models of it."""

    max_words: int = setting(
        25,
        "The number of words of a tweet of sent140 that are an input: the first ones.",
        within=Range(lambda n: 1 <= n <= 280, "from 1 to 280"),
    )


@dataclasses.dataclass(frozen=True)
class WordsDataset(VocabularySettings, Dataset):
    """A data set of LEAF whose inputs are words.

    The vocabulary has the most frequent words of all clients' training examples, the
    first by name of equally frequent ones; `max_client_examples` does not change it.
    """

    cached = True

    def _load_words(
        self,
        name: str,
        data_dir: Folder | None,
        cache_dir: Folder | None,
        build_convert_fn: Callable[[Mapping[str, int]], leaf_clients.Convert],
        split_fn: leaf_clients.Split,
        count_fn: Callable[[Examples], npt.NDArray[np.int32]],
        **parameters: Any,
    ) -> LoadedWords:
        """Loads LEAF's files with words as ids of the vocabulary.

        Args:
            name: the data set.
            data_dir: see `load`.
            cache_dir: see `load`.
            build_convert_fn: returns the conversion of a user, from a mapping that
                gives each word an id when it is first looked up; `UNKNOWN`, which
                pads, is 0.
            split_fn: see `leaf_clients.split_examples`.
            count_fn: returns the ids that count for the vocabulary.
            **parameters: what else the arrays depend on.
        """

        def read(files: Sequence[LeafFile]) -> Arrays:
            ids = _GrowingIds({UNKNOWN: 0})
            arrays = leaf_clients.read_arrays(files, build_convert_fn(ids))
            text = "\n".join(ids).encode("utf-8", "surrogatepass")
            return {**arrays, "words": np.frombuffer(text, np.uint8)}

        folders = data_files.folders(name, data_dir)
        arrays, origin = leaf_clients.load_cached(
            name, folders, read, cache_dir, **parameters
        )
        text = arrays["words"].tobytes().decode("utf-8", "surrogatepass")
        arrays = {key: array for key, array in arrays.items() if key != "words"}
        train, test = leaf_clients.split_examples(arrays, origin.folder, split_fn)
        ids, tokens = count_words(
            count_fn(train), text.split("\n"), self.vocabulary_size
        )
        train, test = (
            dataclasses.replace(part, x=ids[part.x]) for part in (train, test)
        )
        return LoadedWords(train, test, tokens, ids, origin)


class _GrowingIds(dict[str, int]):
    """Ids of words by the order in which they are first looked up."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number
