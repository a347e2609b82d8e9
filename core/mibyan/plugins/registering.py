"""Lets a plugin register: its module's import, its hooks, its tool functions, `mibyan_register(ctx)`, `register(ctx)`."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.hooks.names import HOOK_ARGUMENTS
from mibyan.plugins.journal import now_registering
from mibyan.records import field, record
from mibyan.text import did_you_mean, suggest
from mibyan.tools.current import Current, acting
from mibyan.tools.function import ToolFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.plugins.context import PluginContext
    from mibyan.plugins.importing import PluginCode
    from mibyan.plugins.ledger import Ledger
    from mibyan.plugins.recording import Recorder
    from mibyan.plugins.services import LoaderServices

#: The hooks that the loader itself calls.
_OWN_HOOKS = frozenset({"mibyan_register", "mibyan_unload"})

#: The flag of a code object that has `*args` (inspect.CO_VARARGS).
_TAKES_ANY = 0x04


@record(frozen=False)
class Parts:
    """What of a plugin is looked at."""

    #: Modules and objects whose marked functions are hook implementations.
    hooks: list[object] = field(default_factory=list)
    #: Functions that are called with the context.
    registrars: list[Callable[..., Any]] = field(default_factory=list)


def register_plugin(
    code: PluginCode, ctx: PluginContext, ledger: Ledger, recorder: Recorder, services: LoaderServices
) -> None:
    """Import a plugin and let it register.

    Raises:
        PluginError: It offers nothing, or its entry point isn't a plugin.
        BaseException: Whatever its code raises.
    """
    ledger.recorder = recorder
    was_there = code.name in sys.modules
    with acting(current(ctx, ledger, services, recorder)):
        recorder.replay(ctx.registry)
        with recorder.listening():
            plugin = code.import_main()
    now_registering()
    functions = list(dict.fromkeys(recorder.functions))
    if was_there and not functions and not recorder.calls:
        functions = _functions_of(code)
    with acting(current(ctx, ledger, services)):
        for function in functions:
            ctx.registry.add(function)
        parts = parts_of(plugin, sys.modules.get(code.name))
        _register_parts(parts, ctx, ledger, services)
    ledger.require_no_refusal()
    if not ledger.offered and not recorder.calls and not ctx.manifest.frozen:
        raise _offers_nothing(ctx, parts, sys.modules.get(code.name), was_there=was_there)


def current(ctx: PluginContext, ledger: Ledger, services: LoaderServices, recorder: Recorder | None = None) -> Current:
    """Who runs while a plugin is loading; with a recorder: while its modules are being imported."""
    collect, record = (None, None) if recorder is None else (recorder.collect, recorder.record)
    return Current(services.store, ledger.owner, collect, record, ctx.registry)


def parts_of(plugin: object, module: ModuleType | None) -> Parts:
    """What of a plugin is looked at: of a module its hooks and its `register`, of an object likewise; a function is called.

    Args:
        plugin: The module, or what the entry point names.
        module: The entry point's module: its hooks count in any case.

    Raises:
        PluginError: The entry point names something that can't be a plugin.
    """
    parts = Parts()
    if module is not None:
        _look_at(module, parts, with_register=plugin is module)
    if plugin is module:
        return parts
    if isinstance(plugin, type) and _has_parts(plugin):
        plugin = plugin()
    if isinstance(plugin, ModuleType) or _has_parts(plugin):
        _look_at(plugin, parts, with_register=True)
    elif callable(plugin):
        parts.registrars = [*(each for each in parts.registrars if each is not plugin), plugin]
    else:
        raise PluginError(
            f"the entry point names {type(plugin).__name__} {plugin!r:.80}, which is neither a module nor callable",
            hint="Let it name the plugin's module, or its function register(ctx).",
        )
    return parts


def marked(source: object) -> dict[str, Any]:
    """The hook implementations in a module or object, by hook name: what `@mibyan.hookimpl` has marked."""
    found: dict[str, Any] = {}
    names = list(vars(source)) if isinstance(source, ModuleType) else dir(source)
    for name in names:
        value = _read(source, name)
        options = _read(value, "mibyan_impl") if callable(value) else None
        if isinstance(options, dict):
            found[options.get("specname") or name] = value
    return found


def _look_at(source: object, parts: Parts, *, with_register: bool) -> None:
    hooks = marked(source)
    if hooks:
        parts.hooks.append(source)
    first = hooks.get("mibyan_register") or _read(source, "mibyan_register")
    for function in (first, _read(source, "register") if with_register else None):
        if callable(function) and not any(function is known for known in parts.registrars):
            parts.registrars.append(function)


def _has_parts(plugin: object) -> bool:
    return any(callable(_read(plugin, name)) for name in ("register", "mibyan_register")) or bool(marked(plugin))


def _read(source: object, name: str) -> Any:
    """An attribute, `None` if there is none; objects that raise at that aren't ours to judge here."""
    try:
        return getattr(source, name, None)
    except Exception:
        return None


