"""Edits of a config.yaml: nothing else in the file changes, nothing is lost between processes, nothing is half-written.

Each edit reads the file, changes it, reads the result again and writes it, all under the file's lock. An edit that
would bring a problem into the file is refused; problems that were there before don't hinder one that mends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.config.keys import join_key, split_key, value_at
from mibyan.config.layers import text_layer
from mibyan.config.outline import SpliceError
from mibyan.config.problems import InvalidConfigError, Problem
from mibyan.config.scalars import describe, resolve
from mibyan.config.splice import Splicer
from mibyan.config.yamlfile import MAX_BYTES, parse_document
from mibyan.errors import ConfigError
from mibyan.paths import decode_text, file_lock, read_bytes, write_atomic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mibyan.config.keys import KeyPath

#: Gives the problems of a config.yaml's text.
Check: TypeAlias = Callable[[str, str], list[Problem]]

_BOM = b"\xef\xbb\xbf"


def get(path: Path, key: str | Sequence[str | int]) -> Any:
    """The value that is written at a key, in JSON types.

    Raises:
        ConfigError: It isn't written (a default isn't), or the file can't be read.
    """
    place = split_key(key)
    try:
        return value_at(parse_document(_read(path)[0], path.name, origin=path).data, place)
    except LookupError:
        raise ConfigError(f"'{join_key(place)}' isn't written in {path}", origin=str(path)) from None


def set_value(path: Path, key: str | Sequence[str | int], value: Any, *, check: Check | None = None) -> bool:
    """Write a value; what is missing on the way to its key is added, the file too.

    Args:
        path: The config.yaml.
        key: As `split_key` takes it.
        value: JSON types.
        check: Gives the problems of a text, called with the text and the file's name; those of a home's config.yaml
            when it isn't given.

    Returns:
        Whether the file was changed; it isn't when it says so already.

    Raises:
        ConfigError: The file can't be read as it is, or the edit would bring a problem into it.
        MibyanError: The file can't be locked or written.
    """
    place, value = split_key(key), _json(value)

    def change(data: dict[str, Any]) -> None:
        _put(data, place, value)

    return _edit(path, place, change, lambda text, _: Splicer(text).put(place, value), check)


def unset(path: Path, key: str | Sequence[str | int], *, check: Check | None = None) -> bool:
    """Remove a key, so that its default counts again.

    Returns:
        Whether the file was changed; it isn't when the key isn't written.

    Raises:
        ConfigError: As for `set_value`.
        MibyanError: As for `set_value`.
    """
    place = split_key(key)

    def change(data: dict[str, Any]) -> None:
        try:
            value_at(data, place)
        except LookupError:
            return
        del value_at(data, place[:-1])[place[-1]]

    return _edit(path, place, change, lambda text, _: Splicer(text).remove(place), check)


def append_to_list(path: Path, key: str | Sequence[str | int], value: Any, *, check: Check | None = None) -> bool:
    """Add an item to a list, unless it is there already; a list that isn't written begins with its default.

    Returns:
        Whether the file was changed.

    Raises:
        ConfigError: As for `set_value`, or the key has no list.
        MibyanError: As for `set_value`.
    """
    place, value = split_key(key), _json(value)

    def change(data: dict[str, Any]) -> None:
        items = _items(data, place)
        if value not in items:
            _put(data, place, [*items, value])

    def splice(text: str, new: dict[str, Any]) -> str:
        return Splicer(text).append(place, value, value_at(new, place))

    return _edit(path, place, change, splice, check)


def remove_from_list(path: Path, key: str | Sequence[str | int], value: Any, *, check: Check | None = None) -> bool:
    """Remove an item from a list, as often as it is there.

    Returns:
        Whether the file was changed; it isn't when the item isn't written.

    Raises:
        ConfigError: As for `set_value`, or the key has no list.
        MibyanError: As for `set_value`.
    """
    place, value = split_key(key), _json(value)

    def change(data: dict[str, Any]) -> None:
        items = _items(data, place)
        if value in items:
            _put(data, place, [item for item in items if item != value])

    def splice(text: str, _new: dict[str, Any]) -> str:
        items = _items(parse_document(text, path.name).data, place)
        # From the last one on: the numbers of those before it stay.
        for number in reversed([number for number, item in enumerate(items) if item == value]):
            text = Splicer(text).remove((*place, number))
        return text

    return _edit(path, place, change, splice, check)


def parse_value(text: str) -> Any:
    """What a person types as a value, as YAML has it: `5`, `off`, `[a, b]`; what isn't YAML is text.

    Args:
        text: One value.

    Raises:
        ConfigError: It is a number that no setting can be.
    """
    try:
        resolve(text.strip(), None, plain=True)
    except ValueError as error:
        raise ConfigError(f"the value can't be used: {error}") from None
    try:
        data = parse_document(f"value: {text}", "value").data
    except ConfigError:
        return text
    return data["value"] if list(data) == ["value"] else text


def home_problems(text: str, label: str) -> list[Problem]:
    """What is wrong with the text of a home's config.yaml."""
    from mibyan.config.checks import cross_check
    from mibyan.config.settings import settings_from_data

    layer = text_layer(text, label)
    return list(layer.problems) or cross_check(settings_from_data(layer.data), [layer.document])


