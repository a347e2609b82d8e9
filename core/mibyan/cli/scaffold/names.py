"""What a new plugin may be called, and what may be said of it: judged before anything is written (plugins.W1)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.text import did_you_mean, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Characters of a plugin's name: `hello_<name>` is a tool's name, and providers take 64.
LONGEST: Final = 50

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
#: Controls that aren't blanks, and halves of surrogate pairs: no file of a project can hold them.
_UNWRITABLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")


def slug_problem(slug: str) -> str | None:
    """Why a plugin can't be called `slug`, in a sentence; `None` if it can.

    Args:
        slug: The name without `mibyan-plugin-`, in any spelling of PEP 503.
    """
    from mibyan.plugins.sources.ids import PREFIX, canonical, name_problem

    shown = repr(one_line(slug, 60))
    if not slug:
        return "a plugin needs a name: letters, digits, '-', '_' and '.'"
    if slug != slug.strip():
        return f"{shown} begins or ends with a blank"
    if len(slug) > LONGEST:
        return f"{shown} has {len(slug)} characters; a plugin's name has at most {LONGEST}"
    if _NAME.fullmatch(slug) is None:
        joined = "-".join(slug.split()).lower()
        meant = did_you_mean(joined if _NAME.fullmatch(joined) else None)
        return (
            f"{shown} can't be a plugin's name{meant}: use letters (a to z), digits, '-', '_' and '.', "
            "with a letter or a digit at both ends"
        )
    if canonical(slug).startswith(PREFIX):
        return f"{shown} is named with {PREFIX!r} already, which every plugin's name gets: leave it out"
    return name_problem(canonical(slug)) or _taken(slug, canonical(slug))


def _taken(slug: str, plugin_id: str) -> str | None:
    """Why the name is somebody else's; `None` if it isn't."""
    from mibyan.plugins.sources.builtin import find_builtin
    from mibyan.toolsets.bundles import MCP_PREFIX, PRESET_PREFIX, is_taken

    if plugin_id in {candidate.id for candidate in find_builtin().candidates}:
        return f"{slug!r} is the name of a plugin that comes with Mibyan: choose another"
    spellings = {plugin_id, plugin_id.replace("-", "_")}
    if any(is_taken(name) for name in spellings):
        return f"{slug!r} is the name of one of Mibyan's own toolsets: choose another"
    if f"{plugin_id}-".startswith((PRESET_PREFIX, MCP_PREFIX)):
        return f"{slug!r}: names with {plugin_id.partition('-')[0]!r} at the front are Mibyan's own: choose another"
    return None


def text_problem(text: str) -> str | None:
    """Why `text` can't stand in a project's files, in a sentence; `None` if it can."""
    found = _UNWRITABLE.search(text)
    if found is None:
        return None
    return f"character {found.start() + 1} of {one_line(text, 60)!r} is a control character or isn't one: leave it out"


def email_problem(address: str) -> str | None:
    """Why `address` isn't an e-mail address that a package's metadata takes, in a sentence; `None` if it is, or is empty."""
    from email.errors import MessageError
    from email.headerregistry import Address

    if not address:
        return None
    try:
        parsed = Address(addr_spec=address)
    except (ValueError, IndexError, MessageError):
        parsed = Address()
    plain = address.isascii() and address.isprintable() and not re.search(r'[\s"\\{}]', address)
    if plain and parsed.addr_spec == address and parsed.username and parsed.domain:
        return None
    return f"{one_line(address, 60)!r} isn't an e-mail address"


#: What judges each field.
RULES: Final[Mapping[str, Callable[[str], str | None]]] = {
    "slug": slug_problem,
    "description": text_problem,
    "author_name": text_problem,
    "author_email": email_problem,
}
