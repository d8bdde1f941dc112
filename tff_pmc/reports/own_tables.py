"""Tables of ours read back, where the records that they were made from are not kept.

Predictions are large, and repositories of results do not keep them. The CSV of a table
that was made from them has its cells, and the page can be made from these again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Optional

import pandas as pd

from tff_pmc.reports.predictions import FOLDER
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_tables import read_table


def cells_beside(runs: Sequence[Run], name: str) -> Optional[pd.DataFrame]:
    """Returns the cells of a table that lies beside run folders without predictions.

    Args:
        runs: the runs of the table.
        name: the name of its CSV.

    Returns:
        The table; None where a run has predictions on record, or where there is no
        such table.

    Raises:
        RecordError: the table does not parse.
    """
    folders = {os.path.dirname(os.path.abspath(run.path)) for run in runs if run.path}
    recorded = any(os.path.exists(os.path.join(r.path, FOLDER)) for r in runs)
    if recorded or len(folders) != 1:
        return None
    (folder,) = folders
    if not os.path.exists(os.path.join(folder, name)):
        return None
    return read_table(folder, name).drop(columns="data", errors="ignore")
