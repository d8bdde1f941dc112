"""`reddit`: the next words of comments; each account is a client.

LEAF (Caldas et al. 2018) made it of comments of December 2017. Its files have comments
as sequences of 10 tokens: `<BOS>`, the words, `<EOS>`, then `<PAD>`; for each position
`target_tokens` has the next token, and `count_tokens` whether it counts. An example
here is such a sequence, with a label for each position.

A position does not count (its label is -1) if `count_tokens` says so, if its target is
`<PAD>`, behind `<EOS>`, or if its target is not in the vocabulary. LEAF's code trains
on the last two, and its accuracy counts them as wrong: the correct positions are the
same, and its denominator has all tokens of the inputs.
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
from leaf_data.examples import MASKED, Examples
from leaf_data.federated import FederatedDataset
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import NO_PIXELS
from leaf_data.text import UNKNOWN, Vocabulary

_COUNTS, _PAD = "count_tokens", "<PAD>"
_UNPADDED = {_PAD: UNKNOWN}
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
        """Returns the data set: x int32 [10], ids of tokens; y int32 [10], the next.

        Inputs of fewer tokens are padded behind with the last id. Sequences without a
        position that counts are excluded.
        """
        loaded = self._load_words(
            "reddit",
            data_dir,
            cache_dir,
            _to_arrays,
            _refuse_split,
            _count_once,
            labels="one per position",  # Earlier caches have one per example.
        )
        train, test = (
            _mask_unknown(part, loaded) for part in (loaded.train, loaded.test)
        )
        leaf_clients.check_usable((train, test), loaded.origin.folder)
        total = loaded.train.num_labels + loaded.test.num_labels
        num_masked = total - train.num_labels - test.num_labels
        origin = loaded.origin
        if num_masked:
            masked = (
                f"without {num_masked:,} of {total:,} positions whose next word is not "
                "in the vocabulary"
            )
            origin = dataclasses.replace(origin, source=f"{origin.source}, {masked}")
        return FederatedDataset(
            "reddit",
            train,
            test,
            num_classes=len(loaded.tokens),
            pixel_convention=NO_PIXELS,
            origin=origin,
            options=self.options(),
            class_names=loaded.tokens,
            vocabulary=Vocabulary("tokens", loaded.tokens),
        )


register("reddit", Reddit)


def _mask_unknown(part: Examples, loaded: LoadedWords) -> Examples:
    """Returns the examples by their new ids, without labels not in the vocabulary."""
    y = np.where(part.y == MASKED, MASKED, loaded.ids[part.y])
    y[y == len(loaded.tokens) - 1] = MASKED
    has_label = (y != MASKED).any(axis=1)
    rows = [
        start + np.flatnonzero(has_label[start : start + size])
        for start, size in zip(part.row_splits, part.sizes)
    ]
    return Examples.from_parts(part.x, y, rows, part.client_ids)


def _refuse_split(user: str, size: int) -> tuple[partition.IntArray, Any]:
    raise DataError(
        "reddit: its files are not split: run all of LEAF's run_reddit.sh, which makes "
        "the folders train and test"
    )


def _count_once(examples: Examples) -> npt.NDArray[np.int32]:
    """Returns each token of the comments once: that of each position, and the ends.

    An `<EOS>` is at no position that counts, because nothing follows it.
    """
    counts = examples.y != MASKED
    tokens, labels = examples.x[counts], examples.y[counts]
    return np.concatenate([tokens, labels[~np.isin(labels, tokens)]])


def _to_arrays(ids: Mapping[str, int]) -> leaf_clients.Convert:
    """Returns the conversion of an account's comments to their sequences."""
    lengths: set[int] = set()

    def to_arrays(
        x: list[Any], y: list[Any]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        inputs: list[list[int]] = []
        labels: list[list[int]] = []
        for index, (sequences, label) in enumerate(zip(x, y)):
            targets, counts = (
                _get(f"y[{index}]", label, key)
                for key in (leaf_clients.TARGETS, _COUNTS)
            )
            for name, rows, kinds in (
                (f"x[{index}]", sequences, _TOKEN),
                (f"y[{index}]: {leaf_clients.TARGETS}", targets, _TOKEN),
                (f"y[{index}]: {_COUNTS}", counts, _COUNT),
            ):
                lengths.update(_check_rows(name, rows, kinds))
                if len(rows) != len(sequences):
                    raise DataError(
                        f"{name} has {len(rows)} sequences, but x[{index}] has "
                        f"{len(sequences)}"
                    )
                if len(lengths) > 1:
                    raise DataError(
                        f"{name} has a sequence of another length than those before: "
                        f"{min(lengths)} and {max(lengths)} tokens"
                    )
            if not sequences:
                continue
            inputs += [[ids[_UNPADDED.get(t, t)] for t in row] for row in sequences]
            labels += [
                [ids[t] if c and t != _PAD else MASKED for t, c in zip(*row_pair)]
                for row_pair in zip(targets, counts)
            ]
        shape = -1, max(lengths, default=1)
        return (
            np.array(inputs, np.int32).reshape(shape),
            np.array(labels, np.int32).reshape(shape),
        )

    return to_arrays


def _get(name: str, label: Any, key: str) -> Any:
    if not isinstance(label, dict) or key not in label:
        raise DataError(f"{name} is {label!r:.40}, not an object with {key}")
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
            is_count = not isinstance(entry, str) and entry in (0, 1)
            is_token = isinstance(entry, str) and entry and "\n" not in entry
            if type(entry) not in kinds or not (is_count or is_token):
                raise DataError(f"{name} has {entry!r:.40}, not {_ENTRIES[kinds]}")
    return {len(row) for row in rows}
