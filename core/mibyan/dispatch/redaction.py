"""Secrets don't leave: values of named variables, and well-known key shapes (dispatch.C5, C9)."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Shorter values would be found in ordinary text.
SHORTEST: Final = 8
MARK: Final = "[redacted]"

_SHAPES: Final = re.compile(
    r"\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bxox[abp]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
_HINT: Final = re.compile(r"sk-|gh[pousr]_|github_pat_|AKIA|xox[abp]-|eyJ|-----BEGIN ")


class Redactor:
    """Replaces secrets by a mark.

    Args:
        names: Gives the names of the variables whose values are secret.
        values: Secrets that were configured as such.
    """

    def __init__(self, names: Callable[[], Iterable[str]] = tuple, values: Iterable[str] = ()) -> None:
        self._names = names
        self._values = tuple(value for value in values if len(value) >= SHORTEST)

    @property
    def names(self) -> frozenset[str]:
        """The names of the variables whose values are secret."""
        return frozenset(self._names())

    def secrets(self, more_names: Iterable[str] = ()) -> list[str]:
        """The secret values at this moment, the longest first."""
        names = {*self._names(), *more_names}
        found = {value for name in names if len(value := os.environ.get(name, "")) >= SHORTEST}
        found.update(self._values)
        # In JSON text a secret with quotes or line breaks is spelled otherwise.
        found.update(json.dumps(value, ensure_ascii=False)[1:-1] for value in tuple(found))
        return sorted(found, key=lambda value: (-len(value), value))

    def redact(self, text: str, more_names: Iterable[str] = ()) -> str:
        """`text` without secrets.

        Args:
            text: Any text.
            more_names: Further names of variables whose values are secret (a tool's `requires_env`).
        """
        for secret in self.secrets(more_names):
            if secret in text:
                text = text.replace(secret, MARK)
        return _SHAPES.sub(MARK, text) if _HINT.search(text) else text

    def redact_data(self, value: Any, more_names: Iterable[str] = ()) -> Any:
        """The same for all texts within JSON types."""
        names = tuple(more_names)
        if isinstance(value, str):
            return self.redact(value, names)
        if isinstance(value, dict):
            return {key: self.redact_data(item, names) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_data(item, names) for item in value]
        return value
