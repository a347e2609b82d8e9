"""Layers: what one author has said, read and checked; the settings are several laid over each other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mibyan.config.keys import join_key
from mibyan.config.problems import InvalidConfigError, Problem
from mibyan.config.yamlfile import Document, parse_document, read_document
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from mibyan.config.keys import KeyPath


@record
class Layer:
    """What one author has said."""

    document: Document
    #: The file's path, or what stands for it.
    origin: Path | str
    #: Whether there is such a file.
    exists: bool = True
    #: What was written, checked and in the form that `settings_from_data` takes; empty when there are problems.
    data: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    #: What to do about an unreadable file.
    hint: str | None = None


def file_layer(path: Path, label: str) -> Layer:
    """What a config.yaml says; nothing when there is none."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return Layer(Document(label), path, exists=False)
    except (OSError, ValueError):
        pass  # reading it says what is wrong
    return _layer(label, path, lambda: read_document(path, label))


def text_layer(text: str, label: str) -> Layer:
    """What the text of a config.yaml says."""
    return _layer(label, label, lambda: parse_document(text, label))


def override_layer(values: Mapping[str, Any]) -> Layer:
    """What code says."""
    from mibyan.config.overrides import LABEL, document_of

    return _layer(LABEL, LABEL, lambda: document_of(values))


def merged(layers: Iterable[Layer]) -> dict[str, Any]:
    """The layers' data as one: mappings key by key, of everything else the last that is written."""
    result: dict[str, Any] = {}
    for layer in layers:
        result = _over(result, layer.data)
    return result


def places(layers: Iterable[Layer]) -> dict[str, str]:
    """Where each written key is, sections included: the dotted key, and its `file:line`.

    A section is where the first layer has it, everything else where the last one has.
    """
    found: dict[str, str] = {}
    for layer in layers:
        for path, value in written(layer.document.data):
            place = layer.document.where(path)
            found[join_key(path)] = found.get(join_key(path), place) if isinstance(value, dict) else place
    return found


def written(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every key and list item below `path`, each with its value."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in parts:
        yield (*path, name), value
        yield from written(value, (*path, name))


def _layer(label: str, origin: Path | str, read: Callable[[], Document]) -> Layer:
    """The layer of a document that `read` gives."""
    from mibyan.config.validation import check

    try:
        document = read()
    except InvalidConfigError as error:
        return Layer(Document(label), origin, problems=error.problems, hint=error.hint)
    data, problems = check(document)
    return Layer(document, origin, data=data, problems=tuple(problems))


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """`below` with `above` laid over it; neither is changed."""
    result = dict(below)
    for name, value in above.items():
        old = below.get(name)
        result[name] = _over(old if isinstance(old, dict) else {}, value) if isinstance(value, dict) else value
    return result
