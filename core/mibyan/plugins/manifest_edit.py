"""Writing into a manifest what the code says: the author's keys, comments and order stay (plugins.M4)."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any

from mibyan.config.edit import _same
from mibyan.config.outline import SpliceError
from mibyan.config.splice import Splicer
from mibyan.config.yamlfile import parse_document
from mibyan.errors import ConfigError, ManifestError
from mibyan.plugins.freezing import CODE_KEYS, same_tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_INDENT = re.compile(r"\{\r?\n([ \t]+)")


def merged(written: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest that says what the code does; what says so already stays as it is written.

    Args:
        written: The manifest as it is.
        keys: What the code says (`Freezing.keys`).
    """
    new = {
        key: _kept(key, value, keys)
        for key, value in written.items()
        if key not in CODE_KEYS or not value or key in keys
    }
    return {**new, **{key: value for key, value in keys.items() if key not in written}}


def _kept(key: str, value: Any, keys: Mapping[str, Any]) -> Any:
    """The value of a key: as it is written where that means the same."""
    if key not in CODE_KEYS or key not in keys:
        return value
    new = keys[key]
    if key == "tools":
        return _tools(value, new)
    if key in {"hooks", "overrides", "skills"} and isinstance(value, list) and sorted(map(str, value)) == sorted(new):
        return value
    if key == "toolsets" and isinstance(value, list):
        return value if all(not part for part in new.values()) and list(new) == value else new
    if key == "commands" and isinstance(value, list):
        plain = [{"name": one} if isinstance(one, str) else one for one in value]
        return value if plain == new else new
    return new


def _tools(written: Any, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools in the order in which they are written, new ones behind."""
    known = {tool.get("name"): tool for tool in written if isinstance(tool, dict)} if isinstance(written, list) else {}
    right = {tool["name"]: known[tool["name"]] if _is_right(known.get(tool["name"]), tool) else tool for tool in new}
    return [right[name] for name in (*(name for name in known if name in right), *(n for n in right if n not in known))]


def _is_right(written: dict[str, Any] | None, tool: dict[str, Any]) -> bool:
    """Whether a definition that is written says what the code does."""
    if written is None:
        return False
    try:
        same = same_tool(written, tool)
    except Exception:  # what is written may be anything
        return False
    return same and ("target" not in written or written["target"] == tool.get("target"))


# Text -------------------------------------------------------------------------------------------------------------


def text_of(path: Path, text: str | None, written: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The text of a manifest that says `new`.

    Args:
        path: Its file, for its form and for messages.
        text: The text so far, which says `written`; `None`: there is no file.
        written: What the text says.
        new: What it shall say.

    Raises:
        ManifestError: The file's form is too special to be edited.
    """
    if text is not None and _same(written, new) and list(written) == list(new):
        return text
    if path.suffix == ".json":
        return _json_text(text or "", new)
    mark = "\ufeff" if (text or "").startswith("\ufeff") else ""
    try:
        result = _spliced((text or "").removeprefix(mark), {} if text is None else written, new)
        if _same(parse_document(result, path.name).data, new):
            return mark + result
        why = "its form is too special"
    except (SpliceError, ConfigError, LookupError, ValueError) as error:
        why = str(error)
    raise ManifestError(f"{path} can't be edited without changing something else: {why}", origin=str(path),
                        hint="Take its `tools` away and try again, or write them by hand.")  # fmt: skip


def _json_text(text: str, new: Mapping[str, Any]) -> str:
    found = _INDENT.search(text)
    indent: int | str = 2 if found is None else found[1] if "\t" in found[1] else len(found[1])
    made = json.dumps(new, ensure_ascii=False, indent=indent) + "\n"
    return made.replace("\n", "\r\n") if "\r\n" in text else made


def _spliced(text: str, written: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    for key in CODE_KEYS:
        if key not in new and key in written:
            text = Splicer(text).remove((key,))
    for key, value in new.items():
        if key in written and _same(written[key], value):
            continue
        if key == "tools" and written.get(key) and isinstance(written[key], list):
            text = _spliced_tools(text, written[key], value)
        elif key == "toolsets" and isinstance(written.get(key), dict) and set(written[key]) <= set(value):
            for name in [name for name in value if not _same(written[key].get(name), value[name])]:
                text = Splicer(text).put((key, name), value[name])
        else:
            text = Splicer(text).put((key,), value)
    return text


def _spliced_tools(text: str, written: list[Any], new: list[dict[str, Any]]) -> str:
    """The text with its tools changed a key at a time, so that comments beside the others stay."""
    wanted = {tool["name"]: tool for tool in new}
    names = [tool.get("name") if isinstance(tool, dict) else None for tool in written]
    keep = [name in wanted and names.index(name) == number for number, name in enumerate(names)]
    if not any(keep):
        return Splicer(text).put(("tools",), new)
    for number in reversed([number for number, kept in enumerate(keep) if not kept]):
        text = Splicer(text).remove(("tools", number))
    stay = [tool for tool, kept in zip(written, keep, strict=True) if kept]
    for number, tool in enumerate(stay):
        text = _spliced_tool(text, number, tool, wanted[tool["name"]])
    known = {tool["name"] for tool in stay}
    for tool in new:
        if tool["name"] not in known:
            text = Splicer(text).append(("tools",), tool, [])
    return text


def _spliced_tool(text: str, number: int, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    for key in [key for key in old if key not in new]:
        text = Splicer(text).remove(("tools", number, key))
    for key, value in new.items():
        if key not in old or not _same(old[key], value):
            text = Splicer(text).put(("tools", number, key), value)
    return text


# Differences ------------------------------------------------------------------------------------------------------


def differences(written: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What differs between two manifests, each with a unified diff: a tool at a time, then the other keys."""
    old_tools, new_tools = _by_name(written), _by_name(new)
    for name in dict.fromkeys((*old_tools, *new_tools)):
        yield from _differing(f"tool {name}", old_tools.get(name), new_tools.get(name))
    if "tools" not in written and not new_tools:
        yield "tools", "+ the manifest has no `tools`, so the plugin isn't frozen\n"
    for key in dict.fromkeys((*written, *new)):
        if key != "tools":
            yield from _differing(key, written.get(key), new.get(key))


def _by_name(data: Mapping[str, Any]) -> dict[str, Any]:
    tools = data.get("tools")
    return {str(tool.get("name")): tool for tool in tools if isinstance(tool, dict)} if isinstance(tools, list) else {}


def _differing(what: str, old: Any, new: Any) -> Iterator[tuple[str, str]]:
    if _same(old, new):
        return
    before, after = _lines(old), _lines(new)
    yield what, "".join(difflib.unified_diff(before, after, f"{what} (manifest)", f"{what} (code)"))


def _lines(value: Any) -> list[str]:
    return [] if value is None else (json.dumps(value, ensure_ascii=False, indent=2) + "\n").splitlines(keepends=True)
