"""Vocabularies, letters and windows of text."""

import numpy as np
import pytest
from made_up import assert_refused

from leaf_data import Vocabulary, text

# As LEAF's published `language_utils.py` has them.
LEAFS = (
    "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
)


def test_letters_are_those_of_leaf_in_its_order():
    assert text.LETTERS == LEAFS and len(set(LEAFS)) == 80
    assert text.letter_ids(LEAFS).tolist() == list(range(80))
    ids = text.letter_ids("aé{\ud800😀~")
    assert ids.tolist() == [53, -1 - 0xE9, -1 - 123, -1 - 0xD800, -1 - 0x1F600, -127]
    assert text.list_unknown(ids) == "'\\U0001f600' '\\ud800' '\\xe9' '~' '{'"


@pytest.mark.parametrize(("size", "count"), [(0, 0), (80, 0), (81, 1), (85, 5)])
def test_windows_and_the_letter_after_each(size, count):
    ids = np.arange(size, dtype=np.int32)
    x, y = text.cut_windows(ids)
    assert x.shape == (count, 80) and x.dtype == y.dtype == np.int32
    assert y.tolist() == list(range(80, 80 + count))
    assert all((y[k] - row == np.arange(80, 0, -1)).all() for k, row in enumerate(x))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("I can't wait... :-)", ["I", "can't", "wait", ".", ".", "."]),
        ("@ann: no?!", ["ann", "no", "?", "!"]),
        ("", []),
    ],
)
def test_words_are_split_as_leaf_splits_them(line, words):
    assert text.split_words(line) == words


def test_the_most_frequent_words_are_the_vocabulary():
    words = ["b", "a", "rare", "<UNK>", "unseen", "w" * 257]
    ids = np.array([[0, 1, 0, 1, 5, 5], [2, 3, 3, 3, 3, 3]], np.int32)
    new_ids, tokens = text.count_words(ids, words, 10)
    assert tokens == ("a", "b", "rare", "<UNK>")
    assert new_ids.tolist() == [1, 0, 2, 3, 3, 3]
    new_ids, tokens = text.count_words(ids, words, 2)
    assert tokens == ("a", "<UNK>") and new_ids.tolist() == [1, 0, 1, 1, 1, 1]


LETTERS = Vocabulary("letters", tuple(LEAFS))
WORDS = Vocabulary("words", ("I", "like", "it", "<UNK>"))
TOKENS = Vocabulary("tokens", ("a,b", "c", "<UNK>"))


@pytest.mark.parametrize(
    ("vocabulary", "line", "length", "ids"),
    [
        (LETTERS, "abc", 2, [54, 55]),  # The last ones.
        (LETTERS, "ab", 4, [1, 1, 53, 54]),
        (WORDS, "I like it, it", 4, [0, 1, 2, 3]),  # The first ones.
        (WORDS, "tea", 3, [3, 3, 3]),
        (TOKENS, " a,b  c d", 4, [0, 1, 2, 2]),
        (TOKENS, "d a,b c", 2, [0, 1]),
        *((vocabulary, "c it", 0, []) for vocabulary in (LETTERS, WORDS, TOKENS)),
    ],
)
def test_text_is_encoded(vocabulary, line, length, ids):
    encoded = vocabulary.encode(line, length)
    assert encoded.dtype == np.int32 and encoded.tolist() == ids


def test_ids_are_decoded():
    assert LETTERS.decode(LETTERS.encode("To be!", 6)) == "To be!"
    assert WORDS.decode([2, 3]) == "it <UNK>"
    assert Vocabulary.from_dict(WORDS.to_dict()) == WORDS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LETTERS.encode("caf\xe9", 8), "the letter '\\xe9'"),
        (
            lambda: Vocabulary("letters", ("a", "b")).encode("ab", 3),
            "the text has 2 letters, not 3, and the vocabulary has no space",
        ),
        (lambda: LETTERS.decode([0, 80]), "the vocabulary has the ids 0 to 79, not 80"),
        (lambda: WORDS.decode(np.array([-1])), "the ids 0 to 3, not -1"),
    ],
)
def test_what_the_vocabulary_does_not_have_is_named(call, message):
    assert_refused(call, message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a"], "a vocabulary must have a unit and tokens; got ['a']"),
        ({"unit": "words"}, "a vocabulary must have a unit and tokens"),
        ({"unit": "bytes", "tokens": ["a"]}, "one of letters, words, tokens; got 'byt"),
        ({"unit": "words", "tokens": "ab"}, "tokens must be a sequence"),
        ({"unit": "words", "tokens": []}, "needs 1 to 1048576 tokens"),
        ({"unit": "words", "tokens": ["a", 1]}, "a text of 1 to 256 letters, got 1"),
        ({"unit": "words", "tokens": ["a", ""]}, "a text of 1 to 256 letters, got ''"),
        ({"unit": "words", "tokens": ["b", "a", "a"]}, "has the token 'a' twice"),
    ],
)
def test_an_invalid_vocabulary_is_rejected(values, message):
    assert_refused(lambda: Vocabulary.from_dict(values), message)
