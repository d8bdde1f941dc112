"""Runs of two devices with ten test examples each, for tests of effects."""

import numpy as np
import pandas as pd

from tff_pmc.record import read

EXAMPLES = np.array([10, 10])


def run(label, per_round, targets=()):
    """Two devices with 10 test examples each, equally good."""
    weights = pd.DataFrame(
        {
            "round": [1, 1],
            "ordering": ["DS", "LD"],
            "coefficient_of_variation": [0.0, 0.2],
            "effective_clients": [10.0, 9.0],
            "total_variation": [0.0, 0.05],
        }
    )
    correct = np.repeat(np.array(per_round)[:, None], 2, axis=1)
    data = {"name": "toy", "clients": 2, "origin": {"source": "made up"}}
    info = {"data": data, "settings": {"experiment": "toy", "targets": list(targets)}}
    return read.Run(label, info, pd.DataFrame(), weights, correct, EXAMPLES)
