"""`mibyan.lock`: what was accepted, as text that a person and a version control can compare line by line.

JSON with sorted keys: `{"mibyan_lock": 1, "written_by": "mibyan 1.2.3", "plugins": {<id>: {source, version, digest}}, "tools": {<name>:
{owner, toolset, hash, dynamic, description: [lines], schema}}}`. Characters that a screen doesn't show are escapes.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn

from mibyan.errors import ConfigError, MibyanError
from mibyan.paths import decode_text, read_bytes, write_atomic
from mibyan.text import one_line, visible
from mibyan.tools.locked import Lock, LockedPlugin, LockedTool

if TYPE_CHECKING:
    from pathlib import Path

#: The name of the file in the home.
LOCK_NAME: Final = "mibyan.lock"
#: The format that this version writes.
FORMAT: Final = 1
#: Bytes of a lock that are read.
SIZE_LIMIT: Final = 32 * 1024 * 1024

_MEND: Final = "Mend it, or move it away and run `mibyan plugins lock`."
_PLAIN = re.compile(r"[^\x20-\x7e\n]")
_HEADER = frozenset({"mibyan_lock", "written_by", "plugins", "tools"})
_PLUGIN = frozenset({"source", "version", "digest"})
_TOOL = frozenset({"owner", "toolset", "hash", "dynamic", "description", "schema"})
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def escaped(text: str) -> str:
    r"""`text` with every character that isn't plainly seen (controls, bidirectional, blanks of other kinds) as `\uXXXX`."""
    return _PLAIN.sub(lambda match: _escape(match[0]), text)


def _escape(character: str) -> str:
    if character.isprintable() and visible(character) == character:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))


# Writing -------------------------------------------------------------------------------------------------------------


def text_of(lock: Lock) -> str:
    """The text of a lock: the same for the same content, whoever writes it wherever."""
    from mibyan._version import __version__

    document = {
        "mibyan_lock": FORMAT,
        "written_by": f"mibyan {__version__}",
        "plugins": {one.id: _of_plugin(one) for one in lock.plugins.values()},
        "tools": {one.name: _of_tool(one) for one in lock.tools.values()},
    }
    parts = [f"{_json(key)}: {_json(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(_indented(part) for part in parts) + "\n}\n"


def _of_plugin(plugin: LockedPlugin) -> dict[str, Any]:
    digest = f"sha256:{plugin.digest}" if plugin.digest else None
    return {"source": plugin.source, "version": plugin.version, "digest": digest}


def _of_tool(tool: LockedTool) -> dict[str, Any]:
    return {
        "owner": tool.owner, "toolset": tool.toolset, "hash": f"sha256:{tool.hash}", "dynamic": tool.dynamic,
        "description": tool.description.split("\n"), "schema": tool.schema,
    }  # fmt: skip


def _json(value: Any) -> str:
    return escaped(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock, whole or not at all; whoever reads, merges and writes holds `mibyan.paths.file_lock`.

    Raises:
        MibyanError: It can't be written; what was there is still there.
    """
    write_atomic(path, text_of(lock))


# Reading -------------------------------------------------------------------------------------------------------------


def read_lock(path: Path) -> Lock | None:
    """The lock in a file; `None`: there is no such file.

    Raises:
        ConfigError: It can't be read or isn't a lock of a format that this version knows; the message has file and place.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):  # whatever keeps it from being looked at is said below
        pass
    try:
        text = decode_text(read_bytes(path, limit=SIZE_LIMIT), path)
    except MibyanError as error:
        raise ConfigError(error.message, origin=error.origin, hint=f"{error.hint}\n{_MEND}") from error
    return parse(text, path)


def parse(text: str, path: Path) -> Lock:
    """The lock that a text is.

    Raises:
        ConfigError: It isn't one, see `read_lock`.
    """
    place = _Place(text, path)
    try:
        document = json.loads(text, object_pairs_hook=_each_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        place.fail(f"it isn't JSON: {error.msg}", line=error.lineno)
    except (ValueError, RecursionError) as error:
        place.fail(f"it isn't a lock: {one_line(str(error))}", line=1)
    _check_header(document, place)
    plugins = {name: _plugin(name, one, place) for name, one in sorted(document["plugins"].items())}
    tools = {name: _tool(name, one, place) for name, one in sorted(document["tools"].items())}
    for tool in tools.values():
        if tool.owner not in plugins:
            place.fail(f"tools.{tool.name}.owner: there is no plugin {tool.owner!r} in `plugins`", tool.name)
    return Lock(plugins, tools)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"the key {twice!r} stands there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} isn't JSON")


