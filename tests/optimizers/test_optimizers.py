"""The registries of optimizers: the settings take what is registered."""

import pathlib
import re

import pytest

from declared_settings import SettingError
from tff_pmc.experiments.experiment import settings
from tff_pmc.optimizers import CLIENT_OPTIMIZERS, SERVER_OPTIMIZERS, Optimizer
from tff_pmc.settings.server_settings import ServerSettings


@pytest.mark.parametrize(
    ("registry", "flag"),
    [(CLIENT_OPTIMIZERS, "client_optimizer"), (SERVER_OPTIMIZERS, "server_optimizer")],
)
def test_a_registered_optimizer_is_a_choice_and_is_built(registry, flag, monkeypatch):
    from tff_pmc.algorithms.run_context import RunContext

    with pytest.raises(SettingError, match=f"--{flag} must be one of sgd, .*'mine'"):
        settings("quickstart", {flag: "mine"})
    mine = Optimizer(lambda rate: ("mine", rate))
    monkeypatch.setitem(registry._things, "mine", mine)
    changes = {flag: "mine", "learning_rate": 0.25, "server_learning_rate": 0.25}
    context = RunContext(settings("quickstart", changes), None, None)
    assert getattr(context, flag) == ("mine", 0.25)


def test_the_example_of_the_page_makes_a_choice(monkeypatch):
    page = (pathlib.Path(__file__).parents[2] / "docs" / "extend.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    (example,) = (block for block in blocks if "CLIENT_OPTIMIZERS" in block)
    monkeypatch.setattr(CLIENT_OPTIMIZERS, "_things", dict(CLIENT_OPTIMIZERS._things))
    exec(example, {})
    chosen = settings("quickstart", {"client_optimizer": "yogi"}).training
    assert "yogi" in type(CLIENT_OPTIMIZERS["yogi"].build(0.5)).__name__.lower()
    assert chosen.client_optimizer == "yogi"


def test_the_parameters_of_the_servers_optimizers_are_settings():
    fields = {declared.name: declared for declared in ServerSettings.declared()}
    for name, optimizer in SERVER_OPTIMIZERS.items():
        for parameter, default in optimizer.parameters.items():
            assert fields[parameter].default is None
            declared = fields[parameter].help
            assert f"{default:g}" in declared and name in declared
    assert not any(optimizer.parameters for optimizer in CLIENT_OPTIMIZERS.values())


@pytest.mark.parametrize("name", CLIENT_OPTIMIZERS)
def test_each_client_optimizer_is_a_tff_optimizer(name):
    from tff_pmc._lazy import tff

    optimizer = CLIENT_OPTIMIZERS[name].build(0.5)
    assert isinstance(optimizer, tff.learning.optimizers.Optimizer)
