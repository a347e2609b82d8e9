"""`Reader`: the findings about a script, from what its expressions refer to and what it calls (terminal.X2)."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from mibyan.approvals.python import effects
from mibyan.approvals.python.files import Files
from mibyan.approvals.python.names import UNSEEN, Names
from mibyan.approvals.rules.data import deletes
from mibyan.approvals.shell.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.approvals.python.files import Found
    from mibyan.approvals.verdict import CommandContext


#: Commands and codes in one script that are judged in turn; with more it is opaque.
_MOST_INNER: Final = 40


class Reader:
    """Reads one script.

    Args:
        tree: Its syntax tree.
        context: Where it would run.
        command: Judges shell code that is in it: `command(text, node)`.
        code: Judges Python code that is in it, likewise.
    """

    def __init__(
        self, tree: ast.AST, context: CommandContext, command: Callable[[str, ast.AST], None],
        code: Callable[[str, ast.AST], None],
    ) -> None:  # fmt: skip
        self._nodes = list(ast.walk(tree))
        self._names = Names(self._nodes, context.cwd)
        self._context = context
        self._files = Files(context)
        self._command = command
        self._code = code
        self._inner = 0
        #: The list or tuple that a name is bound to, `None` where there are several.
        self._lists: dict[str, ast.List | ast.Tuple | None] = {}
        #: Expressions that aren't looked at as references: called, or looked up in.
        self._used: set[int] = set()
        self._is_networked = False
        self._decodes = False

    def findings(self) -> Iterator[Found]:
        """Every rule that the script falls under, and where."""
        for node in self._nodes:
            self._note_use(node)
        for node in self._nodes:
            match node:
                case ast.Call():
                    yield from self._call(node)
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) | ast.Subscript(ctx=ast.Load()):
                    yield from self._reference(node)
                case ast.Import(names):
                    yield from self._imports(node, [alias.name for alias in names])
                case ast.ImportFrom(module, names):
                    yield from self._imports(node, [f"{module}.{alias.name}" for alias in names])
                case ast.While(body=body) if _is_endless(node):
                    yield from (
                        ("fork_bomb", node) for call in _calls_in(body) if "os.fork" in self._names.names(call.func)
                    )

    # What the whole script has ---------------------------------------------------------------------------------

    def _note_use(self, node: ast.AST) -> None:
        """Where references needn't be looked at, since what uses them is; and what the script has to do with."""
        match node:
            case ast.Call(func):
                self._used.add(id(func))
                if self._names.is_function(func) or set(self._names.names(func)) & {
                    "builtins.getattr",
                    "builtins.vars",
                }:
                    self._used.update(id(argument) for argument in node.args)
            case ast.Attribute(value):
                self._used.add(id(value))
            case ast.Assign(targets, value) if all(isinstance(target, ast.Name) for target in targets):
                self._used.add(id(value))
                if isinstance(value, ast.List | ast.Tuple):
                    for target in targets:
                        name = target.id  # type: ignore[attr-defined]
                        self._lists[name] = None if name in self._lists else value
            case ast.NamedExpr(_, value) | ast.AnnAssign(ast.Name(), _, value) if value is not None:
                self._used.add(id(value))
        if isinstance(node, ast.Name | ast.Attribute):
            for name in self._names.names(node):
                self._is_networked = self._is_networked or effects.NETWORK.fullmatch(name) is not None
                self._decodes = self._decodes or effects.DECODERS.fullmatch(name) is not None

    def _imports(self, node: ast.AST, modules: list[str]) -> Iterator[Found]:
        for module in modules:
            if effects.NATIVE.match(module):
                yield "python_native", node
            elif effects.COMMANDS.fullmatch(module):
                yield "python_command", node

    # References --------------------------------------------------------------------------------------------------

    def _reference(self, node: ast.Name | ast.Attribute | ast.Subscript) -> Iterator[Found]:
        """What is only named: it may be called later, by another name, with arguments that nobody sees."""
        if isinstance(node, ast.Attribute) and node.attr in effects.REFLECTION and not _is_own(node.value):
            yield "opaque_exec", node
        if isinstance(node, ast.Subscript) and self._hides(node):
            yield "opaque_exec", node
        names = self._names.names(node)
        for name in names:
            if effects.NATIVE.match(name):
                yield "python_native", node
            elif effects.UNPICKLE.fullmatch(name) and id(node) not in self._used:
                yield "python_unpickle", node
            elif effects.SOCKETS.fullmatch(name):
                yield "python_socket", node
        if id(node) in self._used:
            # An alias of a function is as bad as its call: it may be called through anything.
            if not isinstance(node, ast.Name):
                yield from self._named(node, names, passed=False)
            return
        yield from self._named(node, names, passed=True)

    def _named(self, node: ast.AST, names: list[str], *, passed: bool) -> Iterator[Found]:
        for name in names:
            if passed and name in effects.ESCAPING:
                yield "opaque_exec", node
            if effects.COMMANDS.fullmatch(name):
                yield "python_command", node
            elif passed and effects.CODE.fullmatch(name) and name != "builtins.compile":
                yield "python_eval", node
            elif passed and effects.DELETES_TREES.fullmatch(name):
                yield "recursive_delete", node
            elif passed and (name in effects.OPENS or effects.DELETES.fullmatch(name)):
                yield "python_unseen_path", node

    def _hides(self, node: ast.Subscript) -> bool:
        """Whether something is looked up by a name that isn't seen among modules or a module's names."""
        if not any(UNKNOWN in text for text in self._names.texts(node.slice)):
            return False
        for value in self._names.of(node.value):
            if value.kind == "made" and value.text in {"builtins.globals", "builtins.locals"}:
                return True
            if value.kind == "name" and (value.text == "sys.modules" or value.text in effects.ESCAPING):
                return True
        return False

    # Calls -------------------------------------------------------------------------------------------------------

    def _call(self, call: ast.Call) -> Iterator[Found]:
        names = self._names.names(call.func)
        for name in names:
            yield from self._function(name, call)
        if isinstance(call.func, ast.Attribute):
            yield from self._method(call, call.func, known=bool(names))
        if id(call) not in self._used and effects.ESCAPING.intersection(self._names.names(call)):
            yield "opaque_exec", call

    def _function(self, name: str, call: ast.Call) -> Iterator[Found]:
        first = call.args[0] if call.args else None
        if effects.COMMANDS.fullmatch(name):
            yield "python_command", call
            yield from self._run(name, call)
        elif effects.CODE.fullmatch(name):
            yield from self._evaluate(name, call, first)
        elif name in effects.IMPORTERS:
            yield from self._import(call, first)
        elif name in {"builtins.getattr", "builtins.setattr"} and len(call.args) > 1:
            yield from self._get(call)
        elif effects.UNPICKLE.fullmatch(name):
            if not (
                name.startswith("yaml.load") and any("Safe" in ast.dump(each) for each in [*call.args, *call.keywords])
            ):
                yield "python_unpickle", call
        elif name in effects.OPENS:
            yield from self._open(name, call)
        elif effects.DELETES.fullmatch(name):
            yield from self._files.delete(call, self._texts_of(call, 0, "path"))
        elif effects.DELETES_TREES.fullmatch(name):
            yield from self._files.delete_tree(call, self._texts_of(call, 0, "path"))
        elif name in {"os.kill", "os.killpg"}:
            yield ("kill_all" if _number(first) == -1 and name == "os.kill" else "process_kill"), call
        else:
            yield from self._write_by(name, call)

    def _write_by(self, name: str, call: ast.Call) -> Iterator[Found]:
        for pattern, (position, keyword) in effects.WRITES:
            if pattern.fullmatch(name):
                paths = self._texts_of(call, int(position), str(keyword))
                # A copy to a place that isn't seen is judged like a file that is written there.
                is_made = name in {"os.mkdir", "os.makedirs", "os.utime"}
                yield from self._files.write(call, paths, unseen=not is_made)
                if name in {"os.chmod", "os.lchmod"}:
                    yield from self._mode(call)
                if name in {"os.chown", "os.lchown"} or (name == "shutil.chown"):
                    yield "permissions", call
                if name in {"os.rename", "os.replace", "shutil.move"}:
                    yield from self._files.take_away(call, self._texts_of(call, 0, "src"))

    def _mode(self, call: ast.Call) -> Iterator[Found]:
        mode = _number(call.args[1] if len(call.args) > 1 else None)
        if mode is not None and (mode & 0o002 or mode & 0o6000):
            yield "permissions", call

    def _method(self, call: ast.Call, func: ast.Attribute, *, known: bool) -> Iterator[Found]:
        """A method of what is, or may be, a path; or one that runs a program whatever it is called on."""
        holders = self._names.of(func.value)
        paths = [value.text for value in holders if value.kind == "path"]
        unseen = UNSEEN in holders or any(value.kind == "text" for value in holders)
        if func.attr in effects.PATH_ONLY and unseen and not known:
            paths.append(UNKNOWN)
        if paths and func.attr in effects.PATH_DELETES:
            yield from self._files.delete(call, paths)
        elif paths and func.attr in effects.PATH_WRITES:
            yield from self._files.write(call, paths, unseen=func.attr != "mkdir")
            if (
                func.attr in {"chmod", "lchmod"}
                and (mode := _number(call.args[0] if call.args else None))
                and mode & 0o6002
            ):
                yield "permissions", call
        elif paths and func.attr in {"rename", "replace"}:
            yield from self._files.write(call, self._texts_of(call, 0, "target"), unseen=True)
        elif paths and func.attr == "open":
            yield from self._open_at(call, paths, self._mode_of(call, 0))
        elif paths and func.attr in {"read_text", "read_bytes"}:
            yield from self._read(call, paths)
        elif not known and func.attr in effects.COMMAND_METHODS:
            yield "python_command", call
        elif func.attr.startswith(effects.SAVING):
            yield from self._files.write(call, self._texts_of(call, 0, "path"), unseen=False)
        elif func.attr.startswith("execute") and any(deletes(text) for text in self._texts_of(call, 0, "sql")):
            yield "sql", call

    # Code --------------------------------------------------------------------------------------------------------

    def _run(self, name: str, call: ast.Call) -> Iterator[Found]:
        """The command that a call runs: judged if it is seen."""
        if name in {"os.fork", "os.forkpty", "pty.fork"}:
            return
        given: list[ast.expr] = list(call.args)
        if effects.SECOND.fullmatch(name) and len(given) > 1:
            given = given[1:]
        if not given:
            given = [keyword.value for keyword in call.keywords if keyword.arg in {"args", "cmd", "command"}]
        commands = self._command_lines(given, spread=effects.SPREAD.fullmatch(name) is not None)
        for command in commands:
            if not command.strip(UNKNOWN + " '"):
                yield "opaque_exec", call
            else:
                yield from self._judge(self._command, command, call)

    def _command_lines(self, given: list[ast.expr], *, spread: bool) -> list[str]:
        if not given:
            return [UNKNOWN]
        first = given[0]
        if spread:
            return [_quoted([self._names.texts(each)[0] for each in given])]
        if isinstance(first, ast.Name | ast.List | ast.Tuple | ast.BinOp):
            items = self._list_items(first)
            if items is not None:
                return [_quoted(items)]
        return self._names.texts(first)

    def _list_items(self, node: ast.expr) -> list[str] | None:
        if isinstance(node, ast.List | ast.Tuple):
            return [self._names.texts(each)[0] for each in node.elts]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._list_items(node.left), self._list_items(node.right)
            return None if left is None and right is None else [*(left or [UNKNOWN]), *(right or [UNKNOWN])]
        held = self._lists.get(node.id) if isinstance(node, ast.Name) else None
        return None if held is None else self._list_items(held)

    def _evaluate(self, name: str, call: ast.Call, first: ast.expr | None) -> Iterator[Found]:
        if name == "builtins.compile" and any(keyword.arg == "flags" for keyword in call.keywords):
            return
        yield "python_eval", call
        for text in self._names.texts(first):
            if UNKNOWN in text:
                # Where code comes from that isn't there isn't followed: what the script has to do with counts.
                yield ("remote_exec" if self._is_networked else "decode_exec" if self._decodes else "opaque_exec"), call
            else:
                yield from self._judge(self._code, text, call)

    def _judge(self, judge: Callable[[str, ast.AST], None], text: str, node: ast.AST) -> Iterator[Found]:
        self._inner += 1
        if self._inner > _MOST_INNER:
            yield "opaque_exec", node
        else:
            judge(text, node)

    def _import(self, call: ast.Call, first: ast.expr | None) -> Iterator[Found]:
        for text in self._names.texts(first):
            if UNKNOWN in text:
                yield "opaque_exec", call
            elif effects.NATIVE.match(text):
                yield "python_native", call

    def _get(self, call: ast.Call) -> Iterator[Found]:
        """`getattr`: what it gives is looked at where it is used; a name that isn't seen, of a module, is opaque."""
        texts = self._names.texts(call.args[1])
        if any(text in effects.REFLECTION for text in texts):
            yield "opaque_exec", call
        modules = {value.text for value in self._names.of(call.args[0]) if value.kind == "name"}
        if modules & effects.SENSITIVE and any(UNKNOWN in text for text in texts):
            yield "opaque_exec", call
        yield from self._named(call, self._names.names(call), passed=id(call) not in self._used)

    # Files -------------------------------------------------------------------------------------------------------

    def _texts_of(self, call: ast.Call, position: int, keyword: str) -> list[str]:
        given = next((each.value for each in call.keywords if each.arg == keyword), None)
        return self._names.texts(call.args[position] if len(call.args) > position else given)

    def _mode_of(self, call: ast.Call, position: int) -> str:
        given = next((each.value for each in call.keywords if each.arg == "mode"), None)
        node = call.args[position] if len(call.args) > position else given
        return "r" if node is None else "".join(self._names.texts(node))

    def _open(self, name: str, call: ast.Call) -> Iterator[Found]:
        if name == "os.fdopen":
            return
        paths = self._texts_of(call, 0, "file")
        if name in {"os.open", "posix.open"}:
            flags = ast.dump(call.args[1]) if len(call.args) > 1 else ""
            only_reads = (
                len(call.args) > 1 and "O_WRONLY" not in flags and "O_RDWR" not in flags and "Constant" not in flags
            )
            yield from self._open_at(call, paths, "r" if only_reads and "O_RDONLY" in flags else "w")
            return
        if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int):
            return  # a descriptor
        yield from self._open_at(call, paths, self._mode_of(call, 1))

    def _open_at(self, call: ast.Call, paths: list[str], mode: str) -> Iterator[Found]:
        if any(char in mode for char in "wax+") or UNKNOWN in mode:
            yield from self._files.write(call, paths, unseen=True)
        if "w" not in mode:
            yield from self._read(call, paths)

    def _read(self, call: ast.Call, paths: list[str]) -> Iterator[Found]:
        if self._is_networked and any(map(self._files.is_secret, paths)):
            yield "credential_exfil", call


def _is_own(node: ast.expr) -> bool:
    """Whether an attribute is looked up in what a class says of itself."""
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def _is_endless(node: ast.While) -> bool:
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


def _calls_in(body: list[ast.stmt]) -> Iterator[ast.Call]:
    return (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call))


def _number(node: ast.expr | None) -> int | None:
    match node:
        case ast.Constant(int(number)):
            return number
        case ast.UnaryOp(ast.USub(), ast.Constant(int(number))):
            return -number
    return None


def _quoted(words: list[str]) -> str:
    """A command line of words; one that isn't known at all stays so."""
    return " ".join(word if word == UNKNOWN else "'" + word.replace("'", "'\\''") + "'" for word in words)
