"""Hosts one TFF worker in a private network namespace (a script, stdlib only).

    python -I -S worker_host.py FOLDER PRIVATE WORKER [ARGUMENT ...]

TFF's `worker_binary` listens on every interface, without authentication, and runs any
TensorFlow graph that it receives. This process enters a private user and network
namespace (without root), starts the worker there, and relays its port to the unix
socket FOLDER/worker.sock, which only the user can open. With PRIVATE = 0, or if the
machine forbids namespaces, it does the same without the namespace.

It prints two lines: `ready`, with the reason if there is no namespace, and later
`died EXIT_CODE`. The end of stdin means that the parent has ended; then this process
ends the worker and removes socket and folder. The worker in turn dies with this
process.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)


def _report(line):
    with contextlib.suppress(OSError):  # The parent may be gone.
        print(line, flush=True)


def enter_private_namespace():
    """Moves this process into a private network namespace with only a loopback."""
    uid, gid = os.geteuid(), os.getegid()
    if _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, "unshare: " + os.strerror(error))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = b"lo".ljust(16, b"\0")
        reply = fcntl.ioctl(sock, _SIOCGIFFLAGS, name + bytes(24))
        flags = struct.unpack_from("h", reply, 16)[0] | _IFF_UP
        fcntl.ioctl(sock, _SIOCSIFFLAGS, name + struct.pack("h", flags) + bytes(22))


def namespace_error():
    """Returns why this machine forbids private namespaces; "" if it allows them.

    Tries it in a child process: a machine may grant the namespace and then refuse its
    loopback, and a process cannot leave a namespace.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            enter_private_namespace()
        except OSError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        reason = answer.read().decode()
    os.waitpid(child, 0)
    return reason


def pump(source, sink):
    """Copies bytes from one socket to another until either is closed."""
    buffer = memoryview(bytearray(_CHUNK))
    with contextlib.suppress(OSError):
        while count := source.recv_into(buffer):
            sink.sendall(buffer[:count])
    for sock in (source, sink):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def relay(listener, port):
    """Connects every client of the unix socket to the worker's port."""
    while True:
        client, _ = listener.accept()
        try:
            worker = socket.create_connection(("127.0.0.1", port))
        except OSError:  # The worker has ended, which the parent detects.
            client.close()
            continue
        worker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for pair in ((client, worker), (worker, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


def serve(folder, worker, port, exposed):
    """Opens the socket once the worker accepts connections, and reports its end."""
    while worker.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            break
        time.sleep(0.02)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(folder, "worker.sock"))
    listener.listen(16)
    threading.Thread(target=relay, args=(listener, port), daemon=True).start()
    if worker.poll() is None:
        _report(f"ready {exposed}")
    _report(f"died {worker.wait()}")


def main(folder, private, *command):
    """Runs until the parent ends; see the module's docstring."""
    exposed = namespace_error() if private == "1" else "private=False"
    if not exposed:
        enter_private_namespace()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(os.path.join(folder, "worker.log"), "wb") as log:
        worker = subprocess.Popen(
            [*command, f"--port={port}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            # It cannot outlive this process.
            preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        )
    serving = folder, worker, port, exposed
    threading.Thread(target=serve, args=serving, daemon=True).start()
    sys.stdin.buffer.read()
    worker.kill()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
