"""What tools a Python source registers, told from its text alone: nothing of it is run."""

from __future__ import annotations

import ast
import os
import re
import warnings
from typing import TYPE_CHECKING, Any

from mibyan.plugins.sources.files import read_bytes
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: Files of one plugin that are looked at, bytes of each, and bytes in all that are read as Python.
_FILES_LIMIT = 400
_BYTES_LIMIT = 1024 * 1024
_PARSED_LIMIT = 4 * 1024 * 1024

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What a call's last name is that registers a tool.
_REGISTER = frozenset({"register_tool", "register"})


@record
class Registration:
    """One place in a source that registers a tool."""

    file: str
    line: int
    #: `None`: the text doesn't say; it is worked out when the code runs.
    name: str | None
    #: `None`: likewise.
    toolset: str | None = None
    aliases: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"

    def answers_to(self, name: str) -> bool:
        """Whether it is the tool of that name or alias."""
        return name == self.name or name in self.aliases


@record(frozen=False)
class Registrations:
    """What the sources of one plugin register, as far as their text tells."""

    found: list[Registration] = field(default_factory=list)
    #: Whether there is more than the text tells: a name that is worked out, a file that can't be read.
    more: bool = False

    def named(self, name: str) -> list[Registration]:
        """The places that register the tool of a name or alias."""
        return [one for one in self.found if one.answers_to(name)]


def places_of(name: str, files: Iterable[str]) -> list[Registration]:
    """The places in some Python files that register the tool of a name or alias."""
    return registrations_in(files, mentioned=name).named(name)


def registrations_in(files: Iterable[str], *, mentioned: str = "") -> Registrations:
    """What some Python files register.

    Args:
        files: Their paths.
        mentioned: A text that a file must have to be read at all.
    """
    told = Registrations()
    left = _PARSED_LIMIT
    for file in files:
        try:
            source = read_bytes(file, _BYTES_LIMIT)
            if (mentioned.isascii() and mentioned.encode() not in source) or (
                b"tool" not in source and b"regist" not in source
            ):
                continue
            left -= len(source)
            if left < 0:
                told.more = True
                break
            tree = _parsed(source)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            told.more = True
            told.found += [] if isinstance(error, OSError) else _mentions(source, mentioned, file)
            continue
        for one in _registrations(tree, file):
            told.found.append(one)
            told.more |= one.name is None
    return told


def python_files(place: Path) -> list[str]:
    """The Python files below a folder, or the one file; hidden folders and byte code aren't looked at."""
    if not place.is_dir():
        return [str(place)]
    found: list[str] = []
    for folder, names, files in os.walk(place):
        names[:] = sorted(name for name in names if not name.startswith(".") and name != "__pycache__")
        found += [os.path.join(folder, file) for file in sorted(files) if file.endswith(".py")]  # noqa: PTH118 - text
        if len(found) >= _FILES_LIMIT:
            break
    return found[:_FILES_LIMIT]


def line_at(content: bytes, position: int) -> int:
    """The number of the line that a position is on."""
    return content.count(b"\n", 0, position) + 1


def _mentions(source: bytes, name: str, file: str) -> list[Registration]:
    """The first line of a source that isn't Python which names a tool as a registration would: in quotes, or as a function."""
    if not name:
        return []
    quoted = re.escape(name.encode())
    found = re.search(rb"""["']%b["']|\bdef\s+%b\s*\(""" % (quoted, quoted), source)
    return [] if found is None else [Registration(file, line_at(source, found.start()), name)]


def _parsed(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _registrations(tree: ast.Module, file: str) -> Iterator[Registration]:
    constants = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in _REGISTER:
            yield from _from_call(node, file, constants)
        elif isinstance(node, _FUNCTIONS):
            yield from _from_function(node, file, constants)


def _from_call(call: ast.Call, file: str, constants: dict[str, Any]) -> Iterator[Registration]:
    """`registry.register("name", "toolset", …)`, `ctx.register_tool(name="name", …)`."""
    given = _given(call, ("name", "toolset"))
    if "name" not in given or (_last_name(call.func) == "register" and "toolset" not in given):
        return  # somebody else's `register`
    yield Registration(file, call.lineno, _text(given["name"], constants), _text(given.get("toolset"), constants),
                       _texts(given.get("aliases"), constants))  # fmt: skip


def _from_function(
    function: ast.FunctionDef | ast.AsyncFunctionDef, file: str, constants: dict[str, Any]
) -> Iterator[Registration]:
    """A function under `@tool`, `@mibyan.tool(…)`."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if _last_name(decorator.func if isinstance(decorator, ast.Call) else decorator) != "tool":
            continue
        given = _given(call, ()) if call is not None else {}
        name = _text(given["name"], constants) if "name" in given else function.name
        toolset = _text(given.get("toolset"), constants)
        yield Registration(file, decorator.lineno, name, toolset, _texts(given.get("aliases"), constants))


def _given(call: ast.Call, positional: tuple[str, ...]) -> dict[str, ast.expr]:
    """The arguments of a call by name."""
    by_place = dict(zip(positional, call.args, strict=False))
    return {**by_place, **{word.arg: word.value for word in call.keywords if word.arg is not None}}


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _constants(tree: ast.Module) -> dict[str, Any]:
    """The names that stand for a text at the top level, and are given one once."""
    found: dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = None if target.id in found else statement.value.value
    return found


def _text(node: ast.expr | None, constants: dict[str, Any]) -> str | None:
    value: Any = None
    if isinstance(node, ast.Constant):
        value = node.value
    elif isinstance(node, ast.Name):
        value = constants.get(node.id)
    return value if isinstance(value, str) else None


def _texts(node: ast.expr | None, constants: dict[str, Any]) -> tuple[str, ...]:
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else [] if node is None else [node]
    return tuple(text for part in parts if (text := _text(part, constants)) is not None)
