"""Rules that concern several keys at once; each key by itself has been checked before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mibyan.config.keys import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.config.keys import KeyPath
    from mibyan.config.problems import Problem
    from mibyan.config.settings import CommandRule, Settings
    from mibyan.config.sources import McpServer, ShellHook
    from mibyan.config.yamlfile import Document

#: What a rule about commands may be called.
RULE_ID = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


def cross_check(settings: Settings, documents: Iterable[Document]) -> list[Problem]:
    """What is wrong with the settings as a whole.

    Args:
        settings: The settings that the documents make together.
        documents: What was written, the one that wins last; a problem is shown where its key is written.
    """
    layers = list(documents)
    found = [*_plugins(settings), *_servers(settings), *_hooks(settings), *_rules(settings)]
    return [_owner(layers, path).problem(path, message) for path, message in found]


def _owner(layers: list[Document], path: KeyPath) -> Document:
    """The last document that has the key, or what is nearest above it."""
    for depth in range(len(path), 0, -1):
        for document in reversed(layers):
            if _has(document, path[:depth]):
                return document
    return layers[0]


def _has(document: Document, path: KeyPath) -> bool:
    """Whether the document says something at `path`."""
    try:
        value_at(document.data, path)
    except LookupError:
        return False
    return True


def _plugins(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    for name, entry in settings.plugins.entries.items():
        if entry.sandbox != "none" and entry.isolation != "process":
            yield ("plugins", "entries", name, "sandbox"), "a sandbox needs 'isolation: process' beside it"


def _servers(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    for name, server in settings.mcp_servers.items():
        if message := _server(server):
            yield ("mcp_servers", name), message


def _server(server: McpServer) -> str | None:
    """What is wrong with a server."""
    if server.command and server.url:
        return "it has a 'command' and a 'url'; only one can count"
    if not server.command and not server.url:
        return "it needs a 'command' (a program to start) or a 'url' (an address)"
    if server.transport is not None and (server.transport == "stdio") != bool(server.command):
        return f"'transport: {server.transport}' doesn't go with a {'command' if server.command else 'url'}"
    return None


def _hooks(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    for event, hooks in settings.hooks.items():
        for number, hook in enumerate(hooks):
            if message := _hook(hook):
                yield ("hooks", event, number), message


def _rules(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    known: set[str] = set()
    for number, rule in enumerate(settings.approvals.rules):
        if message := _rule(rule, known):
            yield ("approvals", "rules", number), message
        known.add(rule.id)


def _rule(rule: CommandRule, known: set[str]) -> str | None:
    """What is wrong with a rule about commands, as far as it can be told without judging any."""
    if missing := [name for name in ("id", "pattern", "description") if not getattr(rule, name)]:
        return f"it needs {' and '.join(repr(name) for name in missing)}"
    if not RULE_ID.fullmatch(rule.id):
        return f"its id {rule.id!r} isn't one: small letters, digits, '_', '.' and '-', a letter first"
    if rule.id in known:
        return f"there is another rule with the id {rule.id!r}"
    try:
        re.compile(rule.pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"its pattern isn't a regular expression: {error}"
    return None


def _hook(hook: ShellHook) -> str | None:
    """What is wrong with a shell hook."""
    if not hook.command:
        return "it needs a 'command'"
    try:
        re.compile(hook.matcher or "")
    except (re.error, RecursionError, OverflowError) as error:
        return f"its matcher isn't a regular expression: {error}"
    return None
