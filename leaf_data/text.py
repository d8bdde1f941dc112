"""Text as ids of tokens: vocabularies of letters and words, and windows of letters."""

from __future__ import annotations

import collections
import dataclasses
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from declared_settings import SettingError, require_sequence
from leaf_data.errors import DataError, shorten

LETTERS = (
    "\n !\"&'(),-.0123456789:;>?"
    + string.ascii_uppercase
    + "[]"
    + string.ascii_lowercase
    + "}"
)
"""The 80 letters of LEAF's Shakespeare; the id of a letter is its place."""

WINDOW = 80
"""The number of letters from which the next one is predicted."""

UNKNOWN = "<UNK>"
"""The token of all words that a vocabulary does not contain, and of padding."""

_MAX_TOKENS, _MAX_TOKEN = 1 << 20, 256  # Letters of a token.
_IDS = np.full(128, -1, np.int32)
_IDS[[ord(letter) for letter in LETTERS]] = np.arange(len(LETTERS))


def split_words(text: str) -> list[str]:
    """Splits text as LEAF's models of Sent140 do: words, and each of `.,!?;`.

    A word is a run of letters, digits, `_` and `'`; other characters are dropped.

    Examples:
        >>> split_words("I can't wait... :-)")
        ['I', "can't", 'wait', '.', '.', '.']
    """
    return re.findall(r"[\w']+|[.,!?;]", text)


