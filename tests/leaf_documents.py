"""LEAF's JSON, as several tests write it."""

import json


def write_leaf(path, users):
    """Writes users' `x` and `y`; their data stand in another order than their names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "users": list(users),
        "num_samples": [len(data["y"]) for data in users.values()],
        "user_data": dict(reversed(list(users.items()))),
    }
    path.write_text(json.dumps(document))
    return path


def reddit_comments(texts, length):
    """An account's comments in LEAF's form: sequences, targets, and what counts."""
    x, y = [], []
    for number, text in enumerate(texts):
        tokens = ["<BOS>", *text.split(), "<EOS>"]
        size = -(-len(tokens) // length) * length
        rows = []
        for values, padding in (
            (tokens, "<PAD>"),
            (tokens[1:], "<PAD>"),
            ([1.0] * len(tokens), 0),
        ):
            values = values + [padding] * (size - len(values))
            rows.append([values[k : k + length] for k in range(0, size, length)])
        x.append(rows[0])
        label = {"subreddit": "rain", "created_utc": number, "score": 1}
        y.append({**label, "target_tokens": rows[1], "count_tokens": rows[2]})
    return {"x": x, "y": y}
