"""`Scope`: what a script has set so far: variables, functions, the working directory, files it has written."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from mibyan.approvals.shell.values import HOME, UNKNOWN, Data

if TYPE_CHECKING:
    from mibyan.approvals.shell.params import Value

#: Variables whose values a script can't choose and nothing depends on.
_NUMBERS = frozenset({"?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "SHLVL"})


class Scope:
    """The state of a shell at one point of a script.

    Args:
        cwd: The working directory, absolute; `None`: not known.
    """

    def __init__(self, cwd: str | None = None) -> None:
        self.variables: dict[str, Value | None] = {"IFS": " \t\n"}
        self.functions: dict[str, dict[str, Any]] = {}
        self.cwd = cwd
        #: The home directory's path, if it is known.
        self.home: str | None = None
        self.before: str | None = None
        self.stack: list[str | None] = []
        #: What is known of files that the script has written, by path.
        self.files: dict[str, Data] = {}
        #: Paths that it has made executable.
        self.executables: set[str] = set()
        #: Whether it has installed software from an address.
        self.fetched_code = False
        #: `$1`, `$2`, …; `None`: not known.
        self.positional: list[str] | None = None
        self.shell_name = UNKNOWN

    def copy(self) -> Scope:
        """A scope of a subshell: what it changes is its own, but files are everybody's."""
        made = Scope(self.cwd)
        made.variables = self.variables.copy()
        made.functions = self.functions.copy()
        made.home = self.home
        made.before, made.stack = self.before, self.stack.copy()
        made.files, made.executables, made.fetched_code = self.files, self.executables, self.fetched_code
        made.positional, made.shell_name = self.positional, self.shell_name
        return made

    def get(self, name: str) -> Value | None:
        """A variable's value; `None` if the script doesn't set it."""
        if name in self.variables:
            return self.variables[name]
        if name == "HOME":
            return HOME
        if name == "PWD":
            return self.cwd or UNKNOWN
        if name == "OLDPWD":
            return self.before or UNKNOWN
        if name in _NUMBERS:
            return UNKNOWN
        if name in {"@", "*"}:
            return UNKNOWN if self.positional is None else list(self.positional)
        if name.isdigit():
            return self._argument(int(name))
        return None

    def _argument(self, number: int) -> str:
        if number == 0:
            return self.shell_name
        if self.positional is None:
            return UNKNOWN
        return self.positional[number - 1] if number <= len(self.positional) else ""

    def is_inherited(self, name: str) -> bool:
        """Whether a variable may come from the environment."""
        return name not in self.variables

    def set(self, name: str, value: Value | None) -> None:
        """Set a variable."""
        self.variables[name] = value

    def settle(self, *branches: Scope) -> None:
        """After branches of which any may have run: what they set differently isn't known any more."""
        for branch in branches:
            for name, value in branch.variables.items():
                if self.variables.get(name, self) != value:
                    self.variables[name] = UNKNOWN
            self.functions.update(branch.functions)
            if branch.cwd != self.cwd:
                self.cwd = None
            self.fetched_code |= branch.fetched_code

    def path(self, text: str) -> str:
        """A path as it is from the working directory: absolute where that is known, `HOME` first where it is the home's."""
        absolute = text.startswith(("/", HOME, UNKNOWN)) or not self.cwd
        path = _normal(text if absolute else f"{self.cwd}/{text}")
        if self.home and (path == self.home or path.startswith(self.home.rstrip("/") + "/")):
            return HOME + path[len(self.home.rstrip("/")) :]
        return path

    def change_directory(self, target: str | None) -> None:
        """`cd`."""
        if target == "-":
            self.cwd, self.before = self.before, self.cwd
            return
        self.before = self.cwd
        relative = target is not None and not target.startswith(("/", HOME))
        known = target is not None and UNKNOWN not in target and (self.cwd is not None or not relative)
        self.cwd = self.path(target) if known and target is not None else None


def _normal(text: str) -> str:
    """A path without `.`, `..` and doubled slashes; a relative one stays relative."""
    if text.startswith(HOME):
        rest = posixpath.normpath("/" + text[1:].lstrip("/")) if text[1:] else "/"
        inside = posixpath.normpath(text[1:].lstrip("/") or ".")
        if inside.startswith(".."):
            return "/home" if inside == ".." else posixpath.normpath("/home/" + inside[3:])
        return HOME if rest == "/" else HOME + rest
    found = posixpath.normpath(text)
    return "/" + found.lstrip("/") if found.startswith("//") else found
