"""Frozen plugins: what the manifest defines is registered without an import, and supplied by the code later (plugins.M4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.plugins.context import is_observer
from mibyan.plugins.plugin_registry import supplied
from mibyan.plugins.skills import skill_name, skill_path
from mibyan.records import replace
from mibyan.report import Decision
from mibyan.schema.definition import normalise_schema
from mibyan.schema.kept import KeptSchema
from mibyan.text import suggest
from mibyan.tools.entry import Requirements
from mibyan.tools.registration import build_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.context import PluginContext
    from mibyan.plugins.ledger import Ledger
    from mibyan.plugins.manifest import FrozenTool, Manifest
    from mibyan.plugins.services import LoaderServices
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner

_ANNOUNCE = (
    "the plugin's author can mend it: hooks: [pre_tool_call] in the manifest (mibyan plugins manifest PATH --write)"
)


class LazyCheck:
    """An availability check that is imported when it is first asked.

    Args:
        load: Imports the plugin and gives the function.
    """

    def __init__(self, load: Callable[[], Callable[[], Any]]) -> None:
        self._load = load
        self._check: Callable[[], Any] | None = None

    def __call__(self) -> Any:
        """The check's answer."""
        if self._check is None:
            self._check = self._load()
        return self._check()


def announce(
    candidate: Candidate, ctx: PluginContext, ledger: Ledger, services: LoaderServices,
    activate: Callable[[], None], resolve: Callable[[str], Any], *, rank: int,
) -> dict[str, ToolEntry]:  # fmt: skip
    """Register what a manifest defines: tools without handlers, hooks, commands, toolsets, skills, backends.

    Args:
        candidate: The plugin, with its manifest.
        ctx: Its context.
        ledger: Its ledger.
        services: The runtime's parts.
        activate: Imports the plugin.
        resolve: Imports the plugin and gives what `module:attribute` names.
        rank: Its place in the order of plugins.

    Returns:
        The entries of its tools by name, those that were rejected too.

    Raises:
        MibyanError: Something in the manifest can't be registered.
    """
    manifest = ctx.manifest
    entries = _entries(manifest, ledger.owner, candidate.origin, activate, resolve)
    for entry in entries.values():
        ctx.registry._register_entry(entry, override=entry.name in manifest.overrides)
    _tell_unknown_hooks(candidate, services)
    hooks = _hooks_of(candidate, manifest, services)
    if hooks:
        services.hooks.announce(ledger.owner, hooks, activate, rank=rank, observer=is_observer(manifest))
    offer_manifest(candidate, ctx, ledger)
    ledger.require_no_refusal()
    return entries


def offer_manifest(candidate: Candidate, ctx: PluginContext, ledger: Ledger) -> None:
    """Register what a manifest, frozen or not, defines beside tools and hooks."""
    manifest = ctx.manifest
    for name, toolset in manifest.toolsets.items():
        ctx.register_toolset(name, toolset.tools, toolset.includes, toolset.description)
    for command in manifest.commands:
        ctx._offer("command", command.name, None, command.description, command.args_hint)
    for name in manifest.cli:
        ctx.offer_cli(name)
    for name, target in manifest.environments.items():
        ctx._offer("environment", name, target)
    for path in manifest.skills:
        found = skill_path(candidate, path)
        ctx._offer("skill", skill_name(found), found)
    ledger.offered += len(manifest.environments) + len(manifest.skills)


def supply(manifest: Manifest, ledger: Ledger, services: LoaderServices, load: Callable[[str], Any]) -> None:
    """Give the announced tools that the plugin's registration hasn't supplied the handlers that the manifest names.

    Args:
        manifest: The plugin's manifest.
        ledger: The plugin's ledger.
        services: The runtime's parts.
        load: Gives what `module:attribute` names.

    Raises:
        PluginError: The code doesn't provide a tool that the manifest announces.
    """
    announced = ledger.announced or {}
    for tool in manifest.tools:
        lazy = announced[tool.name]
        if tool.name in ledger.supplied or (tool.target is None and lazy.handled_by is not None):
            continue
        if tool.target is None:
            raise PluginError(
                f"its manifest announces the tool {tool.name!r}, which its code doesn't register",
                hint="Tell the plugin's author: `mibyan plugins manifest PATH --check` shows what differs.",
            )
        ledger.supplied.add(tool.name)
        services.store.replace(_supplied_by(load(tool.target), tool, lazy))


