"""Commands that never end by themselves: nobody waits for them in the foreground (terminal.T2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Programs that are servers or never end, whatever their arguments.
_ALWAYS: Final = frozenset({
    "daphne", "gunicorn", "htop", "http-server", "hypercorn", "live-server", "nodemon", "top", "uvicorn", "watch", "browser-sync",
})  # fmt: skip
#: Programs with the words of which the first argument makes a server of them.
_COMMANDS: Final[dict[str, frozenset[str]]] = {
    "celery": frozenset({"worker", "beat"}), "django-admin": frozenset({"runserver"}), "fastapi": frozenset({"dev", "run"}),
    "flask": frozenset({"run"}), "hugo": frozenset({"server", "serve"}), "jekyll": frozenset({"serve", "server"}),
    "jupyter": frozenset({"lab", "notebook", "server"}), "manage.py": frozenset({"runserver"}), "mkdocs": frozenset({"serve"}),
    "next": frozenset({"dev", "start"}), "ng": frozenset({"serve"}), "rails": frozenset({"server", "s"}),
    "streamlit": frozenset({"run"}), "webpack": frozenset({"serve"}), "webpack-dev-server": frozenset({""}),
    "vite": frozenset({"", "dev", "serve", "preview"}),
}  # fmt: skip
#: What package tools run under these names is most often a server.
_SCRIPTS: Final = frozenset({"dev", "serve", "start", "watch"})
_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
#: Words before a program that only find it.
_FINDERS: Final = (
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("npx",),
    ("pnpx",),
    ("bunx",),
    ("bundle", "exec"),
)
_PYTHON: Final = re.compile(r"python[\d.]*|py")
#: Arguments with which a program says something and ends.
_SAYS: Final = frozenset({"--help", "-h", "--version", "-V", "help", "version"})


def refuse_endless(command: str) -> None:
    """Refuse a command that would be waited for in vain.

    Raises:
        ToolError: It has a server, or something that follows a file for ever, in the foreground.
    """
    if not _HINT.search(command):
        return  # Most commands needn't be parsed for this.
    from mibyan.approvals import foreground_commands

    for words in foreground_commands(command):
        if is_endless(words):
            raise ToolError(
                f"`{' '.join(words)[:120]}` doesn't end by itself, so a foreground command would only run into its timeout",
                hint="Run it with background=true; or let it end: put `timeout 10` before it, or `| head -50` after it.",
            )


def is_endless(words: Sequence[str]) -> bool:
    """Whether a simple command never ends by itself.

    Args:
        words: The program's name, and its arguments.
    """
    words = _found(list(words))
    if not words or _SAYS & {*words[1:]}:
        return False
    name, arguments = words[0], words[1:]
    first = next((word for word in arguments if not word.startswith("-")), "")
    if name in _ALWAYS:
        return True
    if name in _COMMANDS:
        return first in _COMMANDS[name]
    if name in _RUNNERS:
        script = arguments[1:2] if arguments[:1] == ["run"] else arguments[:1]
        return bool(_SCRIPTS & {*script})
    check = _CHECKS.get(name)
    return check is not None and check(arguments)


def _found(words: list[str]) -> list[str]:
    """The program that is meant: `python -m uvicorn` is uvicorn, `python manage.py` is manage.py."""
    for finder in _FINDERS:
        if tuple(words[: len(finder)]) == finder:
            words = words[len(finder) :]
    if words and _PYTHON.fullmatch(words[0]):
        rest = words[1:]
        if rest[:1] == ["-m"]:
            return rest[1:]
        if rest and rest[0].endswith(".py"):
            return [rest[0].rsplit("/", 1)[-1], *rest[1:]]
    return words


def _follows(arguments: Sequence[str]) -> bool:
    short = [word[1:] for word in arguments if re.fullmatch(r"-[A-Za-z]+", word)]
    follows = any(word == "--follow" or word.startswith("--follow=") for word in arguments)
    return (follows or any({*"fF"} & {*word} for word in short)) and not any(w.startswith("--pid") for w in arguments)


def _logs(arguments: Sequence[str]) -> bool:
    return "logs" in arguments and _follows(arguments)


def _compose(arguments: Sequence[str]) -> bool:
    up = "up" in arguments and not {"-d", "--detach", "--wait", "--no-start"} & {*arguments}
    return up or _logs(arguments)


_CHECKS: Final[dict[str, Callable[[Sequence[str]], bool]]] = {
    "tail": _follows,
    "journalctl": _follows,
    "kubectl": _logs,
    "docker": lambda words: _compose(words[1:]) if words[:1] == ["compose"] else _logs(words),
    "docker-compose": _compose,
    "dmesg": lambda words: bool({"-w", "-W", "--follow", "--follow-new"} & {*words}),
    "http.server": lambda _words: True,
    "php": lambda words: "-S" in words,
    "ping": lambda words: not any(re.match(r"-[a-zA-Z]*[cw]", word) for word in words),
    "sleep": lambda words: "infinity" in words,
    "tsc": lambda words: bool({"-w", "--watch"} & {*words}),
    "redis-server": lambda words: "--daemonize" not in words,
}
#: What no endless command is without.
_HINT: Final = re.compile("|".join(map(re.escape, sorted({*_ALWAYS, *_COMMANDS, *_RUNNERS, *_CHECKS}))))
