"""How two locks differ, as unified diffs for people: what can't be seen is escaped, for a description may be an attack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mibyan.records import as_dict, field, record
from mibyan.tools.lockfile import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.tools.locked import Lock, LockedPlugin, LockedTool

    Kind: TypeAlias = Literal["added", "removed", "changed"]


@record
class ToolChange:
    """How one tool differs."""

    name: str
    change: Kind
    #: The plugin that has it now, or had it.
    plugin: str
    #: Of a changed one what is another: `owner`, `toolset`, `description`, `schema`, `dynamic`.
    what: tuple[str, ...]
    #: A unified diff of its text.
    diff: str


@record
class PluginChange:
    """How one plugin differs."""

    id: str
    change: Kind
    #: Of a changed one what is another: `source`, `version`, `digest`.
    what: tuple[str, ...]
    before: LockedPlugin | None = field(default=None)
    after: LockedPlugin | None = field(default=None)

    @property
    def sentence(self) -> str:
        """In words."""
        if self.before is None or self.after is None:
            one = self.after or self.before
            version = f" {one.version}" if one is not None and one.version else ""
            return f"plugin {self.id}{version}: {self.change}"
        said = {
            "source": f"from {self.before.source} to {self.after.source}",
            "version": f"version {self.before.version or '(none)'} is now {self.after.version or '(none)'}",
            "digest": "its files have changed",
        }
        return escaped(f"plugin {self.id}: {', '.join(said[name] for name in self.what)}")


@record
class Differences:
    """How two locks differ; sorted."""

    plugins: tuple[PluginChange, ...] = ()
    tools: tuple[ToolChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.plugins or self.tools)

    def to_dict(self) -> dict[str, Any]:
        """`{"plugins": [{id change what before after}], "tools": [{name change plugin what diff}]}`."""
        return {
            "plugins": [
                {"id": one.id, "change": one.change, "what": list(one.what), "before": _row(one.before), "after": _row(one.after)}
                for one in self.plugins
            ],
            "tools": [{**as_dict(one), "what": list(one.what)} for one in self.tools],
        }  # fmt: skip


def differences(before: Lock, after: Lock, names: tuple[str, str] = ("lock", "now")) -> Differences:
    """How `after` differs from `before`.

    Args:
        before: The one.
        after: The other.
        names: What the diffs call the two.
    """
    return Differences(tuple(_plugins(before, after)), tuple(_tools(before, after, names)))


def _plugins(before: Lock, after: Lock) -> Iterator[PluginChange]:
    for name in sorted(before.plugins.keys() | after.plugins.keys()):
        old, new = before.plugins.get(name), after.plugins.get(name)
        if old is None or new is None:
            yield PluginChange(name, "added" if old is None else "removed", (), old, new)
        elif old != new:
            what = tuple(part for part in ("source", "version", "digest") if getattr(old, part) != getattr(new, part))
            yield PluginChange(name, "changed", what, old, new)


def _tools(before: Lock, after: Lock, names: tuple[str, str]) -> Iterator[ToolChange]:
    for name in sorted(before.tools.keys() | after.tools.keys()):
        change = tool_change(before.tools.get(name), after.tools.get(name), names)
        if change is not None:
            yield change


def tool_change(
    old: LockedTool | None, new: LockedTool | None, names: tuple[str, str] = ("lock", "now")
) -> ToolChange | None:
    """How a tool differs; `None`: it doesn't."""
    one = new or old
    what = () if old is None or new is None else old.differs_in(new)
    if one is None or (old is not None and new is not None and not what):
        return None
    change: Kind = "changed" if what else "added" if old is None else "removed"
    return ToolChange(one.name, change, one.owner, what, _diff(one.name, old, new, names))


def _diff(name: str, old: LockedTool | None, new: LockedTool | None, names: tuple[str, str]) -> str:
    from difflib import unified_diff

    before, after = (
        "/dev/null" if one is None else f"{where}/{name}" for one, where in ((old, names[0]), (new, names[1]))
    )
    lines = unified_diff(_lines(old), _lines(new), before, after, lineterm="", n=3)
    return "\n".join(escaped(line) for line in lines)


def _lines(tool: LockedTool | None) -> list[str]:
    """A tool's text line by line."""
    if tool is None:
        return []
    schema = json.dumps(tool.schema, indent=2, sort_keys=True, ensure_ascii=False)
    dynamic = ["dynamic: its plugin's code changes the schema at run time"] if tool.dynamic else []
    return [
        f"plugin: {tool.owner}", f"toolset: {tool.toolset}", *dynamic,
        "description:", *(f"  {line}" for line in tool.description.split("\n")),
        "schema:", *(f"  {line}" for line in schema.split("\n")),
    ]  # fmt: skip


def _row(plugin: LockedPlugin | None) -> dict[str, Any] | None:
    return None if plugin is None else {key: value for key, value in as_dict(plugin).items() if key != "id"}
