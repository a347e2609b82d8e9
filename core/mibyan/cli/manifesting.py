"""`mibyan plugins manifest`: the manifest that a plugin's code says, printed, compared or written."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.freezing import Interpreter, freeze
from mibyan.cli.output import say
from mibyan.cli.settings_file import read_settings, require_valid
from mibyan.errors import MibyanError, PluginError
from mibyan.paths import write_atomic
from mibyan.plugins.manifest import manifest_json_schema, parse_manifest
from mibyan.plugins.manifest_edit import differences, merged, text_of
from mibyan.plugins.sources.authored import find_authored, read
from mibyan.records import replace
from mibyan.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mibyan.cli.freezing import Frozen
    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.sources.authored import Authored

#: Seconds for loading a plugin, if nothing else is said.
TIMEOUT = 60.0


def run(
    invocation: Invocation, words: Sequence[str], *, write: bool, check: bool, schema: bool, prune: bool,
    config: str | None, timeout: float | None,
) -> int:  # fmt: skip
    """Do what the options say; the exit code.

    Raises:
        UsageError: The words don't fit together.
        MibyanError: There is no plugin, or its manifest can't be read or written.
    """
    if write + check + schema > 1:
        raise exits.UsageError("--write, --check and --schema are three different things: give one of them")
    if schema:
        invocation.out.document(manifest_json_schema())
        return exits.OK
    if len(words) != 1:
        raise exits.UsageError("one PATH is needed: a plugin's folder, a project with a pyproject.toml, or a wheel")
    settings = read_settings(config)
    with _authored(Path(words[0]), write=write) as found:
        require_valid(settings, found.data.get("config_schema"), config)
        try:
            frozen = freeze(found, timeout=TIMEOUT if timeout is None else timeout, by=Interpreter(settings=settings))
        except PluginError as error:
            return _failed(invocation, error)
        return _compared(invocation, found, frozen.pruned() if prune else frozen, write=write, check=check)


@contextmanager
def _authored(path: Path, *, write: bool) -> Iterator[Authored]:
    """The plugin at a path; a wheel is unpacked as long as this lasts.

    Raises:
        UsageError: It is a wheel, and is to be written to.
        NotAPluginError: There is none.
    """
    if path.suffix != ".whl" or not path.is_file():
        yield find_authored(path)
        return
    if write:
        raise exits.UsageError("a wheel isn't written to: give the project that it is built from, and build it again")
    from mibyan.cli.checking.archives import unpack

    with TemporaryDirectory(prefix="mibyan-", ignore_cleanup_errors=True) as folder:
        unpack(path, Path(folder))
        try:
            found = find_authored(Path(folder))
        except MibyanError as error:
            message = error.message.replace(f"{folder}/", f"{path}: ")
            raise MibyanError(message, origin=str(path), hint=error.hint) from None
        yield replace(found, shown=f"{path}: {found.path.relative_to(found.place).as_posix()}")


def _compared(invocation: Invocation, found: Authored, frozen: Frozen, *, write: bool, check: bool) -> int:
    new = merged(found.data if found.text is not None else dict(found.data), frozen.keys)
    parse_manifest(new, str(found.path))
    if check:
        return _checked(invocation, found, frozen, new)
    return _written(invocation, found, frozen, new, write=write)


def _failed(invocation: Invocation, error: PluginError) -> int:
    if invocation.options.as_json:
        invocation.out.document({"error": error.message, "hint": error.hint})
    else:
        say(f"mibyan: error: {error}")
    return exits.FAILED


def _checked(invocation: Invocation, found: Authored, frozen: Frozen, new: dict[str, Any]) -> int:
    written = {} if found.text is None else found.data
    told = [{"what": what, "diff": diff} for what, diff in differences(written, new)]
    if invocation.options.as_json:
        invocation.out.document(
            {"path": found.called, "differs": bool(told), "differences": told, "notes": _notes(frozen)}
        )
    else:
        for one in told:
            invocation.out.line(one["diff"])
        _tell(found, frozen)
        if told:
            say(f"{found.called} isn't what the code says: {', '.join(one['what'] for one in told)}.")
            say(f"mibyan plugins manifest {'PROJECT' if found.shown else found.place} --write")
        else:
            say(f"{found.called} is what the code says.")
    return exits.FAILED if told else exits.OK


def _written(invocation: Invocation, found: Authored, frozen: Frozen, new: dict[str, Any], *, write: bool) -> int:
    text = text_of(found.path, found.text, found.data, new)
    changed = text != found.text
    if write and changed:
        _require_unchanged(found)
        write_atomic(found.path, text)
    if invocation.options.as_json:
        document = {"path": found.called, "written": write and changed, "manifest": new, "notes": _notes(frozen)}
        invocation.out.document(document)
        return exits.OK
    if not write:
        invocation.out.write(text)
    _tell(found, frozen)
    if write:
        tools = len(new["tools"])
        said = "is written" if changed else "says so already"
        say(f"{found.path} {said}: {counted(tools, 'tool')}.")
    return exits.OK


def _require_unchanged(found: Authored) -> None:
    """Raise if somebody has written the file since it was read."""
    now = read(found.path)[1] if found.path.exists() else None
    if now != found.text:
        raise MibyanError(
            f"{found.path} was changed meanwhile; nothing was written", origin=str(found.path), hint="Try again."
        )


def _notes(frozen: Frozen) -> list[dict[str, str | None]]:
    told = [{"tool": tool or None, "text": text} for tool, text in frozen.notes]
    return told + [{"tool": None, "text": text} for text in frozen.only]


def _tell(found: Authored, frozen: Frozen) -> None:
    """What can't be frozen, and what is to be done besides."""
    for tool, text in frozen.notes:
        say(f"{tool}: {text}" if tool else f"{found.candidate.id}: {text}")
    for text in frozen.only:
        say(f"{found.candidate.id}: {text} (--prune leaves it out)")
    if found.advice:
        say(found.advice)
