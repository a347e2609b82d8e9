"""`Environments`: the environments of a runtime's sessions, one for each task, made when a command first needs it."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Protocol

from mibyan.environments.environment import Environment
from mibyan.environments.records import BackendError, EnvironmentContext
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logging.getLogger("mibyan.environments")


class Conversation(Protocol):
    """As much of a session as is needed here."""

    @property
    def id(self) -> str:
        """Its id."""

    def directory(self, task_id: str | None = None) -> tuple[int, str | None]:
        """The directory that was set for a task, and a number that grows when it is set again."""


class _Place:
    """One task's environment, made under a lock of its own: making one may take long."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.environment: Environment | None = None
        self.moves = 0
        self.closed = False


class Environments:
    """The environments of one runtime.

    Args:
        backend: The name that the operator has set.
        settings: The section `terminal` of the configuration.
        backends: Gives what makes each backend's class, by name.
        secret_names: Gives the names of variables that hold secrets.
    """

    def __init__(
        self, backend: str, settings: Any, backends: Callable[[], Mapping[str, Callable[[], Any]]],
        secret_names: Callable[[], frozenset[str]],
    ) -> None:  # fmt: skip
        self._backend = backend
        self._settings = settings
        self._backends = backends
        self._secret_names = secret_names
        self._lock = threading.Lock()
        self._places: dict[tuple[str, str | None], _Place] = {}

    def of(self, session: Conversation, task_id: str | None = None) -> Environment:
        """The environment of a task, in the directory that the host has set for it since.

        Raises:
            BackendError: There is no such backend, or it can't be made.
        """
        key = session.id, task_id
        place = self._places.get(key)
        if place is None:
            with self._lock:
                place = self._places.setdefault(key, _Place())
        moves, directory = session.directory(task_id)
        environment = place.environment
        if environment is not None and place.moves == moves:
            return environment
        with place.lock:
            return self._settled(place, key, moves, directory)

    def _settled(self, place: _Place, key: tuple[str, str | None], moves: int, directory: str | None) -> Environment:
        if place.closed:
            raise BackendError("The session is closed", hint="Begin another with runtime.session().")
        if place.environment is None:
            place.environment = self._made(key, directory)
        elif moves > place.moves and directory is not None:
            place.environment.set_cwd(directory)
        place.moves = max(place.moves, moves)
        return place.environment

    def _made(self, key: tuple[str, str | None], directory: str | None) -> Environment:
        context = EnvironmentContext(key[0], key[1], directory, self._settings, self._secret_names)
        kind = self._class()
        made = kind(context)
        if not isinstance(made, Environment):
            raise BackendError(f"The backend {self._backend} isn't an Environment, but {type(made).__name__}")
        return made

    def _class(self) -> Any:
        known = self._backends()
        find = known.get(self._backend)
        if find is not None:
            return find()
        meant = suggest(self._backend, known)
        hint = f"Did you mean {meant!r}? " if meant else ""
        hint += f"There are: {', '.join(sorted(known)) or 'none'}; mibyan config set terminal.backend NAME"
        raise BackendError(f"No plugin has the terminal backend {one_line(self._backend, 60)!r}", hint=hint)

    def close_session(self, session_id: str) -> None:
        """End the environments of a session."""
        with self._lock:
            ended = [self._places.pop(key) for key in list(self._places) if key[0] == session_id]
        for place in ended:
            with place.lock:
                place.closed, environment, place.environment = True, place.environment, None
            if environment is not None:
                _close(environment)

    def after_fork(self) -> None:
        """In a child process: the environments are the parent's, which ends them; the child makes its own."""
        self._lock = threading.Lock()
        self._places = {}


def _close(environment: Environment) -> None:
    """Close one; one that can't be closed doesn't keep the others."""
    try:
        environment.close()
    except Exception:
        log.exception("The environment %r couldn't be closed.", type(environment).name)
