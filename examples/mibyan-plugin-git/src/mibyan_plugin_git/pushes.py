"""The policy: what happens when a command would push.

It keeps a model from a mistake, and a person informed. It reads commands as text, so whoever wants to can hide a push
from it: what must never happen has to be refused where it is pushed to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import mibyan

#: What may stand between two words, and what belongs to the same simple command.
_GAP, _SAME = r"(?:\s|\\\n)+", r"(?:\\\n|[^;&|\n])*"
#: `git`, maybe with options of its own, and `push`.
_PUSH = re.compile(rf"\bgit\b(?:{_GAP}(?:-[cC]{_GAP}\S+|-\S+))*{_GAP}push\b(?P<rest>{_SAME})")
#: What overwrites history there: `--force` and its like, `-f` among short options, a refspec with a plus.
_FORCED = re.compile(r"(?<!\S)['\"]?(?:--force|--mirror|--delete|-[a-z]*[fd][a-z]*(?!\S)|\+\S|:\S)")


class PushPolicy:
    """What the plugin's configuration says of pushes.

    Args:
        config: `push` and `force_push`, each `allow`, `ask` or `block`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._push: str = config.get("push", "ask")
        self._force_push: str = config.get("force_push", "block")

    def pre_tool_call(self, tool_name: str, args: Mapping[str, Any]) -> mibyan.Block | mibyan.Ask | None:
        """Judge the commands of the terminal; every other call may pass."""
        command = args.get("command")
        if tool_name != "terminal" or not isinstance(command, str):
            return None
        pushes = [found["rest"] for found in _PUSH.finditer(command)]
        if any(_FORCED.search(rest) for rest in pushes):
            return _answer(self._force_push, "It would overwrite or delete what was pushed.")
        return _answer(self._push, "It would push commits.") if pushes else None


def _answer(wanted: str, why: str) -> mibyan.Block | mibyan.Ask | None:
    if wanted == "block":
        return mibyan.Block(f"{why} This installation doesn't let a model do that.")
    return mibyan.Ask(why, key="git-push") if wanted == "ask" else None
