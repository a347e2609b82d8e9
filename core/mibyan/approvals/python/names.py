"""`Names`: what the names and expressions of a script may stand for, as far as that can be told without running it.

Scopes and the order of statements don't count: a name stands for everything that is ever bound to it. So an alias is
followed wherever it goes, and what a value can't be followed to is `UNSEEN`.
"""

from __future__ import annotations

import ast
import posixpath
from typing import TYPE_CHECKING, Final

from mibyan.approvals.python.effects import BUILTINS, IMPORTERS, SENSITIVE
from mibyan.approvals.shell.values import HOME, UNKNOWN
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Rounds in which what names stand for is found; aliases of aliases take one each.
_ROUNDS: Final = 4
#: Values of one expression, and characters of a text, beyond which it is unseen.
_MOST: Final = 12
_LONGEST: Final = 8_000


@record
class Value:
    """One thing that an expression may stand for."""

    #: `name` (a module, function or class), `made` (what a call of one gives), `text`, `path`, or `unseen`.
    kind: str
    #: The dotted name; the text, with `UNKNOWN` for what isn't known of it.
    text: str = ""


UNSEEN: Final = Value("unseen")
_NOTHING: Final[frozenset[Value]] = frozenset((UNSEEN,))

#: What gives a path or text back that means the same file.
_SAME: Final = frozenset(
    (
        "os.fspath",
        "os.path.abspath",
        "os.path.normpath",
        "os.path.realpath",
        "os.path.expandvars",
        "builtins.str",
        "os.fsdecode",
        "os.fsencode",
    )
)
_PATHS: Final = frozenset(("pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath"))
_PASSING: Final = frozenset(
    (
        "builtins.sorted",
        "builtins.list",
        "builtins.tuple",
        "builtins.reversed",
        "builtins.set",
        "builtins.iter",
        "builtins.next",
    )
)


