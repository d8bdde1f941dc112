"""A cluster on this machine that cannot start: by its script, or its workers."""

import pathlib
import subprocess
import sys
from typing import ClassVar

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASK = """
import sys
sys.path.insert(0, {root!r})
from tff_pmc.cluster import local_cluster

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
        [sys.executable, script], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == is_refused
    if is_refused:
        assert said[0].startswith(f"{script}, line {line}: ")
        assert 'put its code under `if __name__ == "__main__":`' in said[0]
    # What is no file is imported by no worker.
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_cluster_asks(monkeypatch):
    from tff_pmc.cluster import local_cluster
    from tff_pmc.cluster.options import ClusterSettingError

    def refuse():
        raise ClusterSettingError("unguarded")

    monkeypatch.setattr(local_cluster, "_check_guarded", refuse)
    with pytest.raises(ClusterSettingError, match="unguarded"):
        local_cluster.start(1, None)


def test_workers_that_do_not_start_are_one_line(monkeypatch):
    """As where they get no semaphores; the real ones would take minutes."""
    import distributed

    from tff_pmc.cluster import local_cluster
    from tff_pmc.cluster.options import ClusterSettingError

    class Empty:
        scheduler_info: ClassVar = {"workers": {}}
        asked, closed = 0, False

        def __init__(self, **options):
            assert options["n_workers"] == 0

        def scale(self, number):
            Empty.asked = number

        def close(self, timeout):
            Empty.closed = True

    monkeypatch.setattr(local_cluster, "_SECONDS", 0.1)
    monkeypatch.setattr(distributed, "LocalCluster", Empty)
    with pytest.raises(ClusterSettingError, match=r"did not start in 0\.1 seconds"):
        local_cluster.start(2, None)
    assert (Empty.asked, Empty.closed) == (2, True)
