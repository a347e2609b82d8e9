"""`Executed`: what a call executes beside the commands that are its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mibyan.approvals.code import Code
from mibyan.approvals.foreign_code import foreign_code
from mibyan.approvals.shell.values import DECODED, INITIALISER, NETWORK, Arg, Data, as_code
from mibyan.records import field, record

if TYPE_CHECKING:
    from mibyan.approvals.shell.call import Call

_HARMLESS: Final = frozenset((
    "cat", "less", "more", "most", "bat", "delta", "true", ":", "false", "head", "diff-so-fancy", "gzip", "gunzip", "pigz", "zstd", "unzstd", "xz",
    "bzip2", "lz4", "lzip", "lzop", "pbzip2", "brotli", "ssh", "vim", "vi", "nvim", "nano", "emacs", "code", "echo", "pg", "ls", "tree", "file", "rsh", "rsync",
))  # fmt: skip


@record(frozen=False, eq=False)
class Executed:
    """What a call executes."""

    codes: list[Code] = field(default_factory=list)
    #: Rules, and the word that they are about.
    rules: list[tuple[str, tuple[int, int]]] = field(default_factory=list)

    def add(self, other: Executed) -> None:
        """What else it executes."""
        self.codes += other.codes
        self.rules += other.rules

    def add_data(self, call: Call, data: Data, span: tuple[int, int], *, as_shell: bool, language: str = "") -> None:
        """Data that is run as a program."""
        if not data.given or INITIALISER in data.origins:
            return
        noted = self.add_origins(data.origins, span)
        if not as_shell:
            self.rules.append(("inline_script", span))
            self.add_foreign(call, data.text or "", span, language)
        elif data.text is not None:
            scope = call.scope.copy()
            scope.bare = False
            self.codes.append(Code(as_code(data.text), call.inner(call.args, scope=scope), span))
        elif not noted:
            self.rules.append(("opaque_exec", span))

    def add_code(self, call: Call, arg: Arg, **changes: object) -> None:
        """A word that is run as shell code."""
        self.add_origins(arg.origins, arg.span)
        self.codes.append(Code(as_code(arg.text), call.inner(call.args, **changes), arg.span))

    def add_foreign(self, call: Call, text: str, span: tuple[int, int], language: str = "") -> None:
        """Code in another language: what shell code is in it, and what else it does."""
        codes, rules = foreign_code(text, language)
        self.codes += [Code(as_code(code), call.inner(call.args), span) for code in codes]
        self.rules += [(rule, span) for rule in rules]

    def add_command(self, call: Call, value: Arg) -> None:
        """The value of an option that is a command."""
        first = value.text.split()
        program = first[0].rsplit("/", 1)[-1] if first else ""
        if first and (program not in _HARMLESS or "/" in first[0]):
            self.rules.append(("exec_flag", value.span))
        self.add_code(call, value)

    def add_origins(self, origins: frozenset[str], span: tuple[int, int]) -> bool:
        """Where what is executed comes from; whether that is from afar."""
        rules = {NETWORK: "remote_exec", DECODED: "decode_exec"}
        found = [(rule, span) for origin, rule in rules.items() if origin in origins]
        self.rules += found
        return bool(found)
