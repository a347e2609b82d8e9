"""`run`: from the words to an exit code; whatever goes wrong ends in a sentence."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.invocation import Invocation
from mibyan.cli.output import OutputError, say
from mibyan.cli.reading import read
from mibyan.cli.signals import ends_cleanly
from mibyan.errors import MibyanError
from mibyan.text import bounded, describe_exception, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.answers import Answers
    from mibyan.cli.reading import Reading

#: Characters of a message: an argument that is part of it can be of any length.
_LIMIT = 20_000
#: The modules that Mibyan can't do without, and the distributions that have them.
_NEEDED = {
    "click": "click", "cookiecutter": "cookiecutter", "docstring_parser": "docstring-parser", "filelock": "filelock", "jsonschema_rs": "jsonschema-rs",
    "importlib_metadata": "importlib-metadata", "packaging": "packaging", "pluggy": "pluggy", "pydantic": "pydantic",
    "pydantic_core": "pydantic", "yaml": "pyyaml", "rich": "rich",
}  # fmt: skip


def run(words: Sequence[str], asked: Answers | None = None) -> int:
    """Run a command.

    Args:
        words: The words after the program's name.
        asked: Where the answer is kept, if it is of that kind.

    Returns:
        What to exit with; everything that is to be said has been said.

    Raises:
        KeyboardInterrupt: It came meanwhile.
    """
    invocation, path = Invocation(), ""
    try:
        with ends_cleanly():
            reading = read(words, invocation.options)
            if reading is None:
                from mibyan.cli.byclick import run_by_click

                invocation = Invocation()
                return run_by_click(words, invocation)
            path = reading.path
            code = _done(reading, invocation, asked)
    except KeyboardInterrupt:
        if invocation.options.debug:
            _show_traceback()
        raise
    except BaseException as error:  # the border: nothing leaves but an exit code
        if invocation.options.debug:
            _show_traceback()
        return _told(error, path)
    return code if isinstance(code, int) else exits.OK


def _done(reading: Reading, invocation: Invocation, asked: Answers | None) -> Any:
    """Run the command; an answer of the kind that holds until something changes is kept."""
    if asked is None or not reading.command.lasting:
        return reading.command.run(invocation, reading.values)
    from mibyan.cli.footprint import Noting

    invocation.noting = Noting(asked, invocation.out)
    return invocation.noting.run(lambda: reading.command.run(invocation, reading.values))


def _show_traceback() -> None:
    import traceback

    say(traceback.format_exc(), end="")


def _told(error: BaseException, path: str) -> int:
    """Say what went wrong; the exit code."""
    match error:
        case exits.UsageError():
            return _told_usage(error, error.path or path)
        case exits.RefusedError():
            code = exits.REFUSED
        case OutputError():
            code = exits.FAILED
        case MibyanError():
            code = exits.USAGE
        case OSError():
            return _told_system(error)
        case _:
            return _told_fault(error)
    say(bounded(f"mibyan: error: {error}", _LIMIT))
    return code


def _told_usage(error: exits.UsageError, path: str) -> int:
    """Say that the words can't be understood, and which command's help says more; the exit code."""
    say(bounded(f"mibyan: error: {error.message}", _LIMIT))
    if path:
        say(f"Try `{path} --help`.")
    return exits.USAGE


def _told_system(error: OSError) -> int:
    """What the operating system refused, where nothing closer had words for it."""
    why = os.strerror(error.errno).lower() if error.errno else str(error)
    where = f"{error.filename}: " if isinstance(error.filename, str) else ""
    say(bounded(f"mibyan: error: {where}{why}", _LIMIT))
    return exits.USAGE


def _told_fault(error: BaseException) -> int:
    missing = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if missing in _NEEDED:
        say(f"mibyan: error: the module {missing!r}, which Mibyan needs, isn't installed")
        say(f"{sys.executable} -m pip install {_NEEDED[missing]}")
        return exits.USAGE
    say(bounded(f"mibyan: error: internal fault: {describe_exception(error)}", _LIMIT))
    say(_whose_doing())
    return exits.FAILED


def _whose_doing() -> str:
    """Whom to look at: what a plugin has done to the whole process comes out in Mibyan's own code."""
    transactions = sys.modules.get("mibyan.plugins.transaction")
    replaced: dict[str, tuple[str, ...]] = transactions.REPLACED if transactions is not None else {}
    told = [
        f"The plugin {one_line(plugin_id, 60)!r} has replaced {one_line(', '.join(names))} for the whole process: that may be why.\n"
        f"mibyan plugins disable {one_line(plugin_id, 60)}"
        for plugin_id, names in replaced.items()
    ]
    return "\n".join(told) or "That is Mibyan's own doing: please report it, with what `--debug` shows."
