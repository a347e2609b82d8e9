"""`ToolRegistry`: the registry as one owner sees it (the seeds' module-level API as an object)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

from mibyan.errors import MibyanError, ToolOwnershipError
from mibyan.forks import survive
from mibyan.report import Decision
from mibyan.schema.definition import normalise_schema
from mibyan.text import plain_text
from mibyan.tools.owner import Owner
from mibyan.tools.registration import build_entry, check_name, gives_coroutine
from mibyan.tools.store import RegistryStore
from mibyan.tools.verdicts import tell, whose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mibyan.tools.availability import Verdict as Availability
    from mibyan.tools.entry import CheckFn, Handler, Timeout, ToolEntry
    from mibyan.tools.function import ToolFunction
    from mibyan.tools.store import RegistrySnapshot

log = logging.getLogger("mibyan.registry")


class ToolRegistry:
    """The tools of a runtime, as one owner sees them.

    What is registered through this object belongs to its owner: the host for `Runtime.registry` and for a registry
    made by hand, the plugin for a plugin's `ctx.registry`. Reads are the same for all.
    """

    def __init__(self) -> None:
        self._store = RegistryStore()
        self._owner = Owner("host", "host")
        survive(self._store)

    @classmethod
    def _bound(cls, store: RegistryStore, owner: Owner) -> ToolRegistry:
        """A view of `store` for `owner`."""
        view = cls.__new__(cls)
        view._store, view._owner = store, owner
        return view

    # Registering -------------------------------------------------------------------------------------------------

    def register(
        self,
        name: str,
        toolset: str,
        schema: Mapping[str, Any],
        handler: Handler,
        check_fn: CheckFn | None = None,
        requires_env: str | Sequence[str] | None = None,
        is_async: bool = False,  # noqa: FBT001, FBT002 - seed 000's order
        description: str | None = None,
        emoji: str = "",
        *,
        override: bool = False,
        aliases: Sequence[str] = (),
        timeout: Timeout = None,
        max_result_size_chars: int | None = None,
        dynamic_schema_overrides: Callable[[], Mapping[str, Any]] | None = None,
        approval: Callable[..., Any] | None = None,
        read_only: bool = False,
        destructive: bool = False,
        idempotent: bool = False,
        open_world: bool = True,
        parallel: bool | None = None,
        reads: Callable[[dict[str, Any]], Iterable[str]] | None = None,
        writes: Callable[[dict[str, Any]], Iterable[str]] | None = None,
        interactive: bool = False,
        thread: Literal["caller", "pool", "dedicated"] = "caller",
        loop: Literal["runtime"] | None = None,
        check_ttl: float | None = None,
        check_grace: float | None = None,
        cache: bool = False,
        defer: bool = False,
        untrusted_output: bool = False,
        handled_by: str | None = None,
        validate: bool | None = None,
    ) -> ToolEntry | None:
        """Register a tool (seed 000, *Tool registration model*).

        Args:
            name: 1 to 64 of the characters `a-z A-Z 0-9 _ -`.
            toolset: The bundle it belongs to.
            schema: `{"description": str, "parameters": JSON Schema of an object}`, or the OpenAI wrapper around it;
                its description is what the model reads.
            handler: `handler(args: dict, **context)`; it gets those of `task_id, session_id, tool_call_id, user_task,
                enabled_tools, session` that its signature accepts. It may be a coroutine function.
            check_fn: Says whether the tool is available: true, false, or a text that says why not.
            requires_env: Names of environment variables, for people; it doesn't decide availability.
            is_async: Whether the handler gives an awaitable (found out by itself for coroutine functions).
            description: Text for people; the schema's description if there is none.
            emoji: Shown while the tool runs.
            override: Take the name from another owner or toolset. A plugin also needs the operator's
                `plugins.entries.<id>.allow_tool_override`.
            aliases: Other names that lead to the tool; they aren't shown to the model.
            timeout: Seconds, or a callable of the arguments that gives seconds.
            max_result_size_chars: Characters of a result that the model gets.
            dynamic_schema_overrides: Called when definitions are built; its dict replaces parts of the schema.
            approval: `(args, context) -> None | Ask | Block | Verdict`, called after the hooks, and again where time has passed.
            read_only: Changes nothing in the world.
            destructive: May destroy something.
            idempotent: Doing it twice is doing it once.
            open_world: Deals with the world outside.
            parallel: May run beside any other call.
            reads: The resources a call reads, as paths.
            writes: The resources a call changes, as paths.
            interactive: Needs a person.
            thread: Where a sync handler runs in a guarded call.
            loop: `"runtime"` pins an async handler to the runtime's own loop.
            check_ttl: Seconds for which the check's verdict is kept.
            check_grace: Seconds for which a failing check is forgiven after it passed.
            cache: Answer identical calls of a session from the first one (read-only tools).
            defer: May be replaced by the tool search in very large catalogues.
            untrusted_output: Frame the result as text from outside.
            handled_by: `"agent"`: answered by the session's own handlers.
            validate: `False`: hand the arguments over as they come.

        Returns:
            The entry; `None` when the name is another's: an ERROR is logged and the report has a record.

        Raises:
            ToolSchemaError: The name or the schema isn't what a provider takes; nothing was registered.
            TypeError: An argument has the wrong type.
            ValueError: An argument's value isn't one of those it can have.
            ToolOverrideError: `override=True` in a plugin that the operator hasn't allowed it.
        """
        options = {}
        if not (  # most tools have none of them, and to look at each name would be a fifth of the whole cost
            aliases is _NO_ALIASES and timeout is None and max_result_size_chars is None and approval is None
            and dynamic_schema_overrides is None and read_only is False and destructive is False and idempotent is False
            and open_world is True and parallel is None and reads is None and writes is None and interactive is False
            and thread is _CALLER and loop is None and check_ttl is None and check_grace is None and cache is False
            and defer is False and untrusted_output is False and handled_by is None and validate is None
        ):  # fmt: skip
            given = locals()
            options = {key: given[key] for key, default in _OPTION_ITEMS if given[key] is not default}
        if callable(schema):  # Only Mibyan's own entries have a schema that is made later.
            schema = normalise_schema(check_name(name), schema)
        entry = build_entry(
            self._owner, name, toolset, schema, handler, check_fn, requires_env, is_async or gives_coroutine(handler),
            description, emoji, **options,
        )  # fmt: skip
        if type(override) is not bool:
            msg = f"tool {name!r}: override must be true or false, not {type(override).__name__}."
            raise TypeError(msg)
        return self._register_entry(entry, override=override)

    def add(self, tool_function: ToolFunction[..., Any], *, override: bool = False) -> ToolEntry | None:
        """Register what `@mibyan.tool` made.

        Returns:
            The entry; `None` when the name is another's.

        Raises:
            TypeError: `tool_function` wasn't made by `@mibyan.tool`.
            ToolSchemaError: The function's signature can't be a tool's.
        """
        from mibyan.tools.function import ToolFunction

        if not isinstance(tool_function, ToolFunction):
            msg = f"add() takes a function decorated with @mibyan.tool, not {type(tool_function).__name__}."
            raise TypeError(msg)
        # A subclass may have an `entry` of its own: what it gives needn't belong to whoever adds it.
        entry = ToolFunction.entry(tool_function, self._owner)
        return self._register_entry(entry, override=bool(override or tool_function.override))

    def _register_entry(self, entry: ToolEntry, *, override: bool) -> ToolEntry | None:
        verdict, before = self._store.register(entry, override=override)
        return entry if tell(self._store, verdict, entry, before) else None

    def deregister(self, name: str) -> bool:
        """Take a tool away; what it had displaced comes back.

        Returns:
            Whether there was one.

        Raises:
            ToolOwnershipError: (a `PermissionError`) It is another owner's.
        """
        if not isinstance(name, str):
            return False
        name = plain_text(name)
        entry = self._store.find(name)
        if self._store.deregister(entry.name if entry else name, self._owner):
            return True
        if entry is None:
            return False
        msg = f"The tool {name!r} belongs to {whose(entry.owner)}, not to {whose(self._owner)}."
        log.error("Tool removal REFUSED: %s", msg)
        raise ToolOwnershipError(
            msg, plugin_id=self._owner.plugin_id, hint="Only its owner and the host may remove it."
        )

    def register_toolset_alias(self, alias: str, toolset: str) -> bool:
        """Let `alias` mean `toolset` wherever a toolset is named.

        Returns:
            False when the alias is another's or is a toolset's own name: an ERROR is logged.

        Raises:
            TypeError: One of the names isn't a non-empty text.
        """
        for text in (alias, toolset):
            if not isinstance(text, str) or not text.strip():
                msg = f"register_toolset_alias takes two non-empty names, not {text!r}."
                raise TypeError(msg)
        alias, toolset = plain_text(alias), plain_text(toolset)
        held = self._store.alias_toolset(alias, toolset, self._owner)
        if held is None:
            return True
        reason = f"Toolset alias REJECTED: {alias!r} (for {toolset!r}) already means {held!r}."
        log.error("%s", reason)
        self._store.decide(
            Decision(
                "rejected",
                f"toolset:{alias}",
                reason,
                self._owner.plugin_id,
                None,
                f"Give one of the two another alias than {alias!r}.",
                problem=True,
                rule="registry.R8",
            )
        )
        return False

    def register_plugin_override_policy(self, owner: str, allowed: bool | Iterable[str]) -> None:  # noqa: FBT001 - the seeds' signature
        """Say whether the plugin `owner` may override tools: a boolean, or the names of the tools.

        Raises:
            ToolOwnershipError: A plugin called it: the operator's policy isn't a plugin's to set.
            TypeError: `owner` isn't text, or `allowed` is neither; a single text isn't a list of names.
        """
        if not self._owner.is_host:
            msg = f"{whose(self._owner)} may not set an override policy (for {owner!r})."
            log.error("Override policy REFUSED: %s", msg)
            raise ToolOwnershipError(
                msg, plugin_id=self._owner.plugin_id,
                hint=f"The operator sets plugins.entries.{owner}.allow_tool_override in config.yaml.",
            )  # fmt: skip
        self._store.opt_in(*_override_policy(owner, allowed))

    # Reading -----------------------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """Grows by one with each change."""
        return self._store.generation

    @property
    def snapshot(self) -> RegistrySnapshot:
        """All entries and aliases at this moment."""
        return self._store.snapshot

    def get_entry(self, name: str) -> ToolEntry | None:
        """The tool that answers to `name` or to that alias."""
        return self._store.find(name) if isinstance(name, str) else None

    def get_schema(self, name: str) -> Mapping[str, Any] | None:
        """The tool's schema, read-only: `{"name", "description", "parameters"}`."""
        entry = self.get_entry(name)
        return None if entry is None else entry.schema

    def get_emoji(self, name: str, default: str = "⚡") -> str:
        """The tool's emoji, or `default`."""
        entry = self.get_entry(name)
        return (entry.emoji if entry else "") or default

    def get_all_tool_names(self) -> list[str]:
        """The names of all tools, sorted."""
        return sorted(self._store.snapshot.entries)

    def get_toolset_for_tool(self, name: str) -> str | None:
        """The toolset of a tool; `None` for an unknown name."""
        entry = self.get_entry(name)
        return None if entry is None else entry.toolset

    def get_tool_to_toolset_map(self) -> dict[str, str]:
        """Toolsets by tool name, sorted by name."""
        return {name: entry.toolset for name, entry in sorted(self._store.snapshot.entries.items())}

    def is_toolset_available(self, toolset: str) -> bool:
        """Whether at least one tool of the toolset is available; false for an unknown one; never raises."""
        snapshot = self._store.snapshot
        if not isinstance(toolset, str):
            return False
        if toolset not in snapshot.toolsets:
            toolset = snapshot.toolset_aliases.get(toolset, toolset)
        verdicts = self._verdicts(snapshot.entries[name] for name in snapshot.toolsets.get(toolset, ()))
        return any(verdict.available for verdict in verdicts.values())

    def check_toolset_requirements(self) -> dict[str, bool]:
        """Whether each toolset is available: one pass over all tools."""
        snapshot = self._store.snapshot
        verdicts = self._verdicts(snapshot.entries.values())
        return {
            toolset: any(verdicts[name].available for name in names) for toolset, names in snapshot.toolsets.items()
        }

    def get_available_toolsets(self) -> dict[str, dict[str, Any]]:
        """`{toolset: {"available": bool, "tools": [...], "requirements": [...]}}`, for people."""
        snapshot, available = self._store.snapshot, self.check_toolset_requirements()
        return {
            toolset: {
                "available": available.get(toolset, False),
                "tools": list(names),
                "requirements": sorted({env for name in names for env in snapshot.entries[name].requires_env}),
            }
            for toolset, names in snapshot.toolsets.items()
        }

    def check_tool_availability(self) -> tuple[list[str], list[dict[str, Any]]]:
        """The available toolsets, and for the others `{"name", "env_vars", "tools", "reasons"}`."""
        snapshot = self._store.snapshot
        verdicts = self._verdicts(snapshot.entries.values())
        available: list[str] = []
        unavailable: list[dict[str, Any]] = []
        for toolset, names in snapshot.toolsets.items():
            if any(verdicts[name].available for name in names):
                available.append(toolset)
                continue
            env = sorted({env for name in names for env in snapshot.entries[name].requires_env})
            reasons = {name: verdicts[name].reason for name in names}
            unavailable.append({"name": toolset, "env_vars": env, "tools": list(names), "reasons": reasons})
        return available, unavailable

    def get_definitions(self, names: Iterable[str], quiet: bool = False) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002 - the seeds' signature
        """The definitions of those of `names` that are available, in OpenAI's form, sorted by name.

        Raises:
            MibyanError: This registry belongs to no runtime.
        """
        if self._store.definer is None:
            raise _no_runtime("get_definitions")
        return self._store.definer(names, quiet)

    def dispatch(self, name: str, args: Any, **context: Any) -> str:
        """Run a call through the pipeline: the same as `Runtime.call`.

        Raises:
            MibyanError: This registry belongs to no runtime.
        """
        if self._store.dispatcher is None:
            raise _no_runtime("dispatch")
        return self._store.dispatcher(name, args, context)

    def _note_look(self, what: str) -> None:
        """Code that is being loaded looks at `what`, of which others have a part: of interest for plugins only."""

    def _verdicts(self, entries: Iterable[ToolEntry]) -> Mapping[str, Availability]:
        """One pass: each distinct check is probed at most once (registry.V2)."""
        if self._store.prober is not None:
            return self._store.prober(entries)
        from mibyan.tools import availability

        return availability.Availability(log=self._store.log).verdicts(entries)

    def __repr__(self) -> str:
        return f"<ToolRegistry of {self._owner!r}: {len(self._store.snapshot.entries)} tools>"


