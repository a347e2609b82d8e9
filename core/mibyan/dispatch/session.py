"""`Session`: one conversation, and what belongs to it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from mibyan.dispatch.checks import read_any_text
from mibyan.errors import MibyanError
from mibyan.paths import as_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from mibyan.dispatch.quick.lane import Kept
    from mibyan.dispatch.steps import Cancellable
    from mibyan.dispatch.values import Rendered
    from mibyan.environments import Environment
    from mibyan.tools.entry import ToolEntry


class Session:
    """One conversation: its toolsets, its agent-level handlers, its working directories.

    `Runtime.session` makes them; it is also a context manager that closes it.
    """

    def __init__(
        self,
        session_id: str | None = None,
        *,
        enabled_toolsets: tuple[str, ...] | None = None,
        disabled_toolsets: tuple[str, ...] = (),
        cwd: Path | None = None,
        continues: str | None = None,
        platform: str | None = None,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        scope: Callable[[Session], frozenset[str]] | None = None,
        home: object = None,
        on_close: Callable[[Session], None] | None = None,
        environments: Callable[[Session, str | None], Environment] | None = None,
    ) -> None:
        self._id = session_id or f"session_{os.urandom(16).hex()}"
        self._enabled_toolsets = enabled_toolsets
        self._disabled_toolsets = disabled_toolsets
        self._continues = continues
        self._platform = platform
        self._handlers = MappingProxyType(dict(handlers or {}))
        self._interrupts = 0
        #: The unknown toolset names that were complained about in this session.
        self.warned: set[str] = set()
        #: The names of the tools it may see, and the registry's generation that they belong to.
        self._kept_scope: tuple[int, frozenset[str]] | None = None
        self._scope = scope
        #: The runtime's sessions, of which it is one.
        self._home = home
        #: The calls that were compiled for it, by the tool's name.
        self._express: dict[str, Kept] = {}
        self._cwd = cwd
        self._task_cwds: dict[str, Path] = {}
        #: How often a directory was set, and when for each task that has one; `None` stands for the session.
        self._moves = 0
        self._moved: dict[str | None, int] = {}
        self._on_close = on_close
        self._environments = environments
        self._lock = threading.Lock()
        self._started = False
        self._inherited = False
        self._closed = False
        self._guards: set[Cancellable] = set()
        self._cache: dict[str, tuple[ToolEntry, Rendered]] = {}

    # What it is: read-only, since a tool that is handed its session mustn't give itself more.

    @property
    def id(self) -> str:
        """Its id."""
        return self._id

    @property
    def enabled_toolsets(self) -> tuple[str, ...] | None:
        """The toolsets that it was begun with; `None`: those of its platform, else everything."""
        return self._enabled_toolsets

    @property
    def disabled_toolsets(self) -> tuple[str, ...]:
        """The toolsets that are taken away last."""
        return self._disabled_toolsets

    @property
    def continues(self) -> str | None:
        """The id of the session this one continues."""
        return self._continues

    @property
    def platform(self) -> str | None:
        """The platform that it is on."""
        return self._platform

    @property
    def handlers(self) -> Mapping[str, Callable[..., Any]]:
        """Its handlers of agent-level tools: `fn(args, **context)`."""
        return self._handlers

    @property
    def interrupts(self) -> int:
        """Grows with each `interrupt()`."""
        return self._interrupts

    @property
    def tool_names(self) -> frozenset[str] | None:
        """The names of the tools that this session may call; `None`: all."""
        return None if self._scope is None else self._scope(self)

    def cwd(self, task_id: str | None = None, default: Path | None = None) -> Path:
        """The working directory of a task: the one that was set, else the session's, else `default` or the process's."""
        with self._lock:
            found = (self._task_cwds.get(task_id) if task_id is not None else None) or self._cwd
        found = found or default
        return Path(os.getcwd()) if found is None else found  # noqa: PTH109 - resolved at each call, as the process moves

    def set_cwd(self, path: str | os.PathLike[str], task_id: str | None = None) -> None:
        """Set the working directory of one task, or of the session.

        Raises:
            TypeError: `path` isn't a path, or `task_id` neither text nor `None`.
            MibyanError: It isn't a directory.
        """
        task_id = read_any_text(task_id, "task_id")
        folder = as_path(path, "cwd")
        folder = folder if folder.is_absolute() else self.cwd(task_id) / folder
        if not folder.is_dir():
            msg = f"{folder} isn't a directory."
            raise MibyanError(msg, origin="set_cwd", hint="Give the path of a directory that exists.")
        with self._lock:
            if task_id is None:
                self._cwd = folder
            else:
                self._task_cwds[task_id] = folder
            self._moves += 1
            self._moved[task_id] = self._moves

    def directory(self, task_id: str | None = None) -> tuple[int, str | None]:
        """The directory that was set for a task, else for the session, and a number that grows when one is set again."""
        with self._lock:
            own = None if task_id is None else self._task_cwds.get(task_id)
            found = own or self._cwd
            return self._moved.get(task_id if own else None, 0), None if found is None else str(found)

    def environment(self, task_id: str | None = None) -> Environment:
        """Where the commands of a task run (`terminal.backend`): made on first use, ended with the session.

        Raises:
            BackendError: It can't be made, or the session is closed.
        """
        if self._closed or self._environments is None:
            from mibyan.environments import BackendError

            raise BackendError("The session is closed", hint="Begin another with runtime.session().")
        return self._environments(self, task_id)

    def interrupt(self) -> None:
        """End the calls that are running now; each gets a result of status `cancelled`. Later calls run."""
        with self._lock:
            self._interrupts += 1
            guards = list(self._guards)
        for guard in guards:
            guard.cancel("the session was interrupted")

    def close(self) -> None:
        """End the session: running calls are cancelled, `on_session_end` fires. Closing twice is fine."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.interrupt()
        self._express.clear()  # They hold the session, as it holds them.
        if self._on_close is not None:
            self._on_close(self)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @property
    def started(self) -> bool:
        """Whether a call was made in it."""
        return self._started

    def begin(self) -> bool:
        """Note that a call is about to be made; true for the first one."""
        if self._started:
            return False
        with self._lock:
            first, self._started = not self._started, True
        return first

    def _cached(self, entry: ToolEntry, key: str) -> Rendered | None:
        """The kept result of an identical call of the very same tool."""
        kept = self._cache.get(key)  # Only what the pipeline itself has put there.
        return None if kept is None or kept[0] is not entry else kept[1]

    def _keep(self, entry: ToolEntry, key: str, rendered: Rendered, most: int) -> None:
        """Keep a result; the oldest go first."""
        with self._lock:
            while len(self._cache) >= most:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = (entry, rendered)

    def handler_of(self, entry: ToolEntry) -> Callable[..., Any] | None:
        """The session's own handler of an agent-level tool, given under its name or one of its aliases."""
        for name in (entry.name, *entry.aliases):
            if name in self._handlers:
                return self._handlers[name]
        return None

    def after_fork(self) -> None:
        """In a child process: the calls that are running, and a start that was told, are the parent's."""
        self._lock = threading.Lock()
        self._guards = set()
        self._inherited = self._started

    @property
    def is_inherited(self) -> bool:
        """Whether its first call was made before this process was forked: its end isn't this one's to tell."""
        return self._inherited

    def attend(self, guard: Cancellable) -> None:
        """Let `interrupt` reach this call."""
        self._guards.add(guard)  # One step, as the copy that `interrupt` makes is: no lock is needed.

    def leave(self, guard: Cancellable) -> None:
        """The call is over."""
        self._guards.discard(guard)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self.id!r}>"
