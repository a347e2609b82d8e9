"""What modules ask for while they are imported: kept once per process, so that each runtime can be told (R6, architecture).

A wheel's module is imported once, however many runtimes there are. What its import asked of the facade
(`mibyan.registry.register(...)`) and the functions it decorated with `@mibyan.tool` are kept with the module; a further
runtime that loads the plugin gets the same. A plugin that imports another's module as a library doesn't get that
one's tools: what a module asks for belongs to the plugin whose module it is.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import ModuleType

    from mibyan.tools.function import ToolFunction
    from mibyan.tools.registry import ToolRegistry


@record(eq=False)
class Asked:
    """One thing that a module asked for at its import."""

    #: The plugin it is for: the name of its main module.
    target: str
    #: The module that asked, by name and as the object that it was.
    name: str
    module: ModuleType | None
    #: What `@mibyan.tool` made, or
    function: ToolFunction[..., Any] | None = None
    #: a call of the facade registry's method.
    method: str = ""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def is_current(self) -> bool:
        """Whether the module that asked is still the imported one of that name."""
        return self.module is not None and sys.modules.get(self.name) is self.module


class Recordings:
    """What the modules of installed plugins asked for in this process, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[Asked] = []

    def add(self, asked: Asked) -> None:
        """Keep what a module asked for."""
        with self._lock:
            self._asked.append(asked)

    def after_fork(self) -> None:
        """In a child process: nobody else records."""
        self._lock = threading.Lock()

    def of(self, target: str) -> list[Asked]:
        """What was asked for the plugin whose main module is `target`; what modules asked that are gone is dropped."""
        with self._lock:
            self._asked = [asked for asked in self._asked if asked.is_current]
            return [asked for asked in self._asked if asked.target == target]


#: Modules are the process's, and so is what they asked for.
RECORDINGS = Recordings()


class Recorder:
    """Takes what is asked for while one plugin is imported.

    Args:
        target: The name of the plugin's main module.
        targets: The main modules of all installed plugins that were found.
        keep: Whether it is kept for further runtimes: not for private packages, which no other runtime has.
    """

    def __init__(self, target: str, targets: Collection[str], *, keep: bool) -> None:
        self._target = target
        self._targets = frozenset(targets) | {target}
        self._keep = keep
        self._open = False
        #: The plugin's own functions, each once, in order.
        self.functions: list[ToolFunction[..., Any]] = []
        #: Calls of the facade's registry that were for this plugin.
        self.calls = 0

    def collect(self, function: ToolFunction[..., Any]) -> None:
        """Take what `@mibyan.tool` made."""
        if not self._open:
            return
        name, target = self._asking()
        if target == self._target:
            self.functions.append(function)
        self._note(Asked(target, name, sys.modules.get(name), function))

    def record(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take a call of the facade's registry."""
        if not self._open:
            return
        name, target = self._asking()
        self.calls += target == self._target
        self._note(Asked(target, name, sys.modules.get(name), None, method, args, kwargs))

    @property
    def is_foreign(self) -> bool:
        """Whether it is another plugin's module that is being imported right now."""
        return self._open and self._asking()[1] != self._target

    def replay(self, registry: ToolRegistry) -> None:
        """Ask again for what the plugin's modules have asked for before, in whatever runtime."""
        for asked in RECORDINGS.of(self._target):
            if asked.function is not None:
                self.functions.append(asked.function)
            else:
                self.calls += 1
                getattr(registry, asked.method)(*asked.args, **asked.kwargs)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take what is asked for meanwhile; what comes later, from a thread that the import started, is nobody's."""
        self._open = True
        try:
            yield
        finally:
            self._open = False

    def _note(self, asked: Asked) -> None:
        if self._keep or asked.target != self._target:
            RECORDINGS.add(asked)

    def _asking(self) -> tuple[str, str]:
        """The module that is being imported innermost, and the main module of the plugin it belongs to."""
        for name in reversed(list(sys.modules)):
            if _is_being_imported(sys.modules.get(name)):
                target = self._plugin_of(name)
                if target is not None:
                    return name, target
        return self._target, self._target

    def _plugin_of(self, name: str) -> str | None:
        """The plugin that a module belongs to; `None`: nobody's, a library."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            if (prefix := ".".join(parts[:length])) in self._targets:
                return prefix
        top = parts[0]
        alike = [target for target in self._targets if target.partition(".")[0] == top]
        return self._target if self._target in alike else alike[0] if len(alike) == 1 else None


def _is_being_imported(module: object) -> bool:
    """What the import system itself looks at; whatever stands in `sys.modules`, this doesn't raise."""
    try:
        spec = vars(module).get("__spec__")
    except TypeError:
        return False
    return getattr(spec, "_initializing", False) is True
