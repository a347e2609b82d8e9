"""The states of a plugin (plugins.L1) and `PluginRecord`: what is known about one plugin at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from mibyan.records import record
from mibyan.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.plugins.candidate import Candidate
    from mibyan.tools.owner import Owner

State: TypeAlias = Literal[
    "found", "disabled", "untrusted", "incompatible", "needs", "failed", "shadowed", "ready", "active"
]

#: Found and not looked at further; nothing says that it can't be loaded.
FOUND: Final = "found"
#: The operator turned it off.
DISABLED: Final = "disabled"
#: A project's plugin that nobody has trusted, or that has changed since.
UNTRUSTED: Final = "untrusted"
#: It doesn't work with this Mibyan, or with another plugin's version.
INCOMPATIBLE: Final = "incompatible"
#: Something it needs isn't there: a plugin, a variable, a program, a module.
NEEDS: Final = "needs"
#: It couldn't be loaded.
FAILED: Final = "failed"
#: Another one with its id comes first.
SHADOWED: Final = "shadowed"
#: Its manifest says what it offers; its code is imported when it is first used.
READY: Final = "ready"
#: Its code is imported and has registered.
ACTIVE: Final = "active"

#: The states in which a plugin's tools can be called.
USABLE: Final = frozenset({READY, ACTIVE})
#: The rule that a state is about, where nothing says it more exactly.
RULES: Final = {
    FOUND: "plugins.L1", DISABLED: "plugins.L6", UNTRUSTED: "plugins.S1", INCOMPATIBLE: "plugins.M3",
    NEEDS: "plugins.M3", FAILED: "plugins.L2", SHADOWED: "plugins.F1", READY: "plugins.M4", ACTIVE: "plugins.L2",
}  # fmt: skip
#: The states that an operator would want to know about.
PROBLEMS: Final = frozenset({UNTRUSTED, INCOMPATIBLE, NEEDS, FAILED, SHADOWED})
#: The states that no sentence can be made of with "is".
_STANDINGS: Final = {FAILED: "has failed", NEEDS: "lacks something"}


def standing(state: str, reason: str = "") -> str:
    """A state in a sentence, behind the plugin: `has failed: it raised …`, `is disabled`."""
    told = _STANDINGS.get(state, f"is {state}")
    return f"{told}: {reason}" if reason else told


def rejection(names: Sequence[str]) -> str:
    """The sentence about a plugin's tools whose names others have."""
    return f"{counted(len(names), 'tool')} of it rejected, as others have the names: {', '.join(names)}"


#: What stands in the reason of an imported plugin before why it isn't learned.
_UNLEARNED: Final = "; it isn't learned: "


@record
class PluginRecord:
    """One plugin: what was found, what became of it, and why."""

    candidate: Candidate
    state: State = "found"
    #: Why it is in this state, in one sentence; empty if there is nothing to say.
    reason: str = ""
    #: The command or configuration line that would change it.
    hint: str | None = None
    #: What its registrations belong to; `None` while it has none.
    owner: Owner | None = None
    #: The names of its tools, sorted.
    tools: tuple[str, ...] = ()
    #: The hooks it implements or announces, sorted.
    hooks: tuple[str, ...] = ()
    #: Those of its tools that displaced another's, sorted.
    overrides: tuple[str, ...] = ()
    #: Milliseconds that its import and its registration took; `None`: it wasn't imported.
    import_ms: float | None = None
    #: When it was loaded, or wasn't, with this outcome, in seconds since the epoch; `None`: that hasn't been tried.
    loaded_at: float | None = None
    #: What the definition of each of its tools costs in a request, if that was kept with the outcome of an earlier load.
    tool_tokens: tuple[int, ...] | None = None
    #: The rule that decided, if it isn't the one that the state is about.
    rule: str = ""
    #: The configuration line that decided, with its key.
    decided_by: str | None = None
    #: The names that it wanted for tools of its own and that others have, sorted.
    rejected: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The plugin's id (plugins.F2)."""
        return self.candidate.id

    @property
    def source(self) -> str:
        """`builtin`, `pip`, `user`, `project` or `tools`."""
        return self.candidate.source

    @property
    def version(self) -> str:
        """Its version; empty if it doesn't say."""
        return self.candidate.version

    @property
    def origin(self) -> str:
        """Where it was found."""
        return self.candidate.origin

    @property
    def is_usable(self) -> bool:
        """Whether its tools can be called."""
        return self.state in USABLE


def with_unlearned(reason: str, why: str) -> str:
    """The reason of an imported plugin that isn't learned."""
    return f"{reason}{_UNLEARNED}{why}"


def unlearned(reason: str) -> str:
    """Why a plugin isn't learned, by its reason, in a few words; empty: it is, or needn't be, or wasn't imported."""
    return reason.partition(_UNLEARNED)[2]
