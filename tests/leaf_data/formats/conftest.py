"""An end for what hangs, and peaks of memory."""

import signal
import tracemalloc

import pytest


@pytest.fixture
def no_hang():
    """Ends a test that waits, after a time that nothing here needs."""
    hung = []

    def give_up(number, frame):
        hung.append(True)
        raise AssertionError("it hangs")  # SQLite takes it for the end of a query.

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    assert not hung, "it hangs"


@pytest.fixture(scope="session")
def peak_of():
    """Returns the bytes that a call allocates at its peak, the used and the unused."""

    def measure(call):
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measure
