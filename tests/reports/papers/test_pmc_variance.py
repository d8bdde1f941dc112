"""What section 4.2 needs; its numbers on kept runs are in the kept tables."""

import dataclasses

import pandas as pd
from reported import write


def test_without_weights_or_three_criteria_it_is_left_out(tmp_path, run_of):
    runs = [run_of(label, [[1]], [2]) for label in ("DS", "LD", "MD")]
    text = write("pmc_variance", runs, tmp_path)
    assert "left out: no run has its weights.csv" in text
    own = {"ordering": ["DS", "LD"], "coefficient_of_variation": [0.1, 0.3]}
    runs[0] = dataclasses.replace(runs[0], weights=pd.DataFrame(own))
    assert "three first criteria" in write("pmc_variance", runs, tmp_path)
    assert list(tmp_path.iterdir()) == []
