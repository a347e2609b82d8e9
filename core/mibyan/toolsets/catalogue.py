"""What every toolset name means at one moment: bundles, the operator's own, plugins', the registry's, MCP servers'."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from mibyan.once import once
from mibyan.report import Decision, turn_off
from mibyan.tools.store import Toolset
from mibyan.toolsets.bundles import (
    ALIASES,
    BUNDLES,
    CORE,
    EVERYTHING,
    MCP_PREFIX,
    PRESET_PREFIX,
    SEED_001_PREFIX,
    home_of,
    is_taken,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.config.settings import Settings
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.store import RegistrySnapshot
    from mibyan.toolsets.bundles import Bundle, Rule


class Catalogue:
    """The meaning of toolset names, computed once from one snapshot of the registry; it never changes.

    A name is looked up in this order, and the first one that knows it decides: Mibyan's own bundles and their aliases,
    `toolsets.custom` of the config, MCP servers and platforms, the registry with what plugins declare, the registry's
    aliases, the short names of MCP servers.

    Args:
        snapshot: The registry.
        settings: The operator's configuration.
        declared: The toolsets that plugins declare, by name.
    """

    def __init__(self, snapshot: RegistrySnapshot, settings: Settings, declared: Mapping[str, Toolset]) -> None:
        self.snapshot = snapshot
        #: What an operator would want to know about the names themselves.
        self.problems: list[Decision] = []
        self._settings = settings
        #: The sorted tools registered under each toolset, legacy names read as today's.
        self._members = _members(snapshot.entries)
        self._known: dict[str, Toolset | None] = {}
        self._custom = self._take_custom()
        self._declared = {name: spec for name, spec in declared.items() if self._takes_declared(name, spec)}
        self._report_hidden_members()

    # Names -------------------------------------------------------------------------------------------------------

    @once
    def names(self) -> tuple[str, ...]:
        """The names of all toolsets, sorted; aliases aren't among them."""
        others = {*self._custom, *self._registered, *map(MCP_PREFIX.__add__, self._settings.mcp_servers)}
        return tuple(sorted({EVERYTHING, *BUNDLES, *others}))

    @once
    def aliases(self) -> Mapping[str, str]:
        """The other names that are understood, and what they mean; those that a toolset of its own has aren't."""
        servers = {name: MCP_PREFIX + name for name in self._settings.mcp_servers}
        found = {**servers, **self.snapshot.toolset_aliases, **ALIASES}
        toolsets = set(self.names)
        return MappingProxyType({alias: found[alias] for alias in sorted(found) if alias not in toolsets})

    def get(self, name: str) -> Toolset | None:
        """What `name` means, one step far: an alias is a toolset that includes its target."""
        try:
            return self._known[name]
        except KeyError:
            found = self._find(name)
            if found is not None:  # unknown names come from outside; they aren't kept
                self._known[name] = found
            return found

    def target(self, name: str) -> Toolset | None:
        """What `name` means, aliases followed; `None` for an unknown name or a circle of aliases."""
        seen: set[str] = set()
        toolset = self.get(name)
        while toolset is not None and toolset.kind == "alias" and toolset.name not in seen:
            seen.add(toolset.name)
            toolset = self.get(toolset.includes[0])
        return None if toolset is None or toolset.kind == "alias" else toolset

    def suggest(self, name: str) -> str | None:
        """The toolset that was probably meant by an unknown `name`; for a tool's name, the tool's toolset."""
        entries = self.snapshot.entries
        entry = entries.get(self.snapshot.aliases.get(name, name))
        if entry is not None:
            return home_of(entry.toolset)
        from mibyan.text import suggest

        return suggest(name, {*self.names, *self.aliases})

    def rule(self, name: str) -> Rule | None:
        """What the toolset `name` keeps of the tools it is made of."""
        bundle = BUNDLES.get(name)
        return None if bundle is None else bundle.rule

    # Look-up -----------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> Toolset | None:
        if name == EVERYTHING:
            return Toolset(name, tuple(sorted(self.snapshot.entries)), description="Every tool.", kind="composite")
        if name in BUNDLES:
            return self._bundle(BUNDLES[name])
        if name in ALIASES:
            return _alias(name, ALIASES[name], "mibyan")
        return self._custom.get(name) or self._platform(name) or self._registry(name) or self._other_name(name)

    def _bundle(self, bundle: Bundle) -> Toolset:
        tools = self._members.get(bundle.name, ()) if bundle.kind == "builtin" else ()
        includes = bundle.includes
        if bundle.plugins:
            tools = tuple(sorted(tool for name in self._unnamed_members for tool in self._members[name]))
            includes = (*includes, *self._not_built_in)
        return Toolset(bundle.name, tools, includes, bundle.description, bundle.kind, "mibyan")

    def _platform(self, name: str) -> Toolset | None:
        """A plugin platform's preset: the core set and what is there for that platform."""
        if name.startswith(SEED_001_PREFIX) and name not in self._registered:
            today = PRESET_PREFIX + name.removeprefix(SEED_001_PREFIX)
            return None if self._platform(today) is None else _alias(name, today)
        platform = name.removeprefix(PRESET_PREFIX)
        if platform == name:
            return None
        bundle = self._registry(name) if name in self._registered else None
        own = (platform,) if platform in self._registered and not is_taken(platform) else ()
        if bundle is None and not own:
            return None
        tools, includes = (bundle.tools, bundle.includes) if bundle is not None else ((), ())
        description = f"What a session on the platform {platform} starts from: the core set and the platform's tools."
        return Toolset(name, tools, (CORE, *own, *includes), description, "preset")

    def _registry(self, name: str) -> Toolset | None:
        declared, members = self._declared.get(name), self._members.get(name)
        if declared is not None:
            tools = tuple(sorted({*declared.tools, *(members or ())}))
            return Toolset(
                name, tools, declared.includes, declared.description, "plugin", declared.origin, declared.owner
            )
        if members is None:
            # A server that hasn't answered yet has no tools, but its name is known (mcp-and-agent.M2).
            server = name.removeprefix(MCP_PREFIX)
            known = server != name and server in self._settings.mcp_servers
            return Toolset(name, kind="mcp", origin=f"mcp_servers.{server}") if known else None
        kind = "mcp" if name.startswith(MCP_PREFIX) else "registry"
        origins = sorted({self.snapshot.entries[tool].owner.id for tool in members})
        return Toolset(name, members, kind=kind, origin=", ".join(origins))

    def _other_name(self, name: str) -> Toolset | None:
        if name in self.snapshot.toolset_aliases:
            return _alias(name, self.snapshot.toolset_aliases[name])
        return _alias(name, MCP_PREFIX + name) if name in self._settings.mcp_servers else None

    @once
    def _registered(self) -> frozenset[str]:
        """The names that the registry or a plugin brings (a legacy name isn't one: its tools are today's)."""
        return frozenset({*self._members, *self._declared}.difference(self._unnamed_members))

    @once
    def _not_built_in(self) -> tuple[str, ...]:
        """The registry's and the plugins' toolsets, also built-in ones that only plugins fill."""
        core = {CORE, *BUNDLES[CORE].includes}
        return tuple(sorted(name for name in self._registered if name not in core))

    @once
    def _hidden_members(self) -> tuple[str, ...]:
        """Names of bundles made of toolsets under which a tool is registered all the same."""
        return tuple(name for name in sorted(self._members) if is_taken(name) and not _holds_tools(name))

    @once
    def _unnamed_members(self) -> tuple[str, ...]:
        """Names under which tools are registered and which stand for something else: a bundle, an operator's toolset."""
        return (*self._hidden_members, *(name for name in self._custom if name in self._members))

    # What others may not do --------------------------------------------------------------------------------------

    def _take_custom(self) -> dict[str, Toolset]:
        custom = {}
        for name, spec in self._settings.toolsets.custom.items():
            if is_taken(name):
                self.problems.append(_custom_rejected(name))
                continue
            origin = f"toolsets.custom.{name}"
            custom[name] = Toolset(
                name, tuple(spec.tools), tuple(spec.includes), spec.description, kind="custom", origin=origin
            )
            if name in self._members:
                self.problems.append(_custom_shadows(name, self._members[name]))
        return custom

    def _takes_declared(self, name: str, spec: Toolset) -> bool:
        holders = {self.snapshot.entries[tool].owner for tool in self._members.get(name, ())}
        if is_taken(name) or any(holder is not spec.owner for holder in holders):
            self.problems.append(_declared_rejected(name, spec, sorted(holder.id for holder in holders)))
            return False
        return True

    def _report_hidden_members(self) -> None:
        for name in self._hidden_members:
            reason = (f"{', '.join(self._members[name])} registered under the bundle {name!r}, which holds toolsets only: "
                      "enabling the bundle doesn't enable them.")  # fmt: skip
            fix = f"Enable the tools' own toolsets, or register them under another name than {name!r}."
            self.problems.append(
                Decision("rejected", f"toolset:{name}", reason, fix=fix, problem=True, rule="registry.T6")
            )


