"""`Arg` and `Data`: words and streams as far as they are known before anything runs."""

from __future__ import annotations

from typing import Final

from mibyan.records import record

#: Stands in a text for what isn't known; NUL can't be in a command.
UNKNOWN: Final = "\x00"
#: Stands in a text for the home directory.
HOME: Final = "\x01"

#: Where data comes from, as far as it matters.
NETWORK: Final = "network"
DECODED: Final = "decoded"
CREDENTIAL: Final = "credential"
PROCESS_IDS: Final = "pids"
#: Written by a program so that a shell evaluates it, such as `ssh-agent`.
INITIALISER: Final = "initialiser"
#: Written by a shell.
SHELL_OUTPUT: Final = "shell"

NO_ORIGINS: Final[frozenset[str]] = frozenset()


@record(eq=False)
class Data:
    """What flows through a pipe or stands in a file."""

    #: Its text; `None`: not known. Parts that aren't known are `UNKNOWN`.
    text: str | None = None
    origins: frozenset[str] = NO_ORIGINS
    #: Whether there is any: a terminal isn't.
    given: bool = True


#: Standard input that nobody gives.
NOTHING: Final = Data("", given=False)
SILENCE: Final = Data("")


@record(eq=False)
class Arg:
    """One word of a command after expansion."""

    text: str
    #: The positions of characters that the shell matches file names with.
    active: frozenset[int] = frozenset()
    #: From and to in the command as given, in characters.
    span: tuple[int, int] = (0, 0)
    #: Where what a substitution put into it comes from.
    origins: frozenset[str] = NO_ORIGINS
    #: What can be read at it, if it is a process substitution.
    data: Data | None = None
    #: Whether it stands in the command as it is, without quotes and expansions.
    plain: bool = False

    @property
    def known(self) -> bool:
        """Whether nothing in it is unknown."""
        return UNKNOWN not in self.text

    @property
    def globbed(self) -> bool:
        """Whether file names are matched with it."""
        return bool(self.active)

    def after(self, prefix: str) -> Arg:
        """The same without its first characters."""
        cut = len(prefix)
        active = frozenset(index - cut for index in self.active if index >= cut)
        return Arg(self.text[cut:], active, self.span, self.origins, self.data)


def as_code(text: str) -> str:
    """A text as shell code that means it: what isn't known is a variable of its own, and so is the home directory."""
    return text.replace(UNKNOWN, "${__unknown__}").replace(HOME, "${HOME}")


def joined(parts: list[Data]) -> Data:
    """What several commands write, one after the other."""
    origins = NO_ORIGINS.union(*(part.origins for part in parts))
    texts = [part.text for part in parts]
    return Data("".join(text for text in texts if text is not None) if None not in texts else None, origins)
