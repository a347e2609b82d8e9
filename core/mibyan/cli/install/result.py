"""What an installation has come to: a look by a process that has seen nothing before (plugins.W4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from mibyan.cli.output import say
from mibyan.errors import MibyanError
from mibyan.plugins.sources.ids import distribution_id
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.cli.invocation import Invocation

#: Seconds that a listing may take.
_PATIENCE = 120.0
#: What says which plugin it is, and whether it is still the same.
_MARKS = ("id", "origin", "version", "state", "reason")


def fresh_look(invocation: Invocation) -> dict[str, Any]:
    """What `plugins list --json` says in a new process, not in safe mode; no plugin is imported.

    Raises:
        MibyanError: It says nothing that can be read.
    """
    options = invocation.options
    named = [("--home", options.home), ("--project", options.project)]
    words = [word for flag, value in named if value is not None for word in (flag, value)]
    command = [sys.executable, "-P", "-m", "mibyan", "plugins", "list", "--json", *words]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False,
            env={name: value for name, value in os.environ.items() if name != "MIBYAN_SAFE_MODE"},
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise MibyanError(
            f"the installer is done, but what there is now can't be listed: {one_line(str(error))}",
            hint="mibyan plugins list",
        ) from None
    return found


def differences(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], distributions: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The plugins that weren't there before, or weren't so.

    Args:
        before: The objects of `plugins list --json`.
        after: The same, later.
        distributions: What was put in: its plugins count even if they look as before.
    """
    known = {tuple(one[mark] for mark in _MARKS) for one in before}
    put = {distribution_id(name) for name in distributions}
    return [
        one
        for one in after
        if tuple(one[mark] for mark in _MARKS) not in known or (one["source"] == "pip" and one["id"] in put)
    ]


def tell_new(
    new: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]
) -> None:  # fmt: skip
    """Tell which plugins have appeared or changed, what they collide with, and what to do next."""
    ids = {one["id"] for one in before}
    for one in new:
        how = "is new" if one["id"] not in ids else "is there"
        version = f" {one['version']}" if one["version"] else ""
        say(f"Plugin {one_line(one['id'])}{version} ({one['source']}) {how}: {one['state']}"
            + (f": {one_line(one['reason'], 500)}" if one["reason"] else "."))  # fmt: skip
        if one["tools"]:
            say(f"  tools: {', '.join(one_line(name, 100) for name in one['tools'])}")
        for line in _collisions(one, after):
            say(f"  {line}")
        say(f"  next: {one_line(one['fix'] or _next(one), 500)}")


def _collisions(one: dict[str, Any], after: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Names of tools that somebody else has."""
    for other in after:
        if other["id"] == one["id"]:
            continue
        for name in sorted({*one["tools"]} & {*other["tools"]}):
            yield f"the tool {one_line(name, 100)} is also {other['id']}'s ({other['source']}): mibyan tools why {one_line(name, 100)}"


def _next(one: dict[str, Any]) -> str:
    return f"mibyan tools show {one['tools'][0]}" if one["tools"] else f"mibyan plugins show {one['id']}"