def _members(entries: Mapping[str, ToolEntry]) -> dict[str, tuple[str, ...]]:
    registered: dict[str, list[str]] = {}
    for name, entry in entries.items():
        if entry.toolset in registered:
            registered[entry.toolset].append(name)
        else:
            registered[entry.toolset] = [name]
    found: dict[str, list[str]] = {}
    for toolset, names in registered.items():
        found.setdefault(home_of(toolset), []).extend(names)
    return {toolset: tuple(sorted(names)) for toolset, names in found.items()}


def _holds_tools(name: str) -> bool:
    return name in BUNDLES and BUNDLES[name].kind == "builtin"


def _alias(name: str, target: str, origin: str | None = None) -> Toolset:
    return Toolset(name, includes=(target,), description=f"Another name of {target}.", kind="alias", origin=origin)


def _custom_rejected(name: str) -> Decision:
    reason = f"toolsets.custom.{name} isn't used: {name!r} is a name of Mibyan's own bundles."
    return Decision("rejected", f"toolset:{name}", reason, origin=f"toolsets.custom.{name}", problem=True,
                    fix=f"Give toolsets.custom.{name} another name in config.yaml.", rule="registry.T6")  # fmt: skip


def _custom_shadows(name: str, members: tuple[str, ...]) -> Decision:
    reason = f"toolsets.custom.{name} stands for {name!r}; the toolset of that name that tools registered ({', '.join(members)}) doesn't."  # fmt: skip
    return Decision("shadowed", f"toolset:{name}", reason, origin=f"toolsets.custom.{name}", rule="registry.T1",
                    fix=f"Give toolsets.custom.{name} another name in config.yaml.")  # fmt: skip


def _declared_rejected(name: str, spec: Toolset, holders: list[str]) -> Decision:
    whose = "a name of Mibyan's own bundles" if is_taken(name) else f"held by {', '.join(holders)}"
    plugin_id = None if spec.owner is None else spec.owner.plugin_id
    reason = f"The toolset {name!r} that {plugin_id or 'a plugin'} declares isn't used: the name is {whose}."
    return Decision("rejected", f"toolset:{name}", reason, plugin_id, spec.origin, turn_off(plugin_id),
                    problem=True, rule="registry.T6")  # fmt: skip
