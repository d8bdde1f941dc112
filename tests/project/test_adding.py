"""Each addition of docs/extend.md is one module outside the package."""

import json
import re
import shlex
import shutil

import pandas as pd
import pytest
from commands import ROOT, python, rows

PAGE = (ROOT / "docs" / "extend.md").read_text()
MODULES = {
    name: (ROOT / "docs" / "examples" / "extend" / f"{name}.py").read_text()
    for name in re.findall(r"\(examples/extend/(\w+)\.py\)", PAGE)
    if name != "stripes_paper"  # It imports others, and has files next to it.
}
COMMANDS = re.findall(r"```\n(CHECKOUT/\.venv/bin/.*?)```", PAGE, re.S)
COMMAND, PAPER_COMMANDS, CLAIM_COMMAND = COMMANDS


def run(folder, *flags):
    """Runs the command in a folder of modules."""
    return python(ROOT / "run_experiments.py", *flags, cwd=folder)


@pytest.fixture(scope="module")
def page_run(tmp_path_factory):
    """The page's modules in a new folder, and the result of its command there."""
    folder = tmp_path_factory.mktemp("outside")
    for name, code in MODULES.items():
        (folder / f"{name}.py").write_text(code)
    _, *flags = shlex.split(COMMAND.replace("\\\n", " "))
    done = run(folder, *flags, "--output_dir=out")
    assert done.returncode == 0, done.stderr
    return folder, done


def test_each_addition_of_the_page_runs(page_run):
    folder, done = page_run
    assert len(MODULES) == 11
    (name,) = (p for p in (folder / "out").iterdir() if "average" in p.name)
    settings = json.loads((name / "run.json").read_text())["settings"]
    assert settings["algorithm"] == {"algorithm": "first_half", "first_share": 0.7}
    assert settings["data"]["stripe_width"] == 2
    assert settings["selection"] == {"selection": "largest"}
    assert settings["model"]["model"] == "linear"
    cohort = rows(name / "cohort.csv")
    assert {"DS", "EV", "WRONG"} <= set(cohort[0]) and len(cohort) == 6 * 4
    shares = [float(row["WRONG"]) * float(row["DS"]) for row in cohort]
    assert shares == pytest.approx([round(share) for share in shares], abs=1e-3)
    assert len({round(share) for share in shares}) > 1
    total = {code: sum(float(row[code]) for row in cohort[:4]) for code in ("DS", "EV")}
    for row in cohort[:4]:  # 0.7 of the first, 0.3 of the other.
        weight = 0.7 * float(row["DS"]) / total["DS"]
        weight += 0.3 * float(row["EV"]) / total["EV"]
        assert float(row["weight"]) == pytest.approx(weight, rel=1e-5)
    info = json.loads(
        (folder / "out" / "clipped_mean_largest" / "run.json").read_text()
    )
    assert info["callbacks"] == {"EndsWhenFlat": {"flat_rounds": 3}}
    algorithm = {"algorithm": "clipped_mean", "clipped_mean_norm": 0.5}
    assert info["settings"]["algorithm"] == algorithm
    assert "Best rounds" in done.stdout
    head, *lines = (folder / "out" / "best_rounds.csv").read_text().splitlines()
    assert head == "seed,run,best" and len(lines) == 2
    assert lines[-1].startswith('0,"Clipped mean, largest",')


