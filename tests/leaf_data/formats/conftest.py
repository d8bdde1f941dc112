"""An end for what hangs."""

import signal

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
