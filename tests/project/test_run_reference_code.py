"""The script that runs the authors' code: what it refuses before it runs anything."""

import pytest
from commands import python

PARTS = {"Server": "class Server: pass", "Client": "Client = 1", "Model": "Model = 1"}


@pytest.fixture
def repository(tmp_path):
    """A folder with the files that are looked for, of which none could run."""
    for folder in ("MNIST", "CelebA"):
        (tmp_path / "theirs" / folder).mkdir(parents=True)
        for part, text in PARTS.items():
            (tmp_path / "theirs" / folder / f"{part}.py").write_text(text)
    return tmp_path / "theirs"


def refused(*flags):
    done = python("benchmarks/run_reference_code.py", *flags)
    assert done.returncode == 2 and done.stdout == ""
    return done.stderr.splitlines()[-1]


def test_what_cannot_run_is_refused_in_one_line(repository, tmp_path):
    new = f"--output_dir={tmp_path / 'new'}"
    data = f"--data_dir={tmp_path}"
    own = f"--reference_repo={repository}"
    no_data = refused(own, data, new, "--permutation=0")
    assert no_data.startswith(f"mnist: no data in {tmp_path}")
    other = refused(f"--reference_repo={tmp_path}", data, new)
    assert "is no copy of sisinflab/ClientAware-FL" in other
    assert refused(own, data, f"--output_dir={tmp_path}").endswith("exists already")
    assert "--permutation" in refused(own, data, new, "--permutation=9")
    assert not (tmp_path / "new").exists()
