"""The runtime's promises: how it starts, calls, fails and closes."""

import os

import pytest

from tff_pmc._lazy import tf, tff


def test_a_worker_that_cannot_start_is_reported(start):
    process = start("""
        import tff_pmc.runtime.worker as module
        module._worker_binary = lambda: "/bin/false"
        try:
            Runtime()
        except module.WorkerStartError as error:
            print("refused:", error, flush=True)
    """)
    out, err = process.communicate(timeout=60)
    assert "refused: the TFF worker did not start" in out, err


def test_an_error_in_a_computation_is_not_taken_for_a_dead_worker(worker):
    import numpy as np

    @tff.tensorflow.computation(np.int32)
    def fails(n):
        with tf.control_dependencies([tf.debugging.Assert(n < 0, ["my message"])]):
            return tf.identity(n)

    with pytest.raises(Exception, match="my message"):
        fails(1)


def test_a_call_that_ends_between_two_polls_is_no_timeout(worker, add):
    """The poll's own timeout must not be taken for the call's result."""

    import tff_pmc.runtime.worker as module

    seconds, module._POLL_SECONDS = module._POLL_SECONDS, 1e-4
    try:
        assert [add([k, 1]) for k in range(50)] == [k + 1 for k in range(50)]
    finally:
        module._POLL_SECONDS = seconds


# What a process does with runtimes, which ends without an error.
BODIES = {
    "installed twice and closed, the context before is back": """
        before = tff.framework.get_context_stack().current
        running = Runtime().install()
        with running:
            assert add([1]) == 1
        assert tff.framework.get_context_stack().current is before
    """,
    # The first has lost its name, and nobody could close it.
    "a cell that installs again leaves one worker": """
        before = tff.framework.get_context_stack().current
        first = Runtime().install()
        host = first.engine._host
        running = Runtime().install()
        assert host.poll() is not None and running.engine._host.poll() is None
        assert add([1, 2]) == 3
        running.close()
        assert tff.framework.get_context_stack().current is before
    """,
    "one that is entered gives way to the one installed before": """
        installed = Runtime().install()
        with Runtime() as running:
            assert installed.engine._host.poll() is None
        assert tff.framework.get_context_stack().current is installed.context
        assert add([1, 2]) == 3
    """,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_contexts_come_and_go(start, body):
    process = start(body)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_closing_ends_what_is_still_called():
    """Else the loop complains of it when the process ends, after an interrupt."""
    import asyncio

    from tff_pmc.runtime import Runtime

    runtime = Runtime("worker")
    context = runtime.context
    call = asyncio.run_coroutine_threadsafe(asyncio.sleep(600), context._loop)
    runtime.close()
    assert call.cancelled()


def test_odd_temporary_folders_do_not_hang(tmp_path, start):
    folder = tmp_path / ("odd %#?" + "x" * 80)
    folder.mkdir()
    process = start(
        """
        with Runtime() as running:
            assert add([1, 2]) == 3
        """,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
