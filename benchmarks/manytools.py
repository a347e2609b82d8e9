"""Many different tools: raw ones, and functions with code, annotations and a docstring of their own."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks import work

if TYPE_CHECKING:
    from collections.abc import Callable

    import mibyan

_FUNCTION = '''
def {name}(path: str, limit: int = 100, recursive: bool = False) -> dict:
    """List the entries number {number} of a folder in the workspace.

    Args:
        path: Folder to list, relative to the workspace root.
        limit: Largest number of entries to return.
        recursive: Whether to go down into the subfolders.
    """
    return {{"result": path}}
'''
_POSTPONED = "from __future__ import annotations\n"


def functions(first: int, count: int, *, postponed: bool = False) -> list[Callable[..., Any]]:
    """Functions of plain types, as a module has them.

    Args:
        first: The first one's number.
        count: How many.
        postponed: Whether their annotations are kept as text (PEP 563).
    """
    source = (_POSTPONED if postponed else "") + "".join(
        _FUNCTION.format(name=tool_name(number), number=number) for number in range(first, first + count)
    )
    module = ModuleType("benchmark_functions")
    sys.modules[module.__name__] = module
    exec(compile(source, f"<functions {first}>", "exec", dont_inherit=True), module.__dict__)
    return [getattr(module, tool_name(number)) for number in range(first, first + count)]


def tool_name(number: int) -> str:
    """A tool's name."""
    return f"list_folder_{number:05d}"


def fill(runtime: mibyan.Runtime, count: int) -> None:
    """Register `count` raw tools, each with a schema of its own."""
    register = runtime.registry.register
    for number in range(count):
        register(tool_name(number), "bench", work.flat_schema(number), work.handle)
