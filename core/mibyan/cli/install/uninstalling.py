"""`mibyan plugins uninstall`: a plugin goes whatever state it is in, by the environment's installer or into the trash (plugins.W4)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.asking import ask_yes_no, can_ask
from mibyan.cli.install import installers
from mibyan.cli.install.files import files_of, is_installers, outside, trash
from mibyan.cli.install.installing import failed
from mibyan.cli.install.result import fresh_look
from mibyan.cli.install.traces import left_behind
from mibyan.cli.output import say
from mibyan.errors import MibyanError, PluginError
from mibyan.plugins.sources import ids
from mibyan.plugins.sources.distributions import name_and_version
from mibyan.plugins.state import PluginRecord
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mibyan.cli.install.installers import Environment, Installer
    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.candidate import Note

#: Letters that a distribution's name loses while pip removes it.
_LOST = 3
#: Files that are shown one by one.
_SHOWN = 12
#: What those that install for a user write into INSTALLER; a system's package manager writes its own name.
_USERS = frozenset({"pip", "uv", "pipx", "poetry", "pdm", "conda"})


@record
class Target:
    """What is to be removed."""

    id: str
    #: `pip`, `user` or `tools`.
    source: str
    #: Its dist-info; its folder; its file.
    origin: str
    #: The distribution's name, for an installed one.
    distribution: str = ""
    editable: bool = False
    #: Others with its id, which stay.
    others: tuple[str, ...] = ()


def find(invocation: Invocation, name: str) -> Target:
    """What a name means, among all that is there: in safe mode too, and with a broken configuration.

    Raises:
        PluginError: As `find_target`.
    """
    from mibyan.plugins.sources.scan import discover

    config, _ = invocation.config_or_defaults()
    found = discover(config.settings.plugins, invocation.home, invocation.project)
    return find_target(name, [PluginRecord(one) for one in found], found.notes, invocation.home)


def find_target(name: str, records: Sequence[PluginRecord], notes: Iterable[Note], home: Path) -> Target:
    """What a name means: a plugin's id or its distribution's, in any spelling; a leftover too.

    Args:
        name: What was given.
        records: The plugins.
        notes: What was passed over while looking for them.
        home: The profile's folder.

    Raises:
        PluginError: There is none, it can't be told which, or it isn't the operator's to remove.
    """
    found = _named(name, records)
    if not found:
        target = next(_passed_over(name, notes, home), None)
        if target is None:
            raise PluginError(ids.unknown(name, [one.id for one in records]), hint="mibyan plugins list")
        return target
    own = [one for one in found if one.source in {"pip", "user", "tools"}]
    if not own or found[0].source == "builtin":
        raise _not_yours(found[0])
    first = next((one for one in own if one.candidate.shadowed_by is None), own[0])
    rivals = [one for one in own if one.source == "pip" and one.candidate.shadowed_by is None]
    if first.source == "pip" and len({ids.canonical(one.candidate.distribution) for one in rivals}) > 1:
        first = _of_that_name(name, rivals)
    return _of_record(first, [one.origin for one in found if one is not first])


def _named(name: str, records: Sequence[PluginRecord]) -> list[PluginRecord]:
    """The records that a name means; a distribution's whole name says more than an id."""
    whole = [
        one
        for one in records
        if one.candidate.distribution and ids.canonical(one.candidate.distribution) == ids.canonical(name)
    ]
    if whole and ids.canonical(name).startswith(ids.PREFIX):
        return whole
    word = ids.resolve(name, [one.id for one in records])
    return [one for one in records if word is not None and one.id == word] or whole


def _of_that_name(name: str, rivals: Sequence[PluginRecord]) -> PluginRecord:
    """The one of several with one id whose distribution has the name that was given."""
    found = [one for one in rivals if ids.canonical(one.candidate.distribution) == ids.canonical(name)]
    if found:
        return found[0]
    names = ", ".join(sorted(one.candidate.distribution for one in rivals))
    raise PluginError(
        f"several distributions have the plugin id {rivals[0].id!r}: {names}", hint="Give the name of one."
    )


