"""Asks what answers at a scheduler's address, so that a refusal is one clear line.

Dask alone repeats an attempt until no time is left, and tells no reason.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time

from tff_pmc.cluster.options import ClusterOptions, ClusterSettingError

SECONDS = 10

_LONGEST = 1 << 20  # Bytes of a greeting; Dask's has some hundred.


def check(options: ClusterOptions, seconds: float = SECONDS) -> None:
    """Asks for Dask, and for a scheduler's greeting if it is elsewhere.

    Raises:
        ClusterSettingError: one of them is not there, or does not answer us in so many
            seconds.
    """
    place = options.place()
    if place is None:
        return
    name = f"--cluster={options.address}"
    context = options.ssl_context() if place.scheme == "tls" else None
    try:
        raw = socket.create_connection((place.host, place.port), seconds)
    except OSError as error:
        raise ClusterSettingError(
            f"{name}: no scheduler answers ({error.strerror or error})"
        ) from error
    with raw:
        raw.settimeout(seconds)
        until = time.monotonic() + seconds
        try:
            stream = raw if context is None else context.wrap_socket(raw)
        except ssl.SSLCertVerificationError as error:
            raise ClusterSettingError(
                f"{name}: the scheduler's certificate is not of the authority of "
                f"--tls_ca_file={options.tls_ca_file} ({error.verify_message})"
            ) from error
        except (OSError, ValueError) as error:
            raise ClusterSettingError(
                f"{name}: what answers there does not speak TLS, or refuses the "
                f"certificate of --tls_cert={options.tls_cert} ({_words(error)})"
            ) from error
        with stream:
            try:
                # Dask's listener speaks first. With TLS 1.3, this is where one hears
                # that one's own certificate was refused.
                (size,) = struct.unpack("<Q", _received(stream, 8, until))
                if size > _LONGEST:
                    raise OSError("it does not speak as Dask does")
                _received(stream, size, until)
                return
            except OSError as error:
                reason = _words(error)
    if context is None:
        raise ClusterSettingError(
            f"{name}: what answers there is no scheduler without TLS ({reason})"
        )
    raise ClusterSettingError(
        f"{name}: the scheduler refuses the certificate of --tls_cert="
        f"{options.tls_cert} ({reason})"
    )


def _received(stream: socket.socket, size: int, until: float) -> bytes:
    """So many bytes, or an `OSError` that says why they did not come in time."""
    found = b""
    while len(found) < size:
        stream.settimeout(max(until - time.monotonic(), 0.001))
        part = stream.recv(size - len(found))
        if not part:
            raise OSError("the connection was closed")
        found += part
    return found


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
    return " ".join(str(reason or error).split())
