"""What the operator wants loaded: the deny list, the allow list, `--plugin` and `--no-plugin` (plugins.L6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins.candidate import Note
from mibyan.plugins.sources.ids import covers, unknown
from mibyan.records import record, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.config.sources import PluginSettings
    from mibyan.plugins.candidate import Candidate

#: What stands before a name in `MIBYAN_PLUGINS` and `--plugin` to turn the plugin off, as in pytest's `-p no:NAME`.
_NO = "no:"


@record
class Selection:
    """Which plugins are on; ids in any spelling."""

    disabled: tuple[str, ...] = ()
    autoload: bool = True
    enabled: tuple[str, ...] = ()
    #: Those that `--plugin` and `MIBYAN_PLUGINS` name: they are on without autoload.
    also: tuple[str, ...] = ()
    #: Those that `--no-plugin` names.
    no: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: PluginSettings, also: Iterable[str] = (), no: Iterable[str] = ()) -> Selection:
        """The selection of a configuration and a command line; `no:NAME` in `also` is a `no`."""
        words = [word.strip() for word in also if word.strip()]
        off = [word.removeprefix(_NO) for word in words if word.startswith(_NO)]
        on = [word for word in words if not word.startswith(_NO)]
        return cls(settings.disabled, settings.autoload, settings.enabled, tuple(on), (*no, *off))

    def applied(self, candidate: Candidate, also_called: str = "") -> Candidate:
        """The candidate, with the reason if it is off; who denies `also_called` means it too."""
        off = self._off(candidate, {candidate.id, also_called or candidate.id})
        return candidate if off is None else replace(candidate, disabled=off[0], hint=off[1])

    def _off(self, candidate: Candidate, names: set[str]) -> tuple[str, str] | None:
        """Why a candidate is off, and the command that lets it on; deny wins over everything."""
        enable = f"`mibyan plugins enable {candidate.id}`"
        if any(covers(word, name) for word in self.disabled for name in names):
            return "it is in `plugins.disabled`", enable
        if any(covers(word, name) for word in self.no for name in names):
            return "--no-plugin turns it off", "leave --no-plugin (or `no:`) out"
        wanted = self.autoload or candidate.source == "builtin"
        if wanted or any(covers(word, candidate.id) for word in (*self.enabled, *self.also)):
            return None
        return "`plugins.autoload` is false and it isn't in `plugins.enabled`", enable

    def unknown(self, ids: Iterable[str]) -> Iterator[Note]:
        """A note for each name that no plugin has."""
        known = list(ids)
        said = (("plugins.disabled", self.disabled), ("plugins.enabled", self.enabled),
                ("--plugin", self.also), ("--no-plugin", self.no))  # fmt: skip
        for where, words in said:
            for word in words:
                if not any(covers(word, plugin_id) for plugin_id in known):
                    yield Note("unknown", unknown(word, known), where, f"mend {where}, or install the plugin")
