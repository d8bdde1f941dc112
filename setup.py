"""Runs setuptools on pyproject.toml, where TensorFlow Federated can be installed.

Plain syntax throughout: Pythons that are too old or too new must be able to run
this file and read one clear line, not a traceback.
"""

import glob
import os
import platform
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# Files at the top of the checkout that go into the wheel, into this folder of the
# package; tff_pmc/project_files.py finds them.
PROJECT_FILES = ("experiments/*.flags", "results/paper/*")
PROJECT_FILES_IN_WHEEL = "tff_pmc/_project"
RELEASE = "TensorFlow Federated 0.87.0, its last release,"


def describe_python():
    """Returns the facts that decide whether TFF can be installed on this Python."""
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        libc = ""
    return {
        "version": list(sys.version_info[:3]),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        # A 32-bit Python on a 64-bit kernel wants 32-bit wheels.
        "machine": platform.machine() if sys.maxsize > 2**32 else "32-bit",
        "libc": libc,
    }


def why_not_machine(python):
    """Returns the reason in one line if TFF cannot be installed there, else None."""
    if (python["system"], python["machine"]) != ("Linux", "x86_64"):
        return (
            "%s cannot be installed on %s %s: it exists for Linux x86_64 only. Use a "
            "Linux x86_64 machine or container with Python 3.11."
            % (RELEASE, python["system"] or "an unknown system", python["machine"])
        )
    libc = re.match(r"glibc (\d+)\.(\d+)", python["libc"])
    if libc is None or (int(libc.group(1)), int(libc.group(2))) < (2, 31):
        return (
            "%s cannot be installed with %s: it needs glibc 2.31 or later. Use a newer "
            "distribution, or a container of one (Debian 11, Ubuntu 20.04 or later)."
            % (RELEASE, python["libc"] or "a C library other than glibc")
        )
    return None


def why_not(python):
    """Returns the reason, the machine or the Python, in one line, or None."""
    reason = why_not_machine(python)
    supported = [3, 9] <= list(python["version"][:2]) <= [3, 11]
    if reason is None and not (supported and python["implementation"] == "CPython"):
        return (
            "%s cannot be installed on %s %s: it exists for CPython 3.9, 3.10 and 3.11 "
            "only. Get Python 3.11 from a container, conda or `uv python install 3.11` "
            "(on Google Colab too: its own Python is too new), then name it: make "
            "PYTHON=/path/to/python3.11 ..."
            % (
                RELEASE,
                python["implementation"].replace("CPython", "Python"),
                ".".join(str(part) for part in python["version"]),
            )
        )
    return reason


def build_with_project_files(build_py):
    """Returns setuptools' command, which then copies `PROJECT_FILES` as well."""

    class BuildWithProjectFiles(build_py):
        def run(self):
            build_py.run(self)
            if self.editable_mode:
                return  # The checkout itself is what is installed.
            for pattern in PROJECT_FILES:
                folder = os.path.join(
                    self.build_lib, PROJECT_FILES_IN_WHEEL, os.path.dirname(pattern)
                )
                self.mkpath(folder)
                for path in sorted(glob.glob(os.path.join(HERE, pattern))):
                    self.copy_file(path, folder)

    return BuildWithProjectFiles


def main():
    """Runs setuptools, unless TFF cannot be installed here."""
    reason = why_not(describe_python())
    if reason:
        sys.stderr.write(reason + "\n")
        sys.exit(2)

    from setuptools import setup
    from setuptools.command.build_py import build_py

    setup(cmdclass={"build_py": build_with_project_files(build_py)})


# tools/bootstrap.py loads this file for why_not(), under another name.
if __name__ == "__main__":
    main()
