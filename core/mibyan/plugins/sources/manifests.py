"""Manifest files: read, checked once per content, and turned into a `Manifest` or a sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.plugins.manifest import Manifest, check_manifest
from mibyan.plugins.sources.files import read_bytes, reason
from mibyan.schema.kept import content_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from mibyan.config.keys import KeyPath
    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.sources.cache import ContentCache

#: The manifest's name in a folder, and in a wheel as package data.
FOLDER_MANIFEST = "plugin.yaml"
#: The manifest's name in a wheel's dist-info, and of a built-in plugin.
WHEEL_MANIFEST = "mibyan.json"

#: A role in a text that is neither YAML nor JSON, but was meant to be.
_ROLE = re.compile(rb"""(?:^|[{,])[ \t]*["']?role["']?[ \t]*:[ \t]*["']?(\w+)""", re.MULTILINE)


def read_manifest(
    path: str | os.PathLike[str], cache: ContentCache, *, by_bytes: bool = False
) -> tuple[Manifest | None, str | None]:
    """The manifest at `path`, or why it isn't one; a file that hasn't changed costs neither yaml nor pydantic.

    Args:
        path: A `.json` or `.yaml` file.
        cache: Keeps the checked form.
        by_bytes: Whether the bytes are what counts, not the time of change: for files that a stranger brought.
    """
    try:
        return _build(_known_by_bytes(path, cache) if by_bytes else _known_by_time(path, cache))
    except OSError as error:
        return None, f"{Path(path).name} can't be read: {reason(error)}"
    except (TypeError, ValueError, KeyError, AttributeError):  # somebody else wrote into the cache
        return manifest_of(read_bytes(path), str(path))


def _known_by_time(path: str | os.PathLike[str], cache: ContentCache) -> Any:
    return cache.look_up("manifest", path, lambda: _checked_content(read_bytes(path), str(path)))


def _known_by_bytes(path: str | os.PathLike[str], cache: ContentCache) -> Any:
    data = read_bytes(path)
    return cache.look_up_bytes(f"manifest:{path}", data, lambda: _checked_content(data, str(path)))


def manifest_of(data: bytes, origin: str) -> tuple[Manifest | None, str | None]:
    """The manifest in `data`, or why it isn't one; `origin` ends in `.json` or `.yaml`."""
    return _build(_checked_content(data, origin))


def _build(known: dict[str, Any]) -> tuple[Manifest | None, str | None]:
    if "problem" in known:
        return None, str(known["problem"])
    return Manifest.from_trusted(known["data"], warnings=tuple(known["warnings"])), None


def _checked_content(data: bytes, origin: str) -> dict[str, Any]:
    """`{"data", "warnings"}`, or `{"problem"}`: plain data for the cache."""
    try:
        content, lines = _parse(data.decode("utf-8-sig"), origin)
        trusted, warnings = check_manifest(content, origin, lines=lines)
    except MibyanError as error:
        problems = getattr(error, "problems", ())
        return {"problem": "; ".join(map(str, problems)) or str(error)}
    except (ValueError, RecursionError, MemoryError) as error:
        return {"problem": f"{Path(origin).name}: {reason(error) or type(error).__name__}"}
    return {"data": _kept(trusted), "warnings": warnings}


def _kept(trusted: dict[str, Any]) -> dict[str, Any]:
    """The data as the cache keeps it: schemas apart, as bytes."""
    plain: dict[str, Any] = json.loads(json.dumps(trusted))
    for tool in plain.get("tools", ()):
        schema = tool["schema"]
        tool["schema"] = (content_of(schema), schema.get("description") or "")
    return plain


def _parse(text: str, origin: str) -> tuple[Any, Mapping[KeyPath, int]]:
    """The content, and the line of each key where the format has lines."""
    if origin.endswith(".json"):
        from mibyan.schema.jsontext import parse_strict

        return parse_strict(text), {}
    from mibyan.config.yamlfile import parse_document

    document = parse_document(text, Path(origin).name, origin=origin)
    return document.data, document.lines


def role_in_faulty(candidate: Candidate) -> str:
    """The role that a plugin's manifest says although it can't be used as a manifest; empty if it says none.

    An update that breaks a policy's manifest must not be the end of the policy.
    """
    for path in _manifest_files(candidate):
        try:
            data = read_bytes(path)
        except (OSError, ValueError):
            continue
        return _role(data, str(path))
    return ""


def _manifest_files(candidate: Candidate) -> Iterator[Path]:
    """Where the manifest of a candidate may lie."""
    if candidate.origin.endswith(FOLDER_MANIFEST):
        yield Path(candidate.origin)
        return
    yield Path(candidate.origin) / "extra_metadata" / WHEEL_MANIFEST
    if candidate.root is not None:
        yield candidate.root / FOLDER_MANIFEST
    elif candidate.source == "pip":
        from mibyan.plugins.sources.modules import data_names, is_module_name, top_folders

        tops = top_folders(candidate.id) if is_module_name(candidate.id) else []
        yield from (Path(top, name) for top in tops for name in data_names(candidate.id))


def _role(data: bytes, origin: str) -> str:
    try:
        content, _ = _parse(data.decode("utf-8-sig"), origin)
        return str(content.get("role", ""))
    except (MibyanError, ValueError, AttributeError, RecursionError, MemoryError):
        found = _ROLE.search(data)
        return found[1].decode("utf-8", "replace") if found is not None else ""
