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


def spellings(secret: str) -> set[str]:
    """How a secret may stand in a text: as it is, within JSON, in a URL, and in base64, also amid other data there."""
    import base64
    from urllib.parse import quote

    quoted = quote(secret, safe="", errors="replace")
    found = {
        secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1],
        quoted, quote(secret, errors="replace"), quoted.replace("%20", "+"),
        re.sub("%..", lambda code: code[0].lower(), quoted),
    }  # fmt: skip
    data = secret.encode("utf-8", "replace")
    for before in range(3):
        # Without the characters that depend on what stands before and behind it.
        whole = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        core = whole[(0, 2, 3)[before] : len(whole) - bool((before + len(data)) % 3)]
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return found


class Redactor:
    """Replaces secrets by a mark.

    Args:
        names: Gives the names of the variables whose values are secret.
        values: Gives further secrets; the same ones each time.
    """

    def __init__(self, names: Callable[[], Iterable[str]] = tuple, values: Callable[[], Iterable[str]] = tuple) -> None:
        self._names = names
        self._values = values
        #: The values of the variables when they were last looked at, and what is searched for because of them.
        self._kept: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names of the variables whose values are secret."""
        return frozenset(self._names())

    def secrets(self, more_names: Iterable[str] = ()) -> tuple[str, ...]:
        """The secrets at this moment in all their spellings, the longest first."""
        names = self._names()
        values = tuple(
            value
            for several in (names, [name for name in more_names if name not in names])
            for name in several
            if len(value := os.environ.get(name, "")) >= SHORTEST
        )
        kept = self._kept
        if kept is None or kept[0] != values:
            known = {*values, *(value for value in self._values() if len(value) >= SHORTEST)}
            found = {spelling for value in known for spelling in spellings(value)}
            kept = self._kept = (values, tuple(sorted(found, key=lambda value: (-len(value), value))))
        return kept[1]

    def sieve(self, more_names: Iterable[str] = ()) -> Callable[[str], bool]:
        """A quick look at texts: true for one that surely has no secret.

        Args:
            more_names: Further names of variables whose values are secret.
        """
        names = (*self._names(), *more_names)
        # `os.environ` decodes at each look; what it keeps does not.
        raw = getattr(os.environ, "_data", {})
        encoded = [os.environ.encodekey(name) for name in names] if raw else []
        kept: tuple[list[Any], tuple[str, ...]] | None = None
        look, shaped = raw.get, _HINT.search

        def is_clean(text: str) -> bool:
            nonlocal kept
            if len(text) < SHORTEST:
                return True
            for variable in encoded:
                if variable in raw:
                    values = list(map(look, encoded))
                    break
            else:
                values = []
            known = kept
            if known is None or known[0] != values:
                known = kept = (values, self.secrets(more_names))
            for secret in known[1]:
                if secret in text:
                    return False
            # Each shape has one of these.
            return not ("-" in text or "_" in text or "AKIA" in text or "eyJ" in text) or shaped(text) is None

        return is_clean if raw else lambda _: False

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


def variables_named(settings: Any) -> set[str]:
    """The variables that keys ending in `_env` name, at any depth."""
    if isinstance(settings, list):
        return set().union(*map(variables_named, settings))
    found: set[str] = set()
    for key, value in settings.items() if isinstance(settings, dict) else ():
        if key.endswith("_env") and isinstance(value, str):
            found.add(value)
        found |= variables_named(value)
    return found


def may_hold_credentials(settings: Any, key: str = "") -> bool:
    """Whether it is worth the time to look for credentials that stand in the settings themselves."""
    if isinstance(settings, dict):
        private = key in {"env", "headers", "config"} and bool(settings)
        return private or any(may_hold_credentials(value, name) for name, value in settings.items())
    if isinstance(settings, list):
        return any(may_hold_credentials(value, key) for value in settings)
    return isinstance(settings, str) and ("://" in settings or key in {"args", "command"})