_OPTION_ITEMS = [
    (key, default) for key, default in (ToolRegistry.register.__kwdefaults__ or {}).items() if key != "override"
]
_NO_ALIASES, _CALLER = (dict(_OPTION_ITEMS)[key] for key in ("aliases", "thread"))


def _override_policy(owner: Any, allowed: Any) -> tuple[str, bool | frozenset[str]]:
    """The arguments of `register_plugin_override_policy`; a text would be a list of letters."""
    if not isinstance(owner, str) or not owner:
        msg = f"owner must be a plugin's id, not {'an empty text' if owner == '' else type(owner).__name__}."
        raise TypeError(msg)
    if isinstance(allowed, bool):
        return plain_text(owner), allowed
    is_many = hasattr(allowed, "__iter__") and not isinstance(allowed, str | bytes)
    names: list[Any] = list(allowed) if is_many and not isinstance(allowed, type) else [None]
    if not all(isinstance(name, str) and name for name in names):
        msg = f"allowed must be true, false or a list of tool names, not {type(allowed).__name__}."
        raise TypeError(msg)
    return plain_text(owner), frozenset(map(plain_text, names))


def _no_runtime(what: str) -> MibyanError:
    return MibyanError(
        f"{what} needs a runtime: this registry was made by hand.",
        hint="Use Runtime().registry, or mibyan.registry for the default runtime.",
    )


__all__ = ["ToolRegistry", "check_name"]
