"""What a person approves, shown so that it can't deceive: secrets masked, what hides made visible, long texts folded."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from mibyan.schema.jsontext import to_json
from mibyan.text import bounded, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.approvals.verdict import Finding

#: Characters and lines of a text that are shown as a whole.
LONGEST: Final = 4000
MOST_LINES: Final = 120
#: The share of what is shown that its beginning gets; its end gets the rest.
_HEAD: Final = 0.6
_BLANKS: Final = re.compile(r"[ \t]{24,}")
_EMPTY: Final = re.compile(r"\n(?:[ \t]*\n){5,}")
_UNSEEN: Final = frozenset("\u034f\u2800\U000e01ef")
#: Categories of characters that show nothing, or not themselves.
_HIDING: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def shown(text: str, clean: Callable[[str], str] = str) -> str:
    """A text for a person's eyes.

    Args:
        text: Any text.
        clean: Takes secrets out of it; it gets the whole, before anything is left out.
    """
    text = _all_visible(clean(text))
    text = _BLANKS.sub(lambda match: f"⟨{len(match[0])} blanks⟩", text)
    text = _EMPTY.sub(lambda match: f"\n⟨{match[0].count(chr(10)) - 1} empty lines⟩\n", text)
    return _fold(text)


def shown_call(command: str | None, args: Mapping[str, Any], clean: Callable[[str], str] = str) -> str:
    """What a call would do: the command with the arguments beside it, or all arguments as JSON."""
    own = args.get("command")
    if isinstance(own, str) and (command is not None or len(args) == 1):
        rest = {name: value for name, value in args.items() if name != "command"}
        return shown(own, clean) + (f"\nwith {shown(to_json(rest), clean)}" if rest else "")
    return shown(to_json(dict(args)), clean)


def shown_finding(
    finding: Finding, command: str | None, *, granted: bool, clean: Callable[[str], str] = str
) -> dict[str, Any]:
    """A finding in JSON types, with where it was found."""
    start, end = finding.span
    excerpt = command[start:end] if command else ""
    # A piece of a secret isn't known for one: a command that has any shows no piece.
    safe = bool(excerpt) and command is not None and clean(command) == command
    return {
        **finding.to_dict(), "description": one_line(clean(finding.description), 500), "granted": granted,
        "excerpt": one_line(_all_visible(excerpt), 300) if safe else None,
    }  # fmt: skip


def shown_reason(text: str, clean: Callable[[str], str] = str) -> str:
    """A plugin's words about why it asks."""
    return bounded(_all_visible(clean(text)), 2000)


def digest(tool_name: str, args: Mapping[str, Any]) -> str:
    """What stands for exactly these arguments of this tool."""
    text = f"{tool_name}\n{to_json(dict(args))}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _all_visible(text: str) -> str:
    """`visible`, and with it every other character that isn't seen, or only looks like a blank."""
    text = visible(text)
    if text.isascii():
        return text
    return "".join(_escaped(char) if _hides(char) else char for char in text)


def _hides(char: str) -> bool:
    if char <= "~":
        return False
    category = unicodedata.category(char)
    return category in _HIDING or category == "Zs" or char in _UNSEEN or "\U000e0100" <= char <= "\U000e01ef"


def _escaped(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _fold(text: str) -> str:
    """A text with its middle left out, if it is long; both ends stay."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        head = round(MOST_LINES * _HEAD)
        left_out = len(lines) - MOST_LINES
        text = "\n".join([*lines[:head], f"⟨… {left_out:,} lines left out …⟩", *lines[head + left_out :]])
    if len(text) <= LONGEST:
        return text
    head = round(LONGEST * _HEAD)
    tail = LONGEST - head
    return f"{text[:head]}\n⟨… {len(text) - LONGEST:,} characters left out …⟩\n{text[-tail:]}"
