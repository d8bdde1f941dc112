"""What Dual claims of its results that runs can judge.

Every claim is judged by differences of accuracy at the best epoch against their noise
(`dual_differences`). The paper names F1, precision and MCC beside accuracy; they are in
`dual_tableN.md`, and follow it closely.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Callable

import numpy as np

from tff_pmc.reports import paired
from tff_pmc.reports.kept import totals
from tff_pmc.reports.papers import dual_cells
from tff_pmc.reports.papers.claims_of_papers import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDABLE,
    Claim,
)
from tff_pmc.reports.papers.dual_differences import (
    Best,
    Difference,
    best_epoch,
    best_epochs,
    caveat,
    difference,
)
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import RecordError

_CIFAR, _OBSTACLES = "dual_criterion", "dual_criterion_obstacles"
_THREE, _FOUR = 3, 4
_PICTURES = "the paper's obstacle pictures, of which it gives no address"

_Judged = tuple[str, str, str]


def _verdict(runs: Sequence[Run], found: Difference, verdict: str, why: str) -> _Judged:
    """The verdict, which fewer seeds or less data can only point to."""
    small = caveat(runs)
    if not small and found.seeds < paired.MIN_SEEDS:
        small = f"below {paired.MIN_SEEDS} seeds"
    if small:
        points = "" if verdict == UNDECIDABLE else f", which points to: {verdict}"
        return found.text, UNDECIDABLE, f"{small}{points} ({why})"
    return found.text, verdict, why


def _judge(
    by_experiment: Mapping[str, Sequence[Run]],
    *,
    experiment: str,
    clients: int,
    gap: Callable[[Best], float],
    signs: tuple[int, ...],
    what: str,
) -> _Judged:
    """Whether a difference has a sign that is claimed; 0 is one within the noise."""
    runs = list(by_experiment.get(experiment, ()))
    found = difference(runs, clients, gap)
    within = "within" if found.sign == 0 else "beyond"
    why = f"{what} is {within} the noise"
    if found.sign in signs:
        return _verdict(runs, found, REPRODUCED, why)
    return _verdict(runs, found, NOT_REPRODUCED if found.sign else UNDECIDABLE, why)


def _ahead_of_all(best: Best) -> float:
    """Dual's lead over the best other; a whole table is needed."""
    others = [best[name] for name in dual_cells.ALGORITHMS if name != "dual"]
    return best["dual"] - max(others)


def _ahead(one: str, other: str) -> Callable[[Best], float]:
    return lambda best: best[one] - best[other]


def _above_chance(best: Best) -> float:
    return best["laplace"] - 0.1


def _tuned(by_experiment: Mapping[str, Sequence[Run]]) -> _Judged:
    """Whether local training after aggregation makes the personalized row better."""
    runs = list(by_experiment.get(_CIFAR, ()))
    tuned = [r for r in runs if r.settings.get("personalized_form") == "text"]
    if not tuned:
        why = (
            "no run with --personalized_form=text, which tests the clients' own models"
        )
        return "", UNDECIDABLE, why
    gaps = []
    for run in tuned:
        by_seed = best_epochs(runs, int(run.data["clients"]))
        best = by_seed.get(int(run.settings["batch_seed"]), {})
        if "simple_average" in best:
            gaps.append(best_epoch(run) - best["simple_average"])
    if not gaps:
        raise RecordError("no run of the simple average beside the tuned models'")
    level = best_epoch(tuned[0])
    floor = 2 * math.sqrt(2 * level * (1 - level) / totals(tuned[0])[1])
    found = Difference(float(np.mean(gaps)), floor, len(gaps))
    if found.sign == 0:
        return _verdict(runs, found, UNDECIDABLE, "the lead is within the noise")
    verdict = REPRODUCED if found.sign > 0 else NOT_REPRODUCED
    return _verdict(runs, found, verdict, "tuned models against the simple average")


def _claim(
    place: str,
    says: str,
    gap: Callable[[Best], float],
    signs: tuple[int, ...],
    what: str,
    clients: int = _THREE,
    experiment: str = _CIFAR,
) -> Claim:
    judge = functools.partial(
        _judge,
        experiment=experiment,
        clients=clients,
        gap=gap,
        signs=signs,
        what=what,
    )
    needs = _PICTURES if experiment == _OBSTACLES else ""
    return Claim("Dual", place, says, (experiment,), judge, needs)


