"""`ToolsetResolver`: what toolset names stand for, and what a session gets of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from mibyan.toolsets.catalogue import Catalogue
from mibyan.toolsets.expansion import Expansion
from mibyan.toolsets.selection import Selecting, Selection, nowhere, read_names, unknown_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mibyan.config.settings import Settings
    from mibyan.report import Decision, DecisionLog
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.store import RegistrySnapshot, Toolset
    from mibyan.toolsets.selection import LineOf

    #: What a selection is made from: enabled, disabled, platform.
    _Lists: TypeAlias = tuple[tuple[str, ...] | None, tuple[str, ...], str | None]

_K = TypeVar("_K")
_V = TypeVar("_V")

#: Selections and expansions kept for one state of the registry.
_KEPT = 256
#: Unknown names remembered outside of sessions, so that each is said once.
_REMEMBERED = 4096


class _State:
    """What was worked out for one snapshot of the registry."""

    __slots__ = ("catalogue", "expansions", "selections", "snapshot")

    def __init__(self, snapshot: RegistrySnapshot, catalogue: Catalogue) -> None:
        self.snapshot = snapshot
        self.catalogue = catalogue
        self.expansions: dict[str, tuple[str, ...]] = {}
        self.selections: dict[_Lists, Selection] = {}


class ToolsetResolver:
    """Toolsets by name: Mibyan's bundles, the operator's, the registry's, plugins' and MCP servers' (registry.T1).

    What it works out is kept until the registry changes. Reads take no lock.

    Args:
        snapshot: Gives the registry's current snapshot, the same object until something changes.
        settings: The operator's configuration.
        plugin_toolsets: Gives the toolsets that plugins declare; asked once for each snapshot.
        log: Where decisions go.
        line_of: The configuration line that says a key.
    """

    def __init__(
        self,
        snapshot: Callable[[], RegistrySnapshot],
        settings: Settings,
        plugin_toolsets: Callable[[], Mapping[str, Toolset]],
        log: DecisionLog,
        line_of: LineOf = nowhere,
    ) -> None:
        self._snapshot = snapshot
        self._line_of = line_of
        self._settings = settings
        self._plugin_toolsets = plugin_toolsets
        self._log = log
        self._lock = threading.Lock()
        #: The unknown names that were warned about outside of any session.
        self._warned: set[str] = set()
        self._state: _State | None = None

    # Names -------------------------------------------------------------------------------------------------------

    def names(self) -> tuple[str, ...]:
        """The names of all toolsets, sorted, without aliases."""
        return self._current().catalogue.names

    def aliases(self) -> Mapping[str, str]:
        """The other names that are understood (legacy names, seed 001's, plugins', MCP servers') and what they mean."""
        return self._current().catalogue.aliases

    def get(self, name: str) -> Toolset | None:
        """The toolset `name`: its own tools and what it includes; `None` for an unknown name.

        Its `kind` is `builtin`, `composite`, `posture`, `preset`, `registry`, `alias`, `custom`, `plugin` or `mcp`.
        """
        return self._current().catalogue.get(name) if isinstance(name, str) else None

    def suggest(self, name: str) -> str | None:
        """The toolset that an unknown `name` was probably meant to be."""
        return self._current().catalogue.suggest(name) if isinstance(name, str) else None

    def resolve(self, name: str) -> tuple[str, ...]:
        """The tools that the toolset `name` expands to: sorted, each once, by their own names.

        Circles and unknown includes are fine, an unknown name is empty, `all` and `*` are everything. A bundle may name
        tools that aren't registered; they are listed.
        """
        if not isinstance(name, str):
            return ()
        state = self._current()
        tools = state.expansions.get(name)
        if tools is None:
            tools = Expansion(state.catalogue, name).tools
            _keep(state.expansions, name, tools)
        return tools

    def explain(self, name: str) -> list[tuple[str, str]]:
        """Each tool of `resolve(name)` with the way it got in, such as `mibyan-cli > core > web`."""
        if not isinstance(name, str):
            return []
        expansion = self.expansion(name)
        return [(tool, " > ".join(expansion.via(tool))) for tool in expansion.tools]

    def expansion(self, name: str) -> Expansion:
        """What `name` stands for, with the way to each tool, what is unknown on the way and what rules keep out."""
        return Expansion(self._current().catalogue, name)

    def rule_against(self, name: str, entry: ToolEntry) -> str | None:
        """The rule by which the toolset `name` leaves a tool out, in words; `None`: it has none against it."""
        rule = self._current().catalogue.rule(name)
        return None if rule is None or rule.keeps(entry) else rule.value

    # Sessions ----------------------------------------------------------------------------------------------------

    def select(
        self,
        enabled: Iterable[str] | None = None,
        disabled: Iterable[str] | None = None,
        *,
        platform: str | None = None,
        warned: set[str] | None = None,
    ) -> Selection:
        """The registered tools that a session may use, before availability.

        Args:
            enabled: Toolset names; `[]` is nothing. `None`: what the platform starts from (`platform_toolsets`, else its
                preset), without a platform `toolsets.enabled` of the config, without that everything.
            disabled: Toolset names, taken away last, as are `toolsets.disabled` of the config.
            platform: The session's platform, such as `cli` or `telegram`.
            warned: The unknown names that this session was warned about already; it grows. `None`: warnings outside of
                sessions, each once.

        Raises:
            TypeError: A list isn't a list of text (a bare string is one name too few brackets).
        """
        chosen = read_names("enabled_toolsets", enabled)
        denied = read_names("disabled_toolsets", disabled) or ()
        key = (chosen, denied, _read_platform(platform))
        state = self._current()
        selection = state.selections.get(key)
        if selection is None:
            selection = Selecting(state.catalogue, self._settings, self._line_of).make(*key)
            for decision in selection.decisions:
                self._log.add(decision)
            _keep(state.selections, key, selection)
        if selection.unknown:
            self.warn(selection, warned)
        return selection

    def warn(self, selection: Selection, warned: set[str] | None = None) -> None:
        """Log one WARNING for each unknown name of `selection` that `warned` doesn't hold yet."""
        if warned is None:
            warned = self._warned
            if len(warned) >= _REMEMBERED:
                warned.clear()
        fresh = [(name, suggestion) for name, suggestion in selection.unknown if name not in warned]
        if not fresh:
            return
        import logging

        log = logging.getLogger("mibyan.toolsets")
        for name, suggestion in fresh:
            with self._lock:
                known = name in warned
                warned.add(name)
            if not known:
                log.warning("%s", unknown_sentence(name, suggestion))

    def forget(self) -> None:
        """Let go of everything kept, tools of unloaded plugins among it; it is worked out anew when it is needed."""
        self._state = None

    def after_fork(self) -> None:
        """In a child process: nobody else is warning."""
        self._lock = threading.Lock()

    def _report(self, decision: Decision) -> None:
        """Put what is wrong with a name into the report, and say it once."""
        if self._log.add(decision) and decision.problem:
            import logging

            logging.getLogger("mibyan.toolsets").warning("%s", decision.reason)

    def _current(self) -> _State:
        snapshot = self._snapshot()
        state = self._state
        if state is None or state.snapshot is not snapshot:
            catalogue = Catalogue(snapshot, self._settings, self._plugin_toolsets())
            for problem in catalogue.problems:
                self._report(problem)
            state = self._state = _State(snapshot, catalogue)
        return state


def _read_platform(platform: str | None) -> str | None:
    if platform is not None and not isinstance(platform, str):
        raise TypeError(f"platform takes a name such as 'cli' or None, not {type(platform).__name__}.")
    return platform


def _keep(kept: dict[_K, _V], key: _K, value: _V) -> None:
    """Keep `value` under `key`; where there are too many, start anew."""
    if len(kept) >= _KEPT:
        kept.clear()
    kept[key] = value
