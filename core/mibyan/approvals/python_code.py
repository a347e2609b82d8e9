"""`evaluate_code`: the verdict about a Python script (terminal.X2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mibyan.approvals.evaluate import evaluate_command
from mibyan.approvals.kept import KeptVerdicts
from mibyan.approvals.python.rules import PYTHON_RULES
from mibyan.approvals.rules.book import RULES
from mibyan.approvals.verdict import LEVELS, CommandContext, Finding, Verdict, worst
from mibyan.records import replace

if TYPE_CHECKING:
    import ast

#: Characters of a script, and nodes of its syntax tree, beyond which it isn't judged but asked about.
_LONGEST: Final = 200_000
_MOST_NODES: Final = 30_000
#: Scripts in scripts in scripts.
_DEEPEST: Final = 3
_DEFAULT: Final = CommandContext()
_kept = KeptVerdicts(128, 50_000)


def evaluate_code(source: str, context: CommandContext | None = None) -> Verdict:
    """Judge a Python script by its syntax tree; nothing of it is run.

    Aliases, imports and texts that are put together are followed, shell commands in it are judged by `evaluate_command`.
    What a script does through a name that can't be seen is `dangerous`, never `safe`; so is one that can't be parsed.
    Code that sets out to hide what it does can do so all the same: a verdict is no sandbox.

    Args:
        source: The script.
        context: Where it would run; `cwd` is the workspace.

    Returns:
        The verdict with every finding, the worst first; spans are in characters of `source`.

    Raises:
        TypeError: `source` isn't a text.
    """
    if not isinstance(source, str):
        msg = f"A script is a text, not {type(source).__name__}."
        raise TypeError(msg)
    key = (source, context or _DEFAULT)
    found = _kept.get(key)
    if found is None:
        found = _judged(source, key[1], 0)
        _kept.keep(key, found)
    return found


def _judged(source: str, context: CommandContext, depth: int) -> Verdict:
    judgement = _Judgement(source, context, depth)
    judgement.judge()
    order = sorted(judgement.findings, key=lambda one: (-LEVELS.index(one.level), one.span, one.id))
    return Verdict(worst(one.level for one in order), tuple(order), inner=tuple(judgement.commands))


class _Judgement:
    """One script being judged."""

    def __init__(self, source: str, context: CommandContext, depth: int) -> None:
        self._source = source
        self._context = context
        self._depth = depth
        self._starts: list[int] | None = None
        self.findings: dict[Finding, None] = {}
        #: The shell commands in it, as far as they are known.
        self.commands: dict[str, None] = {}

    def judge(self) -> None:
        whole = (0, len(self._source))
        if len(self._source) > _LONGEST:
            self._note("unparsable", whole, "it is too long to be judged")
            return
        try:
            tree = self._tree()
            if tree is None:
                self._note("unparsable", whole, "there is too much in it to be judged")
            else:
                self._read(tree)
        except SyntaxError as error:
            self._note("unparsable", whole, f"{error.msg} (line {error.lineno})")
        except (ValueError, MemoryError, RecursionError) as error:
            self._note("unparsable", whole, str(error) if isinstance(error, ValueError) else "it is nested too deeply")
        except Exception as error:  # A fault of the judge's own must not let a script through.
            self._note("unparsable", whole, f"it can't be judged ({type(error).__name__})")

    def _tree(self) -> ast.AST | None:
        import ast
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that aren't, and the like
            tree = ast.parse(self._source)
        count = sum(1 for _ in zip(ast.walk(tree), range(_MOST_NODES + 1), strict=False))
        return tree if count <= _MOST_NODES else None

    def _read(self, tree: ast.AST) -> None:
        from mibyan.approvals.python.reader import Reader

        for rule, node in Reader(tree, self._context, self._command, self._code).findings():
            self._note(rule, self._span(node))

    def _command(self, text: str, node: ast.AST) -> None:
        from mibyan.approvals.shell.values import as_code

        code = as_code(text)
        self.commands[code] = None
        self._take(evaluate_command(code, self._context), node)

    def _code(self, text: str, node: ast.AST) -> None:
        if self._depth >= _DEEPEST:
            self._note("opaque_exec", self._span(node))
        else:
            verdict = _judged(text, self._context, self._depth + 1)
            self.commands.update(dict.fromkeys(verdict.inner))
            self._take(verdict, node)

    def _take(self, verdict: Verdict, node: ast.AST) -> None:
        """What was found inside, at the place where it stands here."""
        span = self._span(node)
        self.findings.update((replace(finding, span=span), None) for finding in verdict.findings)

    def _note(self, rule_id: str, span: tuple[int, int], detail: str = "") -> None:
        rule = PYTHON_RULES.get(rule_id) or RULES[rule_id]
        if self._context.isolated and rule.filesystem:
            return
        description = f"{rule.description}: {detail}" if detail else rule.description
        self.findings[Finding(rule.id, rule.level, description, rule.category, span)] = None

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._offset(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
        end = self._offset(getattr(node, "end_lineno", None) or 1, getattr(node, "end_col_offset", None) or 0)
        return begin, max(begin, end)

    def _offset(self, line: int, column: int) -> int:
        """The position in characters of a line and a column in bytes of UTF-8."""
        if self._starts is None:
            self._starts = _line_starts(self._source)
        start = self._starts[min(line, len(self._starts)) - 1]
        text = self._source[start : start + column]
        if text.isascii():
            return start + column
        return start + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))


def _line_starts(source: str) -> list[int]:
    """Where each line begins, as Python counts lines."""
    import re

    return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", source))]
