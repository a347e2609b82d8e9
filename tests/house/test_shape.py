"""The shape of the sources: one concept a file, functions that fit on a screen, no word for nothing."""

from __future__ import annotations

import ast
import re
import statistics
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for room in ("core", "builtin_plugins", "benchmarks") for path in (ROOT / room).rglob("*.py"))
CORE = [path for path in SOURCES if path.is_relative_to(ROOT / "core")]

#: Names that say nothing (CONTRIBUTING, "House style").
EMPTY_WORDS = re.compile(r"(Manager|Helper|Util|Utils)$")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement after the docstring to the last one."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return function.body[-1].end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_one_concept(path: Path) -> None:
    """No source file is longer than four hundred lines, no function than fifty, no class is called a Manager."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400
    assert [f"{function.name}: {length(function)}" for function in functions(path) if length(function) > 50] == []
    classes = [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    assert [name for name in classes if EMPTY_WORDS.search(name)] == []


def test_functions_are_short() -> None:
    """Nine functions in ten are under thirty lines, and half of them are eight lines or less."""
    lengths = sorted(length(function) for path in SOURCES for function in functions(path))
    assert statistics.median(lengths) <= 8
    assert lengths[len(lengths) * 9 // 10] < 30


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_core_knows_no_built_in_plugin(path: Path) -> None:
    """architecture, never 1: no import statement of the core names `mibyan_builtin`, inside functions neither."""
    named = [
        name
        for node in ast.walk(tree(path))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else
                     [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
    ]  # fmt: skip
    assert [name for name in named if name.partition(".")[0] == "mibyan_builtin"] == []
