"""How unequal participant weights are, and how far two sets of them differ.

With m clients a normalized criterion is about 1/m, so the second priority
enters at order 1/m of the first: these figures tell whether an ordering can
matter at all before anyone spends a day of computing on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def coefficient_of_variation(weights: npt.ArrayLike) -> float:
    """Standard deviation of the weights over their mean; 0 when all are equal.

    Args:
        weights: participant weights [clients], summing to 1 (or all 0, which
            gives 0).
    """
    p = np.asarray(weights, float)
    return float(p.std() / p.mean()) if p.sum() > 0 else 0.0


def effective_clients(weights: npt.ArrayLike) -> float:
    """The number of equally weighted clients that are as unequal: `1/sum p^2`.

    Between 1 (one client decides) and the number of clients; 0 if no weight.
    """
    p = np.asarray(weights, float)
    return float(1.0 / np.square(p).sum()) if p.sum() > 0 else 0.0


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Half the sum of absolute differences: the share of weight that moves.

    Args:
        p: participant weights [clients].
        q: other weights of the same clients.
    """
    return float(0.5 * np.abs(np.asarray(p, float) - np.asarray(q, float)).sum())
