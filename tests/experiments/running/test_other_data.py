"""FEMNIST and faces from their files to the papers' tables, and limited clients."""

import random

import pytest
from cli import SMALL, run, table
from leaf_documents import write_leaf
from noise_images import write_celeba


@pytest.fixture
def leaf_folder(tmp_path):
    """Six writers in LEAF's form: two files, 10 training and 2 test images each."""
    generator = random.Random(1)
    for number in range(2):
        for part, count in (("train", 10), ("test", 2)):
            users = [f"f000{number}_{k}" for k in range(3)]
            data = {
                user: {
                    "x": [
                        [round(generator.random(), 2) for _ in range(784)]
                        for _ in range(count)
                    ],
                    "y": [generator.randrange(62) for _ in range(count)],
                }
                for user in users
            }
            name = f"data/{part}/all_data_{number}_niid_1_keep_0_{part}_9.json"
            write_leaf(tmp_path / "femnist" / name, data)
    return tmp_path / "femnist"


@pytest.mark.slow
def test_femnist_from_leafs_files_to_table_1(leaf_folder, tmp_path):
    """Backtracking and DS from one command; no real data needed."""
    folder = tmp_path / "out"
    flags = [
        *("--experiment=femnist", f"--data_dir={leaf_folder}", "--rounds=2"),
        *("--clients_per_round=2", "--local_epochs=1", "--priority=MD,DS,LD;DS"),
        *("--adjustment=backtracking", f"--output_dir={folder}"),
    ]
    done = run(*flags)
    assert "Table 1 of the device-aware paper" in done.stdout
    assert (leaf_folder / "data" / "femnist_cache" / "femnist").exists()
    adjusted = folder / "MD-DS-LD_backtracking"
    assert {row["examples"] for row in table(adjusted / "candidates.csv")} == {"12"}
    assert (folder / "table1.md").exists() and (folder / "table1.csv").exists()
    plot = folder / "adjustment_MD-DS-LD_backtracking.png"
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_no_run_starts_without_test_examples(leaf_folder, tmp_path):
    done = run(
        *("--experiment=femnist", f"--data_dir={leaf_folder}", "--rounds=1"),
        *("--sample_fraction=0.08", "--clients_per_round=1"),
        f"--output_dir={tmp_path / 'out'}",
        code=2,
    )
    assert "no client of femnist has test examples" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_faces_from_their_files_to_pmcs_tables(tmp_path):
    """Images of noise in CelebA's layout, of which some are missing."""
    write_celeba(tmp_path / "faces", 24, seed=1)
    for number in range(1, 9):
        (tmp_path / "faces" / "img_align_celeba" / f"{number:06d}.png").unlink()
    folder = tmp_path / "out"
    flags = [
        *("--experiment=celeba", f"--data_dir={tmp_path / 'faces'}", "--rounds=2"),
        *("--priority=DS;IS,CB,DS", "--predictions", "--local_epochs=1"),
        *("--clients_per_round=2", "--reach=above", f"--output_dir={folder}"),
    ]
    done = run(*flags)
    assert "INCOMPLETE" in done.stdout
    for name in ("table6.md", "table7.md", "figure3.png"):
        assert (folder / name).exists(), name
    for name in ("table6.md", "table7.md"):
        assert "INCOMPLETE" in (folder / name).read_text()
    for name in ("table6.csv", "table7.csv", "results.csv"):
        assert all("INCOMPLETE" in row["data"] for row in table(folder / name)), name
    assert "--reach=above" in (folder / "table6.md").read_text()


def test_a_run_trains_on_the_limited_examples(tmp_path):
    folder = tmp_path / "out"
    flags = [*SMALL, "--priority=DS", "--max_client_examples=7"]
    run(*flags, f"--output_dir={folder}")
    cohort = table(folder / "DS" / "cohort.csv")
    assert {float(row["DS"]) for row in cohort} == {7.0}
    refused = run(*flags[:-1], f"--output_dir={folder}", "--resume", code=2)
    assert "max_client_examples" in refused.stderr