def _register_parts(parts: Parts, ctx: PluginContext, ledger: Ledger, services: LoaderServices) -> None:
    for source in parts.hooks:
        names = set(ctx.add_hooks(source)) - _OWN_HOOKS
        ledger.offered += len(names)
        if ctx.manifest.frozen:
            told = {*ctx.manifest.hooks, *(["mibyan_cli"] if ctx.manifest.cli else []), *_OWN_HOOKS}
            extra = sorted(set(marked(source)) - told)
            ledger.drift += [f"the hook {name!r}" for name in extra]
    for registrar in parts.registrars:
        services.awaited(registrar(ctx) if _takes_context(registrar) else registrar())


def _takes_context(registrar: Callable[..., Any]) -> bool:
    """Whether a registrar has a parameter; a hook may take any subset of the arguments."""
    code = getattr(registrar, "__code__", None)
    if code is None:
        return True
    bound = getattr(registrar, "__self__", None) is not None
    return code.co_argcount > bound or bool(code.co_flags & _TAKES_ANY)


def _functions_of(code: PluginCode) -> list[ToolFunction[..., Any]]:
    """The tool functions in the modules of a plugin that was imported before Mibyan could listen."""
    modules = [
        module for name, module in sys.modules.copy().items() if name == code.name or name.startswith(f"{code.name}.")
    ]
    values = [value for module in modules for value in list(getattr(module, "__dict__", {}).values())]
    found = [value for value in values if isinstance(value, ToolFunction)]
    return list(dict.fromkeys(found))


def _is_standard(module: ModuleType) -> bool:
    """Whether a module is the standard library's, which comes before what is installed."""
    folder, file = os.path.dirname(os.__file__), _read(module, "__file__")  # noqa: PTH120 - text
    if module.__name__.partition(".")[0] not in sys.stdlib_module_names:
        return False
    return not isinstance(file, str) or (file.startswith(folder) and "-packages" not in file[len(folder) :])


def _offers_nothing(
    ctx: PluginContext, parts: Parts, module: ModuleType | None, *, was_there: bool
) -> PluginError:  # fmt: skip
    unknown = sorted({name for source in parts.hooks for name in marked(source) if name not in HOOK_ARGUMENTS})
    if unknown:
        meant = [suggest(name, HOOK_ARGUMENTS) for name in unknown]
        told = [f"{name!r}{did_you_mean(word)}" for name, word in zip(unknown, meant, strict=True)]
        reason = f"it offers nothing: there is no hook {', '.join(told)}, and it has neither register(ctx) nor a tool"
        return PluginError(reason, plugin_id=ctx.plugin_id, hint=f"The hooks are: {', '.join(sorted(HOOK_ARGUMENTS))}.")
    reason = "it offers nothing: its import registered no tool, and it has neither register(ctx) nor a hook"
    hint = "Write `def register(ctx): ...`, or use @mibyan.tool or @mibyan.hookimpl at the top level of its module."
    register = _read(module, "register")
    if register is not None and not callable(register):
        reason = f"it offers nothing: its `register` is {type(register).__name__}, not a function"
    elif module is not None and _is_standard(module):
        reason = (
            f"it offers nothing: the module {module.__name__!r}, which its entry point names, is the standard library's"
        )
        hint = "Tell the plugin's author to give its module another name."
    elif was_there:
        reason += " (its module had been imported before the plugin was loaded)"
    return PluginError(reason, plugin_id=ctx.plugin_id, hint=hint)
