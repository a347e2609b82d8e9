"""`ProcessState`: what plugin code can change of the process as a whole, so that it can be put back (plugins.L2).

Kept and put back: the lists `sys.path`, `sys.meta_path`, `sys.path_hooks`, the root logger's handlers and filters, the
warnings filters; `sys.modules`, `builtins` and the environment variables; the standard streams, the interpreter's
hooks, the root logger's level, the recursion limit, trace functions, the working directory, the handlers of signals (on the main
thread), the functions of the modules that everything stands on (`mibyan.plugins.vital`). What can't be put back: threads
and child processes that were started, files that were written, `atexit` callbacks, patches of other modules' attributes. What another thread of the host changes of all this while a plugin is
being imported is put back too, if that import fails.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mibyan.plugins.vital import Vital
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping

_MISSING: Final = object()

#: Attributes of modules that are put back: a changed one is most often a patch that outlives its author.
_ATTRIBUTES: Final = (
    *((sys, name) for name in ("stdin", "stdout", "stderr", "excepthook", "unraisablehook", "displayhook",
                               "breakpointhook", "dont_write_bytecode", "pycache_prefix", "argv")),
    (threading, "excepthook"),
    (warnings, "showwarning"),
    (warnings, "filters"),
)  # fmt: skip


@record
class _KeptList:
    """A list and its items: it is put back in place, in the same list object."""

    items: list[Any]
    copy: tuple[Any, ...]

    def restore(self) -> bool:
        """Put the items back; whether something had changed."""
        changed = len(self.items) != len(self.copy) or any(
            a is not b for a, b in zip(self.items, self.copy, strict=True)
        )
        if changed:
            self.items[:] = self.copy
        return changed

    def missing_from(self, items: Iterable[Any]) -> list[Any]:
        """Those of `items` that weren't there."""
        known = {id(item) for item in self.copy}
        return [item for item in items if id(item) not in known]

    def with_added(self, added: Iterable[Any]) -> _KeptList:
        """The same, as if `added` had been there."""
        return _KeptList(self.items, (*self.copy, *added))


@record
class _KeptValue:
    """A value and how it is written."""

    value: Any
    write: Callable[[Any], object]


