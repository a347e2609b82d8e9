"""A plugin's loading as a transaction: one at a time in a process, and a failed one leaves nothing behind (plugins.L2)."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.plugins.process_state import ProcessState
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds to wait for another plugin that is being loaded; importing a large library takes half a minute.
LOAD_WAIT = 120.0

#: What a plugin has broken that its error names.
_MOST_TOLD = 3

#: By plugin the functions that everybody uses and that it has replaced in this process.
REPLACED: dict[str, tuple[str, ...]] = {}

#: Who wants to know that a plugin has been loaded: its id, and what the process was before (`mibyan.testing`).
LISTENERS: list[Callable[[str, ProcessState], object]] = []

#: What the names of the runtime's own threads begin with: a plugin that awaits something starts them, not its own.
_OWN_THREADS = "mibyan-"


class Transaction:
    """One plugin's loading, from the first line of its code to its commit or rollback."""

    def __init__(self, plugin_id: str, outer: Transaction | None) -> None:
        self.plugin_id = plugin_id
        self.before = ProcessState()
        self.outer = outer
        #: The process it runs in.
        self.pid = os.getpid()
        #: Whether it is over: what still runs in its context is late.
        self.ended = False
        #: Functions that everybody uses and that are others since its commit, see `Vital.replaced`.
        self.replaced: tuple[str, ...] = ()
        #: After a commit: what was added to the process's lists, for `process_state.remove_additions`.
        self.additions: dict[str, list[Any]] = {}
        #: After a rollback: the names of threads that were started and still run.
        self.threads: tuple[str, ...] = ()

    def require_whole(self, raised: BaseException | None = None) -> None:
        """Raise unless the process is still one in which everything can go on.

        Args:
            raised: What the plugin, or Mibyan's own code after it, has raised.

        Raises:
            PluginError: The plugin has taken something away that everybody needs; `raised` is its cause.
        """
        damage = self.before.vital.damage()
        if damage:
            self.before.first_aid()
            more = f" and {len(damage) - _MOST_TOLD} more" if len(damage) > _MOST_TOLD else ""
            told = "; ".join(one_line(one, 200) for one in damage[:_MOST_TOLD])
            msg = f"it has broken the process that it runs in: {told}{more}"
            raise PluginError(msg, plugin_id=self.plugin_id) from raised

    def commit(self) -> None:
        """Let everything stay."""
        self.ended = True
        for listener in LISTENERS:
            listener(self.plugin_id, self.before)
        self.replaced = self.before.vital.replaced()
        if self.replaced:
            REPLACED[self.plugin_id] = self.replaced
        self.additions = self.before.additions()
        if self.outer is not None and not self.outer.ended:
            self.outer.before.accept(self.before)

    def roll_back(self, belongs: Callable[[str, Any], bool]) -> None:
        """Put the process back as it was before.

        Args:
            belongs: Whether a module (by name and object) that was imported meanwhile is the plugin's.
        """
        self.ended = True
        started = (thread.name for thread in self.before.new_threads())
        self.threads = tuple(sorted(name for name in started if not name.startswith(_OWN_THREADS)))
        self.before.restore(belongs)


#: The transaction that this context runs in.
_ACTIVE: ContextVar[Transaction | None] = ContextVar("mibyan_transaction", default=None)


class _Turn:
    """The turn to load plugins: what they change belongs to the whole process, so they take turns.

    A child process gets a turn of its own: the thread that had it isn't there any more.
    """

    def __init__(self) -> None:
        self._renew()

    @property
    def lock(self) -> Any:
        """What is held meanwhile."""
        return self._lock

    @property
    def is_mine(self) -> bool:
        """Whether this thread has the turn."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _renew(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._holders: list[tuple[str, float]] = []

    @contextmanager
    def taken(self, plugin_id: str, wait: float) -> Iterator[None]:
        """Have the turn.

        Raises:
            PluginError: Another plugin has it for longer than `wait` seconds.
        """
        if self._pid != os.getpid() and not self.is_mine:
            self._renew()
        lock, holders = self._lock, self._holders
        if not lock.acquire(timeout=wait):
            raise _stuck(plugin_id, holders)
        holders.append((plugin_id, time.monotonic()))
        try:
            yield
        finally:
            holders.pop()
            lock.release()


_TURN = _Turn()


@contextmanager
def transaction(
    plugin_id: str, belongs: Callable[[str, Any], bool], undo: Callable[[], None], *, wait: float | None = None
) -> Iterator[Transaction]:
    """Run plugin code as a transaction: left by an exception, of whatever kind, it is undone; then the exception goes on.

    One that begins in the context of another (a plugin that uses another's tool while it registers, on whatever
    thread) is part of it: it needs no turn, and if it succeeds it stays when the outer one fails.

    Args:
        plugin_id: The plugin.
        belongs: Whether a module (by name and object) is the plugin's, so that it goes in a rollback.
        undo: Takes back what the plugin did in its runtime; called before the process is put back.
        wait: Seconds to wait for another plugin's loading; `None`: `LOAD_WAIT`.

    Raises:
        PluginError: Another plugin is being loaded for longer than that.
    """
    outer = _ACTIVE.get()
    if outer is not None and outer.ended:
        outer = None
    with turn(plugin_id, wait=wait), _run(plugin_id, outer, belongs, undo) as running:
        yield running


@contextmanager
def turn(plugin_id: str, *, wait: float | None = None) -> Iterator[None]:
    """Have the turn to load plugins: nobody else in this process loads or unloads one meanwhile.

    In the context of a plugin's loading, which has the turn already, it is free.

    Raises:
        PluginError: Another plugin is being loaded for longer than `wait` (`None`: `LOAD_WAIT`) seconds.
    """
    active = _ACTIVE.get()
    if active is not None and not active.ended:
        yield
        return
    with _TURN.taken(plugin_id, LOAD_WAIT if wait is None else wait):
        yield


@contextmanager
def _run(
    plugin_id: str, outer: Transaction | None, belongs: Callable[[str, Any], bool], undo: Callable[[], None]
) -> Iterator[Transaction]:
    running = Transaction(plugin_id, outer)
    token = _ACTIVE.set(running)
    try:
        try:
            yield running
        except Exception as error:
            running.require_whole(error)
            raise
        _end_if_child(running, None)
        running.require_whole()
    except BaseException as error:
        running.before.first_aid()
        _end_if_child(running, error)
        try:
            undo()
        finally:
            running.roll_back(belongs)
        raise
    else:
        running.commit()
    finally:
        _ACTIVE.reset(token)


def _end_if_child(running: Transaction, error: BaseException | None) -> None:
    """End the process if it is a child that the plugin's own code has made and that came back from it.

    Both would go on as the host, and each call would be carried out twice.
    """
    if os.getpid() == running.pid:
        return
    code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
    note = f"mibyan: plugin {running.plugin_id!r} made a child process while it was loaded, which ends here: it isn't the host\n"
    with suppress(OSError):
        os.write(2, note.encode("utf-8", "backslashreplace"))
    os._exit(code)


def _stuck(plugin_id: str, holders: list[tuple[str, float]]) -> PluginError:
    holder, since = holders[-1] if holders else ("another plugin", time.monotonic())
    return PluginError(
        f"plugin {plugin_id!r} can't be loaded now: plugin {holder!r} has been loading for "
        f"{time.monotonic() - since:.0f} s",
        plugin_id=plugin_id,
        hint=f"If it doesn't come to an end: mibyan plugins disable {holder}",
    )
