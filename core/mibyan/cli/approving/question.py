"""The question whether something may run, as a person sees it, and what they may answer (terminal.P1, P2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.cli.approving.marking import worded, wrapped
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mibyan.approvals import ApprovalRequest

#: What may be typed, small or capital; an empty line is the default.
WORDS: Final = {
    "": "deny", "d": "deny", "deny": "deny", "n": "deny", "no": "deny",
    "o": "once", "once": "once", "y": "once", "yes": "once",
    "s": "session", "session": "session", "a": "always", "always": "always", "v": "view", "view": "view",
}  # fmt: skip
#: The worst first.
_LEVELS: Final = ("hardline", "dangerous", "safe")

#: Lines of what would run that are shown, and characters.
_LINES: Final = 30
_CHARACTERS: Final = 12_000
_INDENT: Final = "    "


class Question:
    """One request for one terminal.

    Args:
        request: What is asked.
        width: Cells of a line of the terminal; each line is broken there, and what isn't ours is set in, so that it
            can't pose as the question.
    """

    def __init__(self, request: ApprovalRequest, width: int) -> None:
        self._request = request
        self._width = width
        self._whole = False
        #: Whether something of what would run wasn't shown.
        self.is_folded = False

    def text(self) -> str:
        """All of it, without the line that is answered."""
        return "\n".join(self._lines())

    def prompt(self) -> str:
        """The line that is answered."""
        letters = f"[{'/'.join(self._letters())}] "
        return f"Allow it? {letters}" if len(letters) + 10 < self._width else letters

    def answer(self, typed: str) -> str | None:
        """What typed text means: `once`, `session`, `always`, `deny`, `view`; `None`: nothing that may be answered."""
        answer = WORDS.get(typed.strip().casefold())
        return answer if answer in self._words() else None

    def view(self) -> str:
        """Everything that would run, however long it is."""
        return "\n".join([*wrapped(self._request.text, self._width), ""])

    def again(self) -> str:
        """What is said to an answer that is none."""
        return self._own(f"That is no answer. One of: {', '.join(self._words())}.")

    def _words(self) -> list[str]:
        words = {"once": True, "session": True, "always": self._request.lasting, "deny": True, "view": self.is_folded}
        return [word for word, offered in words.items() if offered]

    def _letters(self) -> list[str]:
        return [word[0].upper() if word == "deny" else word[0] for word in self._words()]

    def _own(self, text: str, indent: str = "", hang: str = "") -> str:
        return "\n".join(worded(text, self._width, indent, hang))

    def _lines(self) -> Iterator[str]:
        request = self._request
        yield self._own(f"{one_line(request.tool_name, 100)} wants to run:")
        yield from self._folded(request.text)
        if request.findings:
            yield self._own("What was found:")
            yield from (self._own(told, _INDENT, "  ") for told in self._findings())
        if request.reason:
            yield self._own("Why you are asked:")
            yield self._own(request.reason, _INDENT)
        yield self._own("You may answer, by the word or its first letter:")
        yield from (self._own(told, "  ", _INDENT) for told in self._choices())

    def _findings(self) -> Iterator[str]:
        for finding in _worst_first(self._request.findings):
            excerpt = one_line(str(finding.get("excerpt") or ""), 120)
            # Where all of it was found needn't be told.
            where = f": {excerpt}" if excerpt and excerpt != one_line(self._request.text, 120) else ""
            yield f"{_told(finding)}{where}"

    def _choices(self) -> Iterator[str]:
        request = self._request
        yield "once: this one call"
        yield "session: also what is like it, until the session ends"
        if request.lasting:
            yield f"always: adds to command_allowlist: {', '.join(one_line(one, 200) for one in request.lasting)}"
        yield "deny: it doesn't run (so does an empty line)"
        if self.is_folded:
            yield "view: show all of it, and ask again"

    def _folded(self, text: str) -> Iterator[str]:
        """What would run, with both its ends, however long it is."""
        half = _CHARACTERS // 2
        cut = len(text) - 2 * half
        first = wrapped(text if cut <= 0 else text[:half], self._width)
        last = [] if cut <= 0 else wrapped(text[-half:], self._width)
        if cut <= 0 and len(first) <= _LINES:
            yield from first
            return
        self.is_folded = True
        end = last or first
        yield from first[: _LINES // 2]
        yield self._own(f"… not all of it: {len(text):,} characters in all …", "  ")
        yield from end[-(_LINES // 2) :]


def _worst_first(findings: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    def badness(finding: Mapping[str, Any]) -> int:
        level = finding.get("level")
        return _LEVELS.index(level) if level in _LEVELS else 1

    return sorted(findings, key=badness)


def _told(finding: Mapping[str, Any]) -> str:
    """A finding with its level and its rule."""
    told = one_line(str(finding.get("description") or finding.get("id")), 300)
    name = one_line(str(finding.get("id") or ""), 100)
    level = f"{finding['level']}: " if finding.get("level") else ""
    granted = "; granted already" if finding.get("granted") else ""
    return f"{level}{told}{f' ({name}{granted})' if name else ''}"
