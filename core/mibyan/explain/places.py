"""Where a frozen tool's function is, told from its `module:attribute` without importing anything."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.explain.sources import line_at, python_files, registrations_in
from mibyan.plugins.sources.files import read_bytes
from mibyan.plugins.sources.ids import module_name
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST, WHEEL_MANIFEST
from mibyan.plugins.sources.modules import find_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.manifest import FrozenTool

#: Imports from one file to the next that are followed.
_STEPS = 5
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def place_of_tool(candidate: Candidate, tool: FrozenTool) -> str:
    """`file:line` of the function that a manifest names for a tool; where that can't be told, of the manifest's own line.

    Args:
        candidate: The plugin; nothing of it is imported.
        tool: The definition.
    """
    if tool.target is None:
        named = registrations_in(code_of(candidate)).named(tool.name)
        return named[0].place if named else _in_manifest(candidate, tool.name)
    module, _, attribute = tool.target.partition(":")
    for file in _files_of(candidate, module):
        place = _defined(file, attribute.split("."), _STEPS)
        if place is not None:
            return place
    return _in_manifest(candidate, tool.name)


def _in_manifest(candidate: Candidate, name: str) -> str:
    """The line of the manifest that names a tool; what is nearest to it if there is none."""
    origin = Path(candidate.origin)
    files = [origin, origin / "extra_metadata" / WHEEL_MANIFEST]
    files += [candidate.root / FOLDER_MANIFEST] if candidate.root is not None else []
    pattern = re.compile(rb"""\bname["']?\s*:\s*["']?%b\b""" % re.escape(name.encode()))
    for file in files:
        try:
            content = read_bytes(file)
        except OSError:
            continue
        found = pattern.search(content)
        return str(file) if found is None else f"{file}:{line_at(content, found.start())}"
    return candidate.origin


def code_of(candidate: Candidate) -> list[str]:
    """The Python files of a plugin, as far as they lie in folders and nothing has to be imported to find them."""
    target = candidate.target
    if candidate.source == "tools":
        return [candidate.origin] if target is None or target.path is None else [str(target.path)]
    if candidate.root is not None:
        return python_files(candidate.root)
    if target is None or target.kind not in {"module", "entry_point"}:
        return []
    return list(_installed(target.value.partition(":")[0]))


def _files_of(candidate: Candidate, module: str) -> Iterator[str]:
    """The files that a module's name may mean in a plugin, the likeliest first (see `PrivateCode.import_named`)."""
    target = candidate.target
    if target is None or target.kind in {"module", "entry_point"}:
        yield from _installed(module)
        return
    main = Path(target.value)
    folder = main if target.kind == "package_dir" else main.parent
    parts = module.lstrip(".").split(".")
    yield from _below(folder, parts)
    if parts[0] in {candidate.id, module_name(candidate.id), main.stem if target.kind == "file" else main.name}:
        yield from _below(folder, parts[1:]) if parts[1:] else ([str(main)] if main.is_file() else _below(folder, []))
    yield from _installed(module)


def _installed(module: str) -> Iterator[str]:
    """The file of an importable module; only its top package is looked up, which runs nothing."""
    top, *rest = module.split(".")
    spec = find_spec(top) if top else None
    if spec is None:
        return
    places = list(spec.submodule_search_locations or ())
    if not places and not rest and spec.origin is not None:
        yield spec.origin
    for place in places:
        yield from _below(Path(place), rest)


def _below(folder: Path, parts: list[str]) -> Iterator[str]:
    path = folder.joinpath(*parts)
    for file in (path.with_suffix(".py") if parts else None, path / "__init__.py"):
        if file is not None and file.is_file():
            yield str(file)


def _defined(file: str, names: list[str], steps: int) -> str | None:
    """Where a file defines a name; through `from … import …` into its neighbours."""
    try:
        body: list[ast.stmt] = ast.parse(read_bytes(file)).body
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    line = None
    for depth, name in enumerate(names):
        node = next((node for node in reversed(body) if name in _names_of(node)), None)
        if isinstance(node, ast.ImportFrom) and depth == 0:
            return _imported(file, node, [_original(node, name), *names[1:]], steps - 1) if steps else None
        if node is None:
            break
        line = _line(node)
        body = node.body if isinstance(node, ast.ClassDef) else []
    return None if line is None else f"{file}:{line}"


def _imported(file: str, node: ast.ImportFrom, names: list[str], steps: int) -> str | None:
    parts = node.module.split(".") if node.module else []
    if node.level:
        folder = Path(file).parents[node.level - 1]
        files = list(_below(folder, parts)) or list(_below(folder, [*parts, names[0]]))
    else:
        files = list(_installed(node.module or ""))
    places = (_defined(found, names, steps) for found in files)
    return next((place for place in places if place is not None), None)


def _names_of(node: ast.stmt) -> list[str]:
    """The names that a statement gives a meaning."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
    return []


def _original(node: ast.ImportFrom, name: str) -> str:
    return next(alias.name for alias in node.names if (alias.asname or alias.name) == name)


def _line(node: ast.stmt) -> int:
    """The first line, decorators counted, as a code object says it."""
    decorators = node.decorator_list if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) else []
    return min((decorator.lineno for decorator in decorators), default=node.lineno)
