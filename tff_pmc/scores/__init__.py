"""Scores over criteria: how several criteria become one weight per client.

    raw criteria r[k, i]  ->  c[k, i] = r[k, i] / sum_k r[k, i]
    score(c)              ->  s[k]
    participant weights   ->  p[k] = s[k] / sum_k s[k]

Nothing in this package imports TensorFlow. The papers' scores are polynomials
without repeated factors; OWA and Choquet integrals have minima instead of products.
So the aggregate of any score is a linear combination of a few sums over the clients;
`Basis` names those sums.

Example (DA, Example 2):

    >>> from tff_pmc import scores
    >>> score = scores.prioritized(("DS", "LD", "MD"))
    >>> round(score((0.5, 0.8, 0.9)), 2)
    1.26
"""

from tff_pmc.scores.basis import Basis
from tff_pmc.scores.choquet import (
    QUANTIFIERS,
    ChoquetScore,
    choquet,
    from_moebius,
    moebius,
    owa,
    owa_weights,
)
from tff_pmc.scores.polynomial import (
    PolynomialScore,
    dual,
    dual_grid,
    prioritized,
    product,
    single,
    weighted_average,
)
from tff_pmc.scores.score import Score
from tff_pmc.scores.weights import (
    SUM,
    Normalization,
    coefficient_of_variation,
    effective_clients,
    normalize,
    participant_weights,
    total_variation,
)

__all__ = [
    "QUANTIFIERS",
    "SUM",
    "Basis",
    "ChoquetScore",
    "Normalization",
    "PolynomialScore",
    "Score",
    "choquet",
    "coefficient_of_variation",
    "dual",
    "dual_grid",
    "effective_clients",
    "from_moebius",
    "moebius",
    "normalize",
    "owa",
    "owa_weights",
    "participant_weights",
    "prioritized",
    "product",
    "single",
    "total_variation",
    "weighted_average",
]
