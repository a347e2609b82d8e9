"""The seeds' module-level API: `mibyan.registry`, `get_tool_definitions`, `handle_function_call`, over one runtime.

Outside of plugins that is the default runtime, made on first use. While a plugin loads or runs it is the plugin's
runtime, and what is registered belongs to the plugin. Code that can't be attributed (a plugin's own thread, a script)
may take free names and remove what it took that way, nothing else: host rights come only from a `Runtime` that the host
made (registry.R6).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from mibyan.forks import renewed, survive
from mibyan.runtime import Runtime
from mibyan.tools.current import CURRENT
from mibyan.tools.registry import ToolRegistry
from mibyan.views import ApprovalsView, AvailabilityView, HooksView, PluginsView, refuse

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

    from mibyan.approvals.broker import Approvals
    from mibyan.hooks.table import HookTable
    from mibyan.plugins.loader import PluginLoader
    from mibyan.tools.availability import Availability
    from mibyan.tools.current import Current
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.function import ToolFunction
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore


class _Default:
    """The default runtime of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runtime: Runtime | None = None

    def get(self) -> Runtime:
        """The runtime; a new one when the last was closed."""
        runtime = self._runtime
        if runtime is not None and not runtime.closed:
            return runtime
        if runtime is None:
            survive(self)
        with self._lock:
            if self._runtime is None or self._runtime.closed:
                from mibyan.paths import find_project, mibyan_home

                self._runtime = Runtime(project=find_project(_cwd(), mibyan_home()))
            return self._runtime

    def fork_locks(self) -> tuple[Any, ...]:
        """See `mibyan.forks`: there is nothing to be half changed."""
        return ()

    def after_fork(self) -> None:
        """In a child process: nobody else is making one."""
        self._lock = renewed(self._lock)


def _cwd() -> Path:
    from pathlib import Path

    return Path.cwd()


_DEFAULT = _Default()


def _runtime() -> Runtime:
    """The runtime that is meant here."""
    current = CURRENT.get()
    if current is not None and current.store.parts is not None:
        _note_look(current, "the runtime")
        return current.store.parts.runtime  # type: ignore[no-any-return]
    return _DEFAULT.get()


class FacadeRegistry(ToolRegistry):
    """The registry of the runtime, and with the owner, that is meant where it is used."""

    def __init__(self) -> None:  # It holds nothing of its own.
        pass

    @property
    def _store(self) -> RegistryStore:  # type: ignore[override]
        current = CURRENT.get()
        if current is not None:
            _note_look(current, "the registry")
            return current.store
        parts = _DEFAULT.get()._parts
        parts.load()
        return parts.store

    @property
    def _owner(self) -> Owner:  # type: ignore[override]
        current = CURRENT.get()
        if current is not None:
            return current.owner
        return _DEFAULT.get()._parts.nobody

    def register(self, *args: Any, **kwargs: Any) -> ToolEntry | None:
        """Register a tool for whoever runs here; see `ToolRegistry.register`."""
        _record("register", args, kwargs)
        return super().register(*args, **kwargs)

    def add(self, tool_function: ToolFunction[..., Any], *, override: bool = False) -> ToolEntry | None:
        """Register what `@mibyan.tool` made; see `ToolRegistry.add`."""
        _record("add", (tool_function,), {"override": override})
        return super().add(tool_function, override=override)

    def _register_entry(self, entry: ToolEntry, *, override: bool) -> ToolEntry | None:
        own = _registry_of_plugin()
        register = super()._register_entry if own is None else own._register_entry
        return register(entry, override=override)

    def deregister(self, name: str) -> bool:
        """Take a tool away; see `ToolRegistry.deregister`."""
        _record("deregister", (name,), {})
        own = _registry_of_plugin()
        return super().deregister(name) if own is None else own.deregister(name)

    def register_toolset_alias(self, alias: str, toolset: str) -> bool:
        """Let `alias` mean `toolset`; see `ToolRegistry.register_toolset_alias`."""
        _record("register_toolset_alias", (alias, toolset), {})
        own = _registry_of_plugin()
        if own is not None:
            return own.register_toolset_alias(alias, toolset)
        return super().register_toolset_alias(alias, toolset)


def _note_look(current: Current, what: str) -> None:
    """A plugin that looks at what others have registered while it is loaded may register by that."""
    if current.registry is not None:
        current.registry._note_look(what)


def _registry_of_plugin() -> ToolRegistry | None:
    """The registry of the plugin that is being loaded here: what it does is in its ledger."""
    current = CURRENT.get()
    return None if current is None else current.registry


