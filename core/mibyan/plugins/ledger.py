"""`Ledger`: what one plugin did in one runtime, so that it can be taken back (plugins.L2, L7)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Literal

from mibyan.errors import PluginError, ToolOwnershipError
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.errors import ToolOverrideError
    from mibyan.plugins.recording import Recorder
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner


class NotLoadedError(PluginError, ToolOwnershipError):
    """A plugin that isn't loaded (any more) tried to do something in the runtime."""


class OptIn(Collection[str]):
    """The tools that the operator lets a plugin override; it remembers those that were asked for in vain.

    A plugin that catches the `ToolOverrideError` is rolled back all the same (registry.R5).

    Args:
        allowed: All (`True`), none (`False`), or the names.
    """

    def __init__(self, allowed: bool | Collection[str]) -> None:  # noqa: FBT001 - as the operator writes it
        self._allowed = allowed
        #: The names that were asked for without the operator's opt-in.
        self.refused: list[str] = []

    def __contains__(self, name: object) -> bool:
        allowed = self._allowed if isinstance(self._allowed, bool) else name in self._allowed
        if not allowed:
            self.refused.append(str(name))
        return allowed

    def __iter__(self) -> Iterator[str]:
        return iter(() if isinstance(self._allowed, bool) else self._allowed)

    def __len__(self) -> int:
        return 0 if isinstance(self._allowed, bool) else len(self._allowed)

    def __bool__(self) -> bool:
        return bool(self._allowed)


@record
class Registered:
    """One thing that a plugin has registered, accepted or not."""

    kind: Literal["tool", "alias", "toolset", "command", "skill", "service"]
    name: str
    #: Of a tool its entry and whether it overrides; of an alias the toolset; of a toolset its tools, includes and
    #: description; of a command its description and arguments.
    value: Any = None


@record(eq=False)
class Recalled:
    """A tool that was registered by what was learned of its plugin."""

    entry: ToolEntry
    override: bool
    #: What the schema of a typed function was made of (`FunctionSchema.made_of`).
    made_of: str | None = None

    def is_claimed_by(self, entry: ToolEntry, *, override: bool) -> bool:
        """Whether an entry wants what this one got: the policy would say the same of both."""
        mine = self.entry
        return (entry.toolset, entry.aliases, override) == (mine.toolset, mine.aliases, self.override)


@record(frozen=False, eq=False)
class Ledger:
    """What a plugin did, from its first line of code until it is unloaded."""

    owner: Owner
    opt_in: OptIn
    #: `open` while it registers, `kept` once that has succeeded, `closed` after a rollback or when it is unloaded.
    phase: Literal["open", "kept", "closed"] = "open"
    #: How much it has offered, accepted or not.
    offered: int = 0
    #: For a frozen plugin whose code is being imported: the entries that its manifest announced, by tool name.
    announced: dict[str, ToolEntry] | None = None
    #: The names of announced tools that the code has supplied.
    supplied: set[str] = field(default_factory=set)
    #: What the code offers that the manifest doesn't say.
    drift: list[str] = field(default_factory=list)
    #: For a plugin that was recalled and whose code is being imported: the tools that were recalled and that the code
    #: hasn't registered yet, by name.
    recalled: dict[str, Recalled] = field(default_factory=dict)
    #: What the code registers, in order, while it is being imported; `None` before and after.
    acts: list[Registered] | None = None
    #: What of the runtime the code looked at meanwhile: it may have registered by that; empty: nothing.
    looked_at: str = ""
    #: The first override that was refused.
    refusal: ToolOverrideError | None = None
    #: Takes what is asked for while the plugin's modules are being imported.
    recorder: Recorder | None = None
    #: What `ctx.on_unload` was given, oldest first.
    callbacks: list[Callable[[], Any]] = field(default_factory=list)
    #: The process in which it acted: what it wants called at its end is about that one's threads, files and programs.
    pid: int = field(default_factory=os.getpid)
    #: What was added to the process's lists, see `process_state.remove_additions`.
    additions: dict[str, list[Any]] = field(default_factory=dict)

    def note(
        self, kind: Literal["tool", "alias", "toolset", "command", "skill", "service"], name: str, value: Any = None
    ) -> None:
        """Keep what the code registers, while it is being imported."""
        if self.acts is not None:
            self.acts.append(Registered(kind, name, value))

    def note_look(self, what: str) -> None:
        """Keep that the code looked at what others have registered, while it is being imported."""
        if self.acts is not None:
            self.looked_at = self.looked_at or what

    def take_back_note(self, name: str) -> None:
        """Forget that the code registered a tool: it has removed it again."""
        if self.acts is not None:
            self.acts = [act for act in self.acts if (act.kind, act.name) != ("tool", name)]

    def require_open(self, what: str) -> None:
        """Raise unless the plugin is loading or loaded.

        Raises:
            NotLoadedError: It was unloaded or rolled back: what it did is gone, and so is its right to do more.
        """
        if self.phase == "closed":
            raise NotLoadedError(
                f"plugin {self.owner.id!r} can't {what}: it isn't loaded (any more)",
                plugin_id=self.owner.id,
                hint="Stop threads and timers in ctx.on_unload(...).",
            )

    def require_no_refusal(self) -> None:
        """Raise the override that the operator hasn't allowed, if there was one, also if the plugin caught it."""
        if self.refusal is not None:
            raise self.refusal
        if self.opt_in.refused:
            raise PluginError(
                f"it tried to override the tool {self.opt_in.refused[0]!r} without the operator's opt-in",
                plugin_id=self.owner.id,
                hint=f"plugins.entries.{self.owner.id}.allow_tool_override: true",
            )
