"""`Vital`: what everything in a process stands on. A plugin that takes it away has failed, whatever it registered (plugins.L2).

Functions of the modules below may be replaced by other functions (libraries do that, for the whole process), but none may
be gone; `sys.path`, `sys.meta_path`, `sys.modules` and `os.environ` must still do what they are for. All of it is put back
when a plugin fails, replaced functions too.
"""
# os and text, as in `sys.path`.
# ruff: noqa: PTH100, PTH116, PTH118, PTH120

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The modules whose functions are looked at; one that isn't imported can't have been changed.
_MODULES: Final = ("builtins", "sys", "os", "posix", "posixpath", "io", "stat", "time", "threading", "json", "re")
#: The lists by which the import system finds modules.
_LISTS: Final = ("path", "meta_path", "path_hooks")
#: Where Mibyan itself is found.
_OWN: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_NOTHING: Final = object()
#: Frames that Python gives everybody: who lowers the limit below takes from the others.
_FRAMES: Final = 1000

#: Kept under names of their own: what is put back with them may be gone from `builtins`.
_setattr, _getattr = setattr, getattr


class Vital:
    """The vital parts of the process at one moment."""

    def __init__(self) -> None:
        found = (sys.modules.get(name) for name in _MODULES)
        #: The names in each of the modules, as they are and as they were.
        self.modules = [(module.__dict__, dict(module.__dict__)) for module in found if module is not None]
        self._holders = [(sys, "modules", sys.modules), (os, "environ", os.environ),
                         *((sys, name, getattr(sys, name)) for name in _LISTS)]  # fmt: skip
        self._items = [(items, tuple(items)) for _, name, items in self._holders if name in _LISTS]
        self._barred = _barred()
        self._frames = sys.getrecursionlimit()

    def put_back(self) -> None:
        """Put back what Mibyan's own code needs to run at all; it is done without any of it."""
        for now, before in self.modules:
            for name, value in before.items():
                if type(value) in _FUNCTIONS and now.get(name, _NOTHING) is not value:
                    now[name] = value
        for holder, name, value in self._holders:
            if _getattr(holder, name, _NOTHING) is not value:
                _setattr(holder, name, value)
        if self._lost_ways():
            for items, copy in self._items:
                items[:] = copy
        if sys.getrecursionlimit() != self._frames:
            sys.setrecursionlimit(self._frames)

    def damage(self) -> list[str]:
        """What is gone, a few words each; empty while everything can go on."""
        # With what is gone nothing more can be asked.
        return self._gone() or self._lost_objects() or self._lost_ways()

    def replaced(self) -> tuple[str, ...]:
        """The functions that are others than they were, sorted."""
        return tuple(sorted(name for name, _ in self._changed()))

    def _changed(self) -> Iterator[tuple[str, Any]]:
        """The functions that are others than they were, and what is there now."""
        for now, before in self.modules:
            if _is_same(now, before):
                continue
            for name, value in before.items():
                if type(value) in _FUNCTIONS and (there := now.get(name)) is not value:
                    yield f"{before['__name__']}.{name}", there

    def _gone(self) -> list[str]:
        return [f"{name} is gone" for name, now in self._changed() if not callable(now)]

    def _lost_objects(self) -> list[str]:
        found = [f"{holder.__name__}.{name} is another object" for holder, name, value in self._holders[:2]
                 if getattr(holder, name, None) is not value]  # fmt: skip
        found += [f"sys.{name} isn't a list" for name in _LISTS if not isinstance(getattr(sys, name, None), list)]
        if sys.getrecursionlimit() < min(self._frames, _FRAMES):
            found.append(f"the recursion limit is {sys.getrecursionlimit()}")
        return found or [
            f"the module {name} can't be imported any more" for name in _barred() if name not in self._barred
        ]

    def _lost_ways(self) -> list[str]:
        """How modules were found, and aren't any more."""
        (_, path), (_, finders), _ = self._items
        kept = {id(finder) for finder in sys.meta_path}
        found = [f"the finder {getattr(one, '__name__', type(one).__name__)} isn't in sys.meta_path any more"
                 for one in finders if id(one) not in kept]  # fmt: skip
        before, now = _texts(path), _texts(sys.path)
        found += [f"{entry!r} isn't in sys.path any more" for entry in sorted(before - now) if _is_needed(entry)]
        found += [f"{entry!r} in sys.path can't be a path" for entry in sorted(now - before) if not _can_be(entry)]
        return found


#: The types of functions and classes: what else is in a module may change with use.
_FUNCTIONS: Final = frozenset({type(len), type(lambda: None), type})


def _is_same(now: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether nothing has changed in a module: quick, since each object is compared with itself first."""
    try:
        return now == before
    except Exception:  # an object that somebody has put there
        return False


def _barred() -> list[str]:
    """Those of the vital modules and of Mibyan's that somebody has barred from being imported."""
    barred = [name for name, module in sys.modules.copy().items() if module is None and type(name) is str]
    return sorted(name for name in barred if name in _MODULES or name.partition(".")[0] == "mibyan")


def _texts(items: Any) -> frozenset[str]:
    """The entries that are text: the import system passes others over."""
    return frozenset(item for item in items if type(item) is str)


def _is_needed(entry: str) -> bool:
    """Whether the standard library, Mibyan or what is installed is found by an entry of the path."""
    return entry == _OWN or entry.startswith((os.path.join(sys.prefix, ""), os.path.join(sys.base_prefix, "")))


def _can_be(entry: str) -> bool:
    """Whether the import system can look at an entry: over one that it can't, every import fails."""
    try:
        os.stat(entry)
    except OSError:
        return True
    except ValueError:
        return False
    return True
