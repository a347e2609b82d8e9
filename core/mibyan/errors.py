"""The exceptions of Mibyan.

Every one derives from `MibyanError` and can carry the plugin it concerns, the place it came from and a hint:
the message a person reads is *what happened, where, what to do*.
"""

from __future__ import annotations

from typing import Any


class MibyanError(Exception):
    """Base class of every error that Mibyan raises on purpose.

    Args:
        message: What happened, in one sentence.
        plugin_id: The plugin it concerns, if any.
        origin: Where: a path, `file:line`, or a distribution.
        hint: What to do about it: the exact command or configuration line where there is one.
    """

    #: The plugin it concerns, if any.
    plugin_id: str | None
    #: Where it happened: a path, `file:line`, or a distribution.
    origin: str | None
    #: What to do about it.
    hint: str | None

    def __init__(
        self,
        message: str,
        *,
        plugin_id: str | None = None,
        origin: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.plugin_id = plugin_id
        self.origin = origin
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.origin}: " if self.origin and self.origin not in self.message else ""
        what_to_do = f"\n{self.hint}" if self.hint else ""
        return f"{where}{self.message}{what_to_do}"


class ConfigError(MibyanError):
    """config.yaml (or a project's) can't be used as it is; the message lists every problem with its line."""


class ManifestError(MibyanError, ValueError):
    """A plugin's manifest can't be used as it is; the message lists every problem with its place."""


class PluginError(MibyanError):
    """A plugin can't be found, loaded, trusted or used."""


class ApprovalError(MibyanError):
    """The approval system was used in a way it doesn't allow."""


class ToolSchemaError(MibyanError, ValueError):
    """A tool's schema isn't one that a provider would take; nothing was registered."""


class ToolOverrideError(MibyanError, PermissionError):
    """A plugin asked to override a tool and the operator hasn't allowed it; the hint is the YAML to add."""


class ToolOwnershipError(MibyanError, PermissionError):
    """Code tried to remove or change a tool that belongs to somebody else."""


class ToolError(MibyanError):
    """Raised by a tool's author to answer the model with an error of their own words.

    Args:
        message: What went wrong, for the model.
        hint: What the model could do instead.
        retryable: Whether the same call may succeed later.
        data: JSON-serialisable details, given to the model as `data`.
    """

    def __init__(self, message: str, hint: str | None = None, retryable: bool = False, data: Any = None) -> None:  # noqa: FBT001, FBT002 - the published signature
        super().__init__(message, hint=hint)
        self.retryable = retryable
        self.data = data
