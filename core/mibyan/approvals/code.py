"""`Code`: shell code that a call runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.approvals.shell.values import as_code
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.approvals.shell.call import Call
    from mibyan.approvals.shell.values import Arg, Data


@record(eq=False)
class Code:
    """Shell code that a call runs."""

    text: str
    #: The call whose scope and circumstances it has.
    call: Call
    span: tuple[int, int]
    stdin: Data | None = None


def words_as_code(call: Call, words: Sequence[Arg], **changes: object) -> list[Call | Code]:
    """Words that a program joins to the code that it runs."""
    if not words:
        return []
    span = words[0].span[0], words[-1].span[1]
    return [Code(" ".join(as_code(word.text) for word in words), call.inner(call.args, **changes), span)]
