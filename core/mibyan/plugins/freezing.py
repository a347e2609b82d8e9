"""What a plugin's code registers, as the keys of a manifest; and what of it no manifest can say, in sentences (plugins.M4)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mibyan.plugins.learning import act_data
from mibyan.plugins.sources import ids
from mibyan.tools.function import ToolFunction, function_of
from mibyan.tools.registration import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.plugins.alone import Alone
    from mibyan.plugins.ledger import Registered
    from mibyan.tools.entry import ToolEntry

#: The keys of a manifest that the code decides.
CODE_KEYS = ("tools", "toolsets", "hooks", "commands", "skills", "overrides")

#: What of a tool is code, and what that means for a plugin that isn't imported yet.
_UNSAID = {
    "timeout": "its time-out is code, which is asked once a call has imported the plugin",
    "approval": "its approval is code, which is asked once a call has imported the plugin",
    "dynamic_schema_overrides": "its schema overrides are code: the model sees the frozen schema until the plugin is imported",
    "reads": "what it reads is told by code, which is asked once a batch has imported the plugin",
    "writes": "what it writes is told by code, which is asked once a batch has imported the plugin",
}
_UNNAMED_CHECK = (
    "its check can't be named, since it is no function at the top level of a module: until the plugin is imported the tool "
    "counts as available"
)


class Freezing:
    """One plugin's registrations as the keys of its manifest.

    Args:
        plugin: The plugin, loaded by itself.
        written: The manifest as it is: what the code can't say of a tool (`requires`), and tools that only the manifest
            registers (by `target`), are kept.
    """

    def __init__(self, plugin: Alone, written: Mapping[str, Any]) -> None:
        self._plugin = plugin
        self._written = written
        #: What can't be frozen: the tool (empty: no tool's) and a sentence.
        self.notes: list[tuple[str, str]] = [("", text) for text in plugin.told]

    def keys(self) -> dict[str, Any]:
        """Those of `CODE_KEYS` that there is something to say about, `tools` in any case; in an order of their own.

        Raises:
            UnlearnableError: A schema can't be made.
        """
        found: dict[str, Any] = {"tools": self._tools()}
        found["toolsets"] = _as_mapping(self._written.get("toolsets")) | self._toolsets()
        found["hooks"] = self._plugin.hooks
        found["commands"] = self._commands()
        found["skills"] = self._skills()
        found["overrides"] = self._overrides([tool["name"] for tool in found["tools"]])
        for act in self._plugin.acts:
            self._tell_unsaid(act)
        return {key: value for key, value in found.items() if value or key == "tools"}

    def unregistered(self) -> dict[str, list[str]]:
        """Toolsets and commands that only the manifest has, by key: what its author adds, or what is stale."""
        toolsets = _as_mapping(self._written.get("toolsets")).keys() - self._toolsets().keys()
        commands = {one["name"] for one in _as_commands(self._written.get("commands"))}
        commands -= {act.name for act in self._of("command")}
        return {key: sorted(names) for key, names in (("toolsets", toolsets), ("commands", commands)) if names}

    # Tools -------------------------------------------------------------------------------------------------------

    def _tools(self) -> list[dict[str, Any]]:
        written = {tool["name"]: tool for tool in tools_of(self._written)}
        acts = {act.name: act for act in self._of("tool")}  # the last registration of a name counts
        found = {name: self._tool(act, written.get(name, {})) for name, act in acts.items()}
        for name, tool in written.items():
            if name not in found and self._is_only_there(tool, acts):
                found[name] = self._tool_by_target(tool)
        return [found[name] for name in sorted(found)]

    def _is_only_there(self, tool: Mapping[str, Any], acts: Mapping[str, Registered]) -> bool:
        """Whether a tool that the code doesn't register is one of the manifest's own: not one that has another name by now."""
        function = self._named(tool.get("target"))
        registered = [one for act in acts.values() for one in (function_of(act.value[0]), act.value[0].handler)]
        return callable(function) and not any(function is one for one in registered)

    def _tool(self, act: Registered, written: Mapping[str, Any]) -> dict[str, Any]:
        entry: ToolEntry = act.value[0]
        data = act_data(act, {})
        tool = self._definition(entry, data)
        target = self._target(entry, written.get("target"))
        check = self._check(entry) or (written.get("check") if entry.check_fn is None else None)
        parts = {"target": target, "check": check, "flags": _flags(data, tool["schema"], written)}
        parts |= {
            "requires": written.get("requires"),
            "requires_env": list(data["requires_env"]) or written.get("requires_env"),
        }
        for part in data["code"]:
            if part in _UNSAID:
                self.notes.append((entry.name, _UNSAID[part]))
        return {**tool, **{key: value for key, value in parts.items() if value}}

    @staticmethod
    def _definition(entry: ToolEntry, data: Mapping[str, Any]) -> dict[str, Any]:
        schema = {key: value for key, value in data["schema"].items() if key != "name"}
        return {"name": entry.name, "toolset": entry.toolset, "schema": schema}

    def _tool_by_target(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """A tool that only the manifest registers: of a typed function the schema is the code's, else all is the author's."""
        found = self._named(written["target"])
        if not isinstance(found, ToolFunction):
            return dict(written)
        schema = {key: value for key, value in _plain(found.schema).items() if key != "name"}
        return {**written, "schema": schema}

    def _target(self, entry: ToolEntry, written: str | None) -> str | None:
        """Where the tool's function is, if it is a typed one: what the manifest says, if that is right."""
        function = function_of(entry)
        if written is not None and callable(self._named(written)):
            return written
        return None if function is None else self._place(function)

    def _check(self, entry: ToolEntry) -> str | None:
        if entry.check_fn is None:
            return None
        place = self._place(entry.check_fn)
        if place is None:
            self.notes.append((entry.name, _UNNAMED_CHECK))
        return place

    def _place(self, function: Any) -> str | None:
        """`module:attribute` of a function, `None` if it can't be got at like that."""
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
        if not (isinstance(module, str) and isinstance(name, str) and module in sys.modules):
            return None
        if not all(part.isidentifier() for part in name.split(".")):
            return None
        place = f"{self._plugin.code.called(module)}:{name}"
        return place if self._named(place) is function else None

    def _named(self, target: Any) -> Any:
        return self._plugin.named(target) if isinstance(target, str) and ":" in target else None

    # The others --------------------------------------------------------------------------------------------------

    def _of(self, kind: str) -> list[Registered]:
        return [act for act in self._plugin.acts if act.kind == kind]

    def _toolsets(self) -> dict[str, Any]:
        found = {}
        for act in sorted(self._of("toolset"), key=lambda act: act.name):
            tools, includes, description = act.value
            parts = {"description": description, "tools": list(tools), "includes": list(includes)}
            found[act.name] = {key: value for key, value in parts.items() if value}
        return found

    def _commands(self) -> list[dict[str, Any]]:
        found = {command["name"]: command for command in _as_commands(self._written.get("commands"))}
        for act in sorted(self._of("command"), key=lambda act: act.name):
            parts = {"name": act.name, "description": act.value[0], "args_hint": act.value[1]}
            found[act.name] = {key: value for key, value in parts.items() if value}
        return list(found.values())

    def _skills(self) -> list[str]:
        """What the manifest says, and what the code registers besides, relative to the plugin."""
        root, written = self._plugin.candidate.root, list(self._written.get("skills") or ())
        if root is None:
            return written
        base = root.resolve()
        there = {(base / path).resolve() for path in written}
        paths = sorted(act.name for act in self._of("skill"))
        from pathlib import Path

        return written + [Path(path).relative_to(base).as_posix() for path in paths if Path(path) not in there]

    def _overrides(self, tools: list[str]) -> list[str]:
        """The tools that replace others': what the code says; of tools that only the manifest registers, what that says."""
        acts = {act.name: act.value[1] for act in self._of("tool")}
        kept = [name for name in _list(self._written.get("overrides")) if acts.get(name, name in tools)]
        return kept + sorted(name for name, override in acts.items() if override and name not in kept)

    def _tell_unsaid(self, act: Registered) -> None:
        if act.kind == "alias":
            text = f"{act.name!r} as another name of the toolset {act.value!r} is known once the plugin is imported"
            self.notes.append(("", text))
        elif act.kind == "service" and not ids.same(act.name, self._plugin.candidate.id):
            text = f"the service {act.name!r} is found once the plugin is imported: only one called like the plugin imports it"
            self.notes.append(("", text))


