"""The packages as type checkers and editors see them."""

import ast
import importlib
import inspect
import json
import re
import sys
import typing

import pytest
from commands import ROOT, python

import tff_pmc
from declared_settings import Settings
from tff_pmc.settings.training_settings import LocalTraining

# Each line that ends in `# error: WORD` has a mistake: both checkers report an error
# there that contains the word, and no error on any other line.
PROGRAM = """
import leaf_data
import tensorflow_federated as tff
from typing_extensions import Unpack

import tff_pmc
from declared_settings import AT_LEAST_1, Settings, setting
from tff_pmc import models, processes

data = leaf_data.load("digits5k", partition="noniid", seed=3)
optimizer = tff.learning.optimizers.build_sgdm(0.1)
model = models.mnist_cnn(seed=3)

process = tff_pmc.build_prioritized_fed_avg(
    model,
    priority=("LD", "DS", "MD"),
    client_optimizer_fn=optimizer,
    criteria=["DS", "LD", tff_pmc.attribute("age")],
    sums=tff_pmc.SumOptions(clip_norm=1.0),
    local_epochs=5,
    batch_size=10,
    prox_mu=0.1,
    client_attributes=["age"],
    client_learning_rate_fn=lambda round_num: 0.1,
)
adafed = tff_pmc.build_adafed(
    models.keras_mnist_cnn(),
    client_optimizer_fn=optimizer,
    server_examples=(data.test_examples.x, data.test_examples.y),
    num_classes=10,
    keep_own_model=[3],
)
online = tff_pmc.build_online_adjusted_fed_avg(
    model, client_optimizer_fn=optimizer, policy="best_of_all", seed=3
)
pure = tff_pmc.build_online_adjusted_iterative_process(
    model, client_optimizer_fn=optimizer, report_cohort=10
)


def build(**training: Unpack[processes.TrainingOptions]) -> None:
    processes.build_prioritized_fed_avg(
        model, client_optimizer_fn=optimizer, **training
    )


with tff_pmc.Runtime():
    state = process.initialize()
    packs = tff_pmc.pack(data.train_examples, range(10), num_packs=2)
    output = process.next(state, packs)
    tests = tff_pmc.evaluation_packs(data.test_examples)
    online.next(online.initialize(), packs, tests)
    rounds = tff_pmc.read_results("runs")
    source = tff_pmc.data_source(data.train_examples, seed=3, num_packs=2)
    sentences = tff_pmc.effect(rounds, baseline="DS").sentences()


class Mine(Settings):
    steps: int = setting(3, "Steps.", within=AT_LEAST_1)


build(local_epochs=3)
build(local_epoch=3)  # error: local_epoch
build(local_epochs="3")  # error: local_epochs
tff_pmc.build_prioritized_fed_avg(model)  # error: client_optimizer_fn
tff_pmc.build_prioritized_fed_avg(model, client_optimizer_fn=optimizer, local_epoch=5)  # error: local_epoch
tff_pmc.build_prioritized_fed_avg(model, client_optimizer_fn=optimizer, batch_size="5")  # error: batch_size
tff_pmc.build_prioritized_fed_avg(model, client_optimizer_fn=optimizer, priority=5)  # error: priority
tff_pmc.build_adafed(model, client_optimizer_fn=optimizer, num_classes=10)  # error: server_examples
tff_pmc.build_online_adjusted_fed_avg(model, client_optimizer_fn=optimizer, epochs=5)  # error: epochs
tff_pmc.build_online_adjusted_iterative_process(model, seed=3)  # error: client_optimizer_fn
tff_pmc.build_prioritised_fed_avg  # error: build_prioritised_fed_avg
tff_pmc.pack(data.train_examples, 5)  # error: pack
tff_pmc.data_source(data.train_examples, num_pack=2)  # error: num_pack
tff_pmc.load_model("runs", round="3")  # error: round
tff_pmc.effect(rounds, base="DS")  # error: base
tff_pmc.Runtime(5)  # error: str
tff_pmc.SumOptions(clip=1.0)  # error: clip
leaf_data.load(3)  # error: str
online.next(state)  # error: judges
models.mnist_cnn(3)  # error: positional
setting(3)  # error: words
"""  # noqa: E501
MISTAKES = {
    number: line.rpartition("# error: ")[2]
    for number, line in enumerate(PROGRAM.splitlines(), 1)
    if "# error: " in line
}


