"""Which patterns ripgrep reads as Python does, and how they are written for it.

`search_files` takes Python's regular expressions. Most patterns mean the same to both; the others (lookaround,
references, POSIX classes and so on) are left to the search's own engine, so that an answer never depends on which
programs are installed.
"""

from __future__ import annotations

import re

#: One piece of a pattern that both read alike.
_TOKEN = re.compile(
    r"""
      (?P<class>  \[ \^? -? (?: [^\W_]-[^\W_] | \\[dstw] | \\[^\w\s] | [^\\\[\]&~^\n-] )+ -? \] )
    | (?P<word>   \\w ) | (?P<other> \\W )
    | (?P<same>   \\[dDsSbBt] | \(\?: | [()|^$.] )
    | (?P<repeat> (?: [*+?] | \{\d{1,3}(?:,\d{0,3})?\} ) \?? (?![*+?{]) )
    | (?P<escape> \\[^\w\s] )
    | (?P<text>   [^\\\[\](){}.*+?|^$\n] )
    """,
    re.VERBOSE,
)
_FLAGS = re.compile(r"\(\?i\)")
_META = frozenset(r"\.+*?()|[]{}^$#&-~")

#: What Python's `\w` is: letters and numbers of every kind, without the marks that ripgrep's has.
_WORD = r"\p{L}\p{N}_"


def for_ripgrep(pattern: str) -> str | None:
    """`pattern` as ripgrep must be given it; `None` when it may read it differently."""
    flags = _FLAGS.match(pattern)
    written, at = [flags[0] if flags else ""], flags.end() if flags else 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return None
        written.append(_written(token.lastgroup or "", token[0]))
        at = token.end()
    return "".join(written)


def _written(kind: str, text: str) -> str:
    match kind:
        case "word":
            return f"[{_WORD}]"
        case "other":
            return f"[^{_WORD}]"
        case "escape":
            return _escape(text)
        case "class":
            return re.sub(r"\\(.)", lambda each: _WORD if each[1] == "w" else _escape(each[0]), text)
        case _:
            return text


def _escape(text: str) -> str:
    """An escaped character; ripgrep wants a backslash only where it means something."""
    return text if text[1].isalnum() or text[1] in _META else text[1]
