"""The terminal backends of a runtime: what manifests and `mibyan_terminal_environments` name (terminal.E1)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mibyan.environments.sessions import Environments

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.hooks.table import HookOwner
    from mibyan.parts import Parts


def environments(parts: Parts) -> Environments:
    """What holds the environments of a runtime's sessions."""
    settings = parts.config.settings.terminal
    return Environments(settings.backend, settings, lambda: backends(parts), lambda: frozenset(parts._secret_names()))


def backends(parts: Parts) -> dict[str, Callable[[], Any]]:
    """What gives each backend's class, by name; the first plugin that has a name keeps it, manifests before hooks."""
    parts.load()
    offers = parts.plugins.offers.environments
    found: dict[str, Callable[[], Any]] = {
        name: partial(parts.plugins.resolve, offer.owner.id, offer.value) for name, offer in offers.items()
    }
    for owner, name, target in parts.calling.terminal_environments():
        found.setdefault(name, partial(_class, parts, owner, target))
    return found


def _class(parts: Parts, owner: HookOwner, target: str) -> Any:
    """What `module:Class` names in a plugin, or in the host's own code."""
    if owner.kind == "plugin":
        return parts.plugins.resolve(owner.id, target)
    from importlib import import_module

    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
