"""Nothing but two lines names the folder of the cluster, and nothing needs it."""

import shutil

import pytest
from cli import ALONE, ROOT, run_alone

CODE = ("tff_pmc", "leaf_data", "declared_settings", "run_experiments.py")
NAME = "tff_pmc.cluster"


def others(root):
    """Returns the modules outside of the folder, and their lines that name it."""
    folder = root / "tff_pmc" / "cluster"
    for name in CODE:
        paths = [root / name] if name.endswith(".py") else (root / name).rglob("*.py")
        for path in paths:
            if folder not in path.parents:
                yield path, [x for x in path.read_text().splitlines() if NAME in x]


def test_two_lines_name_the_folder():
    lines_by_path = {str(path.relative_to(ROOT)): lines for path, lines in others(ROOT)}
    assert {path: len(lines) for path, lines in lines_by_path.items() if lines} == {
        "tff_pmc/experiments/flags/command.py": 1,  # Its flags.
        "tff_pmc/runtime/__init__.py": 1,  # `Runtime("cluster")`.
    }
    assert "import tff_pmc.cluster" not in str(lines_by_path) and "from" not in str(
        lines_by_path
    )


@pytest.fixture
def without_cluster(tmp_path):
    """Returns a copy of the package without the folder and these lines."""
    for name in CODE:
        copy = shutil.copyfile if name.endswith(".py") else shutil.copytree
        copy(ROOT / name, tmp_path / name)
    shutil.rmtree(tmp_path / "tff_pmc" / "cluster")
    for path, lines in others(tmp_path):
        if lines:
            kept = [x for x in path.read_text().splitlines(True) if NAME not in x]
            path.write_text("".join(kept))
    return tmp_path


def test_without_the_folder_everything_else_works(without_cluster):
    script = str(without_cluster / "run_experiments.py")
    flags = ("--rounds=1", f"--output_dir={without_cluster / 'out'}")
    done = run_alone(*ALONE, *flags, cwd=without_cluster, script=script)
    assert done.returncode == 0, done.stderr
    assert (without_cluster / "out" / "DS" / "rounds.csv").exists()
    done = run_alone("--cluster=local", cwd=without_cluster, script=script)
    assert done.returncode == 2 and "Unknown command line flag" in done.stderr


def test_a_local_run_imports_only_the_options(tmp_path):
    asks = tmp_path / "asks.py"
    asks.write_text(
        "import sys; sys.argv[0] = 'run_experiments.py'\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import run_experiments\n"
        "assert run_experiments.main(sys.argv) == 0\n"
        "found = [n for n in sys.modules if n.startswith('tff_pmc.cluster.')]\n"
        "assert found == ['tff_pmc.cluster.options'], found\n"
        "assert 'distributed' not in sys.modules and 'dask' not in sys.modules\n"
    )
    flags = ("--rounds=1", f"--output_dir={tmp_path / 'out'}")
    done = run_alone(*ALONE, *flags, script=str(asks))
    assert done.returncode == 0, done.stderr
