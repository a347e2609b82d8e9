"""`Judge`: the findings about one command, from the commands that it would run (terminal.J2, J3)."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from mibyan.approvals import executors, streams, wrappers
from mibyan.approvals.code import Code
from mibyan.approvals.rules import (
    data,
    disks,
    files,
    git,
    machine,
    network,
    permissions,
    services,
    system,
    windows,
    writing,
)
from mibyan.approvals.rules.book import RULES
from mibyan.approvals.shell.builtins import take_effect
from mibyan.approvals.shell.call import Call
from mibyan.approvals.shell.options import asks_for_help
from mibyan.approvals.shell.parser import UnparsableError
from mibyan.approvals.shell.scope import Scope
from mibyan.approvals.shell.values import DECODED, NETWORK, NOTHING, SILENCE, Data
from mibyan.approvals.shell.walk import TooMuchError, Walker
from mibyan.approvals.verdict import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.approvals.executed import Executed
    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.parser import Parser
    from mibyan.approvals.verdict import CommandContext, Level

#: The checks of each program.
_CHECKS: Final[dict[str, list[Checker]]] = {}
for _area in (files, writing, permissions, system, disks, machine, git, services, data, windows):
    for _name, _check in _area.CHECKS.items():
        _CHECKS.setdefault(_name, []).append(_check)

#: Programs with commands of their own, of which `--help` may come after the command's name.
_WITH_COMMANDS: Final = frozenset((
    *git.CHECKS, *services.CHECKS, *machine.CHECKS, "mibyan", "diskutil", "cryptsetup", "zpool", "zfs", "btrfs", "nvme", "rails", "prisma",
))  # fmt: skip
#: `python3.11` and its like, whose checks are those of `python3`.
_VERSION: Final = re.compile(r"^((?:python|pip|php|ruby|perl|node)\d*)(?:\.\d+)+$")
#: What stands in a name and isn't seen, beside control characters.
_UNSEEN: Final = frozenset("\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u2800\u3164\ufeff\uffa0")


class Judge:
    """Judges one command as it is written.

    Args:
        context: Where it would run.
        parser: Reads it.
    """

    def __init__(self, context: CommandContext, parser: Parser) -> None:
        self._context = context
        self._walker = Walker(parser, self._perform, self._define, self._written)
        #: By rule and place.
        self.findings: dict[tuple[str, tuple[int, int]], Finding] = {}
        self._length = 0

    def judge(self, text: str) -> None:
        """Find what a command would do; spans are in bytes of its UTF-8."""
        scope = Scope(self._context.cwd)
        scope.home = self._context.home
        scope.bare = True
        self._length = len(text.encode("utf-8", "surrogatepass"))
        call = Call((), scope, NOTHING)
        try:
            self._walker.code(text, call, None)
        except UnparsableError as error:
            self._note("unparsable", (0, self._length), detail=error.message)
        except (TooMuchError, RecursionError):
            self._note("unparsable", (0, self._length), detail="there is too much in it to be judged")

    # What the walker asks ----------------------------------------------------------------------------------------

    def _perform(self, call: Call) -> Data:
        if call.args and call.is_opaque:
            self._note_opaque(call)
            self._note_all(writing.redirections(call), call)
            return Data(None, call.stdin.origins)
        if call.args and not call.via and call.args[0].text in call.scope.functions:
            self._note_all(writing.redirections(call), call)
            answer = self._walker.call_function(call)
            if call.name not in call.scope.doubtful:
                return answer
        self._check(call)
        if call.args and not call.via:
            self._note_source(call)
        answer = self._run_inner(call)
        take_effect(call)
        return answer

    def _define(self, name: str, body: dict[str, Any], span: tuple[int, int]) -> None:
        if _forks(name, body):
            self._note("fork_bomb", span)

    def _written(self, call: Call) -> None:
        self._note_all(writing.redirections(call), call)

    # Judging -----------------------------------------------------------------------------------------------------

    def _note_opaque(self, call: Call) -> None:
        if not self._note_source(call):
            self._note("opaque_exec", call.args[0].span)

    def _note_source(self, call: Call) -> bool:
        """Note where a command's name comes from, if that is from afar."""
        first = call.args[0]
        rules = [
            rule for origin, rule in ((NETWORK, "remote_exec"), (DECODED, "decode_exec")) if origin in first.origins
        ]
        for rule in rules:
            self._note(rule, first.span)
        return bool(rules)

    def _check(self, call: Call) -> None:
        self._note_all(writing.redirections(call), call)
        if not call.args:
            return
        name = call.name
        if any(_is_unseen(char) for char in call.args[0].text):
            self._note("invisible_chars", call.args[0].span)
        helps = not wrappers.is_wrapper(name) and asks_for_help(call.args[1:], anywhere=name in _WITH_COMMANDS)
        if not helps:
            self._note_all(self._found(call, name), call)
        self._own_rules(call)

    @staticmethod
    def _found(call: Call, name: str) -> Iterator[Found]:
        for check in _CHECKS.get(_VERSION.sub(r"\1", name)) or _CHECKS.get(name.lower()) or []:
            yield from check(call)
        if disks.is_maker(name):
            yield from disks.make(call)
        yield from network.check(call)
        yield from network.fetched_program(call)
        yield from data.statement(call)
        yield from machine.init_script(call)
        yield from windows.cmdlet(call)

    def _own_rules(self, call: Call) -> None:
        for rule in self._context.rules:
            if rule.matches(" ".join(arg.text for arg in call.args)):
                self._add(Finding(rule.id, rule.level, rule.description, rule.category, call.span))

    def _run_inner(self, call: Call) -> Data:
        """Look at what a call runs in turn; what it writes in the end."""
        if not call.args:
            executed = executors.executed(call)
            self._run_executed(call, executed)
            return SILENCE
        answers: list[Data] = []
        for inner in wrappers.inner_commands(call):
            if isinstance(inner, Code):
                answers.append(self._run_code(inner))
            else:
                answers.append(self._walker.perform(inner))
        executed = executors.executed(call)
        if call.name == "git":
            executed.add(git.executed(call))
        helps = asks_for_help(call.args[1:2], anywhere=True)
        if not helps:
            self._run_executed(call, executed, answers)
        own = streams.written(call)
        if not answers:
            return own
        text = answers[0].text if len(answers) == 1 else None
        return Data(text, own.origins.union(*(answer.origins for answer in answers)))

    def _run_executed(self, call: Call, executed: Executed, answers: list[Data] | None = None) -> None:
        self._note_all(executed.rules, call)
        for code in executed.codes:
            answer = self._run_code(code)
            if answers is not None:
                answers.append(answer)

    def _run_code(self, code: Code) -> Data:
        try:
            return self._walker.code(code.text, code.call, code.span, code.stdin)
        except UnparsableError as error:
            self._note("unparsable", code.span, detail=error.message)
            return Data()

    # Notes -------------------------------------------------------------------------------------------------------

    def _note_all(self, found: Iterable[Found], call: Call) -> None:
        for rule, span in found:
            self._note(rule, span, contained=call.contained)

    def _note(self, rule_id: str, span: tuple[int, int], *, contained: bool = False, detail: str = "") -> None:
        rule = RULES[rule_id]
        if self._context.isolated and rule.filesystem:
            return
        level: Level = "dangerous" if contained and rule.level == "hardline" else rule.level
        description = f"{rule.description}: {detail}" if detail else rule.description
        self._add(Finding(rule.id, level, description, rule.category, span))

    def _add(self, finding: Finding) -> None:
        self.findings.setdefault((finding.id, finding.span), finding)


def _is_unseen(char: str) -> bool:
    return char > "~" and (char in _UNSEEN or unicodedata.category(char) in {"Cf", "Cc", "Co", "Cn", "Zl", "Zp"})


def _forks(name: str, body: dict[str, Any]) -> bool:
    """Whether a function runs itself twice in a pipe, or in the background."""
    todo: list[Any] = [body]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            if (
                node.get("Type") == "BinaryCmd"
                and node.get("Op") in {"|", "|&"}
                and _calls(name, node.get("X"))
                and _calls(name, node.get("Y"))
            ):
                return True
            if node.get("Background") and _calls(name, node.get("Cmd")):
                return True
            todo += [value for value in node.values() if isinstance(value, dict | list)]
    return False


def _calls(name: str, node: Any) -> bool:
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, list):
            todo += one
        elif isinstance(one, dict):
            if one.get("Type") == "CallExpr" and one.get("Args") and _literal(one["Args"][0]) == name:
                return True
            todo += [value for value in one.values() if isinstance(value, dict | list)]
    return False


def _literal(word: dict[str, Any]) -> str:
    return "".join(part.get("Value", "") for part in word.get("Parts", ()) if part.get("Type") in {"Lit", "SglQuoted"})
