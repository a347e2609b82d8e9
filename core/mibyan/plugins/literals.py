"""What a Python source names: variables of the environment, modules, its neighbours (plugins.M4)."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from typing import TYPE_CHECKING

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What could be a variable's name, as POSIX has it, with a letter in it.
_VARIABLE = re.compile(r"(?=.*[A-Za-z])[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
#: What could be the beginning of such names: `os.environ[f"WEATHER_{key}"]`.
_PREFIX = re.compile(r"[A-Z][A-Z0-9_]{1,98}_", re.ASCII)
#: Functions whose text argument is a module's name.
_IMPORTERS = frozenset({"__import__", "import_module", "find_spec", "import_string", "importorskip"})
#: Names with which a module can look at the files beside it, or run what is written nowhere.
_LOOKING = frozenset({
    "__file__", "__path__", "__spec__", "__loader__", "__package__", "__import__", "importlib", "pkgutil", "runpy",
    "exec", "eval",
})  # fmt: skip


@record
class Named:
    """What one source, or several, name."""

    #: String literals that could be names of environment variables.
    variables: frozenset[str] = frozenset()
    #: String literals that could be the beginning of such names.
    prefixes: frozenset[str] = frozenset()
    #: Top-level modules that are imported, but for Python's own and Mibyan.
    modules: frozenset[str] = frozenset()
    #: The first names of relative imports.
    neighbours: frozenset[str] = frozenset()
    #: Whether it may look at any file beside it, or import from above its folder.
    looks_around: bool = False

    def __or__(self, other: Named) -> Named:
        return Named(
            self.variables | other.variables, self.prefixes | other.prefixes, self.modules | other.modules,
            self.neighbours | other.neighbours, self.looks_around or other.looks_around,
        )  # fmt: skip


def named_in(source: bytes) -> Named:
    """What a source names, in any encoding that Python accepts.

    Raises:
        SyntaxError: It isn't Python.
        ValueError: It has NUL bytes.
        RecursionError: It is nested too deeply; `MemoryError` likewise.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape in a stranger's text is the stranger's matter
        nodes = list(ast.walk(ast.parse(source)))
    texts = frozenset(_texts(nodes))
    return Named(
        frozenset(filter(_VARIABLE.fullmatch, texts)),
        frozenset(filter(_PREFIX.fullmatch, texts)),
        frozenset(_modules(nodes)),
        frozenset(_neighbours(nodes)),
        any(_looks_around(node) for node in nodes),
    )


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("ascii", "replace")


def _modules(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        elif isinstance(node, ast.Call) and _name_of(node.func) in _IMPORTERS:
            names = [one.value for one in node.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        for name in names:
            top = name.partition(".")[0]
            if top and top not in sys.stdlib_module_names and top not in {"mibyan", "mibyan_builtin"}:
                yield top


def _name_of(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _neighbours(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from (node.module.partition(".")[0],) if node.module else (alias.name for alias in node.names)


def _looks_around(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level > 1 or (node.module or "").partition(".")[0] in _LOOKING
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in _LOOKING for alias in node.names)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in _LOOKING
