"""`ApprovalRecorder`: answers what needs approval, and keeps what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mibyan.approvals.broker import ApprovalRequest
    from mibyan.runtime import Runtime


class ApprovalRecorder:
    """The approval channel of a runtime: it gives each request the same answer.

    Args:
        runtime: The runtime; a channel that it had is replaced.
        answer: `once`, `session`, `always` or `deny`.
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
