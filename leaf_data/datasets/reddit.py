"""`reddit`: the next word of a comment; each account is a client.

LEAF (Caldas et al. 2018) made it of comments of December 2017. Its files have comments
as sequences of 10 tokens: `<BOS>`, the words, `<EOS>`, then `<PAD>`; for each position
`target_tokens` has the next token, and `count_tokens` whether it counts. LEAF's model
predicts at each position. Here each position is an example: the input are the last 10
tokens of the comment up to it, the label is the target.

Excluded are positions that do not count, those whose target is `<PAD>`, behind `<EOS>`,
and those whose target is not in the vocabulary. LEAF's accuracy has the last two in its
denominator, and counts them as wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data import leaf_clients, partition
from leaf_data.dataset import register
from leaf_data.datasets.words import LoadedWords, WordsDataset
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import NO_PIXELS
from leaf_data.text import Vocabulary

_COUNTS, _PAD = "count_tokens", "<PAD>"
_MAX_LENGTH = 256
_TOKEN, _COUNT = (str,), (int, float)
_ENTRIES = {_TOKEN: "a token", _COUNT: "0 or 1"}


@dataclasses.dataclass(frozen=True)
class Reddit(WordsDataset):
    """Reddit's comments, in which each account is a client.

    It needs files in `train` and `test`, as LEAF's `run_reddit.sh` writes them; those
    in `val` are not read.
    """

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x int32 [10], ids of tokens; y the next one's.

        Contexts of fewer tokens are padded in front with the last id.
        """
        loaded = self._load_words(
            "reddit", data_dir, cache_dir, _to_arrays, _refuse_split, _count_once
        )
        train, test = (
            _keep_known(part, loaded) for part in (loaded.train, loaded.test)
        )
        total = loaded.train.num_examples + loaded.test.num_examples
        num_excluded = total - train.num_examples - test.num_examples
        origin = loaded.origin
        if num_excluded:
            excluded = (
                f"excluded {num_excluded:,} of {total:,} examples whose next word is "
                "not in the vocabulary"
            )
            origin = dataclasses.replace(origin, source=f"{origin.source}, {excluded}")
        return FederatedDataset(
            "reddit",
            train,
            test,
            num_classes=len(loaded.tokens),
            pixel_convention=NO_PIXELS,
            origin=origin,
            options=self.options(),
            vocabulary=Vocabulary("tokens", loaded.tokens),
        )


register("reddit", Reddit)


def _keep_known(part: Examples, loaded: LoadedWords) -> Examples:
    """Returns the examples whose labels are in the vocabulary, by their new ids."""
    y = loaded.ids[part.y]
    is_known = y != len(loaded.tokens) - 1
    rows = [
        start + np.flatnonzero(is_known[start : start + size])
        for start, size in zip(part.row_splits, part.sizes)
    ]
    return Examples.from_parts(part.x, y, rows, part.client_ids)


def _refuse_split(user: str, size: int) -> tuple[partition.IntArray, Any]:
    raise DataError(
        "reddit: its files are not split: run all of LEAF's run_reddit.sh, which makes "
        "the folders train and test"
    )


def _count_once(examples: Examples) -> npt.NDArray[np.int32]:
    """Returns each token of the comments once: the last of each input, and the ends.

    An `<EOS>` is the last token of no input, because nothing follows it.
    """
    last = examples.x[:, -1]
    return np.concatenate([last, examples.y[~np.isin(examples.y, last)]])


def _to_arrays(ids: Mapping[str, int]) -> leaf_clients.Convert:
    """Returns the conversion of an account's comments, with all their positions."""
    lengths: set[int] = set()

    def to_arrays(
        x: list[Any], y: list[Any]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        inputs, labels = [], []
        for index, (sequences, label) in enumerate(zip(x, y)):
            targets, counts = _get(label, leaf_clients.TARGETS), _get(label, _COUNTS)
            for name, rows, kinds in (
                (f"x[{index}]", sequences, _TOKEN),
                (f"y[{index}]: {leaf_clients.TARGETS}", targets, _TOKEN),
                (f"y[{index}]: {_COUNTS}", counts, _COUNT),
            ):
                lengths.update(_check_rows(name, rows, kinds))
                if len(lengths) > 1 or len(rows) != len(sequences):
                    raise DataError(
                        f"{name} has {len(rows)} sequences, of {max(lengths)} tokens: "
                        f"it needs {len(sequences)}, all of {min(lengths)}"
                    )
            if not sequences:
                continue
            (length,) = lengths
            tokens = np.array([ids[t] for row in sequences for t in row], np.int32)
            padded = np.concatenate([np.zeros(length - 1, np.int32), tokens])
            contexts = np.lib.stride_tricks.sliding_window_view(padded, length)
            words = [word for row in targets for word in row]
            kept = np.array([c for row in counts for c in row]) > 0
            kept &= np.array([word != _PAD for word in words])
            inputs.append(contexts[kept])
            labels += [ids[word] for word, k in zip(words, kept.tolist()) if k]
        empty = np.zeros((0, max(lengths, default=0)), np.int32)
        return np.concatenate([empty, *inputs]), np.array(labels, np.int32)

    return to_arrays


def _get(label: Any, key: str) -> Any:
    if not isinstance(label, dict) or key not in label:
        raise DataError(f"y has {label!r:.40}, not an object with {key}")
    return label[key]


def _check_rows(name: str, rows: Any, kinds: tuple[type, ...]) -> set[int]:
    """Returns the lengths of sequences whose entries have these types."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise DataError(f"{name} is {rows!r:.40}, not a list of sequences")
    for row in rows:
        if not 0 < len(row) <= _MAX_LENGTH:
            raise DataError(
                f"{name} has a sequence of {len(row)} tokens, not 1 to {_MAX_LENGTH}"
            )
        for entry in row:
            is_valid = "\n" not in entry if isinstance(entry, str) else entry in (0, 1)
            if type(entry) not in kinds or not is_valid:
                raise DataError(f"{name} has {entry!r:.40}, not {_ENTRIES[kinds]}")
    return {len(row) for row in rows}
