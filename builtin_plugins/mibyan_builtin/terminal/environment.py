"""The environment that commands get: everything but secrets (terminal.E5)."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

#: Names of variables that hold secrets.
SECRET = re.compile(r"(^|_)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)($|_)", re.IGNORECASE)

#: Files that a shell would read before the command, and that could bring the secrets back.
_SHELL_FILES = frozenset({"BASH_ENV", "ENV"})

#: How settings that name a variable are called.
_NAMES_A_VARIABLE = ("_env",)


def command_environment(
    environ: Mapping[str, str], *, secrets: Collection[str] = (), passthrough: Collection[str] = ()
) -> dict[str, str]:
    """The variables of `environ` that a command may see.

    Args:
        environ: The host's environment.
        secrets: Names of further variables that hold secrets.
        passthrough: Names of variables that are given all the same.
    """
    return {name: value for name, value in environ.items() if name in passthrough or not _withheld(name, secrets)}


def _withheld(name: str, secrets: Collection[str]) -> bool:
    return name in secrets or name in _SHELL_FILES or SECRET.search(name) is not None


def configured_secrets(settings: object) -> frozenset[str]:
    """The names of the variables that settings such as `agent.api_key_env` say hold secrets."""
    return frozenset(_named(settings))


def _named(settings: object) -> Iterator[str]:
    for key, value in _items(settings):
        if isinstance(value, str):
            if value and key.endswith(_NAMES_A_VARIABLE):
                yield value
        else:
            yield from _named(value)


def _items(settings: Any) -> Iterable[tuple[str, Any]]:
    if is_dataclass(settings):
        return [(part.name, getattr(settings, part.name)) for part in fields(settings)]
    return [(str(key), value) for key, value in settings.items()] if isinstance(settings, dict) else []
