"""The built-in plugins live on what every plugin author has: the public surface, and nothing else."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import textwrap
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(importlib.util.find_spec("mibyan_builtin").submodule_search_locations[0])
SOURCES = sorted(ROOT.rglob("*.py"))

#: The modules whose `__all__` a plugin may import from (api.md).
PUBLIC = ("mibyan", "mibyan.approvals", "mibyan.environments")


@cache
def public_names(module: str) -> frozenset[str]:
    """What `module` offers to plugin authors."""
    return frozenset(importlib.import_module(module).__all__)


def trespasses(source: str) -> list[str]:
    """Each use of Mibyan in `source` that isn't a public name, with its line."""
    return [f"line {node.lineno}: {what}" for node in ast.walk(ast.parse(source)) for what in _private_uses(node)]


def _private_uses(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names):
            return [f"import {name.name}" for name in names if name.name.startswith("mibyan.")]
        case ast.ImportFrom(module=str(module), level=0, names=names) if _is_mibyan(module):
            known = public_names(module) if module in PUBLIC else frozenset()
            return [f"from {module} import {name.name}" for name in names if name.name not in known]
        case ast.Attribute(value=ast.Name("mibyan"), attr=attr) if attr not in public_names("mibyan"):
            return [f"mibyan.{attr}"]
    return []


def _is_mibyan(module: str) -> bool:
    return module == "mibyan" or module.startswith("mibyan.")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_built_in_plugin_uses_the_public_surface_only(path: Path) -> None:
    """architecture, never 2: `mibyan_builtin` imports public names of `mibyan`, never a private module."""
    assert trespasses(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("import mibyan", True),
        ("from mibyan import tool, ToolContext", True),
        ("import mibyan\nmibyan.registry", True),
        ("from . import something", True),
        ("import mibyan_builtin.files", True),
        ("import mibyan.tools.entry", False),
        ("from mibyan.tools.registry import ToolRegistry", False),
        ("from mibyan import plugins", False),
        ("from mibyan import *", False),
        ("def f():\n    from mibyan.plugins import loader", False),
        ("import mibyan\nmibyan.tools", False),
    ],
)
def test_the_check_tells_public_from_private(line: str, allowed: bool) -> None:
    """The check above can fail: private modules and names are seen wherever they stand."""
    assert (trespasses(textwrap.dedent(line)) == []) is allowed


@pytest.mark.parametrize("name", sorted(public_names("mibyan")) if importlib.util.find_spec("mibyan").origin else [])
def test_every_public_name_is_there_and_documented(name: str) -> None:
    """api.md: each name of the facade exists, and the reference has it."""
    mibyan = importlib.import_module("mibyan")
    assert hasattr(mibyan, name)
    assert name in dir(mibyan)
