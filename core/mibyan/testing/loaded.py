"""`LoadedPlugin`: a plugin under test, and what became of it in one runtime."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError, PluginError
from mibyan.testing.files import write, write_all

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import ModuleType

    from mibyan.plugins.slots import PluginSlot
    from mibyan.plugins.state import PluginRecord
    from mibyan.report import Decision
    from mibyan.runtime import Runtime

__tracebackhide__ = True  # a failing test shows its own lines

_USABLE = frozenset({"ready", "active"})


class LoadedPlugin:
    """A plugin under test; what it says is how things are now.

    Args:
        runtime: The runtime that it was loaded into.
        plugin_id: Its id.
        path: Its folder, if it was written for the test.
    """

    def __init__(self, runtime: Runtime, plugin_id: str, path: Path | None = None) -> None:
        #: The runtime that it was loaded into.
        self.runtime = runtime
        #: Its id.
        self.id = plugin_id
        #: Its folder, if it was written for the test.
        self.path = path

    @property
    def record(self) -> PluginRecord:
        """Everything that is known about it.

        Raises:
            MibyanError: The runtime knows no such plugin.
        """
        return self.runtime.plugins.get(self.id)

    @property
    def state(self) -> str:
        """`active`, `ready`, `failed`, `disabled`, `needs`, `incompatible`, `shadowed`, `untrusted` or `found`."""
        return self.record.state

    @property
    def reason(self) -> str:
        """Why it is in that state, in one sentence."""
        return self.record.reason

    @property
    def version(self) -> str:
        """Its version; empty if it doesn't say."""
        return self.record.version

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of its tools, sorted."""
        return self.record.tools

    @property
    def hooks(self) -> tuple[str, ...]:
        """The hooks that it implements, sorted."""
        return self.record.hooks

    @property
    def is_usable(self) -> bool:
        """Whether its tools can be called."""
        return self.state in _USABLE

    @property
    def problems(self) -> list[Decision]:
        """What the runtime's report says against it and its tools: drift, rejected names, failed hooks."""
        subjects = {f"plugin:{self.id}", *(f"tool:{name}" for name in self.tools)}
        report = self.runtime.report()
        return [one for one in report.problems if one.plugin_id == self.id or one.subject in subjects]

    @property
    def module(self) -> ModuleType:
        """Its imported module, whose attributes a test may patch.

        Raises:
            MibyanError: It can't be imported; the reason says why.
        """
        self.activate()
        code = self._slot.code
        if code is None:
            raise PluginError(f"plugin {self.id!r} has no module", plugin_id=self.id)
        return sys.modules[code.name]

    def definitions(self, format: str = "openai") -> list[dict[str, Any]]:  # noqa: A002 - as `Runtime.definitions`
        """The definitions of its own tools, as a model would get them; those that aren't available are missing."""
        own = set(self.tools)
        return [one for one in self.runtime.definitions(format=format) if _name_of(one) in own]

    def activate(self) -> None:
        """Import it, if that hasn't happened.

        Raises:
            MibyanError: It can't be used; the message says why.
        """
        self.runtime.plugins.activate(self.id)

    def require(self) -> LoadedPlugin:
        """The plugin itself, imported and usable.

        Raises:
            MibyanError: It isn't; the message has its state, the reason and what to do.
        """
        if self.state == "ready":
            self.activate()
        record = self.record
        if record.state not in _USABLE:
            from mibyan.plugins.state import standing

            message = f"plugin {self.id!r} {standing(record.state, record.reason)}"
            raise PluginError(message, plugin_id=self.id, origin=record.origin, hint=record.hint)
        return self

    def reload(
        self, source: str | bytes | None = None, *, files: Mapping[str, str | bytes] | None = None, check: bool = True
    ) -> LoadedPlugin:
        """Load it anew, with other sources if they are given (folder plugins only).

        Args:
            source: What `__init__.py` says from now on.
            files: Further files that are written before.
            check: Whether it must be usable afterwards.

        Raises:
            MibyanError: It is installed, or `check` and it isn't usable.
        """
        if source is not None or files:
            if self.path is None:
                raise PluginError(f"plugin {self.id!r} wasn't written for this test: its sources aren't changed")
            if source is not None:
                write(self.path / "__init__.py", source)
            write_all(self.path, files)
        self.runtime.plugins.reload(self.id)
        return self.require() if check else self

    def unload(self) -> None:
        """Take it out of the runtime, with all that it registered."""
        self.runtime.plugins.unload(self.id)

    @property
    def _slot(self) -> PluginSlot:
        return self.runtime.plugins._require(self.id)

    def __repr__(self) -> str:
        try:
            record = self.record
        except MibyanError:
            return f"<LoadedPlugin {self.id} (gone)>"
        return f"<LoadedPlugin {self.id} {record.state}: tools {', '.join(record.tools) or 'none'}>"


def _name_of(definition: Mapping[str, Any]) -> str:
    name: str = definition["function"]["name"] if "function" in definition else definition["name"]
    return name
