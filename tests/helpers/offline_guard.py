"""Closes the network to a Python process: the tests run it as the `sitecustomize` of a command and all its workers.

OFFLINE_GUARD=loopback  a Python socket may connect to this computer alone
OFFLINE_GUARD=none      besides, the kernel ends the process when it connects to an internet address at all, in native
                        code too (Linux)
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import platform
import socket
import sys

BROKE_OUT = 97  # the exit code
CONNECT = {"x86_64": 42, "aarch64": 203}  # the number of the system call connect()
INET, INET6 = 16, 28  # bytes of an address; a path of AF_UNIX is of another length
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000


def is_here(host: object) -> bool:
    """Whether an address or a name is this computer's."""
    if host in ("localhost", b"localhost", "", None):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: the end of the process where it looks up or speaks to another computer."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        connection, address = arguments[:2]
        if not isinstance(connection, socket.socket) or connection.family == getattr(socket, "AF_UNIX", None):
            return
        host = address[0] if isinstance(address, tuple) else None
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    else:
        return
    if not is_here(host):
        os.write(2, f"BROKE OUT: {event} {host!r}\n".encode())
        os._exit(BROKE_OUT)


def can_close() -> bool:
    """Whether `close_in_kernel` works on this machine."""
    return sys.platform == "linux" and platform.machine() in CONNECT


def close_in_kernel() -> None:
    """Have the kernel end this process, or a child of it, when it connects to an internet address."""

    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(Instruction))]

    load, equal, end = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
    steps = [
        (load, 0, 0, 0),  # the system call's number
        (equal, 0, 3, CONNECT[platform.machine()]),
        (load, 0, 0, 32),  # its third argument: the length of the address
        (equal, 2, 0, INET),
        (equal, 1, 0, INET6),
        (end, 0, 0, ALLOW),
        (end, 0, 0, KILL_PROCESS),
    ]
    code = (Instruction * len(steps))(*(Instruction(*step) for step in steps))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    program = Program(len(code), code)
    closed = not prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) and not prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0
    )
    if not closed:
        os.write(2, b"the network could not be closed\n")
        os._exit(BROKE_OUT + 1)


if __name__ == "sitecustomize":
    sys.addaudithook(watch)
    if os.environ["OFFLINE_GUARD"] == "none":
        close_in_kernel()