def _record(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What a pip module asks at its import is asked again, in its name, of each further runtime of this process."""
    current = CURRENT.get()
    if current is not None and current.record is not None:
        current.record(method, args, kwargs)


class FacadeRuntime(Runtime):
    """The runtime that `get_runtime` gives: the same parts, without the host's rights over the registry."""

    def __init__(self, runtime: Runtime) -> None:
        self.__dict__ = runtime.__dict__

    # What `Runtime` itself asks for, so that its methods, called by whatever way, give no more than this one's.

    @property
    def _own_registry(self) -> ToolRegistry:
        return registry

    def _rights(self, what: str | None = None) -> Owner:
        """In whose name it is used; a plugin, or a thread of one, may not close the runtime, a script's own code may."""
        current = CURRENT.get()
        by_script = current is None and threading.current_thread() is threading.main_thread()
        if what is not None and not (by_script and what == "close the runtime"):
            refuse(what)
        return self._parts.nobody if current is None else current.owner

    @property
    def plugins(self) -> PluginLoader:
        """The plugins, to look at."""
        return cast("PluginLoader", PluginsView(self._parts.plugins))

    @property
    def hooks(self) -> HookTable:
        """The hook implementations, to look at; `add_hook` adds one in the name of whoever runs here."""
        return cast("HookTable", HooksView(self._parts.hooks))

    @property
    def approvals(self) -> Approvals:
        """The questions that wait for an answer, to look at."""
        return cast("Approvals", ApprovalsView(self._parts.approvals))

    @property
    def availability(self) -> Availability:
        """The tools' checks, to ask and to forget; `availability.invalidate()` does that."""
        return cast("Availability", AvailabilityView(self._parts.availability))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runtime) and other.__dict__ is self.__dict__

    def __hash__(self) -> int:
        return id(self.__dict__)


#: The seeds' `registry`.
registry = FacadeRegistry()


def get_runtime() -> Runtime:
    """The runtime that is meant here: a plugin's own while it loads or runs, else the default one, made on first use.

    Its `registry` and `add_hook` have the rights of whoever uses them, its `plugins`, `hooks` and `approvals` are to look
    at; a host that wants its own rights makes a `Runtime`.
    """
    return FacadeRuntime(_runtime())


def get_tool_definitions(
    enabled_toolsets: Iterable[str] | None = None,
    disabled_toolsets: Iterable[str] | None = None,
    quiet_mode: bool = False,  # noqa: FBT001, FBT002 - seed 000's signature
) -> list[dict[str, Any]]:
    """The definitions that a model may be shown, in OpenAI's form (seed 000, *Toolset resolution*).

    Args:
        enabled_toolsets: Names of toolsets; `None`: everything, `[]`: nothing.
        disabled_toolsets: Names of toolsets that are taken away last.
        quiet_mode: For the seeds' callers; nothing is ever printed.

    Raises:
        TypeError: A list isn't a list of names.
    """
    del quiet_mode
    return _runtime().definitions(enabled_toolsets, disabled_toolsets)


def handle_function_call(
    name: str, args: Any = None, task_id: str | None = None, user_task: str | None = None, **kw: Any
) -> str:
    """Run a tool call through the pipeline (seed 000, *Dispatch*).

    Args:
        name: The tool's name.
        args: A dict, or JSON text of an object.
        task_id: The task within the conversation.
        user_task: What the user asked for.
        **kw: `session_id`, `session`, `tool_call_id`, `timeout`; others reach handlers that accept them.

    Returns:
        The text for the model; errors are JSON with `error` and `error_type`.
    """
    parts = _runtime()._parts
    quick = None if kw else parts.lane.call(name, args, None, None, task_id, user_task)
    if quick is not None:
        return quick if isinstance(quick, str) else quick.text
    return parts.calls.text(name, args, {**kw, "task_id": task_id, "user_task": user_task})


def discover_builtin_tools(tools_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Import the files of a directory that register tools at top level (seed 000, *Discovery*).

    Args:
        tools_dir: The directory; `$MIBYAN_HOME/tools` if left out.

    Returns:
        The names of the modules that were imported; a file that fails is logged and left out.

    Raises:
        TypeError: It isn't a path.
        MibyanError: It isn't a directory.
    """
    from mibyan.paths import as_path

    runtime = _runtime()
    folder = runtime._parts.home / "tools" if tools_dir is None else as_path(tools_dir, "tools_dir")
    return runtime.plugins.load_tools_directory(folder, by_host=False)


def discover_plugins() -> list[str]:
    """Find and load the plugins of the default runtime, if that hasn't happened yet.

    Returns:
        The ids of those whose tools can be used, sorted.
    """
    runtime = _runtime()
    runtime._parts.load()
    return sorted(record.id for record in runtime.plugins.records().values() if record.is_usable)