CLAIMS: Sequence[Claim] = (
    _claim(
        "II-B; Table IV",
        "Quantization keeps an acceptable accuracy: printed .0028 above the simple "
        "average with three clients. Judged as no difference from it.",
        _ahead("quantized", "simple_average"),
        (0,),
        "quantization minus simple average, three clients",
    ),
    _claim(
        "Table IV",
        "With three clients momentum is far behind the weighted mean (printed: .0454).",
        _ahead("momentum", "weighted_mean"),
        (-1,),
        "momentum minus weighted mean",
    ),
    _claim(
        "Table IV",
        "With four clients momentum is far behind the weighted mean (printed: .0506).",
        _ahead("momentum", "weighted_mean"),
        (-1,),
        "momentum minus weighted mean",
        clients=_FOUR,
    ),
    _claim(
        "Table IV",
        "With Laplace noise the model is no better than chance (printed: .1119 with "
        "three clients, ten classes).",
        _above_chance,
        (0,),
        "accuracy minus .1, three clients",
    ),
    Claim(
        "Dual",
        "V",
        "Personalized does well because the clients train once more after the "
        "aggregation. Its formula has no such training: judged by the models of the "
        "text's reading against the simple average.",
        (_CIFAR,),
        _tuned,
    ),
    _claim(
        "V; Table IV",
        "With three clients the dual criterion has the highest accuracy of the eight "
        "(printed lead: .0029), F1 and MCC.",
        _ahead_of_all,
        (1,),
        "the lead over the best other",
    ),
    _claim(
        "V; Table IV",
        "With four clients it has the highest accuracy (printed lead: .0027), "
        "precision, in which its own table has it second, and MCC.",
        _ahead_of_all,
        (1,),
        "the lead over the best other",
        clients=_FOUR,
    ),
    _claim(
        "V; Table IV",
        "With three clients it is clearly better than the simple average (printed: "
        ".0087 of accuracy).",
        _ahead("dual", "simple_average"),
        (1,),
        "the lead over the simple average",
    ),
    _claim(
        "V; Table IV",
        "With three clients it is clearly better than the weighted mean (printed: "
        ".0060 of accuracy).",
        _ahead("dual", "weighted_mean"),
        (1,),
        "the lead over the weighted mean",
    ),
    _claim(
        "V; Table IV",
        "With four clients, too, it is better than the simple average (printed: "
        ".0068).",
        _ahead("dual", "simple_average"),
        (1,),
        "the lead over the simple average",
        clients=_FOUR,
    ),
    _claim(
        "V; Table IV",
        "With four clients, too, it is better than the weighted mean (printed: .0066).",
        _ahead("dual", "weighted_mean"),
        (1,),
        "the lead over the weighted mean",
        clients=_FOUR,
    ),
    _claim(
        "V; Table V",
        "On the obstacle pictures it is comparable to Personalized, the best "
        "(printed: .0024 behind).",
        _ahead("dual", "personalized"),
        (0, 1),
        "dual criterion minus personalized",
        experiment=_OBSTACLES,
    ),
    _claim(
        "VI; Table V",
        "On the obstacle pictures, too, it is better than the conventional simple "
        "average (printed: .0048).",
        _ahead("dual", "simple_average"),
        (1,),
        "the lead over the simple average",
        experiment=_OBSTACLES,
    ),
    _claim(
        "VI; Table V",
        "On the obstacle pictures, too, it is better than the conventional weighted "
        "mean (printed: .0168).",
        _ahead("dual", "weighted_mean"),
        (1,),
        "the lead over the weighted mean",
        experiment=_OBSTACLES,
    ),
    _claim(
        "VI; Table IV",
        "With three clients it is better than Personalized or comparable (printed: "
        ".0029 ahead).",
        _ahead("dual", "personalized"),
        (0, 1),
        "dual criterion minus personalized",
    ),
)
"""The claims, in the paper's order. What its tables show without words stands before
the words of section V, as the tables do."""