class ProcessState:
    """The state of the process at one moment."""

    def __init__(self) -> None:
        self.vital = Vital()
        self._attributes = [(module, name, getattr(module, name)) for module, name in _ATTRIBUTES]
        self._lists = {name: _KeptList(items, tuple(items)) for name, items in _lists().items()}
        self._builtins = vars(builtins).copy()
        self._environ = dict(os.environ)
        self._values = _values()
        self._signals = _signals()
        self._had_logging = "logging" in sys.modules
        self.modules: dict[str, Any] = dict(sys.modules)
        self.threads = frozenset(threading.enumerate())

    def first_aid(self) -> None:
        """Put back what Mibyan's own code needs to run at all: functions that everybody uses and enough of the stack."""
        now = builtins.__dict__
        for name, value in self._builtins.items():
            if now.get(name, _MISSING) is not value:
                now[name] = value
        for name in now.keys() - self._builtins.keys():
            del now[name]
        self.vital.put_back()

    def restore(self, belongs: Callable[[str, Any], bool]) -> None:
        """Put everything back; no part's failure keeps the others from it.

        Args:
            belongs: Whether a module that was added (by name and object) goes away; other people's modules may stay.
        """
        restorers = (
            self.first_aid, self._restore_attributes, self._restore_lists, self._restore_environ, self._restore_values,
            self._restore_signals, self._restore_logging,
        )  # fmt: skip
        for restore in restorers:
            with suppress(Exception):
                restore()
        self._restore_modules(belongs)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variables at that moment."""
        return self._environ

    def additions(self) -> dict[str, list[Any]]:
        """The items that were added to the process's lists since, by list."""
        nothing = _KeptList([], ())
        added = {name: self._lists.get(name, nothing).missing_from(items) for name, items in _lists().items()}
        return {name: items for name, items in added.items() if items}

    def changes(self) -> list[str]:
        """What was changed since for others to notice, a few words each, sorted.

        Entries of `sys.path` and filters of warnings don't count: they serve imports, and those are over.
        """
        now = dict(os.environ)
        names = {name for name in now.keys() | self._environ.keys() if now.get(name) != self._environ.get(name)}
        changed = [f"the environment variable {name}" for name in names]
        changed += [name for name in self.additions() if name not in {"sys.path", "warnings filters"}]
        changed += [
            f"{module.__name__}.{name}" for module, name, value in self._attributes
            if module is not warnings and getattr(module, name, _MISSING) is not value
        ]  # fmt: skip
        changed += [
            f"builtins.{name}" for name, value in vars(builtins).items() if self._builtins.get(name) is not value
        ]
        values = _values()
        changed += [name for name, kept in self._values.items() if name in values and values[name].value != kept.value]
        if self._signals is not None and _signals() != self._signals:
            changed.append("the handlers of signals")
        return sorted(changed)

    def undoers(self) -> list[Callable[[], None]]:
        """What takes back, one each, what was changed since: each only while it is as it was left."""
        now, before = dict(os.environ), self._environ
        environ: MutableMapping[str, Any] = os.environ
        found = [_undoer(environ, name, before.get(name, _MISSING), now.get(name, _MISSING))
                 for name in now.keys() | before.keys() if now.get(name) != before.get(name)]  # fmt: skip
        for there, known in ((vars(builtins), self._builtins), *self.vital.modules):
            found += [_undoer(there, name, known.get(name, _MISSING), value) for name, value in there.items()
                      if known.get(name, _MISSING) is not value and (known is self._builtins or callable(value))]  # fmt: skip
        for name, value in _values().items():
            if name in self._values and value.value != self._values[name].value:
                found.append(_rewriter(name, self._values[name], value.value))
        return found

    def accept(self, inner: ProcessState) -> None:
        """Take what was changed since `inner` as if it had been so all along: a transaction within this one succeeded."""
        for name, added in inner.additions().items():
            if name in self._lists:
                self._lists[name] = self._lists[name].with_added(added)
        self._environ = _rebased(self._environ, inner._environ, dict(os.environ))
        self.modules |= {name: module for name, module in sys.modules.copy().items() if name not in inner.modules}
        for index, (holder, name, value) in enumerate(inner._attributes):
            if getattr(holder, name, _MISSING) is not value:
                self._attributes[index] = (holder, name, getattr(holder, name, None))

    def new_threads(self) -> list[threading.Thread]:
        """The threads that were started since and still run."""
        return [thread for thread in threading.enumerate() if thread not in self.threads and thread.is_alive()]

    def _restore_attributes(self) -> None:
        for module, name, value in self._attributes:
            if getattr(module, name, _MISSING) is not value:
                setattr(module, name, value)

    def _restore_lists(self) -> None:
        for name, kept in self._lists.items():
            gone = kept.missing_from(kept.items) if name == "root handlers" else ()
            if kept.restore() and name == "warnings filters":
                _forget_warnings()
            for handler in gone:
                with suppress(Exception):
                    handler.close()

    def _restore_environ(self) -> None:
        for name in os.environ.keys() - self._environ.keys():
            del os.environ[name]
        for name, value in self._environ.items():
            if os.environ.get(name) != value:
                os.environ[name] = value

    def _restore_values(self) -> None:
        now = _values()
        for name, kept in self._values.items():
            if name not in now or (now[name].value is not kept.value and now[name].value != kept.value):
                with suppress(Exception):
                    kept.write(kept.value)

    def _restore_signals(self) -> None:
        if self._signals is None:
            return
        import signal

        for number, handler in (_signals() or {}).items():
            before = self._signals.get(number)
            # A handler that wasn't installed from Python reads as None and can't be put back.
            if before is not None and handler is not before:
                signal.signal(number, before)

    def _restore_logging(self) -> None:
        """What was added to the root logger, where logging wasn't even imported before."""
        if self._had_logging or "logging" not in sys.modules:
            return
        import logging

        for handler in list(logging.root.handlers):
            logging.root.removeHandler(handler)
            with suppress(Exception):
                handler.close()
        logging.root.filters.clear()
        logging.root.setLevel(logging.WARNING)
        logging.disable(logging.NOTSET)

    def _restore_modules(self, belongs: Callable[[str, Any], bool]) -> None:
        added = [(name, module) for name, module in sys.modules.copy().items() if name not in self.modules]
        for name, module in sorted(added, key=lambda item: -item[0].count(".")):
            # A package goes only with all that lies in it: somebody else may live there too.
            goes = belongs(name, module) or ("." not in name and not _was_imported(name, module))
            if goes and not any(other.startswith(f"{name}.") for other in sys.modules.copy()):
                remove_module(name, module)
        for name, module in self.modules.items():
            if sys.modules.get(name, _MISSING) is not module:
                sys.modules[name] = module


