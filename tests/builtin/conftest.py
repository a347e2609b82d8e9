"""What the built-in plugins' tests share: a workspace and the context of a call in it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mibyan import ToolContext
from mibyan.config.settings import Settings
from mibyan.environments import EnvironmentContext
from mibyan_builtin.terminal.local import LocalEnvironment


class Session:
    """As much of a session as a tool may see."""

    id = "s"

    def __init__(self, cwd: Path, terminal: object = None) -> None:
        self.directory = cwd
        self._environment = LocalEnvironment(EnvironmentContext(cwd=str(cwd), settings=terminal))

    def cwd(self, task_id: str | None = None, default: Path | None = None) -> Path:
        return self.directory

    def environment(self, task_id: str | None = None) -> LocalEnvironment:
        return self._environment


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty working directory, with neighbours that aren't the model's."""
    (tmp_path / "outside.txt").write_text("not yours\n")
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def make_context(workspace: Path):
    """The context of a call: `make_context(seconds=None, roots=(), cancelled=lambda: False, passthrough=())`."""

    def make(seconds=None, roots=(), cancelled=lambda: False, passthrough=(), cwd=None):
        real = Settings()
        settings = SimpleNamespace(
            dispatch=real.dispatch,
            agent=real.agent,
            files=SimpleNamespace(roots=[str(root) for root in roots]),
            terminal=SimpleNamespace(
                timeout=180, cwd=None, env_passthrough=list(passthrough), sandbox="none", sandbox_network=False
            ),
        )
        deadline = None if seconds is None else time.monotonic() + seconds
        return ToolContext(
            tool_name="t",
            session=Session(cwd or workspace, settings.terminal),
            deadline=deadline,
            settings=settings,
            is_cancelled=cancelled,
        )

    return make


@pytest.fixture
def context(make_context) -> ToolContext:
    """The context of a call without a deadline."""
    return make_context()
