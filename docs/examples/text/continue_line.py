"""Continues a line of text with a trained model.

python continue_line.py runs/plays/LD-DS-MD/model "To be, or not to be"
"""

import json
import pathlib
import sys

import numpy as np
import tensorflow as tf

import leaf_data


def continue_line(folder, line, count=80, temperature=0.5, seed=0):
    """Returns a line with `count` more tokens, drawn from the model's predictions.

    A temperature near 0 takes the most likely token each time, 1 draws as predicted.
    The model must predict the next token: others, such as those of tweets, are refused.
    """
    folder = pathlib.Path(folder)
    about = json.loads((folder / "model.json").read_text())
    vocabulary = leaf_data.Vocabulary.from_dict(about["vocabulary"])
    length, dtype = about["input_shape"][1], about["input_type"]
    serve = tf.saved_model.load(str(folder / "saved_model")).signatures[
        "serving_default"
    ]
    num_scores = serve.structured_outputs["scores"].shape[-1]
    if num_scores < len(vocabulary.tokens):
        raise SystemExit(
            f"{folder}: predicts {num_scores} classes, and not which of the "
            f"{len(vocabulary.tokens)} tokens is next"
        )
    random = np.random.default_rng(seed)
    separator = "" if vocabulary.unit == "letters" else " "
    for _ in range(count):
        ids = tf.constant([vocabulary.encode(line, length)], dtype)
        scores = serve(x=ids)["scores"][0].numpy()
        if scores.ndim > 1:  # Of a model with a prediction at each position.
            scores = scores[min(len(line.split()), length) - 1]
        scores = scores[: len(vocabulary.tokens)] / temperature
        likelihood = np.exp(scores - scores.max())
        token = random.choice(len(scores), p=likelihood / likelihood.sum())
        line += separator + vocabulary.decode([token])
    return line


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(continue_line(*sys.argv[1:3]))
