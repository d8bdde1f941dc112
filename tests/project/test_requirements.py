"""requirements.txt, which `make requirements` writes, and what installs it."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile

import pytest
from commands import ROOT, python

try:
    import tomllib
except ImportError:  # Before Python 3.11.
    import tomli as tomllib

TEXT = (ROOT / "requirements.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_every_line_has_a_pin_and_hashes_and_nothing_names_a_host():
    entries = re.split(r"\n(?=[a-z])", TEXT)[1:]
    assert len(entries) > 150
    for entry in entries:
        assert re.match(
            r"[a-z0-9-]+==[\w.]+ ; [^\\\n]+ \\\n"
            r"(    --hash=sha256:[0-9a-f]{64} \\\n)*"
            r"    --hash=sha256:[0-9a-f]{64}\n    # via [^\n]+\n?\Z",
            entry,
        ), entry
    assert "://" not in TEXT


def test_each_direct_dependency_is_pinned_and_trackers_are_not():
    dependencies = [*PROJECT["dependencies"], *sum(EXTRAS.values(), [])]
    assert EXTRAS["dev"] == ["tff-pmc[cluster,docs,lint,notebook,test]"]
    unpinned = {
        name
        for name in (re.match(r"[\w-]+", text)[0] for text in dependencies)
        if f"\n{name}==" not in TEXT
    }
    assert unpinned == {"tff-pmc", "mlflow-skinny", "wandb"}
    for exact in (text for text in dependencies if "==" in text):
        name, version = exact.split("==")
        assert name in unpinned or f"\n{exact} ;" in TEXT
        if name in unpinned:
            extra = "wandb" if name == "wandb" else "mlflow"
            page = (ROOT / "docs" / "dependencies.md").read_text()
            assert EXTRAS[extra] == [exact]
            assert f"| `{name}` | extra `{extra}`" in page
            assert f"{name} {version}" in (ROOT / "docs" / "install.md").read_text()


def test_the_table_of_old_pins_names_existing_pins():
    page = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(
        r"^\| `([a-z0-9-]+==[^`]+)` \| (.+?) \| .{20}", page, re.MULTILINE
    )
    assert len(rows) > 5
    for pin, vulnerabilities in rows:
        assert f"\n{pin} ;" in TEXT
        assert pin.startswith("tensorflow") or re.fullmatch(
            r"CVE-\d+-\d+(, CVE-\d+-\d+)*", vulnerabilities
        )


# Imitates uv and records its arguments. A command with the word FAILS fails; `uv venv`
# links VENV_PYTHON into the environment.
UV = """#!/bin/sh
echo "$@" >> "$CALLS"
case " $* " in *" $FAILS "*) echo "error: a reason"; echo "  cause: more"; exit 2;; esac
case $1 in
  --version) echo "uv 99.0.0";;
  venv) rm -rf .venv && mkdir -p .venv/bin && ln -s "$VENV_PYTHON" .venv/bin/python;;
esac
"""
READY = r"The environment is ready \(\d+ s\)."
MAKING = ["Making .venv (10 seconds to 2 minutes, 2.5 GB)", READY]
UPDATING = ["Updating .venv", READY]


@pytest.fixture
def checkout(tmp_path):
    """The files of a checkout that decide what is installed, and an imitation of uv."""
    root = tmp_path / "checkout"
    (root / "tools").mkdir(parents=True)
    (root / "uv").mkdir()
    for name in ("setup.py", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, root / name)
    for name in ("bootstrap.py", "uv.txt"):
        shutil.copy(ROOT / "tools" / name, root / "tools" / name)
    (root / "uv" / "uv").write_text(UV)
    (root / "uv" / "uv").chmod(0o755)
    return root


def bootstrap(root, *arguments, **environment):
    """Runs the bootstrap; returns the exit code, the lines and uv's commands."""
    calls = root / "calls"
    calls.write_text("")
    variables = {
        "PATH": f"{root / 'uv'}:/usr/bin:/bin",
        "CALLS": str(calls),
        "FAILS": "nothing",
        "VENV_PYTHON": sys.executable,
        **environment,
    }
    done = python(
        root / "tools" / "bootstrap.py", *arguments, cwd=root.parent, **variables
    )
    assert done.stderr == ""
    commands = [c for c in calls.read_text().splitlines() if c != "--version"]
    return done.returncode, done.stdout.splitlines(), commands


def assert_lines(lines, expected):
    assert len(lines) == len(expected) and all(
        line == text or re.fullmatch(text, line) for line, text in zip(lines, expected)
    ), lines