def _edit(
    path: Path,
    key: KeyPath,
    change: Callable[[dict[str, Any]], None],
    splice: Callable[[str, dict[str, Any]], str],
    check: Check | None,
) -> bool:
    """Make one edit: `change` says what the data shall be, `splice` makes the text that says so."""
    _require_writable(key)
    with file_lock(path):
        text, mark = _read(path)
        old = parse_document(text, path.name, origin=path).data
        new = _copy(old)
        change(new)
        if _same(old, new):
            return False
        result = _spliced(path, key, text, new, splice)
        _refuse_new_problems(path, text, result, check or home_problems)
        write_atomic(path, mark + result.encode())
    return True


def _require_writable(key: KeyPath) -> None:
    """Raise unless `key` can stand in a file."""
    if not key:
        raise ConfigError("the key is empty", hint="Name a key, such as dispatch.timeout.")
    try:
        join_key(key).encode()
    except UnicodeEncodeError:
        hint = "It was given in another encoding than UTF-8; write it in UTF-8."
        raise ConfigError(f"{join_key(key)!r} can't be a key: it has half characters", hint=hint) from None


def _read(path: Path) -> tuple[str, bytes]:
    """The text of a file, empty when there is none, and its byte order mark."""
    if not os.path.lexists(path):
        return "", b""
    content = read_bytes(path, limit=MAX_BYTES)
    return decode_text(content, path), _BOM if content.startswith(_BOM) else b""


def _spliced(
    path: Path, key: KeyPath, text: str, new: dict[str, Any], splice: Callable[[str, dict[str, Any]], str]
) -> str:
    """The edited text, read again and compared with what it shall say."""
    reason = "its form there is too special"
    try:
        result = splice(text, new)
        if _same(parse_document(result, path.name).data, new):
            return result
    except SpliceError as error:
        reason = str(error)
    except (ConfigError, LookupError, ValueError):
        pass
    raise ConfigError(
        f"{path} can't be edited at '{join_key(key)}' without changing something else: {reason}",
        origin=str(path),
        hint="Edit the file by hand; `mibyan config validate` checks it.",
    )


def _refuse_new_problems(path: Path, old: str, new: str, check: Check) -> None:
    """Raise the problems that `new` has and `old` hadn't."""
    found = check(new, path.name)
    known = {(problem.key, problem.message) for problem in check(old, path.name)} if found else set()
    added = [problem for problem in found if (problem.key, problem.message) not in known]
    if added:
        raise InvalidConfigError(path, added, verb="wasn't changed, it would be wrong")


def _items(data: dict[str, Any], path: KeyPath) -> list[Any]:
    """The list at `path`, or its default."""
    from mibyan.config.settings import Settings

    for source in (data, Settings().to_data()):
        try:
            value = value_at(source, path)
        except LookupError:
            continue
        if isinstance(value, list):
            return value
        if value is not None:
            raise ConfigError(f"'{join_key(path)}' isn't a list, it is {describe(value)}")
    return []


def _put(data: dict[str, Any], path: KeyPath, value: Any) -> None:
    """Set what is at `path`; mappings that are missing, or are nothing, are made."""
    node: Any = data
    for depth, part in enumerate(path[:-1]):
        if isinstance(node, dict) and node.get(str(part)) is None:
            node[str(part)] = {}
        node = _below(node, path[: depth + 1])
    if isinstance(node, list) and isinstance(path[-1], int) and path[-1] < len(node):
        node[path[-1]] = value
    elif isinstance(node, dict):
        node[str(path[-1])] = value
    else:
        _below(node, path)


def _below(node: Any, path: KeyPath) -> Any:
    """The last part of `path` in `node`.

    Raises:
        ConfigError: `node` has nothing below it.
    """
    try:
        return value_at(node, path[-1:])
    except LookupError:
        above = join_key(path[:-1])
        raise ConfigError(f"there can be no '{join_key(path)}': '{above}' is {describe(node)}") from None


def _json(value: Any) -> Any:
    """`value` in JSON types."""
    from mibyan.config.overrides import document_of

    return document_of({"value": value}, "the new value").data["value"]


def _copy(data: dict[str, Any]) -> dict[str, Any]:
    """A copy in which nothing is shared: what an anchor shares must not change with its alias."""
    copied: dict[str, Any] = json.loads(json.dumps(data))
    return copied


def _same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON (1, 1.0 and true aren't)."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
