"""requirements.txt, and the two tools that write it and judge it."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile

import pytest
from commands import ROOT, python

TEXT = (ROOT / "requirements.txt").read_text()
BOOTSTRAP = runpy.run_path(str(ROOT / "tools" / "bootstrap.py"), run_name="tools")
FILES = {
    "p-1.0-py3-none-any.whl": "a",
    "p-1.0-cp39-cp39-manylinux_2_17_x86_64.manylinux2014_x86_64.whl": "b",
    "p-1.0-cp311-cp311-manylinux_2_39_x86_64.whl": "c",
    "p-1.0-cp39-abi3-manylinux_2_28_x86_64.whl": "d",
    "p-1.0-cp311-cp311-musllinux_1_2_x86_64.whl": "no",
    "p-1.0-cp311-cp311-win_amd64.whl": "no",
    "p-1.0-cp311-cp311-manylinux_2_17_aarch64.whl": "no",
    "p-1.0-cp312-cp312-manylinux_2_17_x86_64.whl": "no",
    "p-1.0-cp313-cp313t-manylinux_2_17_x86_64.whl": "no",
}


@pytest.fixture(scope="module")
def compiling():
    return runpy.run_path(str(ROOT / "tools" / "compile_requirements.py"))


@pytest.fixture(scope="module")
def auditing():
    return runpy.run_path(str(ROOT / "tools" / "audit.py"))


def test_every_line_has_a_pin_and_hashes_and_nothing_names_a_host():
    running, _, rest = TEXT.partition(BOOTSTRAP["REST"])
    assert "\ntensorflow-federated==" in running and "\njupyterlab==" in rest
    entries = re.split(r"\n(?=[a-z])", running)[1:]
    entries += re.split(r"\n(?=[a-z])", rest)[1:]
    assert len(entries) > 100
    for entry in entries:
        assert re.match(
            r"[a-z0-9-]+==[\w.]+( ; python_version [<>=!]+ '3\.\d+')? \\\n"
            r"(    --hash=sha256:[0-9a-f]{64} \\\n)*"
            r"    --hash=sha256:[0-9a-f]{64}\n    # via [a-z0-9, -]+\n?\Z",
            entry,
        ), entry
    assert "://" not in TEXT


def test_hashes_are_those_of_the_wheels_that_may_be_installed(compiling):
    choose = compiling["choose_hashes"]
    assert choose("p==1.0", FILES, ["3.9"]) == list("abd")
    assert choose("p==1.0", FILES, ["3.11"]) == list("acd")
    assert choose("p==1.0", FILES, ["3.9", "3.10", "3.11"]) == list("abcd")
    only = {name: sha for name, sha in FILES.items() if sha == "b"}
    with pytest.raises(SystemExit, match="p==1.0 has no wheel for Python 3.10"):
        choose("p==1.0", only, ["3.9", "3.10"])


def test_a_line_has_the_marker_and_the_hashes_of_its_pythons(compiling):
    line = "p==1.0 ; python_full_version < '3.10'  # via q, tff-pmc (pyproject.toml)"
    assert compiling["simplify"](line, {("p", "1.0"): FILES}) == (
        "p==1.0 ; python_version < '3.10' \\\n    --hash=sha256:a \\\n"
        "    --hash=sha256:b \\\n    --hash=sha256:d\n    # via q, tff-pmc"
    )


PINS = """\
a==1 ; python_version < '3.10' \\
    --hash=sha256:0
    # via tff-pmc
a==2 ; python_version >= '3.10' \\
    --hash=sha256:0
b==3 \\
    --hash=sha256:0
