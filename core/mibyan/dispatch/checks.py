"""Arguments of calls and sessions as a host gives them: wrong types are told in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.text import plain_text, replace_surrogates, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def read_name(name: Any) -> str:
    """A tool's name as a model wrote it; what isn't text is unknown under the text that stands for it."""
    if type(name) is str and name.isascii():
        return name
    if isinstance(name, str):
        return replace_surrogates(plain_text(name))
    from mibyan.schema.jsontext import to_json

    return to_json(name)


def read_seconds(timeout: float | None) -> float | None:
    """A time-out in seconds.

    Raises:
        TypeError: It isn't a number.
        ValueError: It isn't more than 0, or not finite.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        msg = f"timeout must be seconds or None, not {type(timeout).__name__}."
        raise TypeError(msg)
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = float("inf")
    if not 0 < seconds < float("inf"):
        msg = f"timeout must be more than 0 seconds and not for ever, not {seconds:g}."
        raise ValueError(msg)
    return seconds


def read_text(value: Any, what: str) -> str | None:
    """A text that says something, or `None`.

    Raises:
        TypeError: It is neither.
    """
    if value is not None and (not isinstance(value, str) or not value):
        shown = "an empty text" if isinstance(value, str) else type(value).__name__
        msg = f"{what} must be a non-empty text or None, not {shown}."
        raise TypeError(msg)
    return None if value is None else plain_text(value)


def read_any_text(value: Any, what: str) -> str | None:
    """A text, also an empty one, or `None`.

    Raises:
        TypeError: It is neither.
    """
    if value is None or type(value) is str:
        return value
    if not isinstance(value, str):
        msg = f"{what} must be text or None, not {type(value).__name__}."
        raise TypeError(msg)
    return plain_text(value)


def read_hook(name: Any, function: Any) -> str:
    """The name of a hook that `function` may implement.

    Raises:
        TypeError: It isn't a function.
        MibyanError: There is no hook of that name.
    """
    from mibyan.hooks.names import HOOK_ARGUMENTS

    if not callable(function):
        msg = f"add_hook takes a function, not {type(function).__name__}."
        raise TypeError(msg)
    plain = plain_text(name) if isinstance(name, str) else repr(name)
    if plain not in HOOK_ARGUMENTS:
        meant = suggest(plain, HOOK_ARGUMENTS)
        msg = f"There is no hook {plain!r}" + (f"; did you mean {meant!r}?" if meant else ".")
        raise MibyanError(msg, hint=f"The hooks are: {', '.join(sorted(HOOK_ARGUMENTS))}.")
    return plain


def read_toolsets(value: Iterable[str] | None, what: str) -> tuple[str, ...] | None:
    """A list of toolset names.

    Raises:
        TypeError: A bare string (it would be read letter by letter), or not a list of names.
    """
    if value is None:
        return None
    if isinstance(value, str):
        msg = f"{what} takes a list of toolset names, not one text; write [{value!r}]."
        raise TypeError(msg)
    try:
        names = tuple(value)
    except TypeError:
        msg = f"{what} takes a list of toolset names, not {type(value).__name__}."
        raise TypeError(msg) from None
    for name in names:
        if not isinstance(name, str):
            msg = f"{what} takes names, not {type(name).__name__}."
            raise TypeError(msg)
    return names


def read_handlers(handlers: Any) -> dict[str, Callable[..., Any]]:
    """A session's handlers of agent-level tools.

    Raises:
        TypeError: They aren't callables by name.
    """
    if handlers is None:
        return {}
    if not isinstance(handlers, Mapping):
        msg = f"handlers takes functions by tool name, not {type(handlers).__name__}."
        raise TypeError(msg)
    for name, handler in handlers.items():
        if not isinstance(name, str) or not callable(handler):
            msg = f"handlers: the handler of {name!r} must be callable, not {type(handler).__name__}."
            raise TypeError(msg)
    return dict(handlers)
