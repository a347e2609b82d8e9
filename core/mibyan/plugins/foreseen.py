"""`foresee`: the commands that plugins offer, as far as manifests and what was learned tell; nothing is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mibyan.plugins.state import ACTIVE, FOUND, READY
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.lessons import Lessons
    from mibyan.plugins.services import LoaderServices
    from mibyan.plugins.state import PluginRecord

#: The states of a plugin that can be used, or could be if it were loaded.
_OPEN = frozenset({FOUND, READY, ACTIVE})


@record
class ForeseenCommand:
    """A command for `mibyan command NAME`, or one that a plugin adds to the command line."""

    name: str
    plugin: PluginRecord
    #: For people.
    description: str = ""
    #: What its arguments look like, for people.
    args_hint: str = ""


@record(frozen=False)
class Foreseen:
    """What can be told of the plugins' commands before any plugin is imported."""

    #: For `mibyan command NAME`, by name; of two with one name that of the plugin that comes first.
    commands: dict[str, ForeseenCommand] = field(default_factory=dict)
    #: What plugins add to the command line, likewise.
    cli: dict[str, ForeseenCommand] = field(default_factory=dict)
    #: Both of plugins that can't be used.
    closed_commands: dict[str, ForeseenCommand] = field(default_factory=dict)
    closed_cli: dict[str, ForeseenCommand] = field(default_factory=dict)
    #: The ids of plugins that say only when they are imported which commands they have.
    untold: list[str] = field(default_factory=list)


@record
class _Asker:
    """What recalling what was learned wants to know of a runtime."""

    config: LoadedConfig
    home: Path


def lessons_of(config: LoadedConfig, home: Path) -> Lessons:
    """What was learned of the plugins of a profile, to be recalled only."""
    from mibyan.plugins.lessons import Lessons

    return Lessons(cast("LoaderServices", _Asker(config, home)))


def foresee(records: Iterable[PluginRecord], lessons: Lessons) -> Foreseen:
    """The commands of plugins that weren't loaded.

    Args:
        records: The plugins, in order.
        lessons: What was learned of them.
    """
    from mibyan.plugins.names import why_not_a_command

    found = Foreseen()
    for one in records:
        manifest, is_open = one.candidate.manifest, one.state in _OPEN
        commands, cli = (found.commands, found.cli) if is_open else (found.closed_commands, found.closed_cli)
        for command in _commands(one, lessons, found.untold if is_open else []):
            commands.setdefault(command.name, command)
        for name in manifest.cli if manifest is not None else ():
            if why_not_a_command(name) is None:
                cli.setdefault(name, ForeseenCommand(name, one, manifest.description if manifest else ""))
    return found


def _commands(one: PluginRecord, lessons: Lessons, untold: list[str]) -> Iterator[ForeseenCommand]:
    manifest = one.candidate.manifest
    for said in manifest.commands if manifest is not None else ():
        yield ForeseenCommand(said.name, one, said.description, said.args_hint)
    if manifest is not None and manifest.frozen:
        return
    learned = lessons.recall(one.candidate) if one.state in _OPEN else None
    if learned is None:
        untold.append(one.id)
        return
    for act in learned.acts:
        if act.get("kind") == "command":
            yield ForeseenCommand(str(act.get("name")), one, _text(act, "description"), _text(act, "args_hint"))


def _text(act: Any, key: str) -> str:
    value = act.get(key)
    return value if isinstance(value, str) else ""
