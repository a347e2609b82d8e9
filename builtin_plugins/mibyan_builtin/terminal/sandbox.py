"""`terminal.sandbox`: commands of the backend `local` that write only where they should, and have no network.

They read everything their user may read. They write in the workspace (the directories that the session was given), in the
temporary folders and to the usual devices. A sandbox that can't be made is an error; nothing runs without it instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.environments import BackendError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds that an empty command may take in it.
_PATIENCE = 10.0


def sandbox(kind: str, workspace: str, *, network: bool) -> Sandbox | None:
    """The sandbox of that name, which works here; `None` for `none`.

    Args:
        kind: `none`, `bwrap` or `landlock`.
        workspace: The directory that commands may write in.
        network: Whether they may use the network.

    Raises:
        BackendError: It doesn't work here, with the reason.
    """
    if kind == "none":
        return None
    made: Sandbox = Bubblewrap(network=network) if kind == "bwrap" else Landlock(network=network)
    made.allow(workspace)
    for folder in ("/tmp", tempfile.gettempdir()):  # noqa: S108 - that is where programs write
        made.allow(folder)
    made.probe()
    return made


class Sandbox(ABC):
    """What a command is run by.

    Args:
        network: Whether it may use the network.
    """

    name: str
    #: Whether a process of its own watches over the command.
    watches = False

    def __init__(self, *, network: bool) -> None:
        self._network = network
        #: Where commands may write.
        self.writable: tuple[str, ...] = ()

    def allow(self, folder: str) -> None:
        """Let the following commands write in a folder too."""
        if folder not in self.writable:
            self.writable = (*self.writable, folder)

    @abstractmethod
    def wrap(self, words: Sequence[str], directory: str) -> list[str]:
        """The words that run a command in it, in `directory`."""

    def probe(self) -> None:
        """Run nothing in it.

        Raises:
            BackendError: That doesn't work.
        """
        try:
            done = subprocess.run(
                self.wrap(["/bin/sh", "-c", ":"], "/"), capture_output=True, text=True, errors="replace", check=False,
                stdin=subprocess.DEVNULL, timeout=_PATIENCE, cwd="/",
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._broken(str(error)) from None
        if done.returncode:
            raise self._broken(done.stderr.strip()[-300:] or f"it ended with {done.returncode}")

    def _broken(self, why: str, hint: str | None = None) -> BackendError:
        said = f"terminal.sandbox is {self.name}, which doesn't work here: {why}"
        return BackendError(said, hint=hint or "Use another sandbox, or none: mibyan config set terminal.sandbox none")


class Bubblewrap(Sandbox):
    """The program `bwrap`: namespaces of its own for mounts, processes and network."""

    name = "bwrap"
    watches = True

    def __init__(self, *, network: bool) -> None:
        super().__init__(network=network)
        program = shutil.which("bwrap")
        if program is None:
            hint = "Install it (Debian: apt install bubblewrap), or: mibyan config set terminal.sandbox none"
            raise self._broken("the program bwrap isn't on PATH", hint)
        self._program = program

    def wrap(self, words: Sequence[str], directory: str) -> list[str]:
        """See `Sandbox`."""
        # /run holds the sockets of services (docker's is a way out); on NixOS it holds the programs as well.
        hidden = [] if os.path.isdir("/run/current-system") or not os.path.isdir("/run") else ["--tmpfs", "/run"]  # noqa: PTH112
        binds = [word for folder in self.writable if os.path.isdir(folder) for word in ("--bind", folder, folder)]  # noqa: PTH112
        return [
            self._program, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL",
            *([] if self._network else ["--unshare-net"]),
            "--ro-bind", "/", "/", *hidden, *binds, "--dev", "/dev", "--proc", "/proc", "--chdir", directory, "--", *words,
        ]  # fmt: skip


class Landlock(Sandbox):
    """Landlock, by a small program that restricts itself and becomes the command."""

    name = "landlock"

    def __init__(self, *, network: bool) -> None:
        super().__init__(network=network)
        if not sys.platform.startswith("linux"):
            raise self._broken("it needs Linux")

    def wrap(self, words: Sequence[str], directory: str) -> list[str]:
        """See `Sandbox`."""
        del directory  # It is the launcher's own.
        told = json.dumps({"writable": self.writable, "network": self._network})
        launcher = Path(__file__).with_name("landlock.py")
        return [sys.executable, "-I", "-S", "-B", str(launcher), told, *words]
