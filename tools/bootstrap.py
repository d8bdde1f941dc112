"""Makes .venv, the environment that every make target runs in, or leaves it alone.

It is made anew when it is missing, was interrupted, was moved, or has another
Python than the requested one; and brought up to date in place when
requirements.txt, setup.py or pyproject.toml changed. Otherwise this is a fast no-op.
Without --all it gets what running needs; uv installs it, and pip where uv cannot.

Plain syntax and the standard library only: it must run on Python 3.6, to report that
3.6 is too old, as well as on those that are too new.
"""

import argparse
import functools
import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import time

try:
    import fcntl
except ImportError:  # Windows, where nothing is installed.
    fcntl = None

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SETUP = os.path.join(ROOT, "setup.py")
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
STAMP = os.path.join(VENV, "bootstrap.json")
LOG = os.path.join(VENV, "bootstrap.log")
PINS = os.path.join(VENV, "bootstrap.txt")
UV = os.path.join(VENV, "bin", "uv")
INPUTS = ("requirements.txt", "setup.py", "pyproject.toml")
REST = (
    "\n# For tests"  # What stands behind it in requirements.txt, running does not need.
)
CANDIDATES = ("python3.11", "python3.10", "python3.9")
UNSUPPORTED = 2

# Run by a candidate Python: whether setup.py takes it, and whether it makes venvs.
PROBE = """
import json, runpy, sys
facts = runpy.run_path(sys.argv[1], run_name="probe")["describe_python"]()
try:
    import ensurepip, venv
    facts["venv"] = True
except ImportError:
    facts["venv"] = False
facts["executable"] = sys.executable
print(json.dumps(facts))
"""


def say(text):
    """Prints a line at once, also into a pipe."""
    print(text, flush=True)


def stop(text, code=1):
    """Prints why, and ends."""
    say(text)
    sys.exit(code)


