"""Makes .venv, the environment that every make target runs in, or leaves it alone.

uv installs: the machine's, or the one that tools/uv.txt pins, which pip gets. .venv is
made again when it is missing, was interrupted or moved, or is for another PYTHON, and
brought up to date in place when requirements.txt, setup.py or pyproject.toml changed.

Plain syntax and the standard library only: any Python 3 with pip can run it, also one
that is too old or too new for TensorFlow Federated.
"""

import argparse
import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATHS = (".venv", "tools/uv.txt", "build/uv", "build/pip", "build/bootstrap.log")
VENV, UV_PIN, UV, PIP, LOG = (os.path.join(ROOT, path) for path in PATHS)
PINS, SETUP = os.path.join(ROOT, "requirements.txt"), os.path.join(ROOT, "setup.py")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "complete.json")
PYTHONS = (sys.executable, "python3.11", "python3.10", "python3.9")
# Prints why a Python cannot be used.
PROBE = (
    "import runpy, sys\n"
    "setup = runpy.run_path(sys.argv[1], run_name='probe')\n"
    "print(setup['why_not'](setup['describe_python']()) or '')"
)


def stop(text, code=1):
    """Prints why the program stops, and exits."""
    print(text, flush=True)
    sys.exit(code)


def ask(*command):
    """Returns what a command prints, or None when it fails."""
    try:
        output = subprocess.check_output(command, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    return output.decode("utf-8", "replace").strip()


def run(command, descriptor=None):
    """Runs a command into the log; returns why it failed, in one line, or None."""
    # The user's own settings would make pip look and install elsewhere.
    environment = dict(os.environ, PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0")
    for name in ("PYTHONPATH", "PYTHONHOME", "PIP_PREFIX", "PIP_ROOT"):
        environment.pop(name, None)
    with open(LOG, "wb") as log:
        # uv reads the overrides of pyproject.toml in ROOT. Should this be killed, the
        # command continues, and holds the lock.
        code = subprocess.call(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, pass_fds=[descriptor] if descriptor else [],
        )  # fmt: skip
    with open(LOG, encoding="utf-8", errors="replace") as log:
        lines = [line.strip() for line in log if line.strip()] or ["no output"]
    errors = [n for n, line in enumerate(lines) if line.lower().startswith("error")]
    place = errors[0] if errors else len(lines) - 1
    return " ".join(lines[place : place + 2]) if code else None


def get_uv(descriptor=None):
    """Returns the path of a uv that is not older than the pinned one."""

    def version(text):
        numbers = re.search(r"^uv\W+(\d+)\.(\d+)\.(\d+)", text or "", re.MULTILINE)
        return tuple(map(int, numbers.groups())) if numbers else ()

    with open(UV_PIN, encoding="utf-8") as file:
        pinned = version(file.read())
    pinned_uv = os.path.join(UV, "bin", "uv")
    for uv in (shutil.which("uv"), pinned_uv):
        if uv and version(ask(uv, "--version")) >= pinned:
            return uv
    why = "no Python here has pip (on Debian and Ubuntu it comes with python3-venv)"
    for python in PYTHONS:
        shutil.rmtree(UV, ignore_errors=True)
        if ask(python, "-m", "pip", "--version") is None:
            # Where pip is not installed, the module ensurepip may have it.
            if ask(python, "-m", "venv", "--clear", PIP) is None:
                continue
            python = os.path.join(PIP, "bin", "python")
        pip = [python, "-m", "pip", "install", "--target", UV, "--require-hashes"]
        why = run(pip + ["--only-binary", ":all:", "-r", UV_PIN], descriptor)
        if why is None:
            return pinned_uv
        why = "pip cannot get it (is there a network?): %s (log: %s)" % (why, LOG)
    stop("Install uv, or Python 3.11 with pip: uv is not here, and %s." % why)


def install(python, anew, extras, descriptor):
    """Installs into .venv, which it makes first if `anew`."""
    uv = get_uv(descriptor)
    if anew:
        # Without a name uv takes the first Python that pyproject.toml allows, and gets
        # one if there is none.
        venv = [uv, "venv", "--clear", VENV] + (["--python", python] if python else [])
        why = run(venv, descriptor)
        if why:
            reason = ask(sys.executable, "-c", PROBE, SETUP)
            stop(reason if reason and not python else "No Python: %s" % why, 2)
    reason = ask(VENV_PYTHON, "-c", PROBE, SETUP)
    if reason:
        stop(reason, 2)
    # The pins are constraints, whose hashes uv asks for. It resolves with the overrides
    # of pyproject.toml, which pip does not have. --only-binary: never a compiler.
    command = [uv, "pip", "install", "--python", VENV_PYTHON]
    packages = ["--only-binary", ":all:", "--constraints", PINS, "-r", UV_PIN]
    packages += ["-r", "pyproject.toml"] + ["--extra=%s" % extra for extra in extras]
    # Compiling all takes longer than what a first run imports, which compiles that,
    # where it may.
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        packages.append("--compile-bytecode")
    project = ["--no-deps", "--no-build-isolation", "--editable", ROOT]
    why = run(command + packages, descriptor) or run(command + project, descriptor)
    if why:
        stop("uv cannot install (is there a network?): %s (log: %s)." % (why, LOG))


def make_environment(python, extras):
    """Makes or updates .venv, unless it is up to date."""
    import fcntl

    began = time.time()
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        pass  # A file system without locks: do without.
    try:
        with open(STAMP, encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        stamp = {}
    python = python or stamp.get("python")
    is_same = (stamp.get("root"), stamp.get("python")) == (ROOT, python)
    anew = not is_same or not os.path.exists(VENV_PYTHON)
    if not anew:
        # What is there stays: tests that were run will be run again.
        extras = sorted({*extras, *stamp["extras"]})
    digest = hashlib.sha256()
    for path in (PINS, SETUP, os.path.join(ROOT, "pyproject.toml")):
        with open(path, "rb") as file:
            digest.update(file.read())
    complete = {"root": ROOT, "python": python, "extras": extras}
    complete["inputs"] = digest.hexdigest()
    if not anew and stamp == complete:
        return
    words = "Updating .venv", "Making .venv (10 seconds to 2 minutes, 2.5 GB)"
    print(words[anew], flush=True)
    # Whatever ends this early leaves no stamp: a package that was unpacked by half is
    # taken for an installed one.
    if anew and os.path.islink(VENV):
        os.remove(VENV)
    elif stamp:
        os.remove(STAMP)
    install(python, anew, extras, descriptor)
    with open(STAMP, "w", encoding="utf-8") as file:
        json.dump(complete, file)
    print("The environment is ready (%d s)." % (time.time() - began), flush=True)


def main():
    """Brings .venv up to date, or reports why that cannot be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", help="those of pyproject.toml to install")
    parser.add_argument("--python", help="the Python to make .venv with")
    parser.add_argument("--uv", action="store_true", help="print the path of uv alone")
    options = parser.parse_args()
    setup = runpy.run_path(SETUP, run_name="setup")
    reason = setup["why_not_machine"](setup["describe_python"]())
    if reason:
        stop(reason, 2)
    os.makedirs(os.path.dirname(LOG), exist_ok=True)
    if options.uv:
        print(get_uv())
    else:
        make_environment(options.python, options.extras)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("Interrupted: run the command again to restart the installation.", 130)
