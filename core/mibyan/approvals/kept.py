"""`KeptVerdicts`: the verdicts of what was judged last."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mibyan.approvals.verdict import CommandContext, Verdict


class KeptVerdicts:
    """Verdicts by what was judged and where it would run; the oldest goes first.

    Args:
        most: Verdicts that are kept.
        longest: Characters of a text up to which its verdict is.
    """

    def __init__(self, most: int, longest: int) -> None:
        self._most = most
        self._longest = longest
        self._verdicts: dict[tuple[str, CommandContext], Verdict] = {}
        self._lock = threading.Lock()
        self.get = self._verdicts.get

    def keep(self, key: tuple[str, CommandContext], verdict: Verdict) -> None:
        """Keep a verdict."""
        if len(key[0]) > self._longest:
            return
        with self._lock:
            self._verdicts[key] = verdict
            if len(self._verdicts) > self._most:
                del self._verdicts[next(iter(self._verdicts))]
