"""What a runtime leaves behind, however it ends: nothing."""

import os
import re
import signal
import tempfile
import time

import pytest


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            "with Runtime() as running:\n report(running)\n assert add([1, 2, 3]) == 6",
            0,
        ),
        ("report(Runtime().install())\nassert add([4]) == 4", 0),
        ("report(Runtime().install())\nraise KeyError('mine')", 1),
    ],
    ids=["a normal end", "without close, as in a notebook", "an exception"],
)
def test_nothing_is_left(start, read_report, assert_nothing_left, body, code):
    process = start(body)
    left = read_report(process)
    assert process.wait(60) == code, process.stderr.read()
    assert_nothing_left(*left)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_nothing_is_left_after_a_signal_in_mid_call(
    name, start, read_report, assert_nothing_left
):
    process = start("""
        with Runtime() as running:
            report(running)
            slow(10**9)
    """)
    left = read_report(process)
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(getattr(signal, name))
    try:
        assert process.wait(20) != 0
    finally:
        process.kill()
    assert_nothing_left(*left)


def test_a_worker_that_dies_in_mid_call_ends_the_call_within_ten_seconds(
    start, read_report, assert_nothing_left
):
    process = start("""
        import threading
        with Runtime() as running:
            worker = report(running)
            threading.Timer(1.5, os.kill, (worker, signal.SIGKILL)).start()
            begun = time.monotonic()
            try:
                slow(10**9)
            except WorkerDiedError as error:
                print("seconds", time.monotonic() - begun, error, flush=True)
    """)
    left = read_report(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    seconds = float(re.search(r"seconds (\S+)", out).group(1))
    assert 1.4 < seconds < 11.5
    assert "ended by signal 9" in out
    assert_nothing_left(*left)


def test_a_dead_worker_is_named_in_later_calls_too(start):
    process = start("""
        with Runtime() as running:
            os.kill(report(running), signal.SIGKILL)
            time.sleep(1)
            for _ in range(2):
                try:
                    add([1])
                except WorkerDiedError:
                    print("refused", flush=True)
    """)
    out, err = process.communicate(timeout=60)
    assert out.count("refused") == 2, err


def test_the_folder_that_a_kill_of_everything_leaves_goes_with_the_next_start(
    start, read_report, assert_nothing_left, monkeypatch
):
    from tff_pmc.runtime import WorkerEngine

    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        process = start(
            """
            with Runtime() as running:
                report(running)
                slow(10**9)
        """,
            env={**os.environ, "TMPDIR": place},
        )
        host, worker, folder = read_report(process)
        os.kill(host, signal.SIGSTOP)  # Or it would remove the folder.
        process.kill()
        process.wait()
        os.kill(host, signal.SIGKILL)
        process.communicate()
        assert os.listdir(place) == [os.path.basename(folder)]
        monkeypatch.setattr(tempfile, "tempdir", place)
        engine = WorkerEngine()
        try:
            assert_nothing_left(host, worker, folder)
            assert len(os.listdir(place)) == 1
        finally:
            engine.close()
        assert os.listdir(place) == []