def test_an_option_of_training_needs_only_its_declaration_and_its_use(tmp_path):
    """In a copy of the package: the flag, the argument and the record follow."""
    section = PAGE.split("## An option of training")[1].split("\n## ")[0]
    declared, used = re.findall(r"```python\n(.*?)```", section, re.S)
    for folder in ("tff_pmc", "leaf_data", "declared_settings"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "run_experiments.py", tmp_path)
    for file, line, code in (
        ("settings/training_settings.py", "    prox_mu: float = setting(", declared),
        ("clients/packed_training.py", "            state, weights = next_s", used),
    ):
        path = tmp_path / "tff_pmc" / file
        before, after = path.read_text().split(line)  # The line exists once.
        path.write_text(before + code + line + after)
    code = (
        "import inspect, sys, run_experiments, tff_pmc\n"
        "assert run_experiments.main(['run_experiments.py', *sys.argv[1:]]) == 0\n"
        "print(inspect.signature(tff_pmc.build_adafed))\n"
    )
    small = ("--experiment=quickstart", "--priority=DS", "--rounds=1")
    done = python(
        *("-c", code, *small, "--clients_per_round=2"),
        *("--gradient_norm=1e-9", "--output_dir=out"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "gradient_norm: 'float' = 0.0" in done.stdout
    info = json.loads((tmp_path / "out" / "DS" / "run.json").read_text())
    assert info["settings"]["training"]["gradient_norm"] == 1e-9
    # A model that does not move has the divergence 1.
    moved = [float(row["MD"]) for row in rows(tmp_path / "out" / "DS" / "cohort.csv")]
    assert moved == pytest.approx([1, 1], abs=1e-6)


@pytest.mark.slow
def test_a_program_may_pass_a_callback_as_an_object(tmp_path):
    (code,) = (
        b for b in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "loop.run" in b
    )
    (tmp_path / "ends_when_flat.py").write_text(MODULES["ends_when_flat"])
    done = python("-c", code.replace('"rounds": 20', '"rounds": 1'), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    info = json.loads((tmp_path / "runs" / "mine" / "run.json").read_text())
    assert info["callbacks"] == {"EndsWhenFlat": {"flat_rounds": 3}}
    assert info["status"] == "finished"


@pytest.mark.slow
def test_the_paper_of_the_page_has_its_table_and_its_verdicts(tmp_path):
    for name in (*re.findall(r"\(examples/extend/(stripes\w*\.\w+)\)", PAGE),
                 "even_labels.py", "linear.py"):  # fmt: skip
        shutil.copy(ROOT / "docs" / "examples" / "extend" / name, tmp_path)
    train, judge = map(shlex.split, PAPER_COMMANDS.splitlines())
    done = run(tmp_path, *train[1:])
    assert done.returncode == 0, done.stderr
    cells = rows(tmp_path / "out" / "seed_4" / "stripes_table1.csv")
    assert [(cell["ordering"], cell["printed"]) for cell in cells] == [
        ("DS", ".50"), ("EV,DS", ".60"),
    ]  # fmt: skip
    last = [
        rows(path)[-1]
        for path in sorted((tmp_path / "out" / "seed_4").glob("*/rounds.csv"))
    ]
    assert {float(cell["ours"]) for cell in cells} == {
        float(row["accuracy"]) for row in last
    }
    page = python(*judge[1 : judge.index(">")], cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    head = "## Stripes\n\n*A paper made up for this page* (2026)\n"
    _, section = page.stdout.split(head)
    claims = [line for line in section.splitlines() if "EV,DS minus DS" in line]
    assert len(claims) == 2 and "(paper: +10.0) |" in claims[0]
    assert "## " not in section and "| PMC-" not in page.stdout  # No other is judged.
    wrong = python(
        "-m", "tff_pmc.reports.claims_page", "--paper=Stripes", "out", cwd=tmp_path
    )
    assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1
    assert wrong.stderr.startswith("unknown paper 'Stripes'; known: DA,")


def test_a_claim_is_a_function_in_one_file(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    (code,) = (block for block in blocks if "@claim" in block)
    (tmp_path / "my_claims.py").write_text(code)
    kept = ROOT / "results" / "reproduced" / "mnist_table4_ld"
    _, *command = shlex.split(CLAIM_COMMAND)
    page = python(*command, kept, cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    table = pd.read_csv(kept / "rounds.csv.gz")
    last = table[table["round"] == 30].pivot(
        index="seed", columns="label", values="accuracy"
    )
    lead = 100 * (last["LD"] - last["DS"]).mean()
    assert "Label diversity ends where the data set size does." in page.stdout
    lines = python(*command, "--csv", kept, cwd=tmp_path).stdout.splitlines()
    (row,) = (line for line in lines if "Label diversity ends" in line)
    assert f",points {lead:+.1f} (noise floor " in row
    assert "3 seeds; below five nothing is decided" in row
    assert '"mnist_noniid: 6 runs, seeds 6 to 8"' in row


def test_flags_of_the_additions_are_in_the_help_and_checked(page_run):
    folder, _ = page_run
    plugins = f"--plugin={','.join(MODULES)}"
    shown = run(folder, plugins, "--helpfull").stdout
    for words in (
        "Algorithm clipped_mean:", "--clipped_mean_norm", "Data set stripes",
        "--stripe_width", "share of even labels (ours)", "Stripes, for a look.",
        "The clients with the most training examples",
    ):  # fmt: skip
        assert words in shown, words
    wrong = run(folder, plugins, "--experiment=stripes", "--stripe_width=0")
    assert wrong.returncode == 2
    assert wrong.stderr.endswith("--stripe_width must be at least 1, got 0\n")
    code = MODULES["clipped_mean"].replace('"clipped_mean_norm"', '"rounds"')
    (folder / "taken.py").write_text(code)
    taken = run(folder, "--plugin=taken")
    assert taken.returncode == 2 and len(taken.stderr.splitlines()) == 1
    assert "--rounds is declared by TrainingSettings and by ClippedMean" in taken.stderr
