"""What a docstring tells a model: the text before its sections, and what each parameter means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mibyan.records import field, record

if TYPE_CHECKING:
    from docstring_parser import Docstring

#: A line that could begin a section or a field, in any of the styles; without one there is only text.
_STRUCTURE = re.compile(r"^[ \t]*(?:[A-Z][\w ]{0,30}:[ \t]*$|:\w+|@\w+|-{3,}[ \t]*$)", re.MULTILINE)
#: A line that could be structure of a style other than Google's.
_OTHER_STYLES = re.compile(r"^[ \t]*(?:[:@]|-{3,}[ \t]*$|\.\.[ \t])", re.MULTILINE)


@record
class Documentation:
    """A docstring, read."""

    #: The text before the sections; empty if there is none.
    description: str = ""
    #: What each parameter means, by its name.
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: object) -> Documentation:
    """A docstring in Google, NumPy or Sphinx style (PEP 257 for its indentation).

    Args:
        text: A function's `__doc__`; anything but text is no docstring.
    """
    if not isinstance(text, str):
        return Documentation()
    from inspect import cleandoc

    text = cleandoc(text)
    if not _STRUCTURE.search(text):
        return Documentation(text.strip())
    try:
        return _documentation(_parsed(text))
    except Exception:  # a docstring isn't a reason to refuse a tool
        return Documentation(text.strip())


def _parsed(text: str) -> Docstring:
    """The docstring, parsed: in each style, which takes four times as long, only if it could be of another than Google's."""
    from docstring_parser import DocstringStyle, ParseError, parse

    if not _OTHER_STYLES.search(text):
        try:
            return parse(text, DocstringStyle.GOOGLE)
        except ParseError:
            pass
    return parse(text)


def _documentation(parsed: Docstring) -> Documentation:
    between = "\n\n" if parsed.blank_after_short_description else "\n"
    parts = [part.strip() for part in (parsed.short_description, parsed.long_description) if part]
    parameters = {each.arg_name: each.description.strip() for each in parsed.params if each.description}
    return Documentation(between.join(parts), parameters)
