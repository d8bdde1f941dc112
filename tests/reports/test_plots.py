"""The plots of a set of runs, and their titles."""

import subprocess
import sys
import tempfile

import pytest
from folders import TRAINED

from tff_pmc.reports import plots

CORRECT = [[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]]
EXAMPLES = [10] * 4


@pytest.mark.parametrize(
    ("name", "source", "second_line"),
    [
        ("celeba", "CelebA's files", []),
        ("celeba", "Files, INCOMPLETE: 8 of 9", ["(Files, INCOMPLETE: 8 of 9)"]),
        ("drawn_faces", "drawn faces", ["(drawn faces)"]),
    ],
)
def test_a_plots_title_says_where_the_data_is_not_the_whole_set(
    run_of, name, source, second_line
):
    data = {"name": name, "clients": 3, "origin": {"source": source}}
    run = run_of("DS", CORRECT, EXAMPLES, data=data, settings=TRAINED)
    title = plots.title_of([run])
    assert title.split("\n")[1:] == second_line
    assert title.startswith("mine: ") and "normalization" not in title
    settings = {**TRAINED, "normalization": "max"}
    run = run_of("DS", CORRECT, EXAMPLES, data=data, settings=settings)
    assert plots.title_of([run]).splitlines()[0].endswith(", normalization max")


def test_a_plots_title_says_how_many_clients_and_how_they_trained(run_of):
    def of(clients, **options):
        data = {"name": "m", "clients": clients, "options": options}
        settings = {**TRAINED, "partition": "noniid"}
        return run_of("DS", CORRECT, EXAMPLES, data=data, settings=settings)

    assert plots.title_of([of(3), of(4)]) == (
        "mine: m, 3 or 4 clients, E = 5, B = all, rate 0.1"
    )
    partitioned = plots.title_of([of(4, partition="noniid"), of(4)])
    assert partitioned == "mine: m, 4 clients, noniid, E = 5, B = all, rate 0.1"


def test_plots_leave_a_notebooks_backend_alone():
    """Every module is imported, and a figure drawn and written."""
    code = (
        "import importlib, io, pkgutil, sys, matplotlib, tff_pmc.reports as reports\n"
        "before = matplotlib.rcParams._get_backend_or_none()\n"
        "size = matplotlib.rcParams['font.size']\n"
        "for m in pkgutil.walk_packages(reports.__path__, 'tff_pmc.reports.'):\n"
        "    importlib.import_module(m.name)\n"
        "from tff_pmc.reports import figures\n"
        "from tff_pmc.reports.papers import da_figure1\n"
        "figures.save(da_figure1.draw(), sys.argv[1])\n"
        "after = matplotlib.rcParams._get_backend_or_none()\n"
        "changed = before != after or size != matplotlib.rcParams['font.size']\n"
        "sys.exit(changed or 'matplotlib.pyplot' in sys.modules)"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/figure"
        assert subprocess.run([sys.executable, "-c", code, path]).returncode == 0
