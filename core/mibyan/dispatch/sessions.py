"""`Sessions`: the open conversations of one runtime."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mibyan.dispatch.checks import read_handlers, read_text, read_toolsets
from mibyan.dispatch.session import Session
from mibyan.errors import MibyanError
from mibyan.forks import renewed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from mibyan.environments import Environment

#: The id of the session of calls that name none.
DEFAULT = "default"


class Sessions:
    """Begun by id, found by id, closed one by one or all together.

    Args:
        scope: Gives the names of the tools that a session may see.
        ended: Told of each session that was closed.
        environments: Gives the environment of a session's task.
    """

    def __init__(
        self, scope: Callable[[Session], frozenset[str]], ended: Callable[[Session], None],
        environments: Callable[[Session, str | None], Environment] | None = None,
    ) -> None:  # fmt: skip
        self._scope = scope
        self._ended = ended
        self._environments = environments
        self._lock = threading.RLock()
        self._open: dict[str, Session] = {}
        #: The session of calls that name none; `None`: none was made yet.
        self.default: Session | None = None
        self._closed = False

    def begin(
        self,
        session_id: str | None = None,
        enabled_toolsets: Iterable[str] | None = None,
        disabled_toolsets: Iterable[str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        continues: Session | str | None = None,
        platform: str | None = None,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Session:
        """Begin a conversation; see `Runtime.session`.

        Raises:
            MibyanError: A session with that id is open, or the runtime is closed.
            TypeError: An argument has the wrong type.
        """
        made = self._make(
            read_text(session_id, "session_id"),
            enabled_toolsets=read_toolsets(enabled_toolsets, "enabled_toolsets"),
            disabled_toolsets=read_toolsets(disabled_toolsets, "disabled_toolsets") or (),
            continues=continues.id if isinstance(continues, Session) else read_text(continues, "continues"),
            platform=read_text(platform, "platform"), handlers=read_handlers(handlers),
        )  # fmt: skip
        if cwd is not None:
            made.set_cwd(cwd)
        with self._lock:
            if self._closed:
                msg = "The runtime is closed."
                raise MibyanError(msg, hint="Make a new Runtime.")
            if made.id in self._open:
                msg = f"A session with the id {made.id!r} is open."
                raise MibyanError(msg, hint="Close it first, or leave the id out.")
            self._open[made.id] = made
        return made

    def find(self, session: Session | str | None) -> Session:
        """The session that is meant: itself, by its id, or the default one.

        Raises:
            MibyanError: No open session has the id.
            TypeError: It is none of these.
        """
        if session is None:
            return self.default or self._make_default()
        if isinstance(session, Session):
            return session
        if not isinstance(session, str):
            msg = f"session must be a Session, its id or None, not {type(session).__name__}."
            raise TypeError(msg)
        with self._lock:
            found = self._open.get(session)
            if found is None and self._closed:
                return self._make(session)  # Its calls are answered with that.
        if found is None and session == DEFAULT:
            return self.find(None)
        if found is None:
            msg = f"No open session has the id {session!r}."
            raise MibyanError(msg, hint="Begin one with runtime.session().")
        return found

    def of_id(self, session_id: str) -> Session:
        """The open session of that id; a new one where there is none (seed 000's `session_id` keyword)."""
        with self._lock:
            return self._open.get(session_id) or (self.find(session_id) if self._closed else self.begin(session_id))

    def close(self) -> None:
        """Close all of them; none begins any more."""
        with self._lock:
            self._closed = True
            sessions = [*self._open.values(), *([self.default] if self.default else [])]
        for session in sessions:
            session.close()

    def after_fork(self) -> None:
        """In a child process: the conversations go on, but they were begun, and are ended, in the parent."""
        self._lock = renewed(self._lock)
        for session in (*self._open.values(), *([self.default] if self.default else [])):
            session.after_fork()

    def _make(self, session_id: str | None, **options: Any) -> Session:
        return Session(
            session_id, scope=self._scope, home=self, on_close=self._end, environments=self._environments, **options
        )

    def _make_default(self) -> Session:
        with self._lock:
            if self.default is None:
                self.default = self._make(DEFAULT)
            return self.default

    def _end(self, session: Session) -> None:
        with self._lock:
            if self._open.get(session.id) is session:
                del self._open[session.id]
            if self.default is session:
                self.default = None
        if not session.is_inherited:
            self._ended(session)
