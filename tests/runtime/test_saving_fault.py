"""Packages that do not go together are named, with the cure, and nothing else is."""

import os
import subprocess
import sys

import pytest

# What typing_extensions does since 4.6, where it asks for a protocol's members.
NEWER = """
import inspect, typing_extensions
import tff_pmc.runtime.runtime
metaclass = type(typing_extensions.Protocol)
def looks_without_calling(cls, instance):
    inspect.getattr_static(instance, "method", None)
    return False
metaclass.__instancecheck__ = looks_without_calling
"""
ASK = """
from tff_pmc.runtime.runtime import saving_fault
print(saving_fault())
"""


def ask(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def packages():
    pytest.importorskip("wrapt")
    pytest.importorskip("typing_extensions")


def test_the_pinned_packages_go_together():
    assert ask(ASK) == "None\n"


def test_newer_ones_are_named_with_the_cure():
    said = ask(NEWER + ASK)
    assert said.count("\n") == 1
    for part in ("typing_extensions 4.", "wrapt 1.", "`make venv`", "cannot save"):
        assert part in said


def test_the_second_cure_is_one():
    assert ask(NEWER + ASK, WRAPT_DISABLE_EXTENSIONS="true") == "None\n"
