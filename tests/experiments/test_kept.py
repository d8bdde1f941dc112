"""Every kept table is what its kept records give, to the byte."""

import json
import pathlib
import shlex
import shutil

import pytest
from cli import parse_settings, quick_runs, refusal, run

from tff_pmc.experiments import kept
from tff_pmc.experiments.flags.flag_definitions import parse
from tff_pmc.record.kept_results import EXPERIMENT_JSON
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import RUN_KEY, TABLES, flatten_groups, read_results
from tff_pmc.reports import output
from tff_pmc.reports.results_page import hours

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "results" / "reproduced"
FOLDERS = [pathlib.Path(folder) for folder in kept.kept_folders(str(RESULTS))]
RECORDS = {EXPERIMENT_JSON, *(f"{name}.csv.gz" for name in TABLES)}
TABLES_ALONE = output.Output(figures=output.NO_FIGURES)


def products(folder):
    """The tables and pages of a kept folder, as paths within it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*.*")
        if path.name not in RECORDS and path.suffix != ".png"
    }


@pytest.fixture
def copy(tmp_path):
    """A function that copies a kept folder."""
    return lambda name: pathlib.Path(shutil.copytree(RESULTS / name, tmp_path / name))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_kept_table_is_remade_to_the_byte(folder, copy):
    """What is emptied first is there again, but for what `as_made` names."""
    about = json.loads((folder / EXPERIMENT_JSON).read_text())
    as_made = about.get("as_made", {})
    assert about["command"], "the command that made the runs is missing"
    assert as_made.keys() <= {str(p.relative_to(folder)) for p in folder.rglob("*.*")}
    before, copied = products(folder), copy(folder.name)
    for name in before.keys() - as_made.keys():
        (copied / name).write_text("")
    with output.using(TABLES_ALONE):
        kept.remake(str(copied))
    assert products(copied) == before, f"run: {kept.__doc__.splitlines()[3].strip()}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_kept_command_still_makes_the_kept_runs(folder):
    """Flags and defaults change after runs are kept, and a reader repeats them."""
    results = read_results(str(folder))
    words = shlex.split(results.about["command"])
    if "run_experiments.py" not in words:
        script = next((word for word in words if word.endswith(".py")), "Makefile")
        assert (RESULTS.parents[1] / script).is_file()
        return
    words = words[words.index("run_experiments.py") + 1 :]
    flags = [word for word in words if word != "--data_dir=DIR"]
    runs = {settings.label: settings for settings in parse_settings(*flags)}
    seeds = parse(flags).get("seeds", [0])
    if not len(results.runs):  # A table alone is kept.
        return
    made = {(seed, label) for seed in seeds for label in runs}
    assert made == {*results.runs[RUN_KEY].itertuples(index=False, name=None)}
    for recorded in results.runs.to_dict("records"):
        settings = runs[recorded["label"]].with_seed(recorded["seed"])
        for name, value in flatten_groups(settings.to_record()).items():
            before = recorded.get(name)
            unknown = before is None or before != before  # Older than the setting.
            of_machine = name == "num_packs"
            assert unknown or of_machine or before == value, name


def test_the_kept_results_are_small():
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert len(files) <= 450 and sum(p.stat().st_size for p in files) < 15e6
    assert max(p.stat().st_size for p in files if p.suffix == ".png") < 80_000
    assert {path.name for path in RESULTS.iterdir() if path.is_dir()} == (
        {folder.name for folder in FOLDERS}
    )


def test_runs_are_kept_as_tables_and_read_back_equal(copy, tmp_path):
    """Kept runs are runs, too: keeping them again gives the same files."""
    folder, goal = copy("quickstart"), tmp_path / "again"
    options = ["--command=the command", "--remark=A remark."]
    assert kept.main(["keep", str(folder), str(goal), *options]) == 0
    for name in RECORDS - {EXPERIMENT_JSON}:
        if (folder / name).exists():
            assert (goal / name).read_bytes() == (folder / name).read_bytes()
    results = read_results(str(goal))
    assert results.about["command"] == "the command"
    assert results.about["remark"] == "A remark."
    assert (goal / "results.md").read_bytes() == (folder / "results.md").read_bytes()


def test_only_tested_rounds_may_be_kept(tmp_path):
    """Of 5 rounds, tested after every second, the untested ones are left out."""
    runs, goal = tmp_path / "runs", tmp_path / "kept"
    flags = "--experiment=quickstart", "--priority=DS", "--evaluate_every=2"
    with quick_runs():
        run("--model=softmax", "--rounds=5", *flags, f"--output_dir={runs}")
    assert kept.main(["keep", str(runs), str(goal), "--only_tested"]) == 0
    whole, results = read_results(str(runs)), read_results(str(goal))
    tested = sorted({*whole.clients["round"]})
    assert len(tested) < 5 and results.rounds["round"].tolist() == tested
    rows = whole.rounds[whole.rounds["round"].isin(tested)]
    assert results.rounds["accuracy"].tolist() == rows["accuracy"].tolist()
    assert {*results.cohort["round"]} <= {*tested}
    assert results.clients.equals(whole.clients)
    assert not len(results.timing) and results.about["hours"] == hours(whole)
    assert kept.main(["keep", str(goal), str(tmp_path / "again")]) == 0
    again = (tmp_path / "again" / EXPERIMENT_JSON).read_text()
    about = json.loads((goal / EXPERIMENT_JSON).read_text())
    assert json.loads(again) == about
    (goal / EXPERIMENT_JSON).write_text(json.dumps(about | {"only_tested": False}))
    with pytest.raises(RecordError, match=r"rounds must be numbered 1, 2, 3"):
        len(read_results(str(goal)).rounds)  # Otherwise a gap is damage.


def test_without_results_of_clients_no_round_counts_as_tested(copy, tmp_path, capsys):
    folder, goal = copy("baselines_fednova"), tmp_path / "kept"
    assert kept.main(["keep", str(folder), str(goal), "--only_tested"]) == 2
    assert "results of each client are needed" in capsys.readouterr().err
    assert not goal.exists()


def test_two_commands_are_kept_as_one_and_a_duplicate_run_is_rejected(
    copy, tmp_path, capsys
):
    folder, goal = copy("quickstart"), str(tmp_path / "both")
    assert kept.main(["keep", str(folder), str(folder), goal]) == 2
    assert "there are two runs of DS, seed 0" in capsys.readouterr().err
    assert kept.main(["keep", str(tmp_path / "nothing"), goal]) == 2
    assert "nothing is not a folder" in capsys.readouterr().err
    assert kept.main(["keep", str(folder), str(folder)]) == 2
    assert "already exists: choose a new folder" in capsys.readouterr().err
    about = json.loads((folder / EXPERIMENT_JSON).read_text())
    about["settings"]["experiment"] = "of_a_plugin"
    (folder / EXPERIMENT_JSON).write_text(json.dumps(about))
    assert kept.main(["keep", str(folder), goal]) == 2
    assert "of_a_plugin" in capsys.readouterr().err
    assert not pathlib.Path(goal).exists()


def test_changed_files_are_named(copy, capsys):
    folder = copy("quickstart")
    page = folder / "results.md"
    before = page.read_bytes()
    page.write_bytes(before.replace(b"| 22 |", b"| 23 |", 1))
    with output.using(TABLES_ALONE):
        assert kept.remake(str(folder)) == ["results.md"]
    assert page.read_bytes() == before
    (folder / "rounds.csv.gz").write_bytes(b"no gzip")
    assert kept.main(["remake", str(folder)]) == 2
    assert "rounds.csv.gz cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["quickstart", "dual_table4", "femnist_fixed"])
def test_tables_and_comparisons_of_kept_folders(name, tmp_path):
    folder, out = RESULTS / name, tmp_path / "out"
    with quick_runs():
        done = run(f"--tables={folder}", f"--output_dir={out}")
    assert done.stdout.strip()
    for path, content in products(folder).items():
        if (out / path).exists():
            assert (out / path).read_bytes() == content
    seeds = len(read_results(str(folder)).seeds)
    if seeds > 1:
        folders = f"--compare={folder},{folder}"
        done = run(folders, f"--output_dir={tmp_path / 'both'}")
        assert (
            "no difference shown" in done.stdout
            and (tmp_path / "both/effect.md").exists()
        )
        assert "is in neither folder" in refusal(folders, "--baseline=nothing")
        return
    assert "needs runs with several" in refusal(
        f"--compare={folder},{folder}", "--baseline=DS"
    )
    done = run(f"--compare={folder},{folder}")
    last = done.stdout.split("largest |B-A|\n")[1].splitlines()
    lines = [" ".join(line.split()) for line in last]
    assert lines and all("+0.000 +0.000 0.000" in line for line in lines)


def test_rejected_tables_leave_nothing_behind(copy, tmp_path):
    folder, out = copy("quickstart"), tmp_path / "new" / "out"
    (folder / "clients.csv.gz").write_bytes(b"no gzip")
    where = f"--output_dir={out}"
    assert "clients.csv.gz cannot be read" in refusal(f"--tables={folder}", where)
    assert not out.parent.exists()
    out.mkdir(parents=True)
    (out / "results.csv").write_text("mine")
    words = "is not empty (it contains results.csv)"
    assert words in refusal(f"--tables={RESULTS / 'quickstart'}", where)
