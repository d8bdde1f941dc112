"""Messages of the wire format by hand, an end for what hangs, peaks of memory."""

import signal
import struct
import tracemalloc

import pytest

GRAY = struct.pack("<784f", *[0.5] * 784)


class Wire:
    """Writes a `tf.train.Example` field by field, right or wrong."""

    @staticmethod
    def varint(value, size=1):
        """Seven bits a byte, lowest first, in at least so many bytes."""
        groups = []
        while value or not groups or len(groups) < size:
            groups.append(value & 127)
            value >>= 7
        return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])

    @classmethod
    def field(cls, number, value):
        """Bytes with their length, or an integer."""
        if isinstance(value, int):
            return cls.varint(number << 3) + cls.varint(value)
        return cls.varint(number << 3 | 2) + cls.varint(len(value)) + value

    @classmethod
    def feature(cls, name, kind, values):
        """A feature; `kind` is 2 for floats and 3 for integers."""
        name = name if isinstance(name, int) else name.encode()
        content = cls.field(kind, cls.field(1, values))
        return cls.field(1, cls.field(1, name) + cls.field(2, content))

    @classmethod
    def example(cls, *features):
        return cls.field(1, b"".join(features))

    @classmethod
    def digit(cls, label=b"\x05", pixels=GRAY):
        """An example of EMNIST; what is given replaces the bytes of its lists."""
        return cls.example(
            cls.feature("pixels", 2, pixels), cls.feature("label", 3, label)
        )


@pytest.fixture(scope="session")
def wire():
    return Wire


@pytest.fixture
def no_hang():
    """Ends a test that waits, after a time that nothing here needs."""

    def give_up(number, frame):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


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
