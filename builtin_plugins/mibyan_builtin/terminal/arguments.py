"""The arguments of `terminal`: checked before anything is started (terminal.T3)."""

from __future__ import annotations

import math
from typing import Any

from mibyan import ToolError

#: Bytes of a command: what Linux takes as one argument of a program.
MAX_COMMAND = 128 * 1024 - 1
#: Bytes of the input.
MAX_STDIN = 16 * 1024 * 1024
#: Characters of a command that a person is shown.
SHOWN_COMMAND = 2000


def checked_command(command: str) -> str:
    """`command`, if a shell can be given it.

    Raises:
        ToolError: It can't.
    """
    if not command.strip():
        raise ToolError("The command is empty")
    if "\0" in command:
        raise ToolError("The command has a NUL character in it")
    size = len(_bytes(command, "command"))
    if size > MAX_COMMAND:
        raise ToolError(
            f"The command is {size:,} bytes long; the limit is {MAX_COMMAND:,}",
            hint="Write it into a file with write_file and run that; or give data through stdin.",
        )
    return command


def checked_stdin(stdin: str | None) -> bytes | None:
    """The bytes for the command's standard input.

    Raises:
        ToolError: They are too many, or not text.
    """
    if stdin is None:
        return None
    data = _bytes(stdin, "stdin")
    if len(data) > MAX_STDIN:
        raise ToolError(f"stdin is {len(data):,} bytes long; the limit is {MAX_STDIN:,}")
    return data


def checked_timeout(timeout: float | None, default: float) -> float:
    """Seconds.

    Raises:
        ToolError: It isn't a number of seconds greater than zero.
    """
    if timeout is None:
        return float(default)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ToolError(f"timeout is a number of seconds; got {timeout!r}")
    if not math.isfinite(timeout) or timeout <= 0:
        raise ToolError(f"timeout is a number of seconds greater than 0; got {timeout}")
    return float(timeout)


def refuse_later(arguments: dict[str, Any]) -> None:
    """Refuse what this version can't do, rather than do something else.

    Raises:
        ToolError: One of `arguments` is asked for.
    """
    asked = [name for name, value in arguments.items() if value]
    if asked:
        raise ToolError(
            f"{' and '.join(asked)}: not available yet; this version runs commands in the foreground",
            hint="Run the command in the foreground, with a timeout that is long enough.",
        )


def checked_workdir(workdir: str | None) -> str | None:
    """`workdir`, if it can be a path.

    Raises:
        ToolError: It can't.
    """
    if workdir is None:
        return None
    if "\0" in workdir or not workdir.strip():
        raise ToolError("workdir is empty or has a NUL character in it")
    _bytes(workdir, "workdir")
    return workdir


def _bytes(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"{name} has half of a surrogate pair at character {error.start + 1}") from None


def shown(command: str) -> str:
    r"""`command` for a person to judge: nothing in it is hidden or steers the terminal, and a long one is cut.

    Line breaks stay; other controls, and characters that show nothing or change the direction of others, are written
    as `\xNN` and `\uNNNN`.
    """
    if len(command) > SHOWN_COMMAND:
        half = SHOWN_COMMAND // 2
        left_out = len(command) - 2 * half
        command = f"{command[:half]}\n[… {left_out:,} more characters …]\n{command[-half:]}"
    return "".join(map(_visible, command))


def _visible(character: str) -> str:
    import unicodedata

    if character in "\n\t " or unicodedata.category(character)[0] in "LMNPS":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
