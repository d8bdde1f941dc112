"""Packages that do not go together are named, with the cure, and nothing else is."""

import os
import subprocess
import sys

import pytest

# What typing_extensions does since 4.6, where it asks for a protocol's members.
NEWER = """
import inspect, typing_extensions
from tff_pmc.runtime.runtime import saving_fault
metaclass = type(typing_extensions.Protocol)
def looks_without_calling(cls, instance):
    inspect.getattr_static(instance, "method", None)
    return False
print(saving_fault())
metaclass.__instancecheck__ = looks_without_calling
print(saving_fault())
"""


@pytest.mark.parametrize("cured", [False, True])
def test_newer_ones_are_named_with_the_cure(cured):
    cure = {"WRAPT_DISABLE_EXTENSIONS": "true"} if cured else {}
    done = subprocess.run(
        [sys.executable, "-c", NEWER],
        capture_output=True,
        text=True,
        env={**os.environ, **cure},
    )
    pinned, newer = done.stdout.splitlines()
    assert pinned == "None" and (newer == "None") == cured, done.stderr
    for part in ("typing_extensions 4.", "wrapt 1.", "`make venv`", "cannot save"):
        assert cured or part in newer
