"""`mibyan plugins lock`: what is accepted of plugins' texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.commands.plugins.group import plugins
from mibyan.cli.declaring import option

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation


def _words(value: tuple[str, ...]) -> tuple[str, ...]:
    """`A,B`, given once or more."""
    return tuple(dict.fromkeys(word.strip() for part in value for word in part.split(",") if word.strip()))


@plugins.command("lock")
@option("--check", help="Write nothing; show what differs, and end with 1 if anything does.")
@option("--accept", "names", multiple=True, metavar="NAME", convert=_words, choices="any_tools",
        help="Accept this tool only; all else stays as it is locked. May be repeated.")  # fmt: skip
@option("--only", "ids", multiple=True, metavar="ID", convert=_words, choices="plugins",
        help="Accept this plugin with its tools only. May be repeated.")  # fmt: skip
def lock(invocation: Invocation, check: bool, names: tuple[str, ...], ids: tuple[str, ...]) -> int:  # noqa: FBT001 - they come by name
    """Write mibyan.lock: the plugins and the texts of their tools as they are now, which --locked then keeps to.

    What differs from the former lock is shown as a diff, with what a screen would hide as escapes, and is accepted; without a question,
    so look first with --check or `mibyan tools diff`. Plugins are loaded for it as for a listing; of one that can't be loaded now the lock keeps what
    it has. A project's plugins aren't in it: they are trusted byte by byte. With --json: {"path" "written" "created" "differs" "plugins": [{id change what before
    after}], "tools": [{name change plugin what diff}], "open": what wasn't accepted, "problems"}.
    """
    from mibyan.cli import locking

    return locking.lock(invocation, check=check, names=names, ids=ids)
