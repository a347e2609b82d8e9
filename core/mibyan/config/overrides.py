"""Settings that code gives (`Runtime(config=...)`), as a document like those of files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mibyan.config.problems import InvalidConfigError
from mibyan.config.yamlfile import MAX_DEPTH, Document
from mibyan.text import replace_surrogates

if TYPE_CHECKING:
    from mibyan.config.keys import KeyPath
    from mibyan.config.problems import Problem

#: What problems call such a document.
LABEL = "Runtime(config=...)"


def document_of(values: Mapping[str, Any], label: str = LABEL) -> Document:
    """The values as a document without lines: mappings, lists, tuples, paths and JSON's scalars are taken.

    Raises:
        InvalidConfigError: It isn't a mapping, or has what JSON doesn't have.
    """
    document = Document(label)
    problems: list[Problem] = []
    data = _plain(values, (), document, problems)
    if not isinstance(data, dict):
        problems.append(document.problem((), f"expected a mapping, got a {type(values).__name__}"))
    if problems:
        raise InvalidConfigError(label, problems)
    return Document(label, data)


def _plain(value: Any, path: KeyPath, document: Document, problems: list[Problem]) -> Any:
    """`value` in JSON types; what has none is noted."""
    if len(path) > MAX_DEPTH:
        problems.append(document.problem(path[:3], f"more than {MAX_DEPTH} levels inside one another"))
        return None
    match value:
        case Mapping():
            return {str(name): _plain(part, (*path, str(name)), document, problems) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part, (*path, number), document, problems) for number, part in enumerate(value)]
        case float() if not math.isfinite(value):
            problems.append(document.problem(path, f"{value} isn't a finite number"))
        case str() if replace_surrogates(value) != value:
            problems.append(document.problem(path, "text with half characters (lone surrogates)"))
        case None | bool() | int() | float() | str():
            return value
        case os.PathLike():
            return os.fspath(value)
        case _:
            problems.append(document.problem(path, f"a {type(value).__name__} can't be a setting"))
    return None
