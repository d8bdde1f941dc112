"""Rounds of a run of three clients, whose outcomes are written by hand."""

import types

import numpy as np
import pytest

from tff_pmc.experiments.experiment import settings
from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.round_record import RoundRecord

RAW = [[40, 1, 0.7], [40, 3, 0.6], [40, 2, 0.8]]
NAMES = ("a\nb", "7,8\n9,x", 'say "1,"')  # Line breaks, commas and quotes.


@pytest.fixture(scope="session")
def record_of():
    """Makes the record of a round; `outcome` has other parts of its outcome."""
    base = settings("mnist_noniid")

    def make(
        round_num=1,
        changes=None,
        outcome=None,
        raw=RAW,
        excluded=(0, 0, 0),
        train=None,
        **values,
    ):
        run_settings = base.with_changes(**(changes or {}))
        reported = {
            "criteria_by_client": np.array(raw, float),
            "excluded_by_client": np.array(excluded),
            "clients": len(raw),
            "excluded": sum(excluded),
            "examples": 8,
            "loss_sum": 4.0,
            **(train or {}),
        }
        result = {
            "metrics": {
                "client_work": {"train": reported},
                "finalizer": {"update_rejected": 0},
            },
            "in_force": run_settings.algorithm.score(run_settings),
            "trials": (),
            "counterfactuals": (),
            "counterfactual_examples": None,
            **(outcome or {}),
        }
        fields = {
            "cohort": NAMES,
            "clients": NAMES,
            "sizes": np.array([10, 30, 0]),
            "metric": ACCURACY,
            "measured": np.array([5, 30, 0]),
            "seconds": {"train": 0.1 * round_num, "test": 0.25},
            **values,
        }
        return RoundRecord(
            round_num=round_num,
            settings=run_settings,
            outcome=types.SimpleNamespace(**result),
            **fields,
        )

    return make
