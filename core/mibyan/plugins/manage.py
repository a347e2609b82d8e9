"""What the operator does with plugins: turn on, turn off, trust; none of it imports a plugin (plugins.L8)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mibyan.errors import ConfigError, PluginError
from mibyan.paths import PROJECT_FOLDER
from mibyan.plugins.sources import ids
from mibyan.plugins.state import READY
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.loader import PluginLoader
    from mibyan.plugins.sources.digest import FolderDigest
    from mibyan.plugins.state import PluginRecord

_DISABLED = ("plugins", "disabled")
_ENABLED = ("plugins", "enabled")


def enable(name: str, records: Sequence[PluginRecord], config: LoadedConfig, home: Path | None = None) -> str:
    """Turn a plugin on: it goes from `plugins.disabled`, and to `plugins.enabled` where plugins aren't loaded by themselves.

    One that is kept out because a process died of its import is released (plugins.L4).

    Args:
        name: Its id, in any spelling.
        records: What was found (`PluginLoader.survey`).
        config: The configuration.
        home: `$MIBYAN_HOME`; `None`: the folder of config.yaml.

    Returns:
        What has changed, in a sentence.

    Raises:
        PluginError: There is no such plugin.
        ConfigError: config.yaml can't be changed.
        MibyanError: The journal can't be changed.
    """
    from mibyan.config.edit import append_to_list, remove_from_list
    from mibyan.plugins.quarantine import Quarantine

    record = find_record(name, records)
    plugins = config.settings.plugins
    denied = _covering(plugins.disabled, record.id)
    done = [f"took {word!r} from plugins.disabled" for word in denied if remove_from_list(config.path, _DISABLED, word)]
    listed = plugins.autoload or record.source == "builtin" or bool(_covering(plugins.enabled, record.id))
    if not listed:
        append_to_list(config.path, _ENABLED, record.id)
        done.append(f"added {record.id!r} to plugins.enabled")
    if Quarantine(config.path.parent if home is None else home).release(record.id):
        done.append("released it from quarantine, so its next use imports it again")
    said = f"Enabled {record.id}: {' and '.join(done)}." if done else f"{record.id} is enabled already."
    return said + _still_off(record, config)


def disable(name: str, records: Sequence[PluginRecord], config: LoadedConfig) -> str:
    """Turn a plugin off: its id goes to `plugins.disabled`, which wins over everything.

    Args:
        name: Its id, in any spelling.
        records: What was found (`PluginLoader.survey`).
        config: The configuration.

    Returns:
        What has changed, in a sentence.

    Raises:
        PluginError: There is no such plugin.
        ConfigError: config.yaml can't be changed.
    """
    from mibyan.config.edit import append_to_list

    record = find_record(name, records)
    if _covering(config.settings.plugins.disabled, record.id):
        return f"{record.id} is disabled already."
    append_to_list(config.path, _DISABLED, record.id)
    return f"Disabled {record.id}: added it to plugins.disabled. Undo: mibyan plugins enable {record.id}"


@record
class TrustRequest:
    """What an operator looks at before trusting project code."""

    #: What is trusted: a plugin's id, or `project-tools` for the whole tools directory.
    id: str
    root: Path
    #: Every file, and the very bytes that will be trusted.
    digest: FolderDigest
    #: What its manifest says it does to the machine.
    permissions: tuple[str, ...]
    #: The tools that its manifest defines, or for tool files those files' ids.
    tools: tuple[str, ...]
    #: Whether exactly this is trusted already.
    trusted: bool


def trust_request(name: str, records: Sequence[PluginRecord], home: Path, project: Path | None) -> TrustRequest:
    """What trusting `name` would mean.

    Args:
        name: A project plugin's id in any spelling, `project-tools`, or the id of one file of it.
        records: What was found (`PluginLoader.survey`).
        home: `$MIBYAN_HOME`.
        project: The folder that has `.mibyan`.

    Raises:
        PluginError: There is no such project plugin, or its files can't be trusted (a link leaves the folder).
    """
    from mibyan.plugins.sources.digest import digest_folder
    from mibyan.plugins.sources.trust import TrustStore, trust_id

    found, root, project = _project_code(name, records, project)
    word = trust_id(found[0].id) if found else "project-tools"
    verdict = TrustStore(home).check(word, root, project)
    manifests = [record.candidate.manifest for record in found if record.candidate.manifest is not None]
    permissions = tuple(dict.fromkeys(permission for manifest in manifests for permission in manifest.permissions))
    tools = tuple(tool.name for manifest in manifests for tool in manifest.tools)
    if word == "project-tools":
        tools = tuple(record.id for record in found)
    return TrustRequest(word, root, digest_folder(root), permissions, tools, verdict.trusted)


def trust(request: TrustRequest, home: Path, project: Path) -> str:
    """Trust what was looked at: those bytes, not what may be there now.

    Returns:
        What has changed, in a sentence.

    Raises:
        MibyanError: trust.json can't be written.
    """
    from mibyan.plugins.sources.trust import TrustStore

    said = TrustStore(home).trust(request.id, request.digest, project)
    count = len(request.digest.files)
    text = f"Trusted {request.id}: {count} file{'s' if count != 1 else ''} in {request.root}, as they are now."
    return f"{text} {said}" if said else text


def untrust(name: str, records: Sequence[PluginRecord], home: Path, project: Path | None) -> str:
    """Take back the trust in project code.

    Returns:
        What has changed, in a sentence.

    Raises:
        PluginError: There is no such project plugin.
        MibyanError: trust.json can't be written.
    """
    from mibyan.plugins.sources.trust import TrustStore, trust_id

    found, _, project = _project_code(name, records, project)
    word = trust_id(found[0].id) if found else "project-tools"
    if TrustStore(home).untrust(word, project):
        return f"{word} isn't trusted any more: it isn't loaded until `mibyan plugins trust {word}`."
    return f"{word} wasn't trusted."


def import_learned(loader: PluginLoader) -> None:
    """Import what was recalled of plugins without frozen definitions, so that the code is asked; a failure is a state."""
    for found in loader.all_records():
        manifest = found.candidate.manifest
        if found.state == READY and (manifest is None or not manifest.frozen):
            with suppress(PluginError):
                loader.activate(found.id)


def find_record(name: str, records: Sequence[PluginRecord]) -> PluginRecord:
    """The plugin with an id, in any spelling.

    Raises:
        PluginError: There is none; the message has a suggestion.
    """
    found = ids.resolve(name, [record.id for record in records])
    if found is None:
        raise PluginError(ids.unknown(name, [record.id for record in records]), hint="mibyan plugins list")
    return next(record for record in records if record.id == found)


def _covering(words: Sequence[str], plugin_id: str) -> list[str]:
    return [word for word in words if ids.covers(word, plugin_id)]


def _still_off(record: PluginRecord, config: LoadedConfig) -> str:
    """What keeps an enabled plugin off all the same."""
    from mibyan.config.edit import get

    if config.project_path is not None and config.is_written(_DISABLED):
        with suppress(ConfigError):  # it is the home's file that says so
            if _covering(get(config.project_path, _DISABLED), record.id):
                return f" It stays off here: {config.project_path} disables it too."
    if record.state == "untrusted":
        return f" It still needs trust: mibyan plugins trust {ids.trust_word(record.id)}"
    return ""


def _project_code(
    name: str, records: Sequence[PluginRecord], project: Path | None
) -> tuple[list[PluginRecord], Path, Path]:
    """The project plugin, or the files of the tools directory, that `name` means; their folder; the project."""
    if project is None:
        raise PluginError("there is no project here: only a project's code needs trust", hint="Change into the project, or give --project DIR.")  # fmt: skip
    own = [record for record in records if record.source == "project" or record.id.startswith(ids.PROJECT_TOOLS)]
    if ids.canonical(name) == "project-tools":
        found = [record for record in own if record.id.startswith(ids.PROJECT_TOOLS)]
        return found, project / PROJECT_FOLDER / "tools", project
    word = ids.resolve(name, [record.id for record in own])
    if word is None:
        raise _no_project_plugin(name, records, own)
    if word.startswith(ids.PROJECT_TOOLS):
        return _project_code("project-tools", records, project)
    record = next(record for record in own if record.id == word)
    if record.candidate.root is None:
        raise PluginError(f"{record.id!r} has no folder that could be trusted", origin=record.origin)
    return [record], record.candidate.root, project


def _no_project_plugin(name: str, records: Sequence[PluginRecord], own: Sequence[PluginRecord]) -> PluginError:
    known = ids.resolve(name, [record.id for record in records])
    if known is not None:
        return PluginError(f"plugin {known!r} isn't a project's: it needs no trust", plugin_id=known)
    return PluginError(ids.unknown(name, [record.id for record in own] or [record.id for record in records]),
                       hint="mibyan plugins list")  # fmt: skip