def _was_imported(name: str, module: Any) -> bool:
    """Whether the import system put a module there under that name; never raises, whatever stands in `sys.modules`."""
    try:
        return bool(vars(module)["__spec__"].name == name)
    except Exception:
        return False


def remove_module(name: str, module: Any) -> None:
    """Take a module out of `sys.modules`, and out of its package's attributes."""
    sys.modules.pop(name, None)
    package, _, last = name.rpartition(".")
    parent = sys.modules.get(package) if package else None
    if parent is not None and getattr(parent, "__dict__", {}).get(last) is module:
        with suppress(Exception):
            delattr(parent, last)


def remove_additions(additions: dict[str, list[Any]]) -> None:
    """Take what a plugin added to the process's lists out of them again (as `ProcessState.additions` gave it)."""
    lists = _lists()
    for name, added in additions.items():
        gone = {id(item) for item in added}
        items = lists.get(name, [])
        items[:] = [item for item in items if id(item) not in gone]
        for handler in added if name == "root handlers" else ():
            with suppress(Exception):
                handler.close()


def _lists() -> dict[str, list[Any]]:
    """The lists of the process, by name; those of logging only once it is imported."""
    lists: dict[str, list[Any]] = {
        "sys.path": sys.path, "sys.meta_path": sys.meta_path, "sys.path_hooks": sys.path_hooks,
    }  # fmt: skip
    if isinstance(warnings.filters, list):
        lists["warnings filters"] = warnings.filters
    if "logging" in sys.modules:
        import logging

        lists["root handlers"] = logging.root.handlers
        lists["root filters"] = logging.root.filters
    return lists


def _values() -> dict[str, _KeptValue]:
    """The values that are read and written through functions."""
    values = {
        "recursion limit": _KeptValue(sys.getrecursionlimit(), sys.setrecursionlimit),
        "trace function": _KeptValue(sys.gettrace(), sys.settrace),
        "profile function": _KeptValue(sys.getprofile(), sys.setprofile),
    }
    with suppress(OSError):
        values["working directory"] = _KeptValue(os.getcwd(), os.chdir)  # noqa: PTH109 - as text
    if "logging" in sys.modules:
        import logging

        values["root level"] = _KeptValue(logging.root.level, logging.root.setLevel)
        values["logging.disable"] = _KeptValue(logging.root.manager.disable, logging.disable)
    return values


def _signals() -> dict[int, Any] | None:
    """The handlers of all signals; `None` on another thread than the main one, where they can't be set."""
    if threading.current_thread() is not threading.main_thread():
        return None
    import signal

    return {number: signal.getsignal(number) for number in signal.valid_signals()}


def _undoer(holder: MutableMapping[str, Any], name: str, before: Any, after: Any) -> Callable[[], None]:
    """What puts one item of a mapping back."""

    def undo() -> None:
        if holder.get(name, _MISSING) is not after and holder.get(name, _MISSING) != after:
            return
        if before is _MISSING:
            holder.pop(name, None)
        else:
            holder[name] = before

    return undo


def _rewriter(name: str, kept: _KeptValue, after: Any) -> Callable[[], None]:
    """What puts back one of the values that are written through functions."""

    def undo() -> None:
        if _values()[name].value == after:
            kept.write(kept.value)

    return undo


def _rebased(outer: dict[Any, Any], before: dict[Any, Any], now: dict[Any, Any]) -> dict[Any, Any]:
    """`outer` with what was added or changed between `before` and `now`."""
    changed = {key: value for key, value in now.items() if key not in before or before[key] != value}
    return {**outer, **changed}


def _forget_warnings() -> None:
    """Tell the warnings module that its filters have changed (its name for that differs by version)."""
    for name in ("_filters_mutated_lock_held", "_filters_mutated"):
        mutated = getattr(warnings, name, None)
        if mutated is not None:
            with suppress(Exception):
                mutated()
            return
