"""An explanation of a command's verdict, as it is printed for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mibyan.cli.approving.marking import marked
from mibyan.cli.widths import width_of
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.cli.approving.explaining import Explanation
    from mibyan.cli.output import Output

_OUTCOMES: Final = {"runs": "it runs", "asks": "it asks before it runs", "refused": "it is refused"}
#: Characters of an excerpt.
_EXCERPT: Final = 200
#: In a pipe lines are as long as they are.
_UNBOUNDED: Final = 10**9


def print_explanation(out: Output, told: Explanation) -> None:
    """Print what was found about a command, where, and what would let it run."""
    width = width_of(out.stream) if out.is_terminal else _UNBOUNDED
    out.line("\n".join(_lines(told, width)))


def _lines(told: Explanation, width: int) -> Iterator[str]:
    yield f"{told.verdict.level}: {_OUTCOMES[told.outcome]}; {told.why}"
    yield ""
    yield from marked(told.command, [one.span for one in told.verdict.findings], width=width)
    for number, one in enumerate(told.verdict.findings, 1):
        yield ""
        yield f"{number}. {one.description}"
        yield f"   rule: {one.id} ({one.level}, {one.category})"
        yield f"   at: {one_line(told.command[slice(*one.span)], _EXCERPT)}"
        entry = told.allowed.get(one.id)
        if entry is not None:
            yield f"   allowed by: {one_line(entry.text, _EXCERPT)}, in {entry.place}"
        elif one.level == "hardline":
            yield "   allowed by: nothing can"
    if told.ways:
        yield "\nWhat would let it run:"
        for how, text in told.ways:
            yield f"  {how}: {text}"
    if told.entries:
        yield "\ncommand_allowlist:"
        yield from (f"  - {_yaml(entry)}" for entry in told.entries)


def _yaml(text: str) -> str:
    from mibyan.config.render import inline

    return inline(text)