def _of_record(one: PluginRecord, others: Iterable[str]) -> Target:
    found = one.candidate
    if one.source == "pip" and not found.distribution:
        raise PluginError(f"{one.id!r} is a module that the configuration names, and no distribution", plugin_id=one.id,
                          hint="Take it from plugins.modules: mibyan config get plugins.modules")  # fmt: skip
    origin = one.origin if one.source != "user" or found.root is None else str(found.root)
    return Target(
        one.id, one.source, origin, ids.canonical(found.distribution), found.editable, tuple(sorted(set(others)))
    )


def _not_yours(one: PluginRecord) -> PluginError:
    if one.source == "builtin":
        return PluginError(f"{one.id!r} is built in: it can be turned off, not removed", plugin_id=one.id,
                           hint=f"mibyan plugins disable {one.id}")  # fmt: skip
    place = one.candidate.root or one.origin
    return PluginError(
        f"{one.id!r} belongs to the project: it lies in {place}, with the project's own files", plugin_id=one.id,
        hint=f"mibyan plugins untrust {ids.trust_word(one.id)} turns it off here; for everybody: remove {place} from the project",
    )  # fmt: skip


def _passed_over(name: str, notes: Iterable[Note], home: Path) -> Iterator[Target]:
    """What isn't a plugin any more, or never was: a leftover dist-info, a folder without a manifest."""
    for note in notes:
        base = os.path.basename(note.origin)  # noqa: PTH119 - text
        if note.kind in {"leftover", "near_miss"} and base.endswith(("-info",)):
            shown = name_and_version(base)[0]
            if ids.same(name, shown):
                yield Target(ids.distribution_id(shown), "pip", note.origin, ids.canonical(shown))
    for info in _half_removed():
        if _means(name, name_and_version(info.name)[0]):
            yield Target(ids.distribution_id(name), "pip", str(info))
    folder = home / "plugins" / name
    if Path(name).name == name and not name.startswith(".") and (folder.is_dir() or folder.is_symlink()):
        yield Target(name, "user", str(folder))


def _half_removed() -> Iterator[Path]:
    """What pip has left where it was interrupted: it renames what it is about to remove to `~` and the rest of the name."""
    for entry in map(Path, filter(None, sys.path)):
        if entry.is_dir():
            yield from entry.glob("~*-info")


def _means(name: str, renamed: str) -> bool:
    """Whether a name means a distribution that was renamed so."""
    rest = ids.canonical(renamed.lstrip("~"))
    wholes = (ids.canonical(name), f"{ids.PREFIX}{ids.canonical(name)}")
    return bool(rest) and any(whole.endswith(rest) and len(whole) - len(rest) <= _LOST for whole in wholes)


def run(
    invocation: Invocation, target: Target, environment: Environment, *, installer: str | None, yes: bool, dry_run: bool
) -> int:
    """Remove it; the exit code.

    Raises:
        RefusedError: Nobody says yes.
        MibyanError: It can't be removed; nothing was changed.
    """
    by = _remover(target, environment, installer)
    files = files_of(target.origin, target.source)
    _require_writable(target, files)
    _show(target, files, by)
    left = left_behind(invocation.home, target.id)
    answer = {"id": target.id, "distribution": target.distribution or None, "source": target.source,
              "files": files, "removed": False, "trash": None, "left": left}  # fmt: skip
    if dry_run:
        return _answer(invocation, answer)
    _require_yes(target, yes=yes)
    try:
        place = _removed(invocation, target, files, by)
    except installers.InstallerError as error:
        return failed(invocation, error)
    return _tell(invocation, target, left, {**answer, "removed": True, "trash": place})


def _remover(target: Target, environment: Environment, wanted: str | None) -> Installer | None:
    """The installer that removes it; `None` where that is Mibyan's own business.

    Raises:
        MibyanError: It belongs to the system, or lies in an archive.
    """
    if target.source != "pip" or not is_installers(target.origin):
        return None
    chosen = installers.choose(environment, wanted)
    by = chosen if chosen.name != "pipx" or _is_injected(environment, target.distribution) else chosen.beneath()
    recorded = _recorded(target.origin)
    if environment.managed and recorded not in _USERS:
        raise MibyanError(
            f"{target.distribution} was installed by the system's package manager ({recorded or 'it says no name'})",
            origin=target.origin, hint=f"Remove it with that; until then: mibyan plugins disable {target.id}",
        )  # fmt: skip
    return by


