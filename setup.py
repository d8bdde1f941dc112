"""The name of the project, its dependencies, and the Pythons that can install it.

Plain syntax throughout: Pythons that are too old or too new must be able to run
this file and read one clear line, not a traceback.
"""

import glob
import io
import os
import platform
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# docs/dependencies.md gives the reason for each.
INSTALL_REQUIRES = [
    "tensorflow-federated==0.87.0",
    "tensorflow-cpu==2.14.1",
    "absl-py",
    "grpcio",
    "jinja2",  # The page of a run, and pandas' tables in LaTeX.
    "matplotlib",
    "mlxtend",
    "numpy",
    "pandas",
    "pillow>=9.1",
    "scipy",
    # TFF imports google.rpc, and that pkg_resources: gone from setuptools 81, and
    # from 80.9 on every import of it prints a warning.
    "setuptools<80.9",
    "tqdm",
]
# Not in requirements.txt: `make venv WITH=mlflow` installs one beside its pins.
TRACKERS = {"mlflow": ["mlflow-skinny==3.5.1"], "wandb": ["wandb==0.16.6"]}
EXTRAS_REQUIRE = {
    "cluster": ["distributed==2024.8.0"],
    "test": ["hypothesis", "pytest", "pytest-xdist", "scikit-learn"],
    "lint": ["mypy", "ruff"],
    # From ipython 8.19 and ipykernel 7 on they ask for newer packages than TFF's pins;
    # of jupyterlab, 4.5.7 imports what the pinned packaging does not have.
    "notebook": ["ipykernel<7", "ipython<8.19", "jupyterlab<4.5.1", "nbclient"],
    # Of pymdown-extensions, 13 asks for Python 3.11.5, and a pin must hold for 3.11.
    "docs": ["mkdocs-material", "mkdocstrings[python]", "pymdown-extensions<13"],
}
EXTRAS_REQUIRE.update(TRACKERS)
# Files at the top of the checkout that go into the wheel, into this folder of the
# package; tff_pmc/project_files.py finds them.
PROJECT_FILES = ("experiments/*.flags", "results/paper/*")
PROJECT_FILES_IN_WHEEL = "tff_pmc/_project"


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


def why_not(python):
    """Returns the reason in one line if TFF cannot be installed there, else None."""
    release = "TensorFlow Federated 0.87.0, its last release,"
    if (python["system"], python["machine"]) != ("Linux", "x86_64"):
        return (
            "%s cannot be installed on %s %s: it exists for Linux x86_64 only. Use a "
            "Linux x86_64 machine or container with Python 3.11."
            % (release, python["system"] or "an unknown system", python["machine"])
        )
    supported = [3, 9] <= list(python["version"][:2]) <= [3, 11]
    if not supported or python["implementation"] != "CPython":
        return (
            "%s cannot be installed on %s %s: it exists for CPython 3.9, 3.10 and 3.11 "
            "only. Get Python 3.11 from a container, conda or `uv python install 3.11` "
            "(on Google Colab too: its own Python is too new), then name it: make "
            "PYTHON=/path/to/python3.11 ..."
            % (
                release,
                python["implementation"].replace("CPython", "Python"),
                ".".join(str(part) for part in python["version"]),
            )
        )
    libc = re.match(r"glibc (\d+)\.(\d+)", python["libc"])
    if libc is None or (int(libc.group(1)), int(libc.group(2))) < (2, 31):
        return (
            "%s cannot be installed with %s: it needs glibc 2.31 or later. Use a newer "
            "distribution, or a container of one (Debian 11, Ubuntu 20.04 or later)."
            % (release, python["libc"] or "a C library other than glibc")
        )
    return None


def read_value(path, key):
    """Returns the string that a line `key = "..."` of a file of the checkout sets."""
    with io.open(os.path.join(HERE, *path.split("/")), encoding="utf-8") as file:
        found = re.search('^%s = "(.+)"$' % key, file.read(), re.MULTILINE)
    if found is None:
        sys.exit('setup.py: %s has no line %s = "..."' % (path, key))
    return found.group(1)


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

    from setuptools import find_packages, setup
    from setuptools.command.build_py import build_py

    setup(
        name=read_value("pyproject.toml", "name"),
        # Read, not imported: a package that needs TFF cannot be imported before TFF.
        version=read_value("tff_pmc/__init__.py", "__version__"),
        description="Federated learning with criteria, scores and a search over them, "
        "on TensorFlow Federated",
        license="Apache-2.0",
        python_requires=read_value("pyproject.toml", "requires-python"),
        install_requires=INSTALL_REQUIRES,
        extras_require=EXTRAS_REQUIRE,
        # With this line an editable install is one path, and sees a package that is
        # added later; without it, a fixed list of packages.
        package_dir={"": "."},
        packages=find_packages(include=["tff_pmc*", "leaf_data*"]),
        # py.typed tells type checkers that both packages have types.
        package_data={
            "leaf_data": ["py.typed"],
            "tff_pmc": ["py.typed", "reports/*.jinja"],
        },
        py_modules=["run_experiments"],
        cmdclass={"build_py": build_with_project_files(build_py)},
    )


# tools/bootstrap.py loads this file for why_not(), under another name.
if __name__ == "__main__":
    main()
