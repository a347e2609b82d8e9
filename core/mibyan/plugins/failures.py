"""Why a plugin couldn't be loaded, in words: what happened, where in its code, what to do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan.errors import MibyanError
from mibyan.text import bounded, describe_exception, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.plugins.importing import PluginCode

#: Characters of a reason.
_LIMIT = 500


def describe_failure(
    error: BaseException, code: PluginCode | None, clean: Callable[[str], str] = str
) -> tuple[str, str | None]:
    """The reason and the hint for what a plugin's loading raised; never raises, whatever it is.

    Args:
        error: What was raised.
        code: The plugin's code, to find the place in it.
        clean: Takes secrets out of a text, before anything of it is cut.
    """
    try:
        reason, hint = _described(error, code, clean)
    except Exception:  # an exception of the plugin's own making, whose attributes aren't what they should be
        reason, hint = f"it raised {clean(describe_exception(error))}", None
    return bounded(visible(str(reason)), 4 * _LIMIT), None if hint is None else bounded(visible(str(hint)), 4 * _LIMIT)


def _described(error: BaseException, code: PluginCode | None, clean: Callable[[str], str]) -> tuple[str, str | None]:
    place = _place(error, code)
    at = f" ({place})" if place else ""
    if isinstance(error, MibyanError):
        reason, hint = clean(str(error.message)), None if error.hint is None else clean(str(error.hint))
        return reason if "\n" in reason else f"{reason}{at}", hint
    if isinstance(error, SyntaxError):
        line = f" ({error.filename}:{error.lineno})" if error.filename else ""
        return f"its code isn't Python: {one_line(str(error.msg), _LIMIT)}{line}", "Mend the file."
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"it imports {error.name!r}, which isn't there{at}", _where_to_get(error.name, place)
    if isinstance(error, SystemExit):
        return f"it ended the program ({one_line(clean(describe_exception(error)), _LIMIT)}){at}", None
    return f"it raised {one_line(clean(describe_exception(error)), _LIMIT)}{at}", None


def _place(error: BaseException, code: PluginCode | None) -> str | None:
    """`file:line` of the innermost frame that is the plugin's."""
    place = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        name = frame.f_globals.get("__name__")
        if code is not None and isinstance(name, str) and code.belongs(name, None):
            place = f"{frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _where_to_get(name: str, place: str | None) -> str:
    """What to do about a module that isn't there: a neighbour is imported relatively, anything else is installed."""
    folder = os.path.dirname(place.rpartition(":")[0]) if place else ""  # noqa: PTH120 - text
    top = name.partition(".")[0]
    if any(os.path.exists(os.path.join(folder, found)) for found in (f"{top}.py", top) if folder):  # noqa: PTH110, PTH118 - text
        return f"{top!r} lies beside it: write `from . import {top}` (or `from .{top} import ...`)."
    return f"Install what has the module {top!r} into Mibyan's environment."
