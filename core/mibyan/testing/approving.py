"""`ApprovalRecorder`: answers what needs approval, and keeps what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mibyan.approvals.requests import ApprovalRequest
    from mibyan.runtime import Runtime

__tracebackhide__ = True  # a failing test shows its own lines


class ApprovalRecorder:
    """The approval channel of a runtime: it gives each request the same answer.

    Args:
        runtime: The runtime; a channel that it had is replaced.
        answer: `once`, `session`, `always` or `deny`.

    Examples:
        `words` is the plugin of `Workbench`'s example; the host has a rule of its own.

        >>> import mibyan
        >>> words.runtime.add_hook("pre_tool_call", lambda tool_name: mibyan.Ask("people may run"))
        >>> approvals = ApprovalRecorder(words.runtime, "deny")
        >>> words.runtime.execute(mibyan.ToolCall("shout", {"text": "fire"})).status
        'denied'
        >>> approvals.last.reason
        'people may run'
        >>> approvals.answer = "once"
        >>> words.runtime.execute(mibyan.ToolCall("shout", {"text": "fire"})).status
        'ok'
    """

    def __init__(self, runtime: Runtime, answer: str) -> None:
        self._approvals = runtime.approvals
        #: What is answered from now on: `once`, `session`, `always` or `deny`.
        self.answer = answer
        #: What was asked, oldest first.
        self.requests: list[ApprovalRequest] = []
        self._approvals.notify(self._told)

    @property
    def last(self) -> ApprovalRequest:
        """The last request.

        Raises:
            AssertionError: Nothing was asked.
        """
        if not self.requests:
            raise AssertionError("nothing has asked for approval")
        return self.requests[-1]

    def _told(self, request: ApprovalRequest) -> None:
        self.requests.append(request)
        self._approvals.resolve(request.id, self.answer)

    def __len__(self) -> int:
        return len(self.requests)
