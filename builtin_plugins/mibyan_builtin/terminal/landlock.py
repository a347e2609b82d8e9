"""`python landlock.py SETTINGS WORD...`: restrict this process by Landlock and seccomp, then become a command.

A program of its own that needs the standard library only: what it restricts is itself and all that it starts. SETTINGS is
JSON: `{"writable": [folder, ...], "network": bool}`.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import sys
from typing import Final

#: The system calls, the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH: Final = 1
_VERSION: Final = 1
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2

#: What changes files, by the version of Landlock that first knew it: writing, removing, making, linking, truncating.
_WRITE: Final = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
#: What can be allowed for something that isn't a folder.
_OF_A_FILE: Final = (1 << 1) | _TRUNCATE
#: No sockets of the abstract namespace and no signals beyond the sandbox.
_SCOPES: Final = 0b11
#: Devices that programs write to.
_DEVICES: Final = tuple(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")
)

#: Of each architecture: its number in seccomp's data, and `socket`.
_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_IO_URING_SETUP: Final = 425
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 13  # EACCES

_libc = ctypes.CDLL(None, use_errno=True)


def _called(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def restrict_files(writable: list[str]) -> None:
    """Let this process change files below `writable` only.

    Raises:
        OSError: The kernel has no Landlock, or refuses.
    """
    version = _called(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION), "the kernel has no Landlock")
    handled = _WRITE | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    attributes = struct.pack("QQQ", handled, 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 8
    ruleset = _called(_libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0), "landlock_create_ruleset")
    for path in writable:
        _allow(ruleset, path, handled)
    for path in _DEVICES:
        _allow(ruleset, path, handled & (_WRITE if path.endswith("shm") else _OF_A_FILE))
    _called(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _called(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What isn't there can't be written either.
    try:
        rule = struct.pack("=Qi", rights, opened)
        _called(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
    finally:
        os.close(opened)


def forbid_sockets() -> None:
    """Let this process make no sockets; pairs of them, which lead nowhere else, it may.

    Raises:
        OSError: The kernel refuses, or the architecture isn't known here.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise OSError(0, f"the network can't be forbidden on {machine}; allow it with terminal.sandbox_network: true")
    architecture, socket = _ARCHITECTURES[machine]
    # Each: code, where to go if true and if false, operand. The last two are the answers.
    code = [
        (0x20, 0, 0, 4), (0x15, 0, 5, architecture), (0x20, 0, 0, 0), (0x35, 3, 0, 0x40000000), (0x15, 2, 0, socket),
        (0x15, 1, 0, _IO_URING_SETUP), (0x06, 0, 0, _ALLOW), (0x06, 0, 0, _REFUSE),
    ]  # fmt: skip
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in code)
    kept = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(code), ctypes.addressof(kept))
    _called(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _called(_libc.prctl(_SET_SECCOMP, _FILTER, ctypes.c_char_p(described), 0, 0), "seccomp")


def main(words: list[str]) -> None:
    """Restrict this process and become the command."""
    settings = json.loads(words[0])
    try:
        restrict_files(settings["writable"])
        if not settings["network"]:
            forbid_sockets()
        os.execvp(words[1], words[1:])  # noqa: S606 - it becomes the command that it was given
    except OSError as error:
        print(f"mibyan: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(126) from None


if __name__ == "__main__":
    main(sys.argv[1:])
