"""What is asked and answered: `ApprovalRequest`, what a person sees; `Approval`, what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.approvals.verdict import Finding

#: The answers that a person can give; anything else is a denial.
ANSWERS: Final = ("once", "session", "always", "deny")


@record
class ApprovalRequest:
    """A question to a person."""

    id: str
    session_id: str
    tool_name: str
    #: What would be done, as it would be done: secrets masked, hidden characters visible, the middle of a long one folded.
    text: str
    #: All that was found about a command: `{"id", "level", "description", "category", "span", "granted", "excerpt"}` in JSON
    #: types; `granted`: whether it alone wouldn't be asked; `excerpt`: where it was found, `None` if that can't be shown.
    findings: tuple[Mapping[str, Any], ...] = ()
    #: What hooks, or the tool itself, say why they ask.
    reason: str = ""
    #: Moment of `time.time()` after which silence is a denial.
    expires: float = 0.0
    #: SHA-256 of what was asked, exactly: the tool's name and all arguments.
    digest: str = ""
    #: What `always` would write into `command_allowlist`; empty: it can't be kept, and holds for the session.
    lasting: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            "id": self.id, "session_id": self.session_id, "tool_name": self.tool_name, "text": self.text,
            "findings": [dict(finding) for finding in self.findings], "reason": self.reason, "expires": self.expires,
            "digest": self.digest, "lasting": list(self.lasting),
        }  # fmt: skip


@record
class Approval:
    """What became of a question."""

    granted: bool
    #: `once`, `session`, `always`, `smart`, `deny`, `timeout`, `no_channel` or `cancelled`.
    how: str
    #: For the model, when it wasn't granted.
    message: str = ""


@record(frozen=False, eq=False)
class Question:
    """A request of one caller, with what only the runtime knows of it."""

    request: ApprovalRequest
    #: Stands for the conversation: its grants are its own.
    session: Any = None
    #: What needs a yes, all of it: rules' findings, and the questions of hooks and tools as findings `plugin:key`.
    findings: tuple[Finding, ...] = ()
    #: The text that was judged; `None`: there is none.
    command: str | None = None
    #: Whether a hook or a tool itself asks for a person.
    wants_person: bool = True
    #: Whether its caller doesn't wait any more.
    is_over: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for questions that are one: of the same session, about the same bytes and the same findings."""
        request = self.request
        found = frozenset((finding.id, finding.level) for finding in self.findings)
        return id(self.session), request.session_id, request.tool_name, request.digest, request.reason, found
