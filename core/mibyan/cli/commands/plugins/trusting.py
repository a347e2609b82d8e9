"""`mibyan plugins trust` and `untrust`: which code of a project may run. None is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.asking import ask_yes_no, can_ask
from mibyan.cli.commands.plugins.group import done, found_plugins, plugins
from mibyan.cli.declaring import argument, option
from mibyan.cli.output import say
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.manage import TrustRequest


@plugins.command("trust")
@argument("plugin_id", metavar="ID", choices="trusted_words")
@option("--yes", help="Don't ask; what is trusted is shown all the same.")
def trust(invocation: Invocation, plugin_id: str, yes: bool) -> int:  # noqa: FBT001 - it comes by name
    """Trust a plugin of the project, or its project-tools.

    project-tools is all of the project's tools folder. Shows the files, what the manifest says it does to the machine, and the tools; asks; then keeps a digest of every
    file. One changed byte or one added file, and it is untrusted again.
    """
    from mibyan.plugins import manage

    with found_plugins(invocation) as found:
        request = manage.trust_request(plugin_id, found.records, invocation.home, invocation.project)
        _show_request(request)
        if request.trusted:
            return done(invocation, request.id, f"{request.id} is trusted already, exactly as it is.")
        if not yes:
            _ask_for_trust(request)
        said = manage.trust(request, invocation.home, invocation.project or request.root)
        return done(invocation, request.id, said)


@plugins.command("untrust")
@argument("plugin_id", metavar="ID", choices="trusted_words")
def untrust(invocation: Invocation, plugin_id: str) -> int:
    """Take the trust in a plugin of the project back."""
    from mibyan.plugins import manage

    with found_plugins(invocation) as found:
        said = manage.untrust(plugin_id, found.records, invocation.home, invocation.project)
        return done(invocation, plugin_id, said)


def _show_request(request: TrustRequest) -> None:
    """What is about to be trusted: on standard error, where the question is asked."""
    say(f"{request.id}, in {request.root} (SHA-256 of all: {request.digest.digest[:16]}…)")
    say(f"Files ({len(request.digest.files)}, {request.digest.size:,} bytes):")
    for name, digest in request.digest.files.items():
        say(f"    {digest[:12]}  {one_line(name, 500)}")
    say("What it says it does to the machine: " + (_listed(request.permissions) or "nothing is said"))
    say(
        "Tools: "
        + (_listed(request.tools) or "its manifest defines none; what it registers is known once it is loaded")
    )


def _listed(words: Sequence[str]) -> str:
    return ", ".join(one_line(word, 200) for word in words)


def _ask_for_trust(request: TrustRequest) -> None:
    """Raise unless a person says yes.

    Raises:
        RefusedError: They don't, or there is none.
    """
    if not can_ask():
        raise exits.RefusedError(
            f"{request.id} isn't trusted: nobody is there to be asked",
            hint=f"Look at the files, then: mibyan plugins trust {request.id} --yes",
        )
    if not ask_yes_no(f"Trust {request.id}, these very files?"):
        raise exits.RefusedError(f"{request.id} isn't trusted: you didn't say yes")