def probe(python):
    """Returns the facts about a Python, or None when it does not run."""
    # A version manager's shim exists also for a Python that is not switched on, and
    # fails when run: only running it shows.
    try:
        output = subprocess.check_output(
            [python, "-c", PROBE, SETUP],
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        return json.loads(output.decode("utf-8"))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


def choose_python(wanted, why_not):
    """Returns the facts about the Python to make .venv with; stops without one."""
    first = probe(wanted or sys.executable)
    if first is None:
        stop("%s does not run as a Python." % (wanted or sys.executable))
    reason = why_not(first)
    if reason is None and first["venv"]:
        return first
    if not wanted:
        for name in CANDIDATES:
            other = probe(name)
            if other and other["venv"] and why_not(other) is None:
                return other
    if reason:
        stop(reason, UNSUPPORTED)
    stop(
        "%s cannot make virtual environments: install its venv and ensurepip modules "
        "(on Debian and Ubuntu the package python%d.%d-venv), or name another Python "
        "with PYTHON=." % ((first["executable"],) + tuple(first["version"][:2]))
    )


def hash_inputs():
    """Returns one hash of the files that decide what is installed."""
    digest = hashlib.sha256()
    for name in INPUTS:
        with open(os.path.join(ROOT, name), "rb") as file:
            content = file.read()
        digest.update(("%s %d\n" % (name, len(content))).encode("utf-8") + content)
    return digest.hexdigest()


def read_stamp():
    """Returns what the last install recorded, {} when there is no such record."""
    try:
        with open(STAMP, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def write_stamp(**record):
    """Records the state of the environment in one step."""
    with open(STAMP + ".new", "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1, sort_keys=True)
    os.replace(STAMP + ".new", STAMP)


def site_packages(version):
    """Returns the folder into which the environment's packages are unpacked."""
    name = "python%d.%d" % tuple(version[:2])
    return os.path.join(VENV, "lib", name, "site-packages")


def list_installed(version):
    """Returns the names of what is installed, without starting a Python."""
    names = os.listdir(site_packages(version))
    return {name for name in names if name.endswith(".dist-info")}


def find_fault(wanted, everything, why_not):
    """Returns why .venv does not serve and whether to make it anew, or None.

    `wanted` is the version of the Python that the user named, or None: then that of
    the environment is as good as any. `everything` is more than running needs.
    """
    if not os.path.lexists(VENV):
        return "there is none yet", True
    stamp = read_stamp()
    if not stamp and not os.path.isfile(os.path.join(VENV, "pyvenv.cfg")):
        stop(".venv is not a Python environment: move it out of the way.")
    if stamp and stamp["state"] != "complete":
        return "its installation was interrupted", True
    if not os.path.exists(VENV_PYTHON):
        return "its Python is gone", True
    if stamp:
        version = stamp["version"]
    else:
        facts = probe(VENV_PYTHON)
        if facts is None or why_not(facts):
            return "another tool made it, with a Python that does not serve", True
        version = facts["version"]
    if wanted and version != wanted:
        return "it has Python %s" % ".".join(str(part) for part in version), True
    if stamp and stamp["root"] != ROOT:
        return "the checkout was moved or copied", True
    if not os.path.isdir(os.path.join(site_packages(version), "pip")):
        return "another tool made it, without pip", True
    if not stamp:
        return "another tool made it", False
    if stamp["inputs"] != hash_inputs():
        return "%s, %s or %s changed" % INPUTS, False
    if not set(stamp["installed"]) <= list_installed(version):
        return "packages were removed or replaced", False
    if everything and not stamp["everything"]:
        return "it has what running needs alone", False
    return None


@functools.lru_cache(maxsize=1)
def lock():
    """Takes the lock on the checkout, once, and returns its file descriptor."""
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("Another installation runs in this checkout: waiting for it.")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        pass  # A file system without locks: do without.
    return descriptor


def run(command, descriptor, may_fail=False):
    """Runs a command into the log, with a line from time to time; returns success."""
    environment = dict(
        os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PIP_USER="0"
    )
    # With any of these, pip would look or install outside of the environment.
    for name in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
        environment.pop(name, None)
    began = time.time()
    with open(LOG, "ab") as log:
        start = log.tell()
        process = subprocess.Popen(
            command,
            # Not ROOT: there uv would read pyproject.toml, whose [tool.uv] is for
            # resolving, and refuse its ranges together with hashes.
            cwd=os.sep,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Should this process be killed, the command continues, and holds the lock.
            pass_fds=(descriptor,),
        )
        while process.poll() is None:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                line = (read_log(start).splitlines() or [""])[-1]
                say("  %3d s: %s" % (time.time() - began, line[:70]))
            except KeyboardInterrupt:
                process.wait()  # It was interrupted too, and needs a moment to end.
                raise
    if process.returncode and may_fail:
        say("  " + decisive(read_log(start)))
    elif process.returncode:
        tail = read_log(start).splitlines()[-15:]
        stop("\n".join(tail + ["Failed: " + " ".join(command), "Log: " + LOG]))
    return process.returncode == 0


def read_log(start):
    """Returns what the log holds from a place on."""
    with open(LOG, "rb") as log:
        log.seek(start)
        return log.read().decode("utf-8", "replace")


def decisive(text):
    """Returns the line of an error and the one behind it, or the last of a log."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    first = [place for place, line in enumerate(lines) if "error" in line.lower()]
    place = first[0] if first else len(lines) - 1
    return " ".join(lines[place : place + 2])


def install(python, anew, everything, descriptor):
    """Makes or updates .venv with the given Python."""
    if anew:
        if os.path.islink(VENV):
            os.remove(VENV)
        elif os.path.lexists(VENV):
            shutil.rmtree(VENV)
        os.mkdir(VENV)
    # Written before the first package, so that whatever ends this early leaves a
    # record: a package that was unpacked by half is taken for an installed one.
    write_stamp(state="installing")
    inputs = hash_inputs()
    if anew:
        run([python["executable"], "-m", "venv", VENV], descriptor)
    with open(os.path.join(ROOT, "requirements.txt"), encoding="utf-8") as file:
        text = file.read()
    with open(PINS, "w", encoding="utf-8") as file:
        file.write(text if everything else text.partition(REST)[0] + "\n")
    # --no-deps: TFF requires releases that are gone. --only-binary: never a compiler.
    # --require-hashes: whatever the index serves, these are the files that were pinned.
    pip = [VENV_PYTHON, "-m", "pip", "install", "--no-deps", "--progress-bar", "off"]
    uv = [UV, "pip", "install", "--no-deps", "--python", VENV_PYTHON]
    pinned = ["--require-hashes", "--only-binary", ":all:", "-r"]
    # Compiling all takes longer than what a first run imports, which compiles that,
    # where it may.
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        uv.append("--compile-bytecode")
    if not (
        run(pip + pinned + [os.path.join(ROOT, "tools", "uv.txt")], descriptor, True)
        and run(uv + pinned + [PINS], descriptor, True)
    ):
        say("uv does not serve here (%s): pip installs, which takes longer." % LOG)
        run(pip + pinned + [PINS], descriptor)
    run(pip + ["--no-build-isolation", "--editable", ROOT], descriptor)
    write_stamp(
        state="complete",
        root=ROOT,
        version=python["version"],
        everything=everything,
        inputs=inputs,
        installed=sorted(list_installed(python["version"])),
    )


def install_tracker(name, requirements):
    """Installs a tracker into the environment; what is pinned there stays."""
    if not os.path.exists(UV):
        stop("WITH=%s needs uv, which could not be installed (%s)." % (name, LOG))
    # With pip the file cannot be constraints: it has hashes, and no overrides.
    pins = os.path.join(ROOT, "requirements.txt")
    uv = [UV, "pip", "install", "--python", VENV_PYTHON, "-c", pins]
    run(uv + requirements, lock())
    say("Installed: %s." % ", ".join(requirements))


def main():
    """Brings .venv and the tracker up to date, or reports why that cannot be done."""
    setup = runpy.run_path(SETUP, run_name="setup")
    trackers = setup["TRACKERS"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the Python to make .venv with")
    parser.add_argument("--all", action="store_true", help="what tests need, too")
    words = "a tracker to install, too"
    parser.add_argument("--with", dest="tracker", choices=sorted(trackers), help=words)
    given = parser.parse_args()
    make_environment(given.python, given.all, setup["why_not"])
    if given.tracker:
        install_tracker(given.tracker, trackers[given.tracker])


def make_environment(wanted, everything, why_not):
    """Makes .venv or brings it up to date, unless it is."""
    python = choose_python(wanted, why_not) if wanted else None
    version = python and python["version"]
    fault = find_fault(version, everything, why_not)
    if fault is None:
        return
    if python is None:
        python = choose_python(None, why_not) if fault[1] else probe(VENV_PYTHON)
    descriptor = lock()
    fault = find_fault(version, everything, why_not)
    if fault is None:
        return  # Somebody else has mended it meanwhile.
    reason, anew = fault
    say(
        "%s .venv with Python %s: %s%s."
        % (
            "Making" if anew else "Updating",
            ".".join(str(part) for part in python["version"]),
            reason,
            " (10 seconds to 2 minutes, 2.5 GB)" if anew else "",
        )
    )
    began = time.time()
    # What is there stays: tests that were run will be run again.
    everything = everything or (not anew and read_stamp().get("everything", False))
    install(python, anew, everything, descriptor)
    say("The environment is ready (%d s)." % (time.time() - began))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("Interrupted: the next call begins the installation anew.", 130)
