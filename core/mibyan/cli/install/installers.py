"""Which installer an environment has of its own (pip, uv or pipx), why that one, and how it is run (plugins.W4)."""
# os and text: what lies in an environment may be anything.
# ruff: noqa: PTH113, PTH118

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from mibyan.errors import MibyanError
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Name: TypeAlias = Literal["pip", "uv", "pipx"]

#: The installers, by their names.
NAMES = ("pip", "uv", "pipx")
#: The option that lets an installer change an environment that the system's package manager owns (PEP 668).
BREAK = "--break-system-packages"
#: Lines of a failed installer's output that are shown.
_LAST = 20
#: Installers speak plainly here, and ask nobody.
_QUIET = {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1", "UV_NO_PROGRESS": "1",
          "PIP_PROGRESS_BAR": "off", "PIPX_DEFAULT_LOG_LEVEL": "INFO", "USE_EMOJI": "0", "GIT_TERMINAL_PROMPT": "0"}  # fmt: skip


class InstallerError(MibyanError):
    """An installer has failed; the message has its last lines."""


@record
class Environment:
    """What is known about the environment that Mibyan runs in, and that plugins are installed into."""

    #: The interpreter.
    python: str
    #: `sys.prefix`.
    prefix: str
    #: Whether it is a virtual environment.
    is_virtual: bool = True
    #: What Mibyan's own dist-info says it was installed with, in lower case; empty: it doesn't say.
    recorded: str = ""
    #: Whether Mibyan lies in the user's site directory (`pip install --user`).
    in_user_site: bool = False
    #: Whether `python -m pip` works.
    has_pip: bool = True
    #: The programs, where they were found.
    uv: str | None = None
    pipx: str | None = None
    #: Whether pyvenv.cfg says that uv made it; and whether `uv tool install` did.
    made_by_uv: bool = False
    is_uv_tool: bool = False
    #: Its name among pipx's, if pipx made it.
    pipx_name: str | None = None
    #: The mark of the system's package manager (PEP 668), which must be left alone.
    managed: str | None = None
    #: Where distributions go, and whether that can be written to.
    site: str = ""
    is_writable: bool = True
    #: Whether pip may use the user's site directory instead.
    has_user_site: bool = False

    @classmethod
    def running(cls) -> Environment:
        """The environment of this process."""
        import site

        prefix, is_virtual = sys.prefix, sys.prefix != sys.base_prefix
        packages = sysconfig.get_path("purelib")
        return cls(
            sys.executable, prefix, is_virtual, *_recorded(), has_pip=_has_pip(), uv=_program("uv"), pipx=_program("pipx"),
            made_by_uv=_says_uv(prefix), is_uv_tool=os.path.isfile(os.path.join(prefix, "uv-receipt.toml")),
            pipx_name=Path(prefix).name if os.path.isfile(os.path.join(prefix, "pipx_metadata.json")) else None,
            managed=None if is_virtual else _managed(), site=packages, is_writable=os.access(packages, os.W_OK),
            has_user_site=not is_virtual and bool(site.ENABLE_USER_SITE),
        )  # fmt: skip


def _recorded() -> tuple[str, bool]:
    """What Mibyan was installed with, and whether into the user's site directory."""
    import site
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution("mibyan")
        place = os.path.realpath(str(found.locate_file("")))
        user = site.getusersitepackages() if sys.prefix == sys.base_prefix else None
        return (found.read_text("INSTALLER") or "").strip().lower(), bool(user) and place == os.path.realpath(str(user))
    except (PackageNotFoundError, OSError, UnicodeDecodeError):
        return "", False


def _has_pip() -> bool:
    from importlib.machinery import PathFinder

    # Not in the current directory: a folder called pip there is nobody's installer.
    return PathFinder.find_spec("pip", [entry for entry in sys.path if entry and entry != os.getcwd()]) is not None  # noqa: PTH109


def _program(name: str) -> str | None:
    """A program on PATH, or among the environment's own; never one that lies in the current directory by chance."""
    import shutil

    said = os.environ.get("UV") if name == "uv" else None  # `uv run` says which uv it is
    places = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]  # noqa: PTH117
    found = shutil.which(said) if said and os.path.isabs(said) else None  # noqa: PTH117
    return found or shutil.which(name, path=os.pathsep.join([*places, sysconfig.get_path("scripts")]))


