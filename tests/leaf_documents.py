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
