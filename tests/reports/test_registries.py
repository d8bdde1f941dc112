"""Reports are found by their names, in modules that register them."""

import importlib
import subprocess
import sys

import pytest

from leaf_data.declare import UnknownNameError
from tff_pmc import reports

PUBLISHED = [
    *(f"pmc_table{number}" for number in range(2, 8)),
    *(f"pmc_figure{number}" for number in ("2a", "2b", "3")),
    *(f"pmc_figure{number}_script" for number in ("2a", "2b", "3")),
    *("pmc_variance", "da_table1", "da_figure1"),
    *(f"adafed_figure{number}" for number in range(1, 7)),
    "adafed_page",
    *("dual_table4", "dual_table5"),
]


def test_every_published_table_and_figure_has_a_report():
    assert set(reports.REPORTS) == {
        *("rounds_to_target", "fairness", "counterfactuals"),
        *PUBLISHED,
    }
    assert set(reports.SEED_REPORTS) == {
        *("ordering_effect", "system_effect", "spread_effect", "seed_table"),
        *("adafed_figures", "dual_table4_seeds", "dual_table5_seeds"),
    }


def test_the_nearest_name_is_told():
    with pytest.raises(UnknownNameError, match="did you mean pmc_table2?"):
        reports.REPORTS["pmc_tabel2"]


def test_a_report_of_a_module_of_its_own_is_found(tmp_path, monkeypatch, run_of):
    """One file is all that a report needs, also outside of the package."""
    (tmp_path / "one_more_table.py").write_text(
        "from tff_pmc.reports import REPORTS, Report\n"
        "def report(runs):\n"
        "    return Report(' and '.join(run.label for run in runs))\n"
        "REPORTS.register('one_more_table', report)\n"
    )
    registry = reports.REPORTS
    known = dict(registry)
    monkeypatch.setattr(registry, "_things", known)  # Forgotten after the test.
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("one_more_table")
    runs = [run_of("DS", [[1]], [2]), run_of("LD", [[2]], [2])]
    assert registry["one_more_table"](runs).text == "DS and LD"


def test_importing_the_reports_imports_no_heavy_package():
    code = (
        "import sys, tff_pmc.reports;"
        "sys.exit(any(n in sys.modules for n in ('pandas', 'matplotlib', 'scipy')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
