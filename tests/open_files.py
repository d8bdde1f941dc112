"""The child processes, open files and ports of processes, from the kernel."""

import contextlib
import os
import pathlib
import socket
import struct

import pytest


def child_processes(process):
    """Returns the child processes of a process, and theirs."""
    psutil = pytest.importorskip("psutil")
    return psutil.Process(process.pid).children(recursive=True)


def open_targets(pid):
    """Returns the files that a process has open: paths, and sockets by their inodes."""
    targets = set()
    with contextlib.suppress(OSError):  # The process is ending.
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # The file was closed.
                targets.add(os.readlink(link))
    return targets


def listening_addresses(processes):
    """Returns the addresses and ports on which processes listen."""
    inodes = set().union(*(open_targets(process.pid) for process in processes))
    addresses = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[k] for k in (1, 3, 9))
            if state == "0A" and f"socket:[{inode}]" in inodes:
                address, port = local.split(":")
                words = bytes.fromhex(address)
                packed = b"".join(struct.pack(">I", n) for (n,) in
                                  struct.iter_unpack("=I", words))  # fmt: skip
                addresses.add((socket.inet_ntop(family, packed), int(port, 16)))
    return addresses