def same_tool(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two definitions say the same of a tool: what has its default may be written or not, where its function is too."""
    return _said(one) == _said(other)


def _said(tool: Mapping[str, Any]) -> dict[str, Any]:
    from mibyan.schema.definition import normalise_schema

    flags = {key: value for key, value in (tool.get("flags") or {}).items() if value != _DEFAULTS.get(key)}
    schema = _plain(normalise_schema(tool["name"], tool["schema"]))
    if flags.get("description") == schema.get("description"):
        flags.pop("description", None)
    rest = {key: value for key, value in tool.items() if value and key not in {"flags", "schema", "target"}}
    return {**rest, "flags": flags, "schema": schema}


_DEFAULTS: dict[str, Any] = {**OPTIONS, "aliases": [], "description": "", "emoji": "", "is_async": False}


def _flags(data: Mapping[str, Any], schema: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that are data, without those that have their default; an emoji may be the manifest's."""
    given = {key: list(value) if isinstance(value, tuple) else value for key, value in data["flags"].items()}
    if data["description"] and data["description"] != schema.get("description", ""):
        given["description"] = data["description"]
    given |= {"emoji": data["emoji"] or _mapping(written.get("flags")).get("emoji", ""), "is_async": data["is_async"]}
    return {key: given[key] for key in sorted(given) if given[key] != _DEFAULTS.get(key)}


def _plain(value: Any) -> Any:
    from mibyan.schema.frozen import thaw

    return thaw(value)


def tools_of(written: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools of a manifest that are definitions at all: it may be one that isn't right (yet)."""
    return [
        tool for tool in _list(written.get("tools")) if isinstance(tool, dict) and isinstance(tool.get("name"), str)
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_mapping(value: Any) -> dict[str, Any]:
    """Toolsets by name; a list of names stands for empty ones."""
    if isinstance(value, list):
        return {name: {} for name in value}
    return dict(value) if isinstance(value, dict) else {}


def _as_commands(value: Any) -> list[dict[str, Any]]:
    return [{"name": one} if isinstance(one, str) else dict(one) for one in value or ()]
