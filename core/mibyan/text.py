"""Text for people and for the model: bounded, without tricks, with a suggestion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Characters of an error's text that the model gets (dispatch.C5).
ERROR_LIMIT = 2048

#: What could be read as the structure of a conversation: role-like tags, chat-template markers, code fences.
_STRUCTURE = re.compile(
    r"</?\s*(?:system|user|assistant|human|developer|tool|tools|tool_call|tool_calls|tool_result|tool_response|function"
    r"|function_call|function_calls|function_results|invoke|instructions?|prompt|antml:[\w-]+)\b[^<>]*>"
    r"|<\|[^|<>]*\|>"
    r"|\[/?(?:INST|SYS|SYSTEM|USER|ASSISTANT)\]"
    r"|<</?SYS>>"
    r"|`{3,}|~{3,}",
    re.IGNORECASE,
)
#: "at 0x7f...", or at least nine digits.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}|0x[0-9a-fA-F]{9,}")
#: C0 and C1 controls, bidirectional and zero-width characters, and other format characters that hide text.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def plain_text(text: str) -> str:
    """`text`, of any subclass of `str`, as a plain one: none of its own methods is called."""
    return str.__str__(text)


def replace_surrogates(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, and pairs joined, so that it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16: a pair of surrogates becomes its character, a lone one a single U+FFFD.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def without_addresses(text: str) -> str:
    """`text` without memory addresses, which differ between two runs."""
    return _ADDRESS.sub("", text)


def bounded(text: str, limit: int) -> str:
    """`text`, cut at `limit` characters (never within a surrogate pair: Python's characters are whole)."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def for_model(text: str, limit: int = ERROR_LIMIT) -> str:
    """Error text as the model may see it: without addresses, without structure it could follow, bounded."""
    # What stands far behind the cut needn't be searched; one character more tells `bounded` that there was more.
    text = without_addresses(replace_surrogates(text[: 4 * limit + 1]))
    bare = _HIDDEN.sub("", text)
    if _STRUCTURE.search(bare):
        text = bare
    for _ in range(8):
        # A removed tag must not make a new one of its surroundings.
        cleaned = _STRUCTURE.sub("", text)
        if cleaned == text:
            break
        text = cleaned
    else:
        text = re.sub(r"[<\[`~]", "", text)
    return bounded(text, limit)


def visible(text: str) -> str:
    """`text` with control, bidirectional and zero-width characters written as escapes, safe on a terminal."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}" if ord(match[0]) > 0xFF else f"\\x{ord(match[0]):02x}",
                       replace_surrogates(text))  # fmt: skip


def one_line(text: str, limit: int = 200) -> str:
    """`text` on one line, visible and bounded: for log records and tables."""
    return bounded(visible(" ".join(text[: 4 * limit].split())), limit)


def suggest(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that `name` was probably meant to be."""
    found = suggestions(name, names, 1)
    return found[0] if found else None


def did_you_mean(meant: str | None) -> str:
    """What a sentence about a name that there isn't ends with: ` (did you mean 'echo'?)`, or nothing."""
    return f" (did you mean {meant!r}?)" if meant else ""


def counted(number: int, what: str) -> str:
    """A number of things: `1 tool`, `2 tools`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def suggestions(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` of `names` that look like `name`, the most similar first."""
    import difflib

    return difflib.get_close_matches(name[:128], sorted(names), n=count, cutoff=0.6)


def describe_exception(error: BaseException) -> str:
    """`Type: message`, also for exceptions whose `str` raises."""
    kind = type(error).__name__
    try:
        message = plain_text(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException:
        message = "(its message can't be read)"
    return f"{kind}: {message}" if message else kind