_SPLIT: dict[str, Callable[[str], Sequence[str]]] = {
    "letters": list,
    "words": split_words,
    "tokens": str.split,
}


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The tokens whose ids are a model's inputs, and how text is split into them.

    Attributes:
        unit: what a token is: one of "letters"; "words", see `split_words`; or
            "tokens", which spaces separate.
        tokens: the tokens, each once; the id of a token is its place.

    Raises:
        DataError: (constructor) the unit is unknown, or the tokens are not different
            texts of at most 256 letters.

    Examples:
        >>> vocabulary = Vocabulary("words", ("I", "like", "it", "<UNK>"))
        >>> vocabulary.encode("I like tea", 4).tolist()
        [0, 1, 3, 3]
        >>> vocabulary.decode([2, 1])
        'it like'
    """

    unit: str
    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.unit not in _SPLIT:
            raise DataError(
                f"the unit of a vocabulary must be one of {', '.join(_SPLIT)}; got "
                f"{self.unit!r:.40}"
            )
        try:
            tokens = require_sequence("tokens", self.tokens)
        except SettingError as error:
            raise DataError(str(error)) from error
        if not 0 < len(tokens) <= _MAX_TOKENS:
            raise DataError(f"a vocabulary needs 1 to {_MAX_TOKENS} tokens")
        for token in tokens:
            if not isinstance(token, str) or not 0 < len(token) <= _MAX_TOKEN:
                raise DataError(
                    f"a token must be a text of 1 to {_MAX_TOKEN} letters, got "
                    f"{token!r:.40}"
                )
        if len(set(tokens)) < len(tokens):
            twice = collections.Counter(tokens).most_common(1)[0][0]
            raise DataError(f"a vocabulary has the token {twice!r:.40} twice")
        object.__setattr__(self, "tokens", tokens)

    @classmethod
    def from_dict(cls, values: Any) -> Vocabulary:
        """Builds the vocabulary that a store's header or a `model.json` contains.

        Raises:
            DataError: the values are not those of a vocabulary.
        """
        if not isinstance(values, Mapping) or {*values} != {"unit", "tokens"}:
            raise DataError(
                f"a vocabulary must have a unit and tokens; got {values!r:.40}"
            )
        return cls(values["unit"], values["tokens"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the vocabulary as a dict for JSON."""
        return {"unit": self.unit, "tokens": list(self.tokens)}

    def encode(self, text: str, length: int) -> npt.NDArray[np.int32]:
        """Returns text as a model's input, int32 [length].

        Of letters and of tokens it takes the last `length`, because the model predicts
        what follows; of words the first `length`. A shorter text of letters is padded
        in front, with spaces, and one of words or tokens behind, with the last token: a
        model of n tokens has its prediction at position n - 1. Unknown words and tokens
        become the last token.

        Raises:
            DataError: the vocabulary does not contain a letter of the text, or a space
                to pad a shorter one with.
        """
        ids_by_token = {token: k for k, token in enumerate(self.tokens)}
        parts = list(_SPLIT[self.unit](text))
        start = 0 if self.unit == "words" else max(0, len(parts) - length)
        parts = parts[start : start + length]
        num_missing = length - len(parts)
        if self.unit != "letters":
            parts += [self.tokens[-1]] * num_missing
        else:
            for part in parts:
                if part not in ids_by_token:
                    raise DataError(
                        f"the vocabulary does not contain the letter {part!a}: replace "
                        "it in the text"
                    )
            if num_missing and " " not in ids_by_token:
                raise DataError(
                    f"the text has {len(parts)} letters, not {length}, and the "
                    "vocabulary has no space to pad it with: give a longer text"
                )
            parts = [" "] * num_missing + parts
        unknown = len(self.tokens) - 1
        return np.array([ids_by_token.get(part, unknown) for part in parts], np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids: letters joined, or words with spaces between.

        Raises:
            DataError: the vocabulary does not have an id.
        """
        numbers, count = list(ids), len(self.tokens)
        for number in numbers:
            if not 0 <= number < count:
                raise DataError(
                    f"the vocabulary has the ids 0 to {count - 1}, not {number}"
                )
        separator = "" if self.unit == "letters" else " "
        return separator.join(self.tokens[k] for k in numbers)


def letter_ids(text: str) -> npt.NDArray[np.int32]:
    """Returns the id of each letter, int32; -1 - code for one that is not in `LETTERS`.

    `list_unknown` names those letters again.
    """
    content = text.encode("utf-32-le", errors="surrogatepass")
    codes = np.frombuffer(content, np.uint32).astype(np.int32)
    ids = np.where(codes < 128, _IDS[np.minimum(codes, 127)], -1)
    unknown: npt.NDArray[np.int32] = np.where(ids < 0, -1 - codes, ids)
    return unknown


def list_unknown(ids: npt.NDArray[np.int32]) -> str:
    """Returns the different unknown letters among ids of `letter_ids`, for messages."""
    letters = [chr(-1 - int(k)) for k in np.unique(ids[ids < 0])]
    return shorten(" ".join(ascii(letter) for letter in letters), 60)


def cut_windows(
    ids: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Returns all windows of a text, int32 [n, WINDOW], and the letter after each, [n].

    A text of at most `WINDOW` letters has none.
    """
    if len(ids) <= WINDOW:
        return np.zeros((0, WINDOW), np.int32), np.zeros(0, np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(ids[:-1], WINDOW)
    return np.array(windows), ids[WINDOW:]


def count_words(
    ids: npt.NDArray[np.int32], words: Sequence[str], max_tokens: int
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Builds a vocabulary of the most frequent words; ties are broken by name.

    Args:
        ids: the words of the training examples, as places in `words`.
        words: the different words, perhaps with `UNKNOWN`, which is not counted.
        max_tokens: the maximum number of tokens, `UNKNOWN` included.

    Returns:
        The new id of each of `words`, and the tokens, of which `UNKNOWN` is the last.
        Words without an occurrence in `ids` are unknown, and so are words of more than
        256 letters.
    """
    counts = np.bincount(ids.ravel(), minlength=len(words))
    order = sorted(np.flatnonzero(counts), key=lambda k: (-counts[k], words[k]))
    order = [k for k in order if words[k] != UNKNOWN and len(words[k]) <= _MAX_TOKEN]
    order = order[: max_tokens - 1]
    new_ids = np.full(len(words), len(order), np.int32)
    new_ids[order] = np.arange(len(order))
    return new_ids, (*(words[k] for k in order), UNKNOWN)
