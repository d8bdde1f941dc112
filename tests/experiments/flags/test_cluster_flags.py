"""The flags of a cluster: what they imply and what they contradict."""

import pytest

from leaf_data.declare import SettingError
from tff_pmc.experiments.flags.command import Command
from tff_pmc.experiments.flags.command_line import cluster_of
from tff_pmc.settings.cluster_options import ClusterOptions


def asked(**given):
    return cluster_of(Command.of_flags(given), given)


def test_a_cluster_is_asked_for_by_engine_or_by_address():
    assert asked() is None and asked(engine="worker") is None
    assert asked(engine="cluster").address == "local"
    assert asked(cluster="local").address == "local"
    found = asked(cluster="tcp://127.0.0.1:1", spread="runs", cluster_threads=3)
    assert (found.address, found.spread, found.threads) == (
        "tcp://127.0.0.1:1",
        "runs",
        3,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"engine": "local", "cluster": "local"}, "not with --engine=local"),
        ({"engine": "worker", "cluster": "local"}, "not with --engine=worker"),
        ({"spread": "runs"}, "--spread goes with --engine=cluster"),
        ({"tls_cert": "x"}, "--tls_cert goes with --engine=cluster"),
        ({"engine": "cluster", "tls_cert": "x"}, "--tls_cert goes with --cluster=tls"),
        ({"cluster": "tcp://192.0.2.1:8786"}, "--insecure_cluster"),
        ({"cluster": "tls://192.0.2.1:8786"}, "--tls_ca_file is missing"),
        ({"cluster": "local", "cluster_threads": 0}, "--cluster_threads"),
        (
            {"cluster": "local", "experiment": "lr_search", "spread": "runs"},
            "--spread=runs does not go with --experiment=lr_search",
        ),
    ],
)
def test_contradictions_are_one_line(given, said, assert_one_line):
    assert_one_line(SettingError, lambda: asked(**given), said)


def test_they_are_refused_with_exit_code_2(run):
    for arguments, said in (
        (["--cluster=tcp://192.0.2.1:8786"], "--insecure_cluster"),
        (["--engine=local", "--cluster=local"], "--engine=local"),
        (["--cluster=tcp://127.0.0.1:1"], "no scheduler answers"),
    ):
        done = run("--experiment=quickstart", *arguments)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert said in line


@pytest.mark.parametrize(
    ("spread", "runs", "workers", "found"),
    [
        ("auto", 1, 1, "clients"),
        ("auto", 2, 2, "runs"),
        ("auto", 9, 2, "runs"),
        ("auto", 9, 10, "clients"),
        ("clients", 9, 2, "clients"),
        ("runs", 1, 4, "runs"),
    ],
)
def test_what_is_spread(spread, runs, workers, found):
    options = ClusterOptions(spread=spread)
    assert options.spreads_runs(runs, workers) == (found == "runs")
