"""`foreground_commands`: what a command line would wait for, from its syntax (terminal.T2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.approvals.judge import Judge
from mibyan.approvals.normal import normalised
from mibyan.approvals.shell.parser import Parser
from mibyan.approvals.shell.values import UNKNOWN
from mibyan.approvals.verdict import CommandContext

if TYPE_CHECKING:
    from mibyan.approvals.shell.call import Call
    from mibyan.approvals.shell.values import Data

#: Programs that end what writes to them.
_ENDING: Final = frozenset({"head"})


def foreground_commands(command: str) -> tuple[tuple[str, ...], ...]:
    """The simple commands that a command line waits for; nothing of it is run.

    Words are expanded as far as they are known, and wrappers (`sudo`, `env`, `bash -c`) seen through. Left out is what it
    puts into the background, what `timeout` ends, and what writes to `head`.

    Args:
        command: What bash would get.

    Returns:
        Each with its words, the program's name without its folder first; none where the line can't be read.
    """
    seen = _Seen(CommandContext(), _Foreground())
    seen.judge(normalised(command))
    return tuple(dict.fromkeys(seen.commands))


class _Seen(Judge):
    """Notes what is performed."""

    def __init__(self, context: CommandContext, parser: Parser) -> None:
        super().__init__(context, parser)
        self.commands: list[tuple[str, ...]] = []

    def _perform(self, call: Call) -> Data:
        if call.args and not call.is_opaque and "timeout" not in call.via and call.name != "timeout":
            self.commands.append((call.name, *(word.replace(UNKNOWN, "") for word in call.words)))
        return super()._perform(call)


class _Foreground(Parser):
    """Reads code without what nobody waits for."""

    def parse(self, code: str) -> dict[str, Any]:
        tree = super().parse(code)
        todo: list[Any] = [tree]
        while todo:
            node = todo.pop()
            if isinstance(node, list):
                node[:] = [one for one in node if not (isinstance(one, dict) and one.get("Background"))]
                todo += node
            elif isinstance(node, dict):
                _cut(node)
                todo += [value for value in node.values() if isinstance(value, dict | list)]
        return tree


def _cut(node: dict[str, Any]) -> None:
    """Of a pipe into a program that ends what writes to it, leave that program."""
    command = node.get("Cmd")
    if isinstance(command, dict) and command.get("Type") == "BinaryCmd" and command.get("Op") in {"|", "|&"}:
        right = (command.get("Y") or {}).get("Cmd") or {}
        words = [part.get("Value") for word in right.get("Args") or () for part in (word.get("Parts") or ())[:1]]
        if words and words[0] in _ENDING:
            node["Cmd"] = right