"""
EACH = {
    "3.9": {"a": "1", "b": "3"},
    **dict.fromkeys(("3.10", "3.11"), {"a": "2", "b": "3"}),
}


def test_pins_are_read_for_each_python(auditing):
    assert auditing["read_pins"](PINS) == EACH


def test_an_audit_tells_of_held_pins_and_fails_for_others(auditing, tmp_path, capsys):
    (tmp_path / "vulns" / "a").mkdir(parents=True)
    entry = (
        "id: X-{0}\naliases: [CVE-{0}]\n{1}affected:\n- package: {{name: a}}\n"
        "  ranges:\n  - type: ECOSYSTEM\n"
        "    events: [{{introduced: '0'}}, {{fixed: '9'}}]\n"
        "  - type: GIT\n    events: [{{fixed: abcdef}}]\n  versions: ['{2}']\n"
    )
    for name, more in (("1", ""), ("2", ""), ("5", ""), ("7", "withdrawn: 2024\n")):
        version = {"7": "1"}.get(name, name)
        path = tmp_path / "vulns" / "a" / f"{name}.yaml"
        path.write_text(entry.format(name, more, version))
    found = list(auditing["read_database"](EACH, tmp_path))
    assert found == [
        ("a", "1", ["X-1", "CVE-1"], ["9"]),
        ("a", "2", ["X-2", "CVE-2"], ["9"]),
    ]
    assert auditing["report"](EACH, found, {"a==1", "a==2"}) == 0
    assert auditing["report"](EACH, found, {"a==1"}) == 1
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "a==1 (Python 3.9): X-1 CVE-1; mended in 9; held",
        "a==2 (Python 3.10, 3.11): X-2 CVE-2; mended in 9",
        "2 known vulnerabilities, 1 of them in pins not held",
    ]


def test_the_page_holds_pins_that_there_are(auditing):
    held = auditing["read_held"]((ROOT / "docs" / "dependencies.md").read_text())
    pins = auditing["read_pins"](TEXT).values()
    assert len(held) > 5
    assert held <= {f"{name}=={v}" for each in pins for name, v in each.items()}


def test_an_audit_without_a_network_ends_with_two_lines(auditing, monkeypatch):
    """The venv is left out; pip finds nobody."""

    def run(command, real=subprocess.run, **how):
        if command[1:3] == ["-m", "venv"]:
            return None
        nowhere = {
            **os.environ,
            "PIP_INDEX_URL": "http://127.0.0.1:9/",
            "PIP_RETRIES": "0",
        }
        command = [sys.executable, *command[1:]]
        return real(command, env=nowhere, **how)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SystemExit, match=r"No answer: .*pip-audit.*\n--database"):
        list(auditing["ask_service"](EACH))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        # What uv prints where it may not reach the index, and of a wrong hash.
        ("Using Python 3.11\nerror: Request failed\n  cause: Failed to fetch: a\n"
         "  cause: refused\n", "error: Request failed cause: Failed to fetch: a"),
        ("  x Failed to read `p==1`\n  > Hash mismatch for `p==1`\n\n",
         "> Hash mismatch for `p==1`"),
        ("", ""),
    ],
)  # fmt: skip
def test_why_uv_does_not_serve_is_shown(tmp_path, monkeypatch, capsys, printed, shown):
    run = BOOTSTRAP["run"]
    monkeypatch.setitem(run.__globals__, "LOG", str(tmp_path / "log"))
    command = [sys.executable, "-c", f"print({printed!r}, end=''); raise SystemExit(2)"]
    assert not run(command, 2, may_fail=True)
    assert capsys.readouterr().out == f"  {shown}\n"


def test_trackers_are_pinned_and_installed_beside_the_pins(monkeypatch, tmp_path):
    setup = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    page, found = (ROOT / "docs" / "dependencies.md").read_text(), []
    install = BOOTSTRAP["install_tracker"]
    monkeypatch.setitem(install.__globals__, "UV", str(tmp_path / "uv"))
    monkeypatch.setitem(install.__globals__, "lock", lambda: None)
    monkeypatch.setitem(
        install.__globals__, "run", lambda command, _: found.append(command)
    )
    with pytest.raises(SystemExit):
        install("mlflow", setup["TRACKERS"]["mlflow"])
    (tmp_path / "uv").touch()
    for name, (pinned,) in setup["TRACKERS"].items():
        package, version = pinned.split("==")
        assert setup["EXTRAS_REQUIRE"][name] == [pinned]
        assert f"| `{package}` | extra `{name}`" in page
        assert f"\n{package}==" not in TEXT  # Nobody has it unasked.
        assert f"{package} {version}" in (ROOT / "docs" / "install.md").read_text()
        install(name, [pinned])
        assert found[-1][-3:] == ["-c", str(ROOT / "requirements.txt"), pinned]
        assert found[-1][:3] == [str(tmp_path / "uv"), "pip", "install"]


@pytest.mark.slow
def test_a_package_of_another_hash_ends_the_installation(tmp_path):
    """The index is a folder of one wheel; uv is not in it, so pip is tried, too."""
    wheel = tmp_path / "p-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("p.py", "")
        file.writestr("p-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: p\n"
                      "Version: 1.0\n")  # fmt: skip
        file.writestr("p-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: a\n"
                      "Root-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        file.writestr("p-1.0.dist-info/RECORD", "")
    root = tmp_path / "root"
    (root / "tools").mkdir(parents=True)
    for name in ("tools/bootstrap.py", "tools/uv.txt", "setup.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    (root / "requirements.txt").write_text(f"p==1.0 --hash=sha256:{64 * '0'}\n")
    done = python(
        root / "tools" / "bootstrap.py",
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(tmp_path),
    )
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stdout
    installed = list((root / ".venv").rglob("site-packages"))
    assert installed and not list((root / ".venv").rglob("p.py"))
