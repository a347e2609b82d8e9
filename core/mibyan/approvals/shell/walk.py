"""`Walker`: what a script runs, in order: its commands with their words, streams, directory and variables.

Nothing is run. Where a branch may be taken or not, both are walked; a loop's body is walked for each word that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.approvals.shell.call import Call
from mibyan.approvals.shell.nodes import assigned_names, succeeds
from mibyan.approvals.shell.values import NOTHING, SILENCE, UNKNOWN, Arg, Data, as_code, joined
from mibyan.approvals.shell.words import MAX_TEXT, Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mibyan.approvals.shell.parser import Parser
    from mibyan.approvals.shell.scope import Scope

#: Words of a loop that its body is walked for.
_MOST_ROUNDS: Final = 16
#: Commands that are looked at in all, and code inside of code.
_MOST_CALLS, _MOST_DEPTH = 20_000, 40


class TooMuchError(Exception):
    """There is more in the script than is looked at."""


class Walker:
    """Walks the code of one command.

    Args:
        parser: Parses it.
        perform: Judges a simple command, and tells what it writes.
        define: Judges the definition of a function.
        writes: Judges that something is written to a file.
    """

    def __init__(
        self,
        parser: Parser,
        perform: Callable[[Call], Data],
        define: Callable[[str, dict[str, Any], tuple[int, int]], None],
        writes: Callable[[Call], None],
    ) -> None:
        self._parser = parser
        self._perform = perform
        self._define = define
        self._writes = writes
        self._left = _MOST_CALLS

    def code(self, text: str, origin: Call, span: tuple[int, int] | None, stdin: Data | None = None) -> Data:
        """Walk code.

        Args:
            text: The code.
            origin: The call that runs it; its scope is the code's.
            span: Where it stands in the whole; `None`: it is the whole.
            stdin: Its standard input, if it isn't the call's.

        Raises:
            UnparsableError: It can't be read.
            TooMuchError: There is too much of it.
        """
        if origin.depth > _MOST_DEPTH:
            raise TooMuchError
        tree = self._parser.parse(text)
        return _Script(self, origin, span).statements(tree.get("Stmts", ()), origin.scope, stdin or origin.stdin)

    def expand_again(self, text: str, call: Call, span: tuple[int, int]) -> None:
        """Walk what runs in the substitutions of a text that the shell expands once more."""
        quoted = as_code(text).replace("\\", "\\\\").replace('"', '\\"')
        self.code(f': "{quoted}"', call.inner(call.args, scope=call.scope.copy()), span)

    def call_function(self, call: Call) -> Data:
        """Walk a function's body with a call's arguments."""
        body = call.scope.functions[call.name]
        if call.depth > 8:
            return Data()
        inner = call.inner(call.args, via=call.via)
        bare, call.scope.bare = call.scope.bare, False
        kept, call.scope.positional = call.scope.positional, [arg.text for arg in call.args[1:]]
        try:
            return _Script(self, inner, call.span).statement(body, call.scope, call.stdin)
        finally:
            call.scope.positional, call.scope.bare = kept, bare

    def perform(self, call: Call) -> Data:
        """Judge a simple command, and tell what it writes."""
        self._left -= 1
        if self._left < 0:
            raise TooMuchError
        return self._perform(call)


class _Script:
    """The statements of one piece of code."""

    def __init__(self, walker: Walker, origin: Call, span: tuple[int, int] | None) -> None:
        self._walker = walker
        self._origin = origin
        self._span = span

    def statements(self, nodes: Iterable[dict[str, Any]], scope: Scope, stdin: Data) -> Data:
        return joined([self.statement(node, scope, stdin) for node in nodes])

    def statement(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:
        if node.get("Background"):
            scope = scope.copy()
        words = self._words(scope)
        redirections = node.get("Redirs") or ()
        stdin, outputs, into = self._redirected(redirections, words, stdin)
        command = node.get("Cmd")
        if command is None:
            written = stdin  # `$(<file)`
            self._note_writes(outputs, scope)
        else:
            written = self._command(command, scope, stdin, outputs)
        more = any(one.get("Op") in {">>", "&>>"} for one in redirections)
        for target in outputs:
            scope.put(scope.path(target.text), written, more=more)
        return SILENCE if into else written

    def _words(self, scope: Scope, written: Data = NOTHING) -> Words:
        def substitute(node: dict[str, Any]) -> Data:
            # What `>(…)` reads is what the command writes, which most often is what it reads.
            given = (written if written.given else Data()) if node.get("Op") == ">(" else NOTHING
            return self.statements(node.get("Stmts") or (), scope.copy(), given)

        def evaluate(text: str) -> None:
            span = self._span or (0, 0)
            self._walker.expand_again(text, self._made((), scope, NOTHING), span)

        return Words(scope, substitute, self._span, evaluate)

    def _redirected(
        self, nodes: Iterable[dict[str, Any]], words: Words, stdin: Data
    ) -> tuple[Data, tuple[Arg, ...], bool]:
        """The standard input after redirections, the files that are written, and whether the standard output is one."""
        outputs, into = [], False
        for node in nodes:
            operator = node.get("Op", "")
            if operator in {"<<", "<<-"}:
                stdin = Data(_document(node, words))
                continue
            target = words.single(node.get("Word"))
            if operator == "<<<":
                stdin = Data(target.text + "\n", target.origins)
            elif operator == "<":
                scope = words._scope
                stdin = (
                    target.data or scope.files.get(scope.path(target.text)) or Data(None, _read_origins(target, scope))
                )
            elif operator == "<&" or (operator == ">&" and (target.text.isdigit() or target.text == "-")):
                continue
            else:
                outputs.append(target)
                into = into or node.get("N", {}).get("Value", "1") == "1"
        return stdin, tuple(outputs), into

    def _command(self, node: dict[str, Any], scope: Scope, stdin: Data, outputs: tuple[Arg, ...]) -> Data:
        kind = node.get("Type")
        if kind == "CallExpr":
            return self._call(node, scope, stdin, outputs)
        self._note_writes(outputs, scope)
        walk = getattr(self, f"_walk_{kind}", None)
        if walk is None:
            self._words(scope).look_into(node)
            return SILENCE
        written: Data = walk(node, scope, stdin)
        return written

    def _note_writes(self, outputs: tuple[Arg, ...], scope: Scope) -> None:
        if outputs:
            self._walker._writes(self._made((), scope, NOTHING, outputs=outputs))

    def _made(self, args: Iterable[Arg], scope: Scope, stdin: Data, **rest: Any) -> Call:
        origin = self._origin
        return Call(tuple(args), scope, stdin, via=origin.via, contained=origin.contained, depth=origin.depth, **rest)

    # Commands ----------------------------------------------------------------------------------------------------

    def _call(self, node: dict[str, Any], scope: Scope, stdin: Data, outputs: tuple[Arg, ...]) -> Data:
        words = self._words(scope, stdin)
        args = [arg for word in node.get("Args") or () for arg in words.fields(word)]
        given = dict(self._assigned(one, words, scope, keep=not args) for one in node.get("Assigns") or ())
        call = self._made(args, scope, stdin, outputs=outputs, environment=given)
        if not args and not given:
            self._note_writes(outputs, scope)
            return SILENCE
        return self._walker.perform(call)

    def _assigned(self, node: dict[str, Any], words: Words, scope: Scope, *, keep: bool) -> tuple[str, Arg]:
        name = node.get("Name", {}).get("Value", "")
        if "Array" in node:
            items = [arg for one in node["Array"].get("Elems") or () for arg in words.fields(one.get("Value") or {})]
            value: Any = [arg.text for arg in items]
            arg = Arg(" ".join(value))
        else:
            arg = words.single(node.get("Value")) if node.get("Value") else Arg("")
            value = arg.text
        if node.get("Append"):
            before = scope.get(name)
            same = isinstance(before, type(value)) and len(before) + len(value) < MAX_TEXT
            value = before + value if same else UNKNOWN
        if "Index" in node:
            words.look_into(node["Index"], arithmetic=True)
            value = UNKNOWN
        if keep and name:
            scope.set(name, value, arg.origins)
        return name, arg

    def _walk_DeclClause(self, node: dict[str, Any], scope: Scope, _stdin: Data) -> Data:  # noqa: N802 - shfmt's name
        words, flags = self._words(scope), ""
        for one in node.get("Args") or ():
            if one.get("Name") and not one.get("Naked"):
                name, arg = self._assigned(one, words, scope, keep=True)
                if "n" in flags and arg.text.isidentifier():
                    scope.references[name] = arg.text
                if "i" in flags:
                    words.expand_again(arg.text)
            elif one.get("Value"):
                # A word that is an assignment only once it is expanded: `export "A=b"`.
                arg = words.single(one["Value"])
                flags += arg.text if arg.text.startswith("-") else ""
                words.expand_again(arg.text)
                name, equals, _ = arg.text.partition("=")
                if not equals:
                    continue
                arg = arg.after(f"{name}=")
                scope.set(name.removesuffix("+"), UNKNOWN if name.endswith("+") else arg.text, arg.origins)
            else:
                words.look_into(one)
                continue
            self._walker.perform(self._made((), scope, NOTHING, environment={name: arg}))
        return SILENCE

    def _walk_BinaryCmd(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        chain: list[tuple[str, dict[str, Any]]] = []
        left: dict[str, Any] = {"Cmd": node}
        while (left.get("Cmd") or {}).get("Type") == "BinaryCmd" and not left.get("Redirs"):
            chain.append((left["Cmd"].get("Op", ""), left["Cmd"]["Y"]))
            left = left["Cmd"]["X"]
        chain.reverse()
        piped = bool(chain) and chain[0][0] in {"|", "|&"}
        written = [self.statement(left, scope.copy() if piped else scope, stdin)]
        #: The state if all that follows `&&` so far has run.
        branch = scope
        for operator, right in chain:
            if operator in {"|", "|&"}:
                written[-1] = self.statement(right, branch.copy(), written[-1])
            elif operator == "||":
                other = branch.copy()
                written.append(self.statement(right, other, stdin))
                branch.settle(other)
            else:
                branch = scope.copy() if branch is scope and not succeeds(left) else branch
                written.append(self.statement(right, branch, stdin))
        if branch is not scope:
            scope.settle(branch)
        return joined(written)

    def _walk_Block(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        return self.statements(node.get("Stmts") or (), scope, stdin)

    def _walk_Subshell(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        return self.statements(node.get("Stmts") or (), scope.copy(), stdin)

    def _walk_IfClause(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        written = [self.statements(node.get("Cond") or (), scope, stdin)]
        branches = []
        part: dict[str, Any] | None = node
        while part is not None:
            branches.append(scope.copy())
            if part is not node:
                written.append(self.statements(part.get("Cond") or (), branches[-1], stdin))
            written.append(self.statements(part.get("Then") or (), branches[-1], stdin))
            part = part.get("Else")
        scope.settle(*branches)
        return joined(written)

    def _walk_WhileClause(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        condition = self.statements(node.get("Cond") or (), scope, stdin)
        branch = scope.copy()
        body = self.statements(node.get("Do") or (), branch, stdin)
        if branch.differs(scope):
            self.statements(node.get("Do") or (), branch, stdin)
        scope.settle(branch)
        return joined([condition, body, Data()])

    def _walk_ForClause(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        loop, words, body = node.get("Loop") or {}, self._words(scope), node.get("Do") or ()
        if loop.get("Type") != "WordIter":
            words.look_into(loop, arithmetic=True)
            branch = scope.copy()
            written = [self.statements(body, branch, stdin), Data()]
            if branch.differs(scope):
                self.statements(body, branch, stdin)
            scope.settle(branch)
            return joined(written)
        name = loop.get("Name", {}).get("Value", "")
        items = [arg.text for word in loop.get("Items") or () for arg in words.fields(word)]
        if not loop.get("Items") or len(items) > _MOST_ROUNDS:
            items = [*items[:_MOST_ROUNDS], UNKNOWN]
        written = []
        branch = scope.copy()
        for item in items or [UNKNOWN]:
            branch.set(name, item)
            written.append(self.statements(body, branch, stdin))
        scope.settle(branch)
        return joined(written)

    def _walk_CaseClause(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        words = self._words(scope)
        words.look_into(node.get("Word"))
        branches, written = [], []
        for item in node.get("Items") or ():
            words.look_into(item.get("Patterns"))
            branches.append(scope.copy())
            written.append(self.statements(item.get("Stmts") or (), branches[-1], stdin))
        scope.settle(*branches)
        return joined(written)

    def _walk_FuncDecl(self, node: dict[str, Any], scope: Scope, _stdin: Data) -> Data:  # noqa: N802
        name, body = node.get("Name", {}).get("Value", ""), node.get("Body") or {}
        self._walker._define(name, body, self._words(scope).span(node))
        inner = scope.copy()
        inner.positional, inner.bare = None, False
        self.statement(body, inner, Data())
        scope.functions[name] = body
        scope.doubtful.discard(name)
        return SILENCE

    def _walk_TimeClause(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        statement = node.get("Stmt")
        if not statement:
            return SILENCE
        words = (statement.get("Cmd") or {}).get("Args")
        if words and self._words(scope).text(words[0]).startswith("-"):
            # `time -f …` is the program, as it is where the keyword isn't known.
            program = {
                "Parts": [{"Type": "Lit", "Value": "time"}],
                "Pos": node.get("Pos", {}),
                "End": words[0].get("Pos", {}),
            }
            command = {**statement["Cmd"], "Args": [program, *words]}
            statement = {**statement, "Cmd": command}
        return self.statement(statement, scope, stdin)

    def _walk_ArithmCmd(self, node: dict[str, Any], scope: Scope, _stdin: Data) -> Data:  # noqa: N802
        words = self._words(scope)
        words.look_into([node.get("X"), node.get("Exprs")], arithmetic=True)
        for name in assigned_names([node.get("X"), node.get("Exprs")]):
            scope.set(name, UNKNOWN)
        return SILENCE

    _walk_LetClause = _walk_ArithmCmd  # noqa: N815

    def _walk_TestClause(self, node: dict[str, Any], scope: Scope, _stdin: Data) -> Data:  # noqa: N802
        self._words(scope).look_into(node.get("X"), arithmetic=True)
        return SILENCE

    def _walk_CoprocClause(self, node: dict[str, Any], scope: Scope, stdin: Data) -> Data:  # noqa: N802
        self.statement(node.get("Stmt") or {}, scope.copy(), stdin)
        return SILENCE


def _document(node: dict[str, Any], words: Words) -> str:
    """The text of a here-document."""
    body, delimiter = node.get("Hdoc") or {}, node.get("Word") or {}
    raw = any(part.get("Type") != "Lit" or "\\" in part.get("Value", "") for part in delimiter.get("Parts", ()))
    text = (
        "".join(part.get("Value", "") for part in body.get("Parts", ()))
        if raw
        else words.single(body, quoted=True).text
    )
    return "".join(line.lstrip("\t") for line in text.splitlines(keepends=True)) if node.get("Op") == "<<-" else text


def _read_origins(target: Arg, scope: Scope) -> frozenset[str]:
    from mibyan.approvals.paths import read_origins

    return read_origins(scope.path(target.text)) | target.origins