@pytest.fixture
def program(tmp_path):
    """The user's program, in a folder without settings of a type checker."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def assert_finds_the_mistakes(errors):
    """Asserts that each mistake is reported on its line, and nothing else."""
    messages_by_line = {}
    for number, message in errors:
        messages_by_line[number] = messages_by_line.get(number, "") + message
    assert messages_by_line.keys() == MISTAKES.keys(), messages_by_line
    for number, word in MISTAKES.items():
        assert re.search(word, messages_by_line[number], re.IGNORECASE), (
            messages_by_line[number]
        )


def test_mypy_finds_the_mistakes_of_a_users_program(program):
    cache = ROOT / ".mypy_cache" / "program"
    settings = program.with_name("mypy.ini")
    # TFF has no types.
    settings.write_text(
        "[mypy]\nstrict = true\n[mypy-tensorflow_federated.*]\n"
        "ignore_missing_imports = true\n"
    )
    done = python("-m", "mypy", "--no-error-summary", f"--cache-dir={cache}",
                  f"--config-file={settings}", program, cwd=program.parent)  # fmt: skip
    assert not done.stderr
    lines = done.stdout.splitlines()
    errors = [re.fullmatch(r"program.py:(\d+): (error: .*)", line) for line in lines]
    notes = [line for line in lines if ": note: " in line]
    assert len(notes) + len([e for e in errors if e]) == len(lines), done.stdout
    assert_finds_the_mistakes((int(e[1]), e[2]) for e in errors if e)


def test_pyright_finds_the_mistakes_of_a_users_program(program):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    settings = {"typeCheckingMode": "standard", "reportUnusedExpression": False}
    program.with_name("pyrightconfig.json").write_text(json.dumps(settings))
    done = python("-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable,
                  program, cwd=program.parent)  # fmt: skip
    reports = json.loads(done.stdout)["generalDiagnostics"]
    assert_finds_the_mistakes(
        (report["range"]["start"]["line"] + 1, report["message"])
        for report in reports
        if report["severity"] == "error"
    )


STUBS = [
    path.relative_to(ROOT)
    for folder in ("tff_pmc", "leaf_data", "declared_settings")
    for path in sorted((ROOT / folder).rglob("*.pyi"))
]


@pytest.mark.parametrize("stub", STUBS, ids=str)
def test_a_stub_has_the_names_of_its_package(stub):
    package = importlib.import_module(".".join(stub.parent.parts))
    shown = {}
    for node in ast.parse((ROOT / stub).read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = importlib.import_module(node.module)
                shown[alias.name] = getattr(module, alias.name)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            shown[node.name] = getattr(package, node.name)
        elif isinstance(node, ast.AnnAssign):
            shown[node.target.id] = getattr(package, node.target.id)
        else:
            (target,), exported = node.targets, ast.literal_eval(node.value)
            assert target.id == "__all__" and exported == package.__all__
    shown.pop("__version__", None)
    assert shown == {name: getattr(package, name) for name in package.__all__}


def test_a_package_with_lazy_imports_has_a_stub():
    """Otherwise a type checker sees none of its names."""
    assert len(STUBS) == 3
    for path in sorted((ROOT / "tff_pmc").rglob("__init__.py")):
        if "\n_PLACES = " in path.read_text("utf-8"):
            assert path.with_suffix(".pyi").is_file(), path


def test_the_options_of_training_are_those_of_the_declaration():
    from tff_pmc.clients.training_options import Training, TrainingOptions

    declared = typing.get_type_hints(Training)
    names = list(inspect.signature(Training).parameters)
    assert typing.get_type_hints(TrainingOptions) == {n: declared[n] for n in names}
    assert list(TrainingOptions.__annotations__) == names
    assert TrainingOptions.__total__ is False
    words = " ".join(TrainingOptions.__doc__.split())
    for setting in LocalTraining.declared():
        text = f"{setting.name}: {setting.help} By default {setting.default}. "
        assert text in words + " "
    for name in names:
        assert f" {name}: " in words
    assert issubclass(Training, Settings)


def test_the_options_of_packing_are_those_of_pack():
    from tff_pmc.clients.packing import PackingOptions

    by_name = [
        parameter.name
        for parameter in inspect.signature(tff_pmc.pack).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        and parameter.name != "local_epochs"  # They belong to one cohort.
    ]
    hints = typing.get_type_hints(tff_pmc.pack)
    options = typing.get_type_hints(PackingOptions)
    assert options == {name: hints[name] for name in by_name}


def test_a_builder_shows_the_options_at_run_time():
    from tff_pmc.clients.training_options import Training

    options = list(inspect.signature(Training).parameters.values())
    for name in tff_pmc._PLACES:
        builder = getattr(tff_pmc, name)
        hints = getattr(builder, "__annotations__", {})
        if "training" in hints:
            parameters = inspect.signature(builder).parameters
            assert "training" not in parameters and name.startswith("build_")
            for option in options:
                assert parameters[option.name].default == option.default
                assert parameters[option.name].kind is inspect.Parameter.KEYWORD_ONLY
            assert typing.get_type_hints(builder)["training"]
            assert "Of `Training`:\n        local_epochs: " in builder.__doc__
