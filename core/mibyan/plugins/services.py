"""`LoaderServices`: what a `PluginLoader` is given by the runtime it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.records import field, record
from mibyan.report import DecisionLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from mibyan.config.load import LoadedConfig
    from mibyan.hooks.table import HookTable
    from mibyan.plugins.candidate import Discovery
    from mibyan.tools.lockguard import LockGuard
    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore


@record
class LoaderServices:
    """The parts of a runtime that plugins are loaded into, and what the command line said."""

    store: RegistryStore
    hooks: HookTable
    config: LoadedConfig
    #: `$MIBYAN_HOME`.
    home: Path
    #: The folder that has `.mibyan`, if there is a project.
    project: Path | None = None
    log: DecisionLog = field(default_factory=DecisionLog)
    #: Runs an awaitable to its end and gives its result.
    run_async: Callable[[Awaitable[Any]], Any] | None = None
    #: Runs a call through the pipeline for a plugin: `(name, args, owner) -> str`.
    dispatch_tool: Callable[[str, Any, Owner], str] | None = None
    #: What plugins get as `ctx.approvals`.
    approvals: Any = None
    #: Makes a rule about commands, checked by its examples; arguments and errors as for `approvals.operator_rule`.
    make_rule: Callable[..., Any] | None = None
    #: Takes secrets out of a text that a plugin's exception says.
    clean: Callable[[str], str] = str
    #: Built-in plugins only.
    safe_mode: bool = False
    #: `--plugin` and `MIBYAN_PLUGINS`: ids or modules that are on too, or `no:ID`.
    also: tuple[str, ...] = ()
    #: `--no-plugin`: ids that are off.
    no: tuple[str, ...] = ()
    #: Further sources of plugins, such as bridges to other people's.
    further: tuple[Callable[[], Discovery], ...] = ()
    #: Where installed plugins are looked for; `None`: on `sys.path`.
    search_path: Sequence[str] | None = None

    @property
    def guard(self) -> LockGuard | None:
        """Under `--locked`: what says which plugins were accepted."""
        return self.store.guard

    def awaited(self, answer: Any) -> Any:
        """What a plugin's function gave, awaited if that is needed.

        Raises:
            PluginError: It must be awaited, and there is no runtime to do it.
        """
        if not hasattr(answer, "__await__"):
            return answer
        if self.run_async is None:
            if hasattr(answer, "close"):
                answer.close()
            raise PluginError("an async function of a plugin needs a runtime")
        return self.run_async(answer)
