"""Whether a file registers tools when it is imported, told from its source alone (plugins.F6)."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, TypeAlias

from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    AnyFunction: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Names that hold the registry, and the decorator, in the forms that count.
_REGISTER = frozenset({"registry.register", "mibyan.registry.register"})
_DECORATOR = frozenset({"tool", "mibyan.tool"})


@record
class Verdict:
    """What a file's source says."""

    #: Whether importing it registers a tool at its top level.
    registers: bool
    #: Why it doesn't although it looks as if it should, or why it can't be read; `None`: it is no tool file.
    reason: str | None = None
    #: Whether `reason` is a near miss; else the source can't be read.
    near_miss: bool = False


def verdict(source: bytes) -> Verdict:
    """The verdict on a Python source, in any encoding that Python accepts; never raises."""
    if b"regist" not in source and b"tool" not in source and b"coding" not in source and b"\0" not in source:
        return Verdict(registers=False)  # whatever its encoding, ASCII is ASCII; the others name themselves
    try:
        tree = _parse(source)
        if any(_registers(statement) for statement in _top_level(tree.body)):
            return Verdict(registers=True)
        near = next(iter(sorted(_near_misses(tree))), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return Verdict(registers=False, reason=_unreadable(error))
    return Verdict(registers=False, reason=near and f"line {near[0]}: {near[1]}", near_miss=near is not None)


def _parse(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape in a stranger's text is the stranger's matter
        return ast.parse(source)


def _unreadable(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        line = f"line {error.lineno}: " if error.lineno else ""
        return f"{line}not Python: {one_line(str(error.msg))}"
    if isinstance(error, RecursionError | MemoryError | OverflowError):
        return "nested too deeply to be read"
    return f"not Python: {one_line(str(error))}"


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the file is imported, those in a top-level `for` among them."""
    for statement in body:
        if isinstance(statement, ast.For):
            yield from _top_level((*statement.body, *statement.orelse))
        else:
            yield statement


def _registers(statement: ast.stmt) -> bool:
    """Whether a statement is `registry.register(...)`, or a function decorated with `tool`."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call) and _dotted(statement.value.func) in _REGISTER
    return isinstance(statement, _FUNCTIONS) and any(name in _DECORATOR for name in _decorators(statement))


def _decorators(function: AnyFunction) -> dict[str, int]:
    """The names of a function's decorators, called or not, and their lines."""
    return {_dotted(d.func if isinstance(d, ast.Call) else d): d.lineno for d in function.decorator_list}


def _dotted(node: ast.expr) -> str:
    """`a.b.c` for names and attributes; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def _near_misses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines that look like a registration and don't count, and why."""
    aliases = _aliases(tree)
    waiting: list[tuple[ast.AST, str]] = [(statement, "") for statement in _top_level(tree.body)]
    while waiting:
        node, place = waiting.pop()
        found = _found(node, aliases)
        if found is not None:
            yield found[0], f"{found[1]} {place or found[2]}"
        inner = place or _place(node)
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]


def _found(node: ast.AST, aliases: dict[str, str]) -> tuple[int, str, str] | None:
    """The line of what looks like a registration, its text, and why it doesn't count at the top level."""
    if isinstance(node, ast.Call):
        name = _dotted(node.func)
        if _meaning(name, aliases) in _REGISTER:
            why = "isn't a statement of its own" if name in _REGISTER else "goes by another name"
            return node.lineno, f"{name}(...)", f"{why}: write `registry.register(...)` alone on its line"
    if isinstance(node, _FUNCTIONS):
        for name, line in _decorators(node).items():
            if _meaning(name, aliases) in _DECORATOR:
                return line, f"@{name}", "goes by another name: write `@tool` or `@mibyan.tool`"
    return None


def _place(node: ast.AST) -> str:
    """Where what is inside `node` stands, if that is why it doesn't count."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return f"is inside the function {name!r}: only the top level of the file counts"
        case ast.Lambda():
            return "is inside a lambda: only the top level of the file counts"
        case ast.ClassDef(name=name):
            return f"is inside the class {name!r}: only the top level of the file counts"
        case ast.If() | ast.While() | ast.Try() | ast.TryStar() | ast.With() | ast.Match():
            kind = type(node).__name__.removesuffix("Star").lower()
            return f"is inside a `{kind}`: only the top level of the file counts"
    return ""


def _aliases(tree: ast.Module) -> dict[str, str]:
    """What the names mean that the file imports from Mibyan under others."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.asname: name.name for name in node.names if name.asname and name.name == "mibyan"}
        elif isinstance(node, ast.ImportFrom) and node.module in {"mibyan", "tools.registry", "mibyan.tools.registry"}:
            found |= {name.asname: name.name for name in node.names if name.asname}
    return found


def _meaning(name: str, aliases: dict[str, str]) -> str:
    """`name` with its first part as it was before it was imported under another."""
    first, dot, rest = name.partition(".")
    return f"{aliases.get(first, first)}{dot}{rest}"