def _says_uv(prefix: str) -> bool:
    """Whether uv has written the environment's pyvenv.cfg."""
    try:
        text = Path(prefix, "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in text.splitlines())


def _managed() -> str | None:
    path = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return path if os.path.isfile(path) else None


@record
class Installer:
    """An environment's installer, and why it is this one."""

    name: Name
    #: A clause: "because ...".
    why: str
    environment: Environment

    def install(
        self, words: Sequence[str], *, more: Sequence[str] = (), upgrade: bool = False, name: str = "",
        replaces: bool = False,
    ) -> list[str]:  # fmt: skip
        """The command that installs.

        Args:
            words: What: a requirement, a path, a URL, or `-e` and a path.
            more: Further arguments.
            upgrade: Whether the newest that fits is taken where something fits that is there already.
            name: The distribution's name, if it is known; what it needs isn't upgraded without need.
            replaces: Whether the distribution is there in another version.
        """
        if self.name == "pipx":
            return self._by_pipx(words, more, upgrade=upgrade, replaces=replaces)
        named = [f"--upgrade-package={name}"] if self.name == "uv" and name else ["--upgrade"]
        return [*self._base("install"), *(named if upgrade else []), *more, *words]

    def _by_pipx(self, words: Sequence[str], more: Sequence[str], *, upgrade: bool, replaces: bool) -> list[str]:
        import shlex

        one = self.environment
        if replaces:  # `inject --force` would install all that the plugin needs again, Mibyan too.
            upgraded = ["--upgrade"] if upgrade and one.has_pip else []
            return [str(one.pipx), "runpip", str(one.pipx_name), "install", *upgraded, *_joined(more), *words]
        options = [*(["--editable"] if words[0] == "-e" else []), *([f"--pip-args={shlex.join(more)}"] if more else [])]
        return [str(one.pipx), "inject", str(one.pipx_name), *options, words[-1]]

    def uninstall(self, distribution: str, *, more: Sequence[str] = ()) -> list[str]:
        """The command that removes a distribution."""
        if self.name == "pipx":  # Of what the plugin needs, some may be needed by Mibyan.
            return [
                str(self.environment.pipx),
                "uninject",
                "--leave-deps",
                str(self.environment.pipx_name),
                distribution,
            ]
        return [*self._base("uninstall"), *(["--yes"] if self.name == "pip" else []), *more, distribution]

    def beneath(self) -> Installer:
        """The installer that does pipx's work: pip, or uv where there is no pip; else this one."""
        if self.name != "pipx":
            return self
        name: Name = "pip" if self.environment.has_pip else "uv"
        return Installer(name, "pipx uses it", self.environment)

    def _base(self, verb: str) -> list[str]:
        one = self.environment
        if self.name == "uv":
            compiled = ["--compile-bytecode"] if verb == "install" else []
            return [str(one.uv), "pip", verb, "--python", one.python, *compiled]
        # -P: what lies in the current directory isn't pip.
        return [one.python, "-P", "-m", "pip", verb, *(["--user"] if one.in_user_site and verb == "install" else [])]


def _joined(words: Sequence[str]) -> list[str]:
    """Each option and its value as one word: pipx takes what stands alone for a package's name."""
    found: list[str] = []
    for word in words:
        if found and found[-1].startswith("--") and "=" not in found[-1] and not word.startswith("-"):
            found[-1] = f"{found[-1]}={word}"
        else:
            found.append(word)
    return found


def choose(environment: Environment, wanted: str | None = None) -> Installer:
    """The installer of an environment.

    Args:
        environment: What is known about it.
        wanted: The one that the operator names.

    Raises:
        MibyanError: There is none, or not that one.
    """
    if wanted is not None:
        return Installer(_named(environment, wanted), "because --installer says so", environment)
    able = [name for name, reason in ((name, _lack(environment, name)) for name in NAMES) if reason is None]
    for name, fits, why in _reasons(environment):
        if fits and name in able:
            return Installer(name, why, environment)
    raise MibyanError(
        f"{environment.python} has no pip, and the program uv isn't on PATH: nothing here can install",
        hint=f"{environment.python} -m ensurepip, or install uv",
    )


def _reasons(one: Environment) -> list[tuple[Name, bool, str]]:
    """The installers in the order in which they are preferred: which, whether, why."""
    return [
        ("pipx", one.pipx_name is not None, "because pipx made this environment"),
        ("uv", one.is_uv_tool, "because `uv tool` made this environment"),
        ("uv", one.recorded == "uv", "because Mibyan was installed with it"),
        ("pip", one.recorded == "pip" and not one.made_by_uv, "because Mibyan was installed with it"),
        ("uv", one.made_by_uv, "because it made this environment"),
        ("pip", True, "because this environment has it"),
        ("uv", True, "because this environment has no pip"),
    ]


def _named(environment: Environment, wanted: str) -> Name:
    for name in ("pip", "uv", "pipx"):
        if name == wanted:
            lack = _lack(environment, name)
            if lack is not None:
                raise MibyanError(f"--installer {name}: {lack}", hint="Leave --installer out.")
            return name
    from mibyan.cli.exits import UsageError
    from mibyan.text import one_line

    raise UsageError(f"--installer is one of {', '.join(NAMES)}, not {one_line(wanted, 60)!r}")


def _lack(environment: Environment, name: str) -> str | None:
    """Why an installer can't be used; `None` if it can."""
    if name == "pip":
        return None if environment.has_pip else f"{environment.python} has no pip"
    if name == "uv":
        return None if environment.uv else "the program uv isn't on PATH"
    if environment.pipx_name is None:
        return "pipx didn't make this environment"
    return None if environment.pipx else "the program pipx isn't on PATH"


def require_changeable(environment: Environment, more: Sequence[str] = ()) -> None:
    """Raise where an installer would be refused, or would do harm.

    Args:
        environment: What would be changed.
        more: The operator's own arguments for the installer.

    Raises:
        MibyanError: The environment belongs to the system, or can't be written to.
    """
    if environment.managed and BREAK not in more:
        raise MibyanError(
            f"{environment.prefix} belongs to the system's package manager ({environment.managed}, PEP 668)",
            hint="Give Mibyan an environment of its own: pipx install mibyan, or "
            f"{environment.python} -m venv ENV && ENV/bin/python -m pip install mibyan",
        )
    if not environment.is_writable and not environment.has_user_site:
        raise MibyanError(
            f"{environment.site} can't be written to by you: nothing can be installed or removed there",
            hint="Do it as the one who owns it, or give Mibyan an environment of its own.",
        )


def run(command: Sequence[str], environment: Environment, cwd: str | os.PathLike[str]) -> str:
    """Run an installer to its end.

    Args:
        command: Its words.
        environment: The environment that it works on.
        cwd: A folder in which nothing lies: some read settings where they are started.

    Returns:
        What it has said.

    Raises:
        InstallerError: It has failed, or can't be started.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd, check=False,
            env=_variables(environment),
        )  # fmt: skip
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
        raise InstallerError(f"{command[0]} can't be started: {why}") from None
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise InstallerError(f"{_called(command)} ended with {done.returncode}; its last lines:\n{last_lines(said)}")
    return said


def _called(command: Sequence[str]) -> str:
    """An installer and its verb, for a sentence."""
    words = [word for word in command[1:5] if not word.startswith("-")]
    return " ".join(words if "-m" in command[:4] else [Path(command[0]).name, *words[:2]])


def _variables(environment: Environment) -> Mapping[str, str]:
    home = Path(environment.prefix).parent
    own = {"PIPX_HOME": str(home.parent)} if environment.pipx_name and home.name == "venvs" else {}
    return {**os.environ, **_QUIET, **own}


def last_lines(said: str, count: int = _LAST) -> str:
    """The last lines of an installer's output, set in, without empty ones and without secrets of its URLs."""
    from mibyan.text import bounded, visible

    lines = [visible(line.replace("\t", "    ").rstrip()) for line in said.splitlines() if line.strip()]
    return "\n".join(f"    {bounded(without_secrets(line), 400)}" for line in lines[-count:]) or "    (it said nothing)"


def without_secrets(text: str) -> str:
    """`text` without what stands before an `@` in its URLs."""
    import re

    return re.sub(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@]*@", r"\1…@", text)


def shown(command: Iterable[str]) -> str:
    """A command as one would type it."""
    import shlex

    return without_secrets(shlex.join(command))