def _check_header(document: Any, place: _Place) -> None:
    if not isinstance(document, dict) or "mibyan_lock" not in document:
        place.fail("it isn't a lock of Mibyan's: it has no `mibyan_lock`", line=1)
    number = document["mibyan_lock"]
    if type(number) is not int or number < 1:
        place.fail(f"mibyan_lock must be a number of a format, not {one_line(repr(number), 40)}", "mibyan_lock")
    if number > FORMAT:
        who = one_line(str(document.get("written_by", "a newer Mibyan")), 60)
        place.fail(f"it was written by {who} in format {number}, and this version knows {FORMAT}", "mibyan_lock",
                   hint="Upgrade Mibyan, or use the version that wrote it.")  # fmt: skip
    unknown = sorted(document.keys() - _HEADER)
    if unknown:
        place.fail(f"it has an unknown key {one_line(repr(unknown[0]), 60)}", unknown[0])
    for key in ("plugins", "tools"):
        if not isinstance(document.get(key), dict):
            place.fail(f"`{key}` must be there and hold objects", key)


def _plugin(name: str, data: Any, place: _Place) -> LockedPlugin:
    where = f"plugins.{one_line(name, 60)}"
    _check_keys(data, _PLUGIN, where, name, place)
    if not isinstance(data["source"], str) or not isinstance(data["version"], str):
        place.fail(f"{where}: source and version must be texts", name)
    digest = data["digest"]
    if digest is not None and not (isinstance(digest, str) and _HASH.fullmatch(digest)):
        place.fail(f"{where}.digest must be `sha256:` and 64 hexadecimal digits, or null", name)
    return LockedPlugin(name, data["source"], data["version"], (digest or "").removeprefix("sha256:"))


def _tool(name: str, data: Any, place: _Place) -> LockedTool:
    where = f"tools.{one_line(name, 60)}"
    _check_keys(data, _TOOL, where, name, place)
    lines, schema = data["description"], data["schema"]
    if not isinstance(data["owner"], str) or not isinstance(data["toolset"], str):
        place.fail(f"{where}: owner and toolset must be texts", name)
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        place.fail(f"{where}.description must be a list of lines", name)
    if not isinstance(schema, dict) or type(data["dynamic"]) is not bool:
        place.fail(f"{where}: schema must be an object, dynamic true or false", name)
    tool = LockedTool(name, data["owner"], data["toolset"], "\n".join(lines), schema, data["dynamic"])
    if data["hash"] != f"sha256:{tool.hash}":
        place.fail(f"{where}.hash isn't that of the text below it: one of the two was changed by hand", name,
                   hint=f"Take it back, or look at the tool and run: mibyan plugins lock --accept {name}\n{_MEND}")  # fmt: skip
    return tool


def _check_keys(data: Any, keys: frozenset[str], where: str, name: str, place: _Place) -> None:
    if not isinstance(data, dict):
        place.fail(f"{where} must be an object", name)
    lacking, unknown = sorted(keys - data.keys()), sorted(data.keys() - keys)
    if lacking or unknown:
        said = f"lacks `{lacking[0]}`" if lacking else f"has an unknown key {one_line(repr(unknown[0]), 60)}"
        place.fail(f"{where} {said}", name)


class _Place:
    """A lock's text, and where in it something stands."""

    def __init__(self, text: str, path: Path) -> None:
        self._text = text
        self._path = path

    def fail(self, why: str, name: str = "", *, line: int = 0, hint: str = _MEND) -> NoReturn:
        """Say what is wrong, and where.

        Raises:
            ConfigError: Always.
        """
        section = why.partition(".")[0]
        where = f"{self._path}:{line or line_of(self._text, name, section if section in _HEADER else '')}"
        raise ConfigError(f"{where}: {why}", origin=where, hint=hint)


def line_of(text: str, name: str, section: str = "") -> int:
    """The line where a key stands as a lock is written; 1 where that can't be told.

    Args:
        text: The lock's text.
        name: The key.
        section: `plugins` or `tools`, if it is one of theirs.
    """
    lines, key = text.split("\n"), f"{_json(name)}:"
    begin = next((number for number, line in enumerate(lines) if line.startswith(f'  "{section}":')), 0)
    found = (number for number, line in enumerate(lines[begin:], begin + 1) if line.lstrip().startswith(key))
    return next(found, 1)