def test_an_environment_is_created_once_and_repaired(checkout):
    code, lines, commands = bootstrap(checkout, "cluster")
    assert code == 0
    assert_lines(lines, MAKING)
    assert [command.split()[0] for command in commands] == ["venv", "pip", "pip"]
    pins = f"--constraints {checkout / 'requirements.txt'}"
    assert pins in commands[1] and "--extra=cluster" in commands[1]
    assert bootstrap(checkout, "cluster") == (0, [], [])

    code, lines, commands = bootstrap(checkout, "dev")
    assert_lines(lines, UPDATING)
    assert "--extra=cluster --extra=dev" in commands[0]
    assert bootstrap(checkout, "cluster") == (0, [], [])

    with open(checkout / "requirements.txt", "a") as file:
        file.write("# changed\n")
    assert_lines(bootstrap(checkout, "cluster")[1], UPDATING)

    # Another Python; without the argument the environment is left alone.
    code, lines, commands = bootstrap(checkout, "dev", "--python", "python3")
    assert_lines(lines, MAKING)
    assert commands[0].endswith(".venv --python python3")
    assert bootstrap(checkout, "dev") == (0, [], [])

    # A failed update may leave anything, so the next call starts again.
    (checkout / "setup.py").write_text((checkout / "setup.py").read_text() + "\n")
    code, lines, _ = bootstrap(checkout, "dev", FAILS="--editable")
    assert code == 1
    why = r"uv cannot install \(.+\): error: a reason cause: more \(log: .*\)\."
    assert_lines(lines, ["Updating .venv", why])
    assert_lines(bootstrap(checkout, "dev")[1], MAKING)

    (checkout / ".venv" / "complete.json").write_text('{"root": ')
    assert_lines(bootstrap(checkout, "dev")[1], MAKING)
    (checkout / ".venv" / "bin" / "python").unlink()
    assert_lines(bootstrap(checkout, "dev")[1], MAKING)

    moved = checkout.with_name("moved")
    checkout.rename(moved)
    assert_lines(bootstrap(moved, "dev")[1], MAKING)
    (moved / ".venv").rename(moved / "elsewhere")
    (moved / ".venv").symlink_to("elsewhere")
    assert bootstrap(moved, "dev") == (0, [], [])
    assert_lines(bootstrap(moved, "dev", "--python", "python")[1], MAKING)
    assert not (moved / ".venv").is_symlink() and (moved / "elsewhere").is_dir()


def too_new(folder):
    """Writes a Python that reports version 3.12."""
    path = folder / "python3.12"
    path.write_text(
        f"#!/bin/sh\n[ $# -gt 2 ] && exec {sys.executable} -c "
        f'"import sys; sys.version_info = (3, 12, 1)\n$2" "$3"\n'
        f'exec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_a_failed_installation_is_explained_in_one_line(checkout):
    bootstrap(checkout, "dev")
    code, lines, _ = bootstrap(checkout, "dev", "--python", "none", FAILS="venv")
    assert (code, lines[1:]) == (2, ["No Python: error: a reason cause: more"])
    newer = str(too_new(checkout))
    code, lines, commands = bootstrap(checkout, "dev", VENV_PYTHON=newer)
    assert code == 2 and len(commands) == 1
    line = (
        r"TensorFlow Federated .* cannot be installed on Python 3\.12\.1: it exists.*"
    )
    assert_lines(lines[1:], [line])


def test_a_machine_without_uv_and_pip_gets_an_explanation(monkeypatch, capsys):
    get_uv = runpy.run_path(str(ROOT / "tools" / "bootstrap.py"))["get_uv"]
    monkeypatch.setitem(get_uv.__globals__, "ask", lambda *command: None)
    with pytest.raises(SystemExit):
        get_uv()
    assert_lines(
        capsys.readouterr().out.splitlines(),
        [r"Install uv, or Python 3\.11 with pip: uv is not .*python3-venv\)\."],
    )


def wheel(folder, name, version):
    """Writes a wheel without contents."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        )
        file.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: a\nRoot-Is-Purelib: true\n"
            "Tag: py3-none-any\n",
        )
        file.writestr(f"{info}/RECORD", "")


def test_a_package_of_another_hash_ends_the_installation(checkout, tmp_path):
    """The index is a folder of two wheels; uv is this environment's."""
    uv = os.path.join(os.path.dirname(sys.executable), "uv")
    if not os.path.exists(uv):
        pytest.skip("uv is not in this environment")
    version = subprocess.check_output([uv, "--version"], text=True).split()[1]
    (checkout / "uv" / "uv").unlink()
    (checkout / "uv" / "uv").symlink_to(uv)
    wheel(tmp_path, "p", "1.0")
    wheel(tmp_path, "uv", version)
    (checkout / "tools" / "uv.txt").write_text(f"uv=={version}\n")
    (checkout / "requirements.txt").write_text(f"p==1.0 --hash=sha256:{64 * '0'}\n")
    (checkout / "pyproject.toml").write_text(
        '[project]\nname = "q"\nversion = "1"\ndependencies = ["p"]\n'
    )
    index = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(tmp_path)}
    index["UV_CACHE_DIR"] = str(tmp_path / "cache")
    code, lines, _ = bootstrap(checkout, "--python", sys.executable, **index)
    assert code == 1 and "p==1.0" in lines[-1]
    assert "Hash mismatch" in (checkout / "build" / "bootstrap.log").read_text()
    assert not (checkout / ".venv" / "complete.json").exists()
