"""The peers, and an environment for each, made when it is first asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

#: What is a peer's to fulfil: ours takes at most this part of its time.
_PART = 0.2


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to make a call.

    Args:
        name: What the adapter is told, and the table shows.
        ours: What it is compared with: `call`, `call with hooks` or `acall`.
        bound: What ours may take of its time; `None`: it is only shown.
    """

    name: str
    ours: str = "call"
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """A public system.

    Args:
        name: Its name here, and its adapter's.
        requirements: What is installed.
        variants: Its ways to make a call.
        listing: A command of it that lists tools, if it has one.
    """

    name: str
    requirements: tuple[str, ...]
    variants: tuple[Variant, ...]
    listing: tuple[str, ...] = ()

    @property
    def adapter(self) -> str:
        """The name of its adapter's file."""
        return f"{self.name.replace('-', '_')}.py"


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "hermes", ("hermes-agent==0.19.0", "pydantic"),
            (Variant("handle_function_call", bound=_PART),
             Variant("handle_function_call with hooks", "call with hooks", _PART)),
            ("hermes", "tools", "list"),
        ),
        Peer("llm", ("llm==0.36",), (Variant("execute_tool_calls"),), ("llm", "tools", "list")),
        Peer("pydantic-ai", ("pydantic-ai-slim==2.68.0",), (Variant("ToolManager.handle_call", "acall"),)),
        Peer("mcp", ("mcp==2.3.0",), (Variant("MCPServer.call_tool", "acall"),)),
    )
}  # fmt: skip


def cache_folder() -> Path:
    """Where environments are kept: `$MIBYAN_BENCH_CACHE`, else below the user's cache folder."""
    chosen = os.environ.get("MIBYAN_BENCH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mibyan-benchmarks"


def environment(peer: Peer, cache: Path) -> Path:
    """The folder of the peer's environment; made, with byte code compiled, if it isn't there.

    Raises:
        RuntimeError: It can't be made, for instance because there is no network.
    """
    version = f"py{sys.version_info[0]}.{sys.version_info[1]}"
    folder = cache / "-".join([peer.name, version, *(text.rpartition("==")[2] for text in peer.requirements)])
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _make(folder, peer.requirements)
        complete.touch()
    return folder


def _make(folder: Path, requirements: tuple[str, ...]) -> None:
    if shutil.which("uv"):
        _run("uv", "venv", "--quiet", "--no-project", "--python", sys.executable, folder)
        _run("uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", folder / "bin" / "python",
             *requirements)  # fmt: skip
        return
    _run(sys.executable, "-m", "venv", folder)
    _run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(map(str, command))}` ended with {done.returncode}: {done.stderr[-500:]}")
