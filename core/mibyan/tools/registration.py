"""Reading a registration: every argument is checked before anything changes (registry.R1)."""

from __future__ import annotations

import re
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from mibyan.errors import ToolSchemaError
from mibyan.schema.definition import normalise_schema
from mibyan.text import plain_text, replace_surrogates
from mibyan.tools.entry import Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.tools.entry import Requirements, ToolEntry
    from mibyan.tools.owner import Owner

#: The names that every provider takes; one that isn't spoils the whole request.
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

#: What `registry.register` takes beside its nine positional arguments, with the defaults.
OPTIONS: Final[dict[str, Any]] = {
    "aliases": (), "timeout": None, "max_result_size_chars": None, "dynamic_schema_overrides": None, "approval": None,
    "read_only": False, "destructive": False, "idempotent": False, "open_world": True,
    "parallel": None, "reads": None, "writes": None, "interactive": False, "thread": "caller", "loop": None,
    "check_ttl": None, "check_grace": None, "cache": False, "defer": False, "untrusted_output": False,
    "handled_by": None, "validate": None,
}  # fmt: skip

_FLAGS: Final = ("read_only", "destructive", "idempotent", "open_world", "interactive", "cache", "defer",
                 "untrusted_output")  # fmt: skip
_CALLABLES: Final = ("dynamic_schema_overrides", "approval", "reads", "writes")
_CHOICES: Final = {"thread": ("caller", "pool", "dedicated"), "loop": (None, "runtime"), "handled_by": (None, "agent"),
                   "validate": (None, True, False), "parallel": (None, True, False)}  # fmt: skip
_SECONDS: Final = ("check_ttl", "check_grace")
_NUMBERS: Final = ("check_ttl", "check_grace", "timeout")


def build_entry(
    owner: Owner,
    name: str,
    toolset: str,
    schema: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    handler: Any,
    check_fn: Any = None,
    requires_env: Any = None,
    is_async: bool = False,  # noqa: FBT001, FBT002 - the published order
    description: str | None = None,
    emoji: str = "",
    *,
    requires: Requirements | None = None,
    bind: Any = None,
    activate: Any = None,
    origin: str | None = None,
    **options: Any,
) -> ToolEntry:
    """The entry that these arguments of `registry.register` describe.

    Raises:
        ToolSchemaError: The name or the schema isn't what a provider takes.
        TypeError: An argument has the wrong type, or isn't known.
        ValueError: An argument's value isn't one of those it can have.
    """
    if type(name) is not str or _fits(name) is None:
        name = check_name(name)
    if type(toolset) is not str or not toolset.strip():
        raise _wrong(name, "toolset", "a non-empty text", toolset)
    if not callable(handler) and activate is None:
        raise _wrong(name, "handler", "callable", handler)
    if check_fn is not None and not callable(check_fn):
        raise _wrong(name, "check_fn", "callable", check_fn)
    source: Any = schema if callable(schema) else normalise_schema(name, schema)
    draft = Draft()
    if options:
        draft.aliases = _check_options(name, options)
        for key in options.keys() - {"aliases"}:
            setattr(draft, key, options[key])
    if description is not None:
        if not isinstance(description, str):
            raise _wrong(name, "description", "text", description)
        description = plain_text(description)
    if type(emoji) is not str:
        raise _wrong(name, "emoji", "text", emoji)
    if requires_env:
        draft.requires_env = _env_names(name, requires_env)
    if requires is not None:
        draft.requires = requires
    draft.name, draft.toolset, draft.schema_source, draft.handler, draft.owner = name, toolset, source, handler, owner
    draft.check_fn, draft.is_async, draft.emoji = check_fn, bool(is_async), emoji
    draft.description = description or ("" if callable(schema) else source.get("description", ""))
    draft.bind, draft.activate, draft.origin = bind, activate, origin
    return draft.sealed()


_fits: Final = TOOL_NAME.fullmatch