def _hooks_of(candidate: Candidate, manifest: Manifest, services: LoaderServices) -> tuple[str, ...]:
    """The hooks for which a plugin is imported: those its manifest names; a policy before the first call in any case.

    What its manifest leaves out must not be what lets calls past it.
    """
    if manifest.role != "policy" or "pre_tool_call" in manifest.hooks:
        return manifest.hooks
    reason = (f"plugin {candidate.id!r} is a policy (role: policy), and its manifest doesn't announce the hook "
              "'pre_tool_call': its code is imported before the first call all the same")  # fmt: skip
    services.log.add(
        Decision("warning", f"plugin:{candidate.id}", reason, candidate.id, candidate.origin, _ANNOUNCE, problem=True)
    )
    return (*manifest.hooks, "pre_tool_call")


def _tell_unknown_hooks(candidate: Candidate, services: LoaderServices) -> None:
    """plugins.L3: hooks that don't exist are a record with a suggestion."""
    from mibyan.hooks.names import HOOK_ARGUMENTS

    for name in candidate.manifest.hooks if candidate.manifest is not None else ():
        if name not in HOOK_ARGUMENTS:
            meant = suggest(name, HOOK_ARGUMENTS)
            reason = f"the manifest of plugin {candidate.id!r} names the hook {name!r}, which doesn't exist"
            reason += f"; did you mean {meant!r}?" if meant else "."
            fix = f"Rename it to {meant}." if meant else f"Remove it; there are: {', '.join(HOOK_ARGUMENTS)}."
            services.log.add(Decision("unknown", f"hook:{name}", reason, candidate.id, candidate.origin, fix,
                                      problem=True, rule="plugins.L3"))  # fmt: skip


def _entries(
    manifest: Manifest, owner: Owner, origin: str, activate: Callable[[], None], resolve: Callable[[str], Any]
) -> dict[str, ToolEntry]:
    checks: dict[str, LazyCheck] = {}
    entries: dict[str, ToolEntry] = {}
    for tool in manifest.tools:
        if tool.check is not None and tool.check not in checks:
            checks[tool.check] = _lazy_check(tool.check, resolve)
        entries[tool.name] = build_entry(
            owner, tool.name, tool.toolset, _schema(tool), None, checks.get(tool.check or ""),
            tool.requires_env, requires=_both(manifest.requires, tool.requires), activate=activate, origin=origin,
            **{"description": _description(tool), **tool.flags},
        )  # fmt: skip
    return entries


def _schema(tool: FrozenTool) -> dict[str, Any] | Callable[[], Mapping[str, Any]]:
    """The schema of a tool for its entry; one that was checked before is read when somebody asks for it."""
    source = tool.schema_source
    if not isinstance(source, KeptSchema):
        return dict(source)
    made: list[Mapping[str, Any]] = []

    def schema() -> Mapping[str, Any]:
        if not made:
            made.append(normalise_schema(tool.name, tool.schema))
        return made[0]

    return schema


def _description(tool: FrozenTool) -> str | None:
    """The text for people, where the schema's own isn't at hand."""
    source = tool.schema_source
    return source.description if isinstance(source, KeptSchema) else None


def _lazy_check(target: str, resolve: Callable[[str], Any]) -> LazyCheck:
    return LazyCheck(lambda: _required_callable(resolve(target), target, "check"))


def _both(one: Requirements, other: Requirements) -> Requirements:
    if not one or not other:
        return one or other
    return Requirements(
        tuple(dict.fromkeys(one.env + other.env)),
        tuple(dict.fromkeys(one.bins + other.bins)),
        tuple(dict.fromkeys(one.modules + other.modules)),
    )


def _supplied_by(found: Any, tool: FrozenTool, lazy: ToolEntry) -> ToolEntry:
    """The entry with the handler that the manifest's target names: a typed function, or a plain handler."""
    from mibyan.tools.function import ToolFunction
    from mibyan.tools.registration import gives_coroutine

    if isinstance(found, ToolFunction):
        return replace(supplied(lazy, found.entry(lazy.owner)), name=lazy.name)
    handler = _required_callable(found, str(tool.target), "handler")
    return replace(lazy, handler=handler, is_async=lazy.is_async or gives_coroutine(handler), activate=None)


def _required_callable(found: Any, target: str, what: str) -> Any:
    if not callable(found):
        raise PluginError(f"its manifest names {target!r} as a {what}, which is {type(found).__name__}, not a function")
    return found
