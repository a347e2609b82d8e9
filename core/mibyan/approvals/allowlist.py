"""`Allowlist`: what was allowed for good, the entries of `command_allowlist` in config.yaml (terminal.P3).

The file is the only memory: it is looked at before each decision and read when it has changed, whoever changed it.
"""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.errors import ConfigError
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from mibyan.approvals.verdict import Finding, Verdict

KEY: Final = "command_allowlist"
_ASKED: Final = re.compile(r"[A-Za-z0-9_.@-]+:\S")

#: What an entry names: a rule of commands, a question of a hook or tool (`plugin:key`), or commands.
EntryKind: TypeAlias = Literal["rule", "key", "glob"]


@record
class AllowEntry:
    """One line of the allowlist."""

    #: As it is written.
    text: str
    #: Where: `/home/me/.mibyan/config.yaml:12`; `Runtime(config=...)` for one that code gave.
    place: str = ""

    @property
    def kind(self) -> EntryKind:
        """What it names."""
        from mibyan.approvals.rules.book import RULES

        if self.text in RULES:
            return "rule"
        return "key" if _ASKED.match(self.text) else "glob"

    def to_dict(self) -> dict[str, str]:
        """As JSON types."""
        return {"entry": self.text, "kind": self.kind, "place": self.place}


class Allowlist:
    """The entries that count now.

    Args:
        path: The profile's config.yaml; it needn't exist.
        fixed: The entries that code gave (`Runtime(config=...)`): then the file's don't count, and nothing is added.
    """

    def __init__(self, path: Path, *, fixed: Sequence[str] | None = None) -> None:
        self._path = path
        self._fixed = None if fixed is None else tuple(AllowEntry(text, "Runtime(config=...)") for text in fixed)
        self._lock = threading.Lock()
        self._kept: tuple[Any, tuple[AllowEntry, ...]] | None = None
        #: Why the file can't be read; then it has no entries.
        self.problem: str | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def is_fixed(self) -> bool:
        """Whether code gave the entries, so that nothing can be added."""
        return self._fixed is not None

    def entries(self) -> tuple[AllowEntry, ...]:
        """What is allowed at this moment, in the order of the file; nothing while the file can't be read (`problem`)."""
        if self._fixed is not None:
            return self._fixed
        from mibyan.filecache import stamp

        now = stamp(self._path)  # `None`: it is being changed, or isn't there
        with self._lock:
            if now is not None and self._kept is not None and self._kept[0] == now:
                return self._kept[1]
            found = self._read()
            self._kept = (now, found)
        return found

    def add(self, *texts: str) -> tuple[str, ...]:
        """Allow something for good: a rule's id, `plugin:key` of a question, or a glob of commands.

        Returns:
            Those that weren't there before.

        Raises:
            ConfigError: The file can't be edited, or code gave the entries.
            MibyanError: It can't be locked or written.
        """
        from mibyan.config.edit import append_to_list

        self._require_file()
        return tuple(text for text in dict.fromkeys(texts) if append_to_list(self._path, KEY, text))

    def remove(self, text: str) -> bool:
        """Take an entry back, as it is written; whether it was there.

        Raises:
            ConfigError: As for `add`.
            MibyanError: As for `add`.
        """
        from mibyan.config.edit import remove_from_list

        self._require_file()
        return remove_from_list(self._path, KEY, text)

    def reasons(self, findings: Iterable[Finding], command: str | None) -> Mapping[str, AllowEntry]:
        """What allows findings: by finding's id the entry that does; a finding that isn't in it needs a grant.

        A glob that covers the whole of the command allows all of them. A `hardline` finding is never allowed.

        Args:
            findings: Of one command.
            command: Its text; `None`: there is none, so that no glob counts.
        """
        wanted = [finding.id for finding in findings if finding.level != "hardline"]
        entries = self.entries() if wanted else ()
        by_id = {entry.text: entry for entry in entries}
        found = {name: by_id[name] for name in wanted if name in by_id}
        if command and len(found) < len(set(wanted)) and (whole := _whole(entries, command)) is not None:
            found = {name: found.get(name, whole) for name in wanted}
        return found

    def covers(self, verdict: Verdict, command: str | None = None) -> bool:
        """Whether every finding about a command is allowed; `command`: its text, by default the verdict's own."""
        allowed = self.reasons(verdict.findings, command or verdict.command or None)
        return all(finding.level != "hardline" and finding.id in allowed for finding in verdict.findings)

    def after_fork(self) -> None:
        """In a child process: the lock may have been held."""
        self._lock = threading.Lock()

    def _require_file(self) -> None:
        if self._fixed is not None:
            raise ConfigError(
                f"'{KEY}' was given in code, so nothing is added to the file",
                hint="Leave it out of Runtime(config=...), and config.yaml has it.",
            )

    def _read(self) -> tuple[AllowEntry, ...]:
        from mibyan.config.yamlfile import read_document

        self.problem = None
        if not os.path.lexists(self._path):
            return ()
        try:
            document = read_document(self._path, str(self._path))
        except ConfigError as error:
            self.problem = str(error)
            return ()
        items = document.data.get(KEY)
        texts = enumerate(items) if isinstance(items, list) else ()
        return tuple(
            AllowEntry(text, document.where((KEY, number))) for number, text in texts if isinstance(text, str) and text
        )


def _whole(entries: Sequence[AllowEntry], command: str) -> AllowEntry | None:
    """The glob that covers a command."""
    from mibyan.approvals.globs import admits, is_pattern

    globs = [entry for entry in entries if entry.kind != "rule"]
    if not globs:
        return None
    simple = None
    if any(is_pattern(entry.text) for entry in globs):
        from mibyan.approvals.simple_commands import simple_commands

        listed = simple_commands(command)
        simple = listed.texts if listed.complete else None
    return next((entry for entry in globs if admits(entry.text, command, simple)), None)