class Names:
    """The bindings of a script.

    Args:
        nodes: Every node of its tree.
        cwd: The working directory, if it is known.
    """

    def __init__(self, nodes: Sequence[ast.AST], cwd: str | None) -> None:
        self._cwd = cwd
        self._bound: dict[str, set[Value]] = {}
        self._starred: set[str] = set()
        self._functions = {
            node.name: node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self._known: dict[int, frozenset[Value]] = {}
        binders = [node for node in nodes if isinstance(node, _BINDERS)]
        for _ in range(_ROUNDS):
            before = {name: len(values) for name, values in self._bound.items()}
            self._known.clear()
            for node in binders:
                self._bind_all(node)
            if before == {name: len(values) for name, values in self._bound.items()}:
                break
        self._known.clear()

    def of(self, node: ast.AST | None) -> frozenset[Value]:
        """What an expression may stand for; never nothing."""
        if node is None:
            return _NOTHING
        found = self._known.get(id(node))
        if found is None:
            self._known[id(node)] = _NOTHING  # of what stands for itself
            made = frozenset(self._values(node))
            found = self._known[id(node)] = made if 0 < len(made) <= _MOST else _NOTHING
        return found

    def names(self, node: ast.AST | None) -> list[str]:
        """The dotted names among these."""
        return sorted(value.text for value in self.of(node) if value.kind == "name")

    def texts(self, node: ast.AST | None) -> list[str]:
        """The texts and paths among these; `UNKNOWN` for what isn't seen."""
        return sorted({value.text if value.kind in {"text", "path"} else UNKNOWN for value in self.of(node)})

    def is_function(self, node: ast.AST) -> bool:
        """Whether a function of the script's own is meant."""
        return isinstance(node, ast.Name) and node.id in self._functions

    # Binding -----------------------------------------------------------------------------------------------------

    def _bind_all(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names):
                for alias in names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self._bind(name, [Value("name", alias.name if alias.asname else name)])
            case ast.ImportFrom(module, names):
                for alias in names:
                    if alias.name == "*":
                        self._starred.add(module or "")
                    else:
                        self._bind(alias.asname or alias.name, [Value("name", canonical(f"{module}.{alias.name}"))])
            case ast.Assign(targets, value):
                for target in targets:
                    self._bind_target(target, value)
            case ast.AnnAssign(target, _, value) | ast.NamedExpr(target, value):
                self._bind_target(target, value)
            case ast.AugAssign(target):
                self._bind_target(target, None)
            case ast.For(target, iterated) | ast.AsyncFor(target, iterated) | ast.comprehension(target, iterated):
                self._bind_target(target, iterated)
            case ast.withitem(value, target) if target is not None:
                self._bind_target(target, value)
            case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments) | ast.Lambda(arguments):
                self._bind_defaults(arguments)
            case ast.Call(ast.Name(name)) if name in self._functions:
                self._bind_arguments(node, self._functions[name].args)

    def _bind(self, name: str, values: Iterable[Value]) -> None:
        held = self._bound.setdefault(name, set())
        if len(held) <= _MOST:
            held.update(values)

    def _bind_target(self, target: ast.expr, value: ast.expr | None) -> None:
        match target:
            case ast.Name(name):
                self._bind(name, self.of(value))
            case ast.Tuple(elements) | ast.List(elements):
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else None
                paired = (
                    parts is not None
                    and len(parts) == len(elements)
                    and not any(isinstance(e, ast.Starred) for e in [*parts, *elements])
                )
                for index, element in enumerate(elements):
                    self._bind_target(element, parts[index] if paired and parts is not None else value)
            case ast.Starred(inner):
                self._bind_target(inner, value)

    def _bind_defaults(self, arguments: ast.arguments) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        for parameter, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
            self._bind(parameter.arg, self.of(default))
        for parameter, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                self._bind(parameter.arg, self.of(value))

    def _bind_arguments(self, call: ast.Call, arguments: ast.arguments) -> None:
        positional = [*arguments.posonlyargs, *arguments.args]
        for parameter, value in zip(positional, call.args, strict=False):
            self._bind(parameter.arg, self.of(value))
        for keyword in call.keywords:
            if keyword.arg is not None:
                self._bind(keyword.arg, self.of(keyword.value))

    # Values ------------------------------------------------------------------------------------------------------

    def _values(self, node: ast.AST) -> Iterable[Value]:  # noqa: PLR0911 - one for each form
        match node:
            case ast.Constant(str(text)):
                return [Value("text", text)]
            case ast.Constant(bytes(data)):
                return [Value("text", data.decode("latin-1"))]
            case ast.Name(name):
                return self._named(name)
            case ast.Attribute(value, attribute):
                return [self._attribute(each, attribute) for each in self.of(value)]
            case ast.Call():
                return self._called(node)
            case ast.BinOp(left, ast.Add(), right):
                return [_joined(a, b) for a in self.of(left) for b in self.of(right)]
            case ast.BinOp(left, ast.Div(), right):
                return [_below(a, b) for a in self.of(left) for b in self.of(right)]
            case ast.JoinedStr(parts):
                return self._formatted(parts)
            case ast.FormattedValue(value) | ast.Await(value) | ast.Starred(value) | ast.NamedExpr(_, value):
                return self.of(value)
            case ast.IfExp(_, body, orelse):
                return self.of(body) | self.of(orelse)
            case ast.BoolOp(_, options) | ast.List(options) | ast.Tuple(options) | ast.Set(options):
                return self._any_of(options)
            case ast.Dict(_, options):
                return self._any_of(options)
            case ast.Subscript():
                return self._item(node)
        return _NOTHING

    def _any_of(self, nodes: Sequence[ast.AST]) -> frozenset[Value]:
        return frozenset(value for node in nodes[: _MOST + 1] for value in self.of(node)) or _NOTHING

    def _named(self, name: str) -> Iterable[Value]:
        found = set(self._bound.get(name, ()))
        if name in BUILTINS:
            found.add(Value("name", f"builtins.{name}"))
        if name == "__builtins__":
            found.add(Value("name", "builtins"))
        for module in self._starred:
            found.add(Value("name", canonical(f"{module}.{name}")))
        return found or _NOTHING

    def _attribute(self, value: Value, attribute: str) -> Value:
        if value.kind == "name":
            return Value("name", value.text if attribute == "__dict__" else canonical(f"{value.text}.{attribute}"))
        if value.kind == "made":
            return Value("name", f"{value.text}().{attribute}")
        if value.kind == "path" and attribute == "parent":
            return Value("path", posixpath.dirname(value.text) or ".")
        if value.kind in {"path", "text"}:
            return Value("text", UNKNOWN)
        return UNSEEN

    def _formatted(self, parts: Sequence[ast.expr]) -> Iterable[Value]:
        made = [Value("text", "")]
        for part in parts:
            made = [_joined(head, tail) for head in made for tail in self.of(part)][: _MOST + 1]
        return made

    def _item(self, node: ast.Subscript) -> Iterable[Value]:
        holders = self.of(node.value)
        if isinstance(node.slice, ast.Slice):
            step = node.slice.step
            backwards = isinstance(step, ast.UnaryOp) and not node.slice.lower and not node.slice.upper
            return [Value("text", v.text[::-1]) if v.kind == "text" and backwards else UNSEEN for v in holders]
        found: set[Value] = set()
        for holder in holders:
            for key in self.texts(node.slice):
                found.update(self._looked_up(holder, key))
        return found

    def _looked_up(self, holder: Value, key: str) -> Iterable[Value]:
        """What a subscript gives: of `sys.modules`, of a module's names, of the environment, of a collection."""
        if holder == Value("name", "sys.modules"):
            return [Value("name", key)] if UNKNOWN not in key else [UNSEEN]
        if holder.text in {"builtins.globals", "builtins.locals", "builtins.vars"} and holder.kind == "made":
            return self._named(key)
        if holder.kind == "name" and holder.text == "os.environ":
            return [Value("text", HOME if key == "HOME" else UNKNOWN)]
        if holder.kind == "name" and UNKNOWN not in key:
            return [Value("name", canonical(f"{holder.text}.{key}"))]
        return [holder] if holder.kind in {"text", "path"} else [UNSEEN]

    # Calls -------------------------------------------------------------------------------------------------------

    def _called(self, call: ast.Call) -> Iterable[Value]:
        found: set[Value] = set()
        if isinstance(call.func, ast.Attribute):
            for holder in self.of(call.func.value):
                if holder.kind in {"text", "path"}:
                    found.update(self._method(holder, call.func.attr, call))
        for name in self.names(call.func):
            found.update(self._result(name, call))
        return found or _NOTHING

    def _result(self, name: str, call: ast.Call) -> Iterable[Value]:
        first = call.args[0] if call.args else None
        if name in IMPORTERS:
            return [Value("name", text) if UNKNOWN not in text else UNSEEN for text in self.texts(first)]
        if name == "builtins.getattr" and len(call.args) > 1:
            return [
                self._attribute(v, text)
                for v in self.of(first)
                for text in self.texts(call.args[1])
                if UNKNOWN not in text
            ]
        if name == "builtins.vars" and first is not None:
            return [value for value in self.of(first) if value.kind == "name"]
        if name in _PASSING or name in _SAME:
            return self.of(first)
        return [self._made(name, call, first)]

    def _made(self, name: str, call: ast.Call, first: ast.expr | None) -> Value:
        texts = [self.texts(argument)[0] for argument in call.args]
        if name in _PATHS or name == "os.path.join":
            return Value("path" if name in _PATHS else "text", posixpath.join(*texts) if texts else ".")
        if name in {"pathlib.Path.home", "pathlib.PosixPath.home"}:
            return Value("path", HOME)
        if name in {"os.getcwd", "pathlib.Path.cwd"}:
            return Value("path", self._cwd or ".")
        if name == "os.path.expanduser":
            return Value("text", _expanded(texts[0] if texts else UNKNOWN))
        if name == "os.path.dirname" and texts:
            return Value("text", posixpath.dirname(texts[0]) or ".")
        if name in {"os.getenv", "os.environ.get"}:
            return Value("text", HOME if texts[:1] == ["HOME"] else UNKNOWN)
        if name in {"glob.glob", "glob.iglob"} and texts:
            return Value("text", _matched(texts[0]))
        if (
            name == "builtins.chr"
            and isinstance(first, ast.Constant)
            and isinstance(first.value, int)
            and 0 < first.value < 0x11000
        ):
            return Value("text", chr(first.value))
        return Value("made", name)

    def _method(self, holder: Value, method: str, call: ast.Call) -> Iterator[Value]:
        texts = [self.texts(argument)[0] for argument in call.args]
        if method in {"joinpath", "glob", "rglob", "iterdir"}:
            rest = [UNKNOWN] if method != "joinpath" else texts
            yield Value("path", posixpath.join(holder.text, *rest))
        elif method == "expanduser":
            yield Value("path", _expanded(holder.text))
        elif method in {"resolve", "absolute", "strip", "lower", "upper", "encode", "decode", "as_posix"}:
            changed = (
                holder.text.lower() if method == "lower" else holder.text.upper() if method == "upper" else holder.text
            )
            yield Value(holder.kind, changed)
        elif method == "replace" and len(texts) == 2 and holder.kind == "text" and texts[0]:
            yield Value("text", holder.text.replace(texts[0], texts[1])[:_LONGEST])
        elif (
            method == "join"
            and holder.kind == "text"
            and isinstance(call.args[0] if call.args else None, ast.List | ast.Tuple)
        ):
            parts = [self.texts(part)[0] for part in call.args[0].elts]  # type: ignore[attr-defined]
            yield Value("text", holder.text.join(parts)[:_LONGEST])
        elif method in {"with_name", "with_suffix", "with_stem"}:
            yield Value("path", posixpath.join(posixpath.dirname(holder.text) or ".", UNKNOWN))
        else:
            yield Value("text", UNKNOWN)


