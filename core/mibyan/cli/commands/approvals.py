"""`mibyan approvals`: what was allowed for good, and what becomes of a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.declaring import argument, group, option
from mibyan.cli.output import say
from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


@group("approvals")
def approvals() -> None:
    """What was allowed for good, and what becomes of a command."""


@approvals.command("list")
def list_approvals(invocation: Invocation) -> int:
    """List what was allowed for good, what is always refused, and the mode.

    Entries of command_allowlist with their line and what each means; those that allow nothing say why: a rule that nobody
    knows, a glob that never matches, what can't be undone. Globs of approvals.deny, the project's too. With --json:
    {"approvals": [{entry kind place meaning problem}], "deny": [{glob place}], "mode", "mode_place"}.
    """
    from mibyan.cli.approving.allowing import show_allowed

    show_allowed(invocation)
    return exits.OK


@approvals.command("revoke")
@argument("entry", choices="allowed")
def revoke(invocation: Invocation, entry: str) -> int:
    """Remove an entry from command_allowlist.

    Processes that are running see it at their next decision. Comments and everything else in config.yaml stay. Ends with 2
    if there is no such entry. With --json: {"revoked", "file"}.
    """
    from mibyan.cli.approving.allowing import revoked

    path = revoked(invocation, entry)
    if invocation.options.as_json:
        invocation.out.document({"revoked": entry, "file": str(path)})
    else:
        say(f"{path}: {entry} is revoked.")
    return exits.OK


@approvals.command("test", raw=True)
@option("--cwd", metavar="DIR", choices="directories", help="Where it would run; by default here.")
@option("--isolated", help="Judge it for a container without mounts of the host, whose files are its own.")
@argument("words", rest=True, metavar="COMMAND… | -")
def test(invocation: Invocation, cwd: str | None, isolated: bool, words: tuple[str, ...]) -> int:  # noqa: FBT001 - it comes by name
    """Explain what becomes of a shell command; nothing of it is run.

    One word is a command line; several are the words of one command; - reads the command from standard input. Shows each
    finding with its rule and where it stands, and what would let the command run, or why nothing can. No plugin is
    imported, so rules of plugins aren't known; the operator's own are. Ends with 0 if the command would run unasked, with 3 if somebody would be
    asked, or if it is refused. With --json: {"command", "level", "outcome", "why", "findings": [{id level description
    category span text allowed_by}], "denied_by", "ways": [{how text}], "always_writes"}; outcome is runs, asks or refused.
    """
    from mibyan.approvals.operator_rules import configured_rules
    from mibyan.approvals.verdict import CommandContext
    from mibyan.cli.approving.explaining import explain
    from mibyan.cli.approving.explanation import print_explanation
    from mibyan.cli.approving.typed_command import command_of

    command = command_of(words)
    config = invocation.config
    context = CommandContext(cwd=_directory(cwd), isolated=isolated, rules=configured_rules(config))
    told = explain(command, config, context)
    if invocation.options.as_json:
        document: dict[str, Any] = told.to_dict()
        invocation.out.document(document)
    else:
        print_explanation(invocation.out, told)
    return exits.OK if told.outcome == "runs" else exits.REFUSED


def _directory(given: str | None) -> str | None:
    """Where the command would run, absolute; it needn't be there."""
    try:
        # Where links lead counts: a command would delete what is there.
        return str(Path(given or ".").expanduser().resolve())
    except (OSError, RuntimeError):  # The working directory has been removed; there is no such user.
        if given is not None:
            raise MibyanError(f"--cwd: {given} can't be made absolute", hint="Give the whole path.") from None
        return None
