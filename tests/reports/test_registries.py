"""Reports are found by their names, in modules that register them."""

import subprocess
import sys

from tff_pmc import reports

PUBLISHED = [
    *(f"pmc_table{number}" for number in range(2, 8)),
    *(f"pmc_figure{number}" for number in ("2a", "2b", "3")),
    *(f"pmc_table{number}_seeds" for number in (2, 4, 6)),
    *("pmc_variance", "da_table1"),
    *(f"adafed_figure{number}" for number in range(1, 7)),
    "adafed_page",
    *("dual_table4", "dual_table5"),
    *("baseline_claims", "baseline_curves"),
]


def test_every_published_table_and_figure_has_a_report():
    assert set(reports.REPORTS) == {*reports.BEYOND_PAPERS, *PUBLISHED}


def test_importing_the_reports_imports_no_heavy_package():
    code = (
        "import sys, tff_pmc.reports;"
        "sys.exit(any(n in sys.modules for n in ('pandas', 'matplotlib', 'scipy')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
