"""Why a tool is there or isn't, as it is shown to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.cli.tables import show_fields
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.output import Output
    from mibyan.explain.answer import Answer, Claim


def print_answer(out: Output, answer: Answer) -> None:
    """The answer: its sentence, then each candidate, then what is open and what could be done."""
    out.line(one_line(answer.sentence, 1000))
    print_claims(out, answer.claims)
    left_out = {form: reason for form, reason in answer.left_out.items() if answer.state != "left_out"}
    for title, lines in (
        ("Left out of:", [f"{form}: {reason}" for form, reason in left_out.items()]),
        ("Calls of it are blocked:", answer.obstacles),
        ("What can't be known without running code:", answer.open_questions),
        ("Alike:", answer.suggestions),
        ("Where such a tool could come from:", answer.ways),
    ):
        if lines:
            out.line("\n".join(["", title, *(f"  {one_line(line, 500)}" for line in lines)]))

    for decision in answer.decisions:
        if decision.detail:
            out.line(f"\n{decision.detail}")


def print_claims(out: Output, claims: Sequence[Claim]) -> None:
    """Each candidate: who it is, what became of it, by which rule and line, and what would change it."""
    for number, claim in enumerate(claims, 1):
        out.line("")
        who = f"plugin {claim.plugin}" if claim.source else claim.plugin or "no plugin's code"
        source = f" ({claim.source})" if claim.source else ""
        out.line(f"{number}. {one_line(who, 200)}{source}: {claim.state.replace('_', ' ')}")
        show_fields(out, {
            "   tool": claim.tool, "   toolset": claim.toolset or "", "   origin": claim.origin or "",
            "   why": f"{claim.reason} ({claim.rule})", "   decided by": claim.decided_by or "",
            "   to change it": claim.fix or "",
        })  # fmt: skip
