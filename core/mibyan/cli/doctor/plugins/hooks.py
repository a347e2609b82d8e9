"""Hook implementations that can't be bound: told from the sources, as registering them would (plugins.L3)."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.hooks.names import HOOK_ARGUMENTS
from mibyan.plugins.sources.files import read_bytes
from mibyan.records import record
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from mibyan.plugins.state import PluginRecord

    Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@record
class _Hook:
    """An implementation as a source has it."""

    name: str
    line: int
    #: `None`: what is registered isn't a function of this file.
    function: Function | None


def problems(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """A finding for each implementation of a hook that there isn't, and for each that asks for what its hook doesn't give."""
    from mibyan.explain.places import code_of

    for one in records:
        for file in code_of(one.candidate):
            for hook in _hooks(file):
                wrong = _wrong(hook)
                if wrong is not None:
                    what = f"plugin {one.id!r}: {wrong[0]}"
                    yield Finding("warning", one_line(what, 500), f"{file}:{hook.line}", wrong[1])


def _wrong(hook: _Hook) -> tuple[str, str] | None:
    """Why an implementation can't be bound, and what mends it."""
    known = HOOK_ARGUMENTS.get(hook.name)
    if known is None:
        meant = suggest(hook.name, HOOK_ARGUMENTS)
        mend = f"call it {meant}" if meant else "take it away: the reference of hooks lists those that there are"
        return f"there is no hook {hook.name!r}", mend
    if hook.function is None:
        return None
    given = hook.function.args
    if given.posonlyargs:
        name = given.posonlyargs[0].arg
        return f"its {hook.name} takes {name!r} by position only, and hooks are called by keyword", "take the `/` away"
    strange = [name for name in _needed(given) if name not in known]
    if not strange:
        return None
    meant = suggest(strange[0], known)
    mend = f"write {meant}" if meant else f"take it away: there are {', '.join(known) or 'none'}"
    return f"its {hook.name} needs {strange[0]!r}, which isn't among the hook's arguments", mend


def _needed(given: ast.arguments) -> list[str]:
    """The parameters that an implementation can't be called without."""
    by_place = given.args[: len(given.args) - len(given.defaults)]
    by_name = [one for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
    return [one.arg for one in (*by_place, *by_name)]


def _hooks(file: str) -> list[_Hook]:
    """The implementations in a file: marked ones at its top level, and those that it registers by a name that is written there."""
    try:
        source = read_bytes(file)
        if b"hookimpl" not in source and b"register_hook" not in source:
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # what can't be read is the state of its plugin
    functions = {one.name: one for one in tree.body if isinstance(one, _FUNCTIONS)}
    marked = [hook for one in functions.values() if (hook := _marked(one)) is not None]
    called = [hook for node in ast.walk(tree) if isinstance(node, ast.Call) and (hook := _registered(node, functions))]
    return [*marked, *called]


def _marked(function: Function) -> _Hook | None:
    """The hook that a function with `@hookimpl` implements; one that says it is optional may be unknown."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if _last_name(call.func if call else decorator) != "hookimpl":
            continue
        said = {one.arg: one.value for one in call.keywords} if call else {}
        specname = said.get("specname")
        name = (
            specname.value if isinstance(specname, ast.Constant) and isinstance(specname.value, str) else function.name
        )
        optional = said.get("optionalhook")
        if name not in HOOK_ARGUMENTS and isinstance(optional, ast.Constant) and optional.value is True:
            return None
        return _Hook(name, function.lineno, function)
    return None


def _registered(call: ast.Call, functions: Mapping[str, Function]) -> _Hook | None:
    """The hook of `ctx.register_hook("name", function)`."""
    if _last_name(call.func) != "register_hook" or not call.args:
        return None
    name = call.args[0]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return None
    target = call.args[1] if len(call.args) > 1 else None
    return _Hook(name.value, call.lineno, functions.get(target.id) if isinstance(target, ast.Name) else None)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
