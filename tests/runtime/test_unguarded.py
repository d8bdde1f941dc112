"""A script whose workers would start workers is told so, before one starts."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASK = """
import sys
sys.path.insert(0, {root!r})
from tff_pmc.runtime import local_cluster

def ask():
    try:
        local_cluster._check_guarded()
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("end", "is_refused"),
    [
        ("ask()", True),
        ("def main():\n    ask()\nmain()", True),
        ("if len(sys.argv) < 9:\n    ask()", True),
        ('if __name__ == "__main__":\n    ask()', False),
        ('def main():\n    ask()\nif "__main__" == __name__:\n    main()', False),
        ('if __name__ != "__main__":\n    pass\nelse:\n    ask()', False),
    ],
)
def test_a_script_has_to_guard_its_code(tmp_path, end, is_refused):
    text = ASK.format(root=str(ROOT)) + end
    script = tmp_path / "script.py"
    script.write_text(text)
    line = len(text.splitlines())
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == is_refused
    if is_refused:
        assert said[0].startswith(f"{script}, line {line}: ")
        assert 'put its code under `if __name__ == "__main__":`' in said[0]
    # What is no file is imported by no worker.
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_cluster_asks(monkeypatch):
    from tff_pmc.runtime import local_cluster
    from tff_pmc.settings.cluster_options import ClusterSettingError

    def refuse():
        raise ClusterSettingError("unguarded")

    monkeypatch.setattr(local_cluster, "_check_guarded", refuse)
    with pytest.raises(ClusterSettingError, match="unguarded"):
        local_cluster.start(1, None)
