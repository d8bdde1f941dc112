"""Every kept table is what its kept records give, to the byte."""

import json
import pathlib
import shutil

import pytest

from tff_pmc.experiments import remake
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.kept import CATALOG, kept_folders

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "results" / "reproduced"
FOLDERS = kept_folders(str(RESULTS))
AGAIN = "run: python -m tff_pmc.experiments.remake results/reproduced"


@pytest.mark.parametrize("kept", FOLDERS, ids=lambda kept: kept.name)
def test_every_kept_table_is_made_again_to_the_byte(kept):
    assert remake.differences(kept) == {}, AGAIN


def test_every_kept_folder_has_its_command_and_what_is_named_is_there():
    catalog = json.loads((RESULTS / CATALOG).read_text(encoding="utf-8"))
    folders = {path.name for path in RESULTS.iterdir() if path.is_dir()}
    assert catalog.keys() == folders
    for kept in FOLDERS:
        assert kept.command, kept.name
        assert kept.as_made.keys() <= set(kept.products()), kept.name


def test_kept_figures_are_small():
    sizes = {str(path): path.stat().st_size for path in RESULTS.rglob("*.png")}
    assert sizes and max(sizes.values()) < 80_000, sizes


@pytest.fixture
def copy(tmp_path):
    """A copy of a kept folder whose tables are all made again from its records."""

    def make(name):
        shutil.copytree(RESULTS / name, tmp_path / "kept" / name)
        catalog = {name: {"command": "as before"}}
        (tmp_path / "kept" / CATALOG).write_text(json.dumps(catalog))
        return kept_folders(str(tmp_path / "kept" / name))[0]

    return make


def test_a_changed_table_is_a_difference_and_is_made_again(copy):
    kept = copy("quickstart")
    assert remake.differences(kept) == {}
    path = pathlib.Path(kept.path, "results.md")
    before = path.read_bytes()
    path.write_bytes(before.replace(b"| 22 |", b"| 23 |", 1))
    assert remake.differences(kept) == {"results.md": "is not what the records give"}
    assert "results.md" in remake.replace(kept)
    assert path.read_bytes() == before
    pathlib.Path(kept.path, "mine.csv").write_text("a\n1\n")
    assert list(remake.differences(kept)) == ["mine.csv"]


def test_runs_are_held_against_what_their_command_named(copy):
    """By default against the first, where the experiment's own is not there."""
    kept = copy("dual_table4_text")
    page, recorded = (pathlib.Path(kept.path, n) for n in ("effect.md", "run.json"))
    assert "Each system minus Simple average" in page.read_text()
    plan = json.loads(recorded.read_text())
    plan["settings"]["baseline"] = "Personalized"
    recorded.write_text(json.dumps(plan))
    remake.replace(kept)
    assert "Each system minus Personalized" in page.read_text()


@pytest.mark.parametrize("name", ["run.json", "rounds.csv"])
def test_a_run_that_is_not_whole_is_named_and_nothing_is_replaced(
    copy, capsys, caplog, name
):
    from tff_pmc.reports.read_folder import read_runs

    kept = copy("quickstart")
    (run,) = pathlib.Path(kept.path).glob("LD-DS-MD")
    (run / name).unlink()
    before = pathlib.Path(kept.path, "results.md").read_bytes()
    assert remake.main([kept.path]) == 2
    assert "its run of LD,DS,MD is not there or not whole" in capsys.readouterr().err
    assert pathlib.Path(kept.path, "results.md").read_bytes() == before
    if name == "run.json":  # `--tables` goes on with the others, and says so.
        assert [one.label for one in read_runs(kept.path)] == ["DS"]
        assert "no run is there of LD,DS,MD" in caplog.text


def test_a_page_is_made_of_the_cells_beside_runs_without_predictions(copy):
    kept = copy("dual_table4")
    path = pathlib.Path(kept.path, "dual_table4.csv")
    path.write_text(path.read_text().replace("0.3286457778", "0.25", 3))
    remake.replace(kept)
    page = pathlib.Path(kept.path, "dual_table4.md").read_text(encoding="utf-8")
    assert "|  | Precision | 0.2500 | 0.2500 | 0.2500 | 0.8324 | -0.5037 |" in page


def test_a_link_in_the_place_of_a_table_is_not_followed(copy, tmp_path, capsys):
    kept, victim = copy("quickstart"), tmp_path / "victim"
    victim.write_text("mine")
    table = pathlib.Path(kept.path, "results.md")
    table.unlink()
    table.symlink_to(victim)
    assert remake.main([kept.path]) == 2
    assert "results.md is a link" in capsys.readouterr().err
    assert victim.read_text() == "mine"
    shutil.copytree(f"{kept.path}/DS", f"{kept.path}/DS again")
    assert remake.main([kept.path, f"--output_dir={tmp_path}/made"]) == 2
    assert "are both runs of DS: give one" in capsys.readouterr().err


def test_the_command_writes_into_a_folder_of_its_own(copy, tmp_path, capsys):
    kept = copy("quickstart")
    files = {path: path.read_bytes() for path in pathlib.Path(kept.path).rglob("*.*")}
    goal = tmp_path / "made"
    options = [f"--output_dir={goal}", "--figures=pdf", "--format=latex"]
    assert remake.main([kept.path, *options]) == 0
    assert sorted(path.name for path in (goal / "quickstart").iterdir()) == [
        "accuracy.pdf",
        "accuracy.png",
        "fairness.pdf",
        "fairness.png",
        "results.csv",
        "results.tex",
    ]
    assert capsys.readouterr().out == "quickstart\n"
    assert files == {path: path.read_bytes() for path in files}
    assert remake.main([str(tmp_path / "nothing")]) == 2
    assert "nothing is no folder" in capsys.readouterr().err


def test_a_broken_catalog_is_named(tmp_path):
    (tmp_path / "a").mkdir()
    for text, reason in (
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"a": {"b": 1}}', "a: "),
        ("[]", ""),
    ):
        (tmp_path / CATALOG).write_text(text)
        with pytest.raises(RecordError, match=f"kept.json.*{reason}"):
            kept_folders(str(tmp_path))


def test_runs_under_several_seeds_are_reported_together(tmp_path):
    for seed in (0, 1):
        goal = tmp_path / "mine" / f"seed_{seed}"
        shutil.copytree(RESULTS / "adafed_1" / "seed_0", goal)
        for product in [*goal.glob("*.csv"), *goal.glob("*.md"), *goal.glob("*.png")]:
            product.unlink()
        for path in goal.rglob("run.json"):
            text = path.read_text()
            path.write_text(text.replace('"batch_seed": 0', f'"batch_seed": {seed}'))
    assert remake.main([str(tmp_path / "mine"), f"--output_dir={tmp_path}/made"]) == 0
    made = tmp_path / "made" / "mine"
    names = {path.relative_to(made).as_posix() for path in made.rglob("*.*")}
    of_seed = ("results.csv", "results.md", "adafed.csv", "adafed.md")
    pictures = ("accuracy.png", "figure1.png")
    of_seed = (*of_seed, *pictures, "fairness.png")
    assert names == {
        *("effect.csv", "effect.md", "seeds.csv", "seeds.md", *pictures),
        *(f"seed_{n}/{name}" for n in (0, 1) for name in of_seed),
    }
    assert "Seeds: 0, 1;" in (made / "effect.md").read_text(encoding="utf-8")