_BINDERS = (
    ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign, ast.For, ast.AsyncFor,
    ast.comprehension, ast.withitem, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Call,
)  # fmt: skip


def canonical(name: str) -> str:
    """A dotted name without the modules that only pass a module on, such as `shutil.os.system`."""
    parts = name.split(".")
    for index in range(len(parts) - 1, 0, -1):
        plain = parts[index].lstrip("_")
        if plain in SENSITIVE and parts[index][:2] != "__" and parts[index - 1].lstrip("_") not in {plain, "asyncio"}:
            return ".".join([plain, *parts[index + 1 :]])
    if parts[0] in {"posix", "nt"}:
        parts[0] = "os"
    if parts[0] in {"posixpath", "ntpath"}:
        parts[:1] = ["os", "path"]
    return ".".join(parts)


def _joined(first: Value, second: Value) -> Value:
    texts = [value.text if value.kind in {"text", "path"} else UNKNOWN for value in (first, second)]
    text = "".join(texts)
    return Value("text", text) if len(text) <= _LONGEST else UNSEEN


def _below(first: Value, second: Value) -> Value:
    if "path" not in {first.kind, second.kind}:
        return UNSEEN
    texts = [value.text if value.kind in {"text", "path"} else UNKNOWN for value in (first, second)]
    return Value("path", posixpath.join(*texts))


def _expanded(path: str) -> str:
    return HOME + path[1:] if path == "~" or path.startswith("~/") else path


def _matched(pattern: str) -> str:
    """What a pattern for file names finds: the folder before the first special character, and something in it."""
    fixed = pattern
    for char in "*?[":
        fixed = fixed.partition(char)[0]
    return fixed if fixed == pattern else posixpath.join(posixpath.dirname(fixed), UNKNOWN)