def _is_injected(environment: Environment, distribution: str) -> bool:
    """Whether pipx knows that the distribution is there."""
    import json

    try:
        said = json.loads(Path(environment.prefix, "pipx_metadata.json").read_bytes())
        return ids.canonical(distribution) in map(ids.canonical, said.get("injected_packages", {}))
    except (OSError, ValueError, AttributeError):
        return False


def _recorded(origin: str) -> str:
    try:
        return Path(origin, "INSTALLER").read_text(encoding="utf-8", errors="replace").strip().lower()
    except OSError:
        return ""


def _require_writable(target: Target, files: Sequence[str]) -> None:
    for folder in {str(Path(target.origin).parent), *(str(Path(file).parent) for file in files)}:
        if os.path.isdir(folder) and not os.access(folder, os.W_OK):  # noqa: PTH112 - text
            raise MibyanError(f"{folder} can't be written to by you: nothing was removed", plugin_id=target.id,
                              hint=f"Do it as the one who owns it; until then: mibyan plugins disable {target.id}")  # fmt: skip


def _show(target: Target, files: Sequence[str], by: Installer | None) -> None:
    what = (
        f"the distribution {target.distribution}" if target.distribution else f"the {target.source} plugin {target.id}"
    )
    say(f"What is removed: {one_line(what)} ({one_line(target.origin, 500)})")
    told = outside(files, target.origin)
    for file in told[:_SHOWN]:
        say(f"    {one_line(file, 500)}")
    if len(told) > _SHOWN:
        say(f"    … and {len(told) - _SHOWN} more")
    if target.editable:
        say("It is an editable install: its sources stay where they are.")
    if by is not None:
        say(f"By: {installers.shown(by.uninstall(target.distribution))}  ({by.name}, {by.why})")
    else:
        say("It is moved to the home's trash.")
    for other in target.others:
        say(f"Another plugin of this id stays: {one_line(other, 500)}")


def _require_yes(target: Target, *, yes: bool) -> None:
    if yes:
        return
    if not can_ask():
        raise exits.RefusedError(
            "nothing was removed: nobody is there to be asked", hint=f"mibyan plugins uninstall {target.id} --yes"
        )
    if not ask_yes_no(f"Remove {target.id}?"):
        raise exits.RefusedError("nothing was removed: you didn't say yes")


def _removed(invocation: Invocation, target: Target, files: Sequence[str], by: Installer | None) -> str | None:
    """Remove it; where it was moved to, if it was."""
    if by is None:
        return str(trash(invocation.home, target.id, files))
    more = [installers.BREAK] if by.environment.managed else []
    with TemporaryDirectory(prefix="mibyan-", ignore_cleanup_errors=True) as folder:
        said = installers.run(by.uninstall(target.distribution, more=more), by.environment, folder)
    if not Path(target.origin).exists():
        return None
    if is_installers(target.origin):
        raise installers.InstallerError(
            f"{by.name} has left {target.origin} there; its last lines:\n{installers.last_lines(said)}",
            hint=f"mibyan plugins disable {target.id}, and remove it by whatever has put it there",
        )
    # Files that RECORD didn't list: some installers leave them, and the folder with them.
    return str(trash(invocation.home, target.id, files_of(target.origin, target.source)))


def _tell(invocation: Invocation, target: Target, left: Sequence[dict[str, str]], answer: dict[str, Any]) -> int:
    say(
        f"Removed {target.id}."
        + (f" It is in {answer['trash']}; delete that when you don't need it." if answer["trash"] else "")
    )
    for one in fresh_look(invocation)["plugins"]:
        if ids.same(one["id"], target.id):
            say(f"The plugin {one['id']} in {one_line(one['origin'], 500)} is {one['state']} now.")
    for trace in left:
        say(f"Left: {trace['key']}. To remove it: {trace['command']}")
    return _answer(invocation, answer)


def _answer(invocation: Invocation, answer: dict[str, Any]) -> int:
    if invocation.options.as_json:
        invocation.out.document(answer)
    return exits.OK
