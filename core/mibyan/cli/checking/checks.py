"""`Checklist`: what was checked, what came of it, and how to mend what isn't right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.cli.exits import UsageError
from mibyan.records import as_dict, record
from mibyan.text import one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

#: `warn`: it works, and somebody will be sorry; `skipped`: it couldn't be looked at, the text says why.
Status: TypeAlias = Literal["ok", "warn", "fail", "skipped"]

#: The checks by id, in their order, with the rule of each. The first part runs no code, the second one does.
STATIC: Final = {
    "archive": "plugins.W3",
    "wheel.metadata": "plugins.F3",
    "wheel.record": "plugins.F3",
    "project": "plugins.F3",
    "entry-point": "plugins.F3",
    "id": "plugins.F2",
    "version": "plugins.M2",
    "manifest": "plugins.M1",
    "manifest.shipped": "plugins.M1",
    "requires-mibyan": "plugins.M3",
    "modules": "plugins.W6",
    "syntax": "plugins.L2",
    "schemas": "registry.D4",
    "description": "plugins.M2",
    "readme": "plugins.W1",
    "license": "plugins.M2",
}
DYNAMIC: Final = {
    "build": "plugins.W3",
    "install": "plugins.W3",
    "load": "plugins.L2",
    "import.time": "plugins.W3",
    "import.files": "plugins.W3",
    "import.threads": "plugins.W3",
    "import.processes": "plugins.W3",
    "import.sockets": "plugins.W3",
    "import.prints": "plugins.W3",
    "import.process": "plugins.L2",
    "unload": "plugins.L7",
    "frozen": "plugins.M4",
}
RULES: Final = {**STATIC, **DYNAMIC}

#: Characters of a text, a mend and a place: what plugins and packages say may be long.
_LIMIT = 600


@record
class Check:
    """What came of one check."""

    id: str
    status: Status
    #: The rule that it is about.
    rule: str
    #: What was found, in a sentence.
    text: str
    #: The command or the edit that mends it.
    fix: str | None = None
    #: Where: a path, `file:line`.
    origin: str | None = None


class Checklist:
    """The checks of one plugin; of one id there may be several problems.

    Args:
        left_out: Ids that nobody wants checked, or the part before their dot (`import`).

    Raises:
        UsageError: There is no such check.
    """

    def __init__(self, left_out: Iterable[str] = ()) -> None:
        self._left_out = frozenset(_expanded(left_out))
        self._found: list[Check] = []
        self._names: dict[str, str] = {}

    def call(self, place: str, shown: str) -> None:
        """Call a place something else from now on: a scratch folder's name tells nobody anything."""
        self._names[place] = shown

    def ok(self, check_id: str, text: str) -> None:
        """It is as it should be."""
        self._add("ok", check_id, text)

    def warn(self, check_id: str, text: str, fix: str | None = None, origin: str | None = None) -> None:
        """It works, and somebody will be sorry."""
        self._add("warn", check_id, text, fix, origin)

    def fail(self, check_id: str, text: str, fix: str | None = None, origin: str | None = None) -> None:
        """It isn't fit to be published."""
        self._add("fail", check_id, text, fix, origin)

    def skip(self, check_ids: Iterable[str], why: str) -> None:
        """It can't be looked at; nothing for those that something is known of."""
        for check_id in check_ids:
            self._add("skipped", check_id, why)

    def _add(self, status: Status, check_id: str, text: str, fix: str | None = None, origin: str | None = None) -> None:
        if check_id not in self._left_out:
            plain = [None if part is None else self._plain(part) for part in (fix, origin)]
            self._found.append(Check(check_id, status, RULES[check_id], self._plain(text), *plain))

    def _plain(self, text: str) -> str:
        for place, shown in self._names.items():
            text = text.replace(place, shown)
        return one_line(text, _LIMIT)

    def has_failed(self, check_id: str) -> bool:
        """Whether a check has failed."""
        return any(check.id == check_id and check.status == "fail" for check in self._found)

    @property
    def checks(self) -> list[Check]:
        """What came of all, in their order: of each the problems, or else the one best thing that is known."""
        return [check for check_id in RULES for check in self._of(check_id)]

    def _of(self, check_id: str) -> list[Check]:
        if check_id in self._left_out:
            return [Check(check_id, "skipped", RULES[check_id], "left out by --skip")]
        mine = [check for check in self._found if check.id == check_id]
        problems = [check for check in mine if check.status in {"fail", "warn"}]
        fine = [check for check in mine if check.status == "ok"]
        told = {(check.status, check.text): check for check in reversed(problems)}  # the first that said so
        return list(reversed(told.values())) or fine[-1:] or mine[:1]

    @property
    def is_ok(self) -> bool:
        """Whether none has failed."""
        return not any(check.status == "fail" for check in self.checks)

    def to_list(self) -> list[dict[str, Any]]:
        """The checks as JSON objects."""
        return [as_dict(check) for check in self.checks]


def _expanded(words: Iterable[str]) -> Iterable[str]:
    for word in words:
        meant = [check_id for check_id in RULES if check_id == word or check_id.startswith(f"{word}.")]
        if not meant:
            alike = suggest(word, RULES)
            hint = f"did you mean {alike!r}?" if alike else f"there are {', '.join(RULES)}."
            raise UsageError(f"--skip: there is no check {one_line(word, 60)!r}; {hint}")
        yield from meant
