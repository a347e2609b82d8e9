"""What a session gets: enabled toolsets, the platform's, and denials, which win (registry.T3, T4, T5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from mibyan.records import field, record
from mibyan.report import Decision
from mibyan.toolsets.bundles import CORE, PRESET_PREFIX
from mibyan.toolsets.expansion import Expansion

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.config.settings import Settings
    from mibyan.toolsets.catalogue import Catalogue

    #: Gives the configuration line that says a key.
    LineOf: TypeAlias = Callable[[tuple[str | int, ...]], str | None]


def nowhere(key: tuple[str | int, ...]) -> str | None:
    """Where keys are written that no file has."""
    del key
    return None


@record
class Stand:
    """Where a name stands that decides about toolsets."""

    #: An argument (`disabled_toolsets`), or a key of the configuration (`toolsets.disabled`).
    argument: str
    #: The configuration line with its key, if it is one that somebody has written.
    line: str | None = None
    #: The names that stand there.
    names: tuple[str, ...] = ()

    def without(self, name: str) -> str:
        """What to do for `name` not to stand there any more."""
        return f"Remove {name!r} from {self._changed([one for one in self.names if one != name])}"

    def with_(self, name: str) -> str:
        """What to do for `name` to stand there too."""
        return f"Add {name!r} to {self._changed([*self.names, name])}"

    def _changed(self, names: list[str]) -> str:
        """The list, and in a configuration what it says then."""
        if self.line is None:
            return f"{self.argument}."
        return f"{self.argument}, so that it says `{self.argument}: [{', '.join(names)}]`."


@record
class Selection:
    """The tools of a session, before availability."""

    #: The registered tools, by their own names.
    names: frozenset[str]
    #: The toolset names that nobody knows, each with what was probably meant.
    unknown: tuple[tuple[str, str | None], ...] = ()
    #: What a reader of the two lists may not expect, one sentence each.
    notes: tuple[str, ...] = ()
    #: The tools that a denial took away, with the name that was denied.
    denied: tuple[tuple[str, str], ...] = ()
    #: The same as records for the report.
    decisions: tuple[Decision, ...] = ()
    #: Where each name that was denied stands, and where what is enabled does.
    denials: Mapping[str, Stand] = field(default_factory=dict)
    limits: tuple[Stand, ...] = ()


def read_names(argument: str, value: Iterable[str] | None) -> tuple[str, ...] | None:
    """The toolset names in an argument, or `None` for `None`.

    Raises:
        TypeError: It isn't an iterable of text; a bare string gets a hint.
    """
    if value is None:
        return None
    if isinstance(value, str):
        raise TypeError(f"{argument} takes a list of toolset names, not the text {value!r}: write [{value!r}].")
    if isinstance(value, bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{argument} takes a list of toolset names or None, not {type(value).__name__}.")
    names = tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument} takes a list of toolset names; {name!r} isn't text.")
    # A set's order differs between two processes; what is said about its names must not.
    return tuple(sorted(names)) if isinstance(value, set | frozenset) else names


class Selecting:
    """One selection in the making.

    Args:
        catalogue: What names mean.
        settings: The operator's configuration.
        line_of: The configuration line that says a key.
    """

    def __init__(self, catalogue: Catalogue, settings: Settings, line_of: LineOf = nowhere) -> None:
        self._catalogue = catalogue
        self._settings = settings
        self._line_of = line_of
        self._denials: dict[str, Stand] = {}
        self._limits: list[Stand] = []
        self._unknown: dict[str, str | None] = {}
        self._notes: list[str] = []
        self._decisions: list[Decision] = []

    def make(self, enabled: tuple[str, ...] | None, disabled: tuple[str, ...], platform: str | None) -> Selection:
        """The selection for two lists of toolsets (`enabled=None`: the platform's, else the config's)."""
        names = self._started_from(enabled, platform)
        taken: dict[str, str] = {}
        for argument, denied in (
            ("disabled_toolsets", disabled),
            ("toolsets.disabled", self._settings.toolsets.disabled),
        ):
            for name in dict.fromkeys(denied):
                self._denials.setdefault(name, self._stand(argument, denied, denied.index(name)))
                taken.update((tool, name) for tool in self._denied_by(name, argument) if tool not in taken)
        return Selection(
            frozenset(names.difference(taken)),
            tuple(self._unknown.items()),
            tuple(dict.fromkeys(self._notes)),
            tuple((tool, taken[tool]) for tool in sorted(names.intersection(taken))),
            tuple(self._decisions),
            self._denials,
            tuple(self._limits),
        )

    def _stand(self, argument: str, names: Iterable[str], *index: int) -> Stand:
        """Where a list stands, or one of its items."""
        said = tuple(names)
        if argument in {"enabled_toolsets", "disabled_toolsets"}:
            return Stand(argument, None, said)
        key = tuple(argument.split(".", 1))
        return Stand(argument, self._line_of((*key, *index)) or self._line_of(key), said)

    # What is enabled ---------------------------------------------------------------------------------------------

    def _started_from(self, enabled: tuple[str, ...] | None, platform: str | None) -> set[str]:
        limit = self._settings.toolsets.enabled
        if enabled is not None:
            return self._all_of(enabled, "enabled_toolsets")
        if platform is None:
            return set(self._catalogue.snapshot.entries) if limit is None else self._all_of(limit, "toolsets.enabled")
        start = self._of_platform(platform)
        if limit is None:
            return start
        # Two lists of the operator's, and neither may widen the other.
        self._notes.append(f"toolsets.enabled narrows what the platform {platform!r} starts from.")
        return start & self._all_of(limit, "toolsets.enabled")

    def _of_platform(self, platform: str) -> set[str]:
        chosen = self._settings.platform_toolsets.get(platform)
        if chosen is None:
            return self._all_of((PRESET_PREFIX + platform,), f"platform {platform!r}")
        return self._all_of(chosen, f"platform_toolsets.{platform}")

    def _all_of(self, toolsets: tuple[str, ...], argument: str) -> set[str]:
        found: set[str] = set()
        self._limits.append(self._stand(argument, toolsets))
        for name in dict.fromkeys(toolsets):
            found |= self._tools(name, argument)
        return found

    def _tools(self, name: str, argument: str) -> set[str]:
        """The registered tools of the toolset `name`; none, and a record, for an unknown one."""
        if self._catalogue.get(name) is None:
            self._miss(name, argument)
            return set()
        expansion = Expansion(self._catalogue, name)
        for missing, includer in expansion.missing.items():
            self._decisions.append(_unknown(missing, f"{includer}'s includes", self._catalogue.suggest(missing)))
        return self._catalogue.snapshot.entries.keys() & expansion.tools

    def _miss(self, name: str, argument: str) -> None:
        suggestion = self._catalogue.suggest(name)
        self._unknown.setdefault(name, suggestion)
        self._decisions.append(_unknown(name, argument, suggestion))

    # What is denied ----------------------------------------------------------------------------------------------

    def _denied_by(self, name: str, argument: str) -> list[str]:
        """The tools that denying `name` takes, sorted."""
        tools = self._tools(name, argument)
        toolset = self._catalogue.target(name)
        if toolset is None:
            return sorted(tools)
        if toolset.kind in ("preset", "posture"):
            tools -= self._catalogue.snapshot.entries.keys() & Expansion(self._catalogue, CORE).tools
            self._note(name, f"Denying the {toolset.kind} {name!r} takes only what it adds beyond {CORE}: {_list(tools)}.",
                       argument)  # fmt: skip
        elif toolset.kind == "composite" or toolset.includes:
            self._note(name, f"Denying {name!r} takes all that it expands to: {_list(tools)}.", argument)
        return sorted(tools)

    def _note(self, name: str, sentence: str, argument: str) -> None:
        self._notes.append(sentence)
        line = self._denials[name].line if name in self._denials else None
        self._decisions.append(Decision("denied", f"toolset:{name}", sentence, fix=f"Remove {name!r} from {argument}.",
                                        rule="registry.T4", decided_by=line))  # fmt: skip


def _list(tools: Iterable[str]) -> str:
    return ", ".join(sorted(tools)) or "nothing"


def _unknown(name: str, argument: str, suggestion: str | None) -> Decision:
    reason = unknown_sentence(name, suggestion)
    fix = f"Write {suggestion!r}, or remove {name!r}." if suggestion else f"Remove {name!r}; `mibyan toolsets list` shows what there is."  # fmt: skip
    return Decision(
        "unknown", f"toolset:{name}", f"{reason} It stands in {argument}.", fix=fix, problem=True, rule="registry.T5"
    )


def unknown_sentence(name: str, suggestion: str | None) -> str:
    """What to say of a toolset name that nobody knows."""
    from mibyan.text import one_line

    meant = f"; did you mean {suggestion!r}?" if suggestion else "."
    return f"Unknown toolset {one_line(name)!r}{meant}"
