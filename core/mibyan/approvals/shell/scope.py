"""`Scope`: what a script has set so far: variables, functions, the working directory, files it has written."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from mibyan.approvals.shell.values import HOME, NO_ORIGINS, UNKNOWN, Data

if TYPE_CHECKING:
    from mibyan.approvals.shell.params import Value

#: Variables whose values a script can't choose and nothing depends on.
_NUMBERS = frozenset({"?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "SHLVL"})

#: Characters of a file that the script writes up to which it is followed.
MAX_FILE = 200_000


class Scope:
    """The state of a shell at one point of a script.

    Args:
        cwd: The working directory, absolute; `None`: not known.
    """

    def __init__(self, cwd: str | None = None) -> None:
        self.variables: dict[str, Value | None] = {"IFS": " \t\n"}
        #: Where the values of variables come from, as far as it matters.
        self.origins: dict[str, frozenset[str]] = {}
        #: Variables that are other names of variables (`declare -n`).
        self.references: dict[str, str] = {}
        self.functions: dict[str, dict[str, Any]] = {}
        #: Functions that may be defined or not.
        self.doubtful: set[str] = set()
        self.cwd = cwd
        #: Where else it may be, if `cwd` isn't known.
        self.elsewhere: frozenset[str] = frozenset()
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
        #: Directories whose files come from the network.
        self.fetched_folders: set[str] = set()
        #: Whether the working directory is in one of them.
        self.in_fetched = False
        #: `$1`, `$2`, …; `None`: not known.
        self.positional: list[str] | None = None
        #: Whether it is the command itself, which gets no arguments.
        self.bare = False
        self.shell_name = UNKNOWN

    def copy(self) -> Scope:
        """A scope of a subshell: what it changes is its own, but files are everybody's."""
        made = Scope(self.cwd)
        made.variables, made.origins, made.references = (
            self.variables.copy(),
            self.origins.copy(),
            self.references.copy(),
        )
        made.functions, made.doubtful = self.functions.copy(), self.doubtful.copy()
        made.elsewhere, made.fetched_folders, made.in_fetched = self.elsewhere, self.fetched_folders, self.in_fetched
        made.home = self.home
        made.before, made.stack = self.before, self.stack.copy()
        made.files, made.executables, made.fetched_code = self.files, self.executables, self.fetched_code
        made.positional, made.shell_name, made.bare = self.positional, self.shell_name, self.bare
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

    def is_bare_argument(self, node: dict[str, Any]) -> bool:
        """Whether a parameter is one of a script's that gets none: `$1` or `$@` of the command itself."""
        name = node.get("Param", {}).get("Value", "")
        return self.bare and self.positional is None and (name in {"@", "*"} or (name.isdigit() and name != "0"))

    def set(self, name: str, value: Value | None, origins: frozenset[str] = NO_ORIGINS) -> None:
        """Set a variable, and the one that it is another name of."""
        self.variables[name] = value
        self.origins[name] = origins
        if name in self.references:
            self.variables[self.references[name]] = value

    def origins_of(self, name: str) -> frozenset[str]:
        """Where a variable's value comes from."""
        return self.origins.get(name, NO_ORIGINS)

    def put(self, path: str, data: Data, *, more: bool = False) -> None:
        """Note what is written to a file.

        What was written there before is kept with it, for a branch or a loop may not have been taken.

        Args:
            path: The file.
            data: What is written.
            more: Whether it is put behind what is there.
        """
        before = self.files.get(path)
        if before is None or before.text == data.text:
            self.files[path] = data if before is None else Data(data.text, data.origins | before.origins)
            return
        known = before.text is not None and data.text is not None and len(before.text) + len(data.text) < MAX_FILE
        text = f"{before.text}{'' if more else chr(10)}{data.text}" if known else None
        self.files[path] = Data(text, before.origins | data.origins)

    def settle(self, *branches: Scope) -> None:
        """After branches of which any may have run: what they set differently isn't known any more."""
        for branch in branches:
            for name, value in branch.variables.items():
                if self.variables.get(name, self) != value:
                    self.variables[name] = UNKNOWN
                    self.origins[name] = self.origins_of(name) | branch.origins_of(name)
            for name, body in branch.functions.items():
                if self.functions.get(name) is not body:
                    self.functions[name] = body
                    self.doubtful.add(name)
            self.doubtful |= branch.doubtful
            self.references.update(branch.references)
            if branch.cwd != self.cwd or branch.elsewhere != self.elsewhere:
                places = {self.cwd, branch.cwd} - {None}
                self.elsewhere |= branch.elsewhere | {place for place in places if place is not None}
                self.cwd = None
            self.fetched_code |= branch.fetched_code
            self.in_fetched |= branch.in_fetched

    def differs(self, other: Scope) -> bool:
        """Whether the variables, functions or the directory are others than in another scope."""
        return self.variables != other.variables or self.cwd != other.cwd or self.functions != other.functions

    def path(self, text: str) -> str:
        """A path as it is from the working directory: absolute where that is known, `HOME` first where it is the home's."""
        absolute = text.startswith(("/", HOME, UNKNOWN)) or not self.cwd
        path = _normal(text if absolute else f"{self.cwd}/{text}")
        if self.home and (path == self.home or path.startswith(self.home.rstrip("/") + "/")):
            return HOME + path[len(self.home.rstrip("/")) :]
        return path

    def paths(self, text: str) -> frozenset[str]:
        """A path from everywhere that the working directory may be."""
        if text.startswith(("/", HOME, UNKNOWN)) or not self.elsewhere:
            return frozenset((self.path(text),))
        return frozenset((self.path(text), *(self.path(f"{place}/{text}") for place in self.elsewhere)))

    def change_directory(self, target: str | None) -> None:
        """`cd`."""
        places = self.elsewhere
        self.elsewhere = frozenset()
        self.in_fetched = target is not None and self.path(target) in self.fetched_folders
        if target == "-":
            self.cwd, self.before = self.before, self.cwd
            return
        self.before = self.cwd
        relative = target is not None and not target.startswith(("/", HOME))
        known = target is not None and UNKNOWN not in target and (self.cwd is not None or not relative)
        self.cwd = self.path(target) if known and target is not None else None
        if places and relative and target is not None and UNKNOWN not in target:
            self.elsewhere = frozenset(_normal(f"{place}/{target}") for place in places)


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
