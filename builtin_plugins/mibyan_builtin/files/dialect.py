"""Which patterns ripgrep reads as Python does, and how they are written for it.

`search_files` takes Python's regular expressions. Most patterns mean the same to both; the others (lookaround,
references, POSIX classes and so on) are left to the search's own engine, so that an answer never depends on which
programs are installed. Of word borders the two think differently beside combining marks: there ripgrep is given the
pattern without them, to say which files can have a match at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: One piece of a pattern that both read alike.
_TOKEN = re.compile(
    r"""
      (?P<class>  \[ \^? -? (?: [^\W_]-[^\W_] | \\[dstw] | \\[^\w\s] | [^\\\[\]&~^\n-] )+ -? \] )
    | (?P<word>   \\w ) | (?P<other> \\W )
    | (?P<border> \\[bB] (?![*+?{]) )
    | (?P<same>   \\[dDsSt] | \(\?: | \((?!\?) | [)|.] )
    | (?P<end>    (?: (?<![^(|]) | (?<=\(\?:) | (?<=\(\?i\)) ) \^ (?![*+?{])  | \$ (?![^)|]) )
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


@dataclass(frozen=True, slots=True)
class Written:
    """A pattern as ripgrep must be given it."""

    text: str
    #: Whether it matches what the original matches, rather than more.
    exact: bool


def for_ripgrep(pattern: str) -> Written | None:
    """`pattern` in ripgrep's writing; `None` when ripgrep may read it differently."""
    flags = _FLAGS.match(pattern)
    written, at, exact = [flags[0] if flags else ""], flags.end() if flags else 0, True
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return None
        exact = exact and token.lastgroup != "border"
        written.append(_written(token.lastgroup or "", token[0]))
        at = token.end()
    return Written("".join(written), exact)


def _written(kind: str, text: str) -> str:
    match kind:
        case "word":
            return f"[{_WORD}]"
        case "other":
            return f"[^{_WORD}]"
        case "border":
            return ""
        case "escape":
            return _escape(text)
        case "class":
            return re.sub(r"\\(.)", lambda each: _WORD if each[1] == "w" else _escape(each[0]), text)
        case _:
            return text


def _escape(text: str) -> str:
    """An escaped character; ripgrep wants a backslash only where it means something."""
    return text if text[1].isalnum() or text[1] in _META else text[1]