def check_name(name: Any, what: str = "tool") -> str:
    """The name as plain text: a subclass of `str` could be equal to whatever it likes (registry.R6).

    Raises:
        ToolSchemaError: It isn't one that every provider takes.
    """
    if not issubclass(type(name), str):
        msg = f"A {what}'s name must be text, not {type(name).__name__}."
        raise ToolSchemaError(msg)
    plain = plain_text(name)
    if not TOOL_NAME.fullmatch(plain):
        shown = plain if len(plain) <= 80 else plain[:77] + "..."
        msg = f"The {what} name {shown!r} isn't valid."
        raise ToolSchemaError(msg, hint="Use 1 to 64 of the characters a-z, A-Z, 0-9, '_' and '-'.")
    return plain


def gives_coroutine(handler: Any) -> bool:
    """Whether calling `handler` gives a coroutine, without importing inspect: the flag of its code object."""
    function = handler
    for _ in range(0 if type(handler) is FunctionType else 16):
        if hasattr(function, "__func__"):
            function = function.__func__
        elif hasattr(function, "func") and hasattr(function, "keywords"):
            function = function.func
        else:
            break
    code = getattr(function, "__code__", None) or getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004 - its code is wanted
    return bool(getattr(code, "co_flags", 0) & 0x80)


def _check_options(name: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Check the keyword options; the aliases among them."""
    for key, value in options.items():
        if key not in OPTIONS:
            from mibyan.text import suggest

            meant = suggest(key, OPTIONS)
            msg = f"tool {name!r}: register() has no option {key!r}" + (f"; did you mean {meant!r}?" if meant else ".")
            raise TypeError(msg)
        _check_option(name, key, value)
        if key in _NUMBERS and isinstance(value, int | float):
            options[key] = float.__float__(value) if isinstance(value, float) else int.__int__(value)
    return _aliases(name, options.get("aliases", ()))


def _check_option(name: str, key: str, value: Any) -> None:
    if key in _FLAGS and not isinstance(value, bool):
        raise _wrong(name, key, "true or false", value)
    if key in _CALLABLES and value is not None and not callable(value):
        raise _wrong(name, key, "callable", value)
    if key in _CHOICES and not any(
        value is choice or (type(value) is str and value == choice) for choice in _CHOICES[key]
    ):
        msg = f"tool {name!r}: {key} must be one of {', '.join(map(repr, _CHOICES[key]))}, not {value!r}."
        raise ValueError(msg)
    if key in _SECONDS and value is not None:
        _check_number(name, key, value, zero=True)
    if key == "timeout" and value is not None and not callable(value):
        _check_number(name, key, value, zero=False)
    if key == "max_result_size_chars" and value is not None:
        if type(value) is not int:
            raise _wrong(name, key, "a whole number of characters", value)
        _check_number(name, key, value, zero=False)


def _check_number(name: str, key: str, value: Any, *, zero: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, key, "a number", value)
    if not (0 <= value < float("inf")) or (value == 0 and not zero):
        msg = f"tool {name!r}: {key} must be {'0 or more' if zero else 'more than 0'}, not {value!r}."
        raise ValueError(msg)


def _aliases(name: str, value: Any) -> tuple[str, ...]:
    aliases = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else None
    if aliases is None:
        raise _wrong(name, "aliases", "a list of names", value)
    return tuple(dict.fromkeys(plain for alias in aliases if (plain := check_name(alias, "alias")) != name))


def _env_names(name: str, value: Any) -> tuple[str, ...]:
    """registry.R1: a single string is one name."""
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple | set) else None
    if names is None or not all(isinstance(item, str) and item and replace_surrogates(item) == item for item in names):
        raise _wrong(name, "requires_env", "the names of environment variables", value)
    plain = [plain_text(item) for item in names]
    return tuple(sorted(plain) if isinstance(value, set) else plain)  # a set has another order in each process


def _wrong(name: Any, field: str, wanted: str, value: Any) -> TypeError:
    return TypeError(f"tool {name!r}: {field} must be {wanted}, not {type(value).__name__}.")
