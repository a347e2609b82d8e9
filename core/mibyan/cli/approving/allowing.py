"""`mibyan approvals list` and `revoke`: what stands in `command_allowlist`, shown and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.output import say
from mibyan.errors import ConfigError, MibyanError
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from pathlib import Path

    from mibyan.approvals.allowlist import Allowlist
    from mibyan.cli.invocation import Invocation


def show_allowed(invocation: Invocation) -> None:
    """Print what is allowed for good, what is refused in every mode, and the mode.

    Raises:
        ConfigError: The configuration can't be used.
    """
    from mibyan.cli.approving.allowances import allowances
    from mibyan.cli.approving.explaining import place_of

    config = invocation.config
    settings = config.settings.approvals
    found = allowances(allowlist(invocation).entries(), settings)
    deny = [
        {"glob": glob, "place": place_of(config, ("approvals", "deny", number))}
        for number, glob in enumerate(settings.deny)
    ]
    if invocation.options.as_json:
        place = config.where("approvals.mode") if config.is_written("approvals.mode") else None
        invocation.out.document({
            "approvals": [one.to_dict() for one in found], "deny": deny, "mode": settings.mode, "mode_place": place,
        })  # fmt: skip
        return
    _print(invocation, [[one.entry.text, one.meaning, one.entry.place, one.problem or ""] for one in found], deny)


def _print(invocation: Invocation, allowed: list[list[str]], deny: list[dict[str, str]]) -> None:
    from mibyan.cli.tables import Column, show_table

    out = invocation.out
    if allowed:
        show_table(out, [Column(title) for title in ("ALLOWED", "MEANS", "WHERE", "PROBLEM")], allowed)
    else:
        say("Nothing is allowed for good.")
    if deny:
        out.line("")
        show_table(out, [Column("REFUSED"), Column("WHERE")], [[one["glob"], one["place"]] for one in deny])
    config = invocation.config
    mode = config.settings.approvals.mode
    where = config.where("approvals.mode") if config.is_written("approvals.mode") else "the default"
    told = {"off": "nobody is asked", "smart": "a model may approve low risks", "manual": "a person is asked"}
    out.line(f"\nmode: {mode} ({told[mode]}), {where}")


def allowlist(invocation: Invocation) -> Allowlist:
    """What the home's config.yaml allows for good."""
    from mibyan.approvals.allowlist import Allowlist
    from mibyan.config.load import FILE_NAME

    return Allowlist(invocation.home / FILE_NAME)


def revoked(invocation: Invocation, text: str) -> Path:
    """Take an entry back; the file that it was in.

    Raises:
        ConfigError: The file can't be read or edited.
        MibyanError: There is no such entry.
    """
    found = allowlist(invocation)
    if found.remove(text):
        return found.path
    names = [entry.text for entry in found.entries()]
    if found.problem is not None:
        raise ConfigError(found.problem)
    meant = suggest(text, names)
    some = ", ".join(one_line(name, 60) for name in names[:8])
    hint = f"Did you mean {meant!r}?" if meant else f"There are: {some}." if names else "Nothing is allowed for good."
    raise MibyanError(f"{one_line(text, 200)!r} isn't in command_allowlist", origin=str(found.path), hint=hint)
