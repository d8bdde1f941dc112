"""The errors of the script that runs the authors' code, and its sample of results."""

import re

import pytest
from commands import ROOT, python

PARTS = {"Server": "class Server: pass", "Client": "Client = 1", "Model": "Model = 1"}


@pytest.fixture
def repository(tmp_path):
    """A folder with the expected files, none of which could run."""
    for folder in ("MNIST", "CelebA"):
        (tmp_path / "theirs" / folder).mkdir(parents=True)
        for part, text in PARTS.items():
            (tmp_path / "theirs" / folder / f"{part}.py").write_text(text)
    return tmp_path / "theirs"


def refused(*flags):
    done = python("benchmarks/run_reference_code.py", *flags)
    assert done.returncode == 2 and done.stdout == ""
    return done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_invalid_arguments_are_rejected_in_one_line(repository, tmp_path):
    new = f"--output_dir={tmp_path / 'new'}"
    data = f"--data_dir={tmp_path}"
    reference = f"--reference_repo={repository}"
    no_data = refused(reference, data, new, "--permutation=0")
    assert no_data.startswith(f"mnist: no data in {tmp_path}")
    other = refused(f"--reference_repo={tmp_path}", data, new)
    assert "is not a copy of sisinflab/ClientAware-FL" in other
    assert refused(reference, data, f"--output_dir={tmp_path}").endswith(
        "already exists: choose a new folder"
    )
    assert "--permutation" in refused(reference, data, new, "--permutation=9")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_the_documented_commands_read_the_sample_of_the_authors_results(tmp_path):
    """As in docs/reproduce.md, in another folder than runs/."""
    page = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    part = page.split("## Compare with the authors' code")[1]
    part = part.replace("runs/", f"{tmp_path}/")
    commands = [line.split()[1:] for line in re.findall(r"(?m)^    (.*)$", part)]
    assert len(commands) == 4
    texts = []
    for command in commands:
        done = python(*command)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    # The accuracies of the sample's own accuracy.csv, 0.36999... and 0.36599...
    last = [line.split() for line in texts[0].splitlines() if " 5  0.3" in line]
    assert [line[:3] for line in last] == [
        ["DS", "5", "0.370"],
        ["LD,DS,MD", "5", "0.366"],
    ]
    assert len(list((tmp_path / "theirs" / "DS" / "round_1").iterdir())) == 100
    # Ours is trained here: other processors round otherwise.
    (ours,) = re.findall(r"(?m)^DS +5  0\.370  (0\.\d{3})  ", texts[3])
    assert 0.55 < float(ours) < 0.65
    assert "only in A" in texts[3]  # LD,DS,MD was not exported.
    assert (tmp_path / "both" / "comparison.png").exists()


def test_the_sample_is_small_and_holds_only_results():
    files = [p for p in (ROOT / "results/reference_code").rglob("*") if p.is_file()]
    assert 0 < sum(path.stat().st_size for path in files) < 50_000
    assert {path.suffix for path in files} == {".csv", ".txt", ".json"}
