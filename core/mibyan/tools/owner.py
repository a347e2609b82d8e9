"""Owners: what a registration belongs to (a token that is handed out, never a guess)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Collection

#: The tiers of authority: sources in the order in which they may take names.
TIERS: dict[str, int] = {"builtin": 0, "pip": 1, "user": 2, "project": 3, "tools": 4}


@record(eq=False, weakref_slot=True)
class Owner:
    """Somebody who may hold names in a registry; two owners are the same only if they are the same object."""

    #: The plugin's id, or `host`, or `unattributed`.
    id: str
    #: `host`, `plugin` or `unattributed`.
    kind: str = "plugin"
    #: For plugins the source: a key of `TIERS`.
    source: str = ""
    #: The operator's opt-in: `True`, `False`, or the names of the tools it may override.
    allow_override: bool | Collection[str] = field(default=False)

    @property
    def is_host(self) -> bool:
        """Whether this is the code that made the runtime."""
        return self.kind == "host"

    @property
    def is_builtin(self) -> bool:
        """Whether this is a plugin of Mibyan's own."""
        return self.source == "builtin"

    @property
    def plugin_id(self) -> str | None:
        """The plugin's id; `None` for the host and for code that can't be attributed."""
        return self.id if self.kind == "plugin" else None

    def may_override(self, name: str) -> bool:
        """Whether the operator lets this owner override the tool `name`."""
        if isinstance(self.allow_override, bool):
            return self.allow_override
        return name in self.allow_override

    def __repr__(self) -> str:
        return f"<Owner {self.kind} {self.id!r}>"
