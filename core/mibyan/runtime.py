"""`Runtime`: the one place where the parts are put together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from mibyan.dispatch.checks import read_hook, read_seconds
from mibyan.parts import Parts
from mibyan.tools.registry import ToolRegistry
from mibyan.tools.results import ToolCall, ToolResult

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mibyan.approvals.broker import Approvals
    from mibyan.config.load import LoadedConfig
    from mibyan.config.settings import Settings
    from mibyan.dispatch.batch_plan import BatchPlan
    from mibyan.dispatch.call import Call
    from mibyan.dispatch.session import Session
    from mibyan.hooks.table import HookTable
    from mibyan.plugins.loader import PluginLoader
    from mibyan.report import Report
    from mibyan.tools.availability import Availability
    from mibyan.tools.owner import Owner
    from mibyan.toolsets.resolver import ToolsetResolver


class Runtime:
    """A tools runtime: what a host asks *which tools may the model see?* and *run this call*.

    It owns everything that lives with it: configuration, registry, plugins, approvals, threads, loops, sessions. Two
    runtimes in one process share nothing. Plugins are found and loaded when they are first needed. It is a context
    manager, also an async one, that closes it.

    Args:
        home: The profile's folder; `$MIBYAN_HOME`, else `~/.mibyan`.
        project: The folder that holds `.mibyan`; `None`: there is no project.
        config: Keys of config.yaml that count before the file's, as nested dicts.
        safe_mode: Whether only built-in plugins are loaded (also `MIBYAN_SAFE_MODE=1`).
        plugins: Ids to load beside those that are on, as with `--plugin`.
        no_plugins: Ids not to load, as with `--no-plugin`.
        locked: Whether only what `mibyan.lock` has is offered and called; `None`: as `MIBYAN_LOCKED` says.

    Raises:
        ConfigError: config.yaml can't be used (the message lists every problem with its line), or the lock can't.
    """

    def __init__(
        self, home: str | os.PathLike[str] | None = None, project: str | os.PathLike[str] | None = None,
        config: Mapping[str, Any] | LoadedConfig | None = None,
        safe_mode: bool = False,  # noqa: FBT001, FBT002 - the published signature
        *, plugins: Sequence[str] = (), no_plugins: Sequence[str] = (), locked: bool | None = None,
    ) -> None:  # fmt: skip
        self._parts = Parts(
            home, project, config, safe_mode=safe_mode, plugins=plugins, no_plugins=no_plugins, locked=locked
        )
        self._parts.runtime = self
        self._hosts_registry = ToolRegistry._bound(self._parts.store, self._parts.host)
        self._closed = False

    # The parts ---------------------------------------------------------------------------------------------------

    @property
    def registry(self) -> ToolRegistry:
        """The registry with the host's rights; the first use loads the plugins."""
        self._parts.load()
        return self._own_registry

    @property
    def _own_registry(self) -> ToolRegistry:
        return self._hosts_registry

    def _rights(self, what: str | None = None) -> Owner:
        """In whose name the runtime is used; refused to whoever hasn't the host's rights, if `what` needs them."""
        del what
        return self._parts.host

    @property
    def plugins(self) -> PluginLoader:
        """The plugins: what was found, and what became of it."""
        self._rights("change plugins")
        return self._parts.plugins

    @property
    def toolsets(self) -> ToolsetResolver:
        """The toolsets: names, members, reasons; the first use loads the plugins."""
        self._parts.load()
        return self._parts.toolsets

    @property
    def approvals(self) -> Approvals:
        """The approvals: a host sets its channel here."""
        self._rights("answer what needs approval")
        return self._parts.approvals

    @property
    def config(self) -> Settings:
        """The configuration, read-only."""
        return self._parts.config.settings

    @property
    def loaded_config(self) -> LoadedConfig:
        """The configuration with the place of each key."""
        return self._parts.config

    @property
    def hooks(self) -> HookTable:
        """The hook implementations; the host adds its own with `add_hook`."""
        self._rights("change hooks")
        return self._parts.hooks

    @property
    def availability(self) -> Availability:
        """The tools' checks; `availability.invalidate()` forgets their verdicts."""
        self._rights("change availability")
        return self._parts.availability

    @property
    def mcp(self) -> Any:
        """The MCP client that the plugin `mcp` provides.

        Raises:
            MibyanError: No plugin provides it.
        """
        return self.provided("mcp")

    def provided(self, name: str) -> Any:
        """What a plugin offers under `name` with `ctx.provide(name, factory)`, made on first use.

        Raises:
            MibyanError: No plugin provides it.
        """
        self._parts.load()
        return self._parts.provided(name)

    def add_hook(self, name: str, function: Callable[..., Any]) -> None:
        """Add a hook implementation of the host's own, which runs after those of plugins.

        Raises:
            PluginError: Its signature doesn't fit the hook's.
            TypeError: It isn't a function.
            MibyanError: There is no hook of that name.
        """
        self._parts.hooks.register(self._rights(), {read_hook(name, function): function})

    # Which tools may the model see? ------------------------------------------------------------------------------

    def definitions(
        self, enabled_toolsets: Iterable[str] | None = None, disabled_toolsets: Iterable[str] | None = None, *,
        session: Session | str | None = None, format: str = "openai",  # noqa: A002 - the published name
    ) -> list[dict[str, Any]]:  # fmt: skip
        """The definitions of the tools that may be shown now, sorted by name.

        Args:
            enabled_toolsets: Names of toolsets; `None`: everything, `[]`: nothing.
            disabled_toolsets: Names of toolsets that are taken away last: deny wins.
            session: Its toolsets count where these two are `None`.
            format: `openai`, `openai-responses`, `anthropic`, `gemini` or `mcp`.

        Returns:
            A fresh list of read-only dicts.

        Raises:
            TypeError: A list isn't a list of names.
            ValueError: The format isn't known.
        """
        self._parts.load()
        own = self._parts.sessions.find(session) if session is not None else None
        if own is not None and enabled_toolsets is None and disabled_toolsets is None:
            enabled_toolsets, disabled_toolsets = own.enabled_toolsets, own.disabled_toolsets
        return self._parts.definitions.build(
            enabled_toolsets, disabled_toolsets, platform=own.platform if own else None, format=format,
            quiet=False, warned=own.warned if own else None,
        )  # fmt: skip

    # Run this call -----------------------------------------------------------------------------------------------

    def call(
        self, name: str, args: Any = None, *, session: Session | str | None = None, task_id: str | None = None,
        tool_call_id: str | None = None, user_task: str | None = None, timeout: float | None = None,
    ) -> str:  # fmt: skip
        """Run a tool call; the text that the model gets.

        Args:
            name: The tool's name or alias.
            args: A dict, or JSON text of an object.
            session: The conversation, or its id; the runtime's default session if left out.
            task_id: The task within the conversation.
            tool_call_id: The model's id of the call.
            user_task: What the user asked for.
            timeout: Seconds after which the call is answered without the tool.

        Returns:
            The handler's text, or JSON text; errors are JSON with `error` and `error_type`.

        Raises:
            TypeError: An argument other than `args` has the wrong type.
            KeyboardInterrupt: It came meanwhile.
        """
        quick = self._parts.lane.call(name, args, session, tool_call_id, task_id, user_task, timeout)
        if quick is not None:
            return quick if type(quick) is str else quick.text  # type: ignore[union-attr]
        call = self.make_call(name, args, session, task_id, tool_call_id, user_task, timeout)
        return self._parts.dispatcher.inline(call).text

    def execute(
        self, call: ToolCall, session: Session | str | None = None, *, task_id: str | None = None,
        user_task: str | None = None, timeout: float | None = None,
    ) -> ToolResult:  # fmt: skip
        """Like `call`, structured."""
        quick = self._parts.lane.execute(call, session, task_id, user_task, timeout)
        return quick or self._parts.dispatcher.inline(self._structured(call, session, task_id, user_task, timeout))

    async def acall(
        self, name: str, args: Any = None, *, session: Session | str | None = None, task_id: str | None = None,
        tool_call_id: str | None = None, user_task: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a call's own time-out, not the waiter's
    ) -> str:  # fmt: skip
        """Like `call`, without holding the running loop.

        An async handler runs on this loop, a sync one on the runtime's threads; both end at the deadline.

        Raises:
            asyncio.CancelledError: The awaiting task was cancelled; the observers have seen it.
        """
        quick = await self._parts.lane.acall(name, args, session, tool_call_id, task_id, user_task, timeout)
        if quick is not None:
            return quick if type(quick) is str else quick.text  # type: ignore[union-attr]
        await self._load()
        made = self.make_call(name, args, session, task_id, tool_call_id, user_task, timeout)
        return (await self._parts.dispatcher.awaited(made)).text

    async def aexecute(
        self, call: ToolCall, session: Session | str | None = None, *, task_id: str | None = None,
        user_task: str | None = None, timeout: float | None = None,  # noqa: ASYNC109 - likewise
    ) -> ToolResult:  # fmt: skip
        """Like `acall`, structured."""
        quick = await self._parts.lane.aexecute(call, session, task_id, user_task, timeout)
        if quick is not None:
            return quick
        await self._load()
        return await self._parts.dispatcher.awaited(self._structured(call, session, task_id, user_task, timeout))

    def execute_guarded(
        self, call: ToolCall, session: Session | str | None = None, *, task_id: str | None = None,
        user_task: str | None = None, timeout: float | None = None,
    ) -> ToolResult:  # fmt: skip
        """Like `execute`, on the runtime's threads whatever is configured: what a front that faces people uses."""
        quick = self._parts.lane.execute(call, session, task_id, user_task, timeout, guarded=True)
        return quick or self._parts.dispatcher.guarded(self._structured(call, session, task_id, user_task, timeout))

    async def _load(self) -> None:
        """Load the plugins without holding the running loop."""
        if not self._parts.is_loaded:
            from mibyan.dispatch.awaiting import run_on

            await run_on(self._parts.dispatcher.runners, self._parts.load)

    def _structured(
        self, call: ToolCall, session: Session | str | None, task_id: str | None, user_task: str | None,
        timeout: float | None,
    ) -> Call:  # fmt: skip
        if not isinstance(call, ToolCall):
            msg = f"execute takes a ToolCall, not {type(call).__name__}."
            raise TypeError(msg)
        made = self.make_call(call.name, call.arguments, session, task_id, call.id, user_task, timeout)
        made.structured = True
        return made

    def make_call(
        self, name: str, args: Any, session: Session | str | None = None, task_id: str | None = None,
        tool_call_id: str | None = None, user_task: str | None = None, timeout: float | None = None,
    ) -> Call:  # fmt: skip
        """A call ready for the pipeline, for fronts; see `call` for the arguments and errors."""
        self._parts.load()
        return self._parts.calling.make(name, args, session, task_id, tool_call_id, user_task, timeout)

    def plan(
        self, calls: Iterable[ToolCall], *, session: Session | str | None = None, max_workers: int | None = None,
        task_id: str | None = None,
    ) -> BatchPlan:  # fmt: skip
        """What `call_many` would do, as far as no hook has a say; `explain()` puts it into words. Nothing runs."""
        from mibyan.dispatch.batch_plan_preview import preview

        return preview(self._parts.dispatcher, *self._several(calls, session, task_id, None, max_workers))

    def call_many(
        self, calls: Iterable[ToolCall], *, session: Session | str | None = None, max_workers: int | None = None,
        timeout: float | None = None, task_id: str | None = None, user_task: str | None = None,
    ) -> list[ToolResult]:  # fmt: skip
        """Run calls that can't conflict at the same time, the others in their order; one result for each, in call order.

        Args:
            calls: The calls; their ids may be missing or the same.
            session: The conversation, as for `call`.
            max_workers: Calls at once at most; `dispatch.max_workers` if left out.
            timeout: Seconds after which the calls that are left get the status `timeout`.
            task_id: The task within the conversation.
            user_task: What the user asked for.

        Raises:
            TypeError: An argument has the wrong type.
            KeyboardInterrupt: It came meanwhile; its `results` has the result of each call.
        """
        from mibyan.dispatch.many import call_many

        several, workers = self._several(calls, session, task_id, user_task, max_workers)
        return call_many(self._parts.dispatcher, several, workers, read_seconds(timeout))

    async def acall_many(
        self, calls: Iterable[ToolCall], *, session: Session | str | None = None, max_workers: int | None = None,
        timeout: float | None = None, task_id: str | None = None, user_task: str | None = None,  # noqa: ASYNC109 - likewise
    ) -> list[ToolResult]:  # fmt: skip
        """Like `call_many`, without holding the running loop; async handlers run on it."""
        from mibyan.dispatch.many_async import acall_many

        await self._load()
        several, workers = self._several(calls, session, task_id, user_task, max_workers)
        return await acall_many(self._parts.dispatcher, several, workers, read_seconds(timeout))

    def _several(
        self, calls: Iterable[ToolCall], session: Session | str | None, task_id: str | None, user_task: str | None,
        max_workers: int | None,
    ) -> tuple[list[Call], int]:  # fmt: skip
        from mibyan.dispatch.many_arguments import read_calls, read_workers

        read, own = read_calls(calls), self._parts.sessions.find(session)
        several = [self._structured(call, own, task_id, user_task, None) for call in read]
        return several, read_workers(max_workers, self.config.dispatch.max_workers)

    # Sessions ----------------------------------------------------------------------------------------------------

    def session(
        self,
        session_id: str | None = None,
        enabled_toolsets: Iterable[str] | None = None,
        disabled_toolsets: Iterable[str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        continues: Session | str | None = None,
        platform: str | None = None,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Session:
        """Begin a conversation.

        Args:
            session_id: Its id; one is made if left out.
            enabled_toolsets: Names of toolsets; `None`: those of the platform, else everything.
            disabled_toolsets: Names of toolsets that are taken away last.
            cwd: Its working directory; the process's if left out.
            continues: The session, or its id, that this one continues.
            platform: `cli`, `telegram`, ...: decides the toolsets where `enabled_toolsets` is `None`.
            handlers: Handlers of agent-level tools by name: `fn(args, **context)`.

        Raises:
            MibyanError: A session with that id is open, or the runtime is closed.
            TypeError: An argument has the wrong type.
        """
        return self._parts.sessions.begin(
            session_id, enabled_toolsets, disabled_toolsets, cwd, continues, platform, handlers
        )

    # What was decided, and the end -------------------------------------------------------------------------------

    def report(self) -> Report:
        """Every decision so far: `.decisions`, `.problems`, `.to_dict()`."""
        self._parts.load()
        return self._parts.log.report()

    def close(self) -> None:
        """End sessions, plugins, running calls, threads and loops. Closing twice is fine; afterwards a call gets an error."""
        self._rights("close the runtime")
        self._closed = True
        self._parts.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        return f"<Runtime home={str(self._parts.home)!r}{' closed' if self._closed else ''}>"
