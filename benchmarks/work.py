"""The work that is measured: one tool in several guises, and the floor that does the same without a runtime."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator, core_schema, to_json

import mibyan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What a model sends.
ARGUMENTS: dict[str, Any] = {"path": "src/app", "limit": 25, "recursive": True}
TEXT = json.dumps(ARGUMENTS)

NESTED: dict[str, Any] = {
    "path": "src/app",
    "filter": {"glob": "*.py", "depth": 3},
    "edits": [{"line": 1, "text": "import os"}, {"line": 7, "text": "print(os.name)"}],
}
NESTED_TEXT = json.dumps(NESTED)

_PATH = {"type": "string", "description": "Folder to list, relative to the workspace root."}
_LIMIT = {"type": "integer", "default": 100, "description": "Largest number of entries to return."}
_RECURSIVE = {"type": "boolean", "default": False, "description": "Whether to go down into the subfolders."}
_EDIT = {
    "type": "object",
    "properties": {"line": {"type": "integer", "minimum": 1}, "text": {"type": "string"}},
    "required": ["line", "text"],
    "additionalProperties": False,
}
_FILTER = {
    "type": "object",
    "properties": {"glob": {"type": "string"}, "depth": {"type": "integer", "minimum": 0}},
    "required": ["glob"],
    "additionalProperties": False,
}


def flat_schema(number: int = 0) -> dict[str, Any]:
    """A raw tool's schema, a fresh one each time; `number` makes it different from the others."""
    properties = {"path": dict(_PATH), "limit": dict(_LIMIT), "recursive": dict(_RECURSIVE)}
    return {
        "description": f"List the entries number {number} of a folder in the workspace.",
        "parameters": {"type": "object", "properties": properties, "required": ["path"]},
    }


def nested_schema() -> dict[str, Any]:
    """A raw tool's schema with an object and an array of objects in it."""
    properties = {"path": _PATH, "filter": _FILTER, "edits": {"type": "array", "items": _EDIT}}
    return {
        "description": "Edit the files of a folder.",
        "parameters": {"type": "object", "properties": properties, "required": ["path", "edits"]},
    }


def list_folder(path: str, limit: int = 100, recursive: bool = False) -> dict[str, str]:  # noqa: FBT001, FBT002
    """List the entries of a folder in the workspace.

    Args:
        path: Folder to list, relative to the workspace root.
        limit: Largest number of entries to return.
        recursive: Whether to go down into the subfolders.
    """
    del limit, recursive
    return {"result": path}


async def list_folder_async(path: str, limit: int = 100, recursive: bool = False) -> dict[str, str]:  # noqa: FBT001, FBT002
    """List the entries of a folder in the workspace.

    Args:
        path: Folder to list, relative to the workspace root.
        limit: Largest number of entries to return.
        recursive: Whether to go down into the subfolders.
    """
    del limit, recursive
    return {"result": path}


def handle(args: dict[str, Any]) -> dict[str, str]:
    """The same as a raw tool's handler."""
    return {"result": args["path"]}


def handle_with_context(args: dict[str, Any], **context: Any) -> dict[str, str]:
    """The same, by a handler that takes the whole context."""
    del context
    return {"result": args["path"]}


_FIELD = core_schema.typed_dict_field
_ARGUMENTS = core_schema.typed_dict_schema(
    {
        "path": _FIELD(core_schema.str_schema(strict=True)),
        "limit": _FIELD(core_schema.int_schema(strict=True), required=False),
        "recursive": _FIELD(core_schema.bool_schema(strict=True), required=False),
    },
    extra_behavior="forbid",
)


class Floor:
    """The least that a validated call takes: look-up, pydantic-core from text, call, JSON text of the result."""

    def __init__(self) -> None:
        self._tools = {"list_folder": (list_folder, SchemaValidator(_ARGUMENTS).validate_json)}

    def call(self) -> bytes:
        """One call."""
        function, validate = self._tools["list_folder"]
        return to_json(function(**validate(TEXT)))


def register(runtime: mibyan.Runtime) -> None:
    """Register the tool in all its guises."""
    registry = runtime.registry
    registry.add(mibyan.tool(toolset="bench")(list_folder))
    registry.add(mibyan.tool(toolset="bench")(list_folder_async))
    registry.register("flat", "bench", flat_schema(), handle)
    registry.register("flat_context", "bench", flat_schema(), handle_with_context)
    registry.register("nested", "bench", nested_schema(), handle)


def add_hooks(runtime: mibyan.Runtime) -> None:
    """Add a hook before and one after a call."""
    runtime.add_hook("pre_tool_call", _before)
    runtime.add_hook("post_tool_call", _after)


def _before(tool_name: str, args: dict[str, Any]) -> None:
    """A hook that looks and has nothing to say."""


def _after(tool_name: str, result: str) -> None:
    """A hook that looks."""


@contextmanager
def runtime(config: Mapping[str, Any] | None = None) -> Iterator[mibyan.Runtime]:
    """A runtime with a home of its own and no plugin: its tools are those that are registered here."""
    with tempfile.TemporaryDirectory(prefix="mibyan-bench-") as home:
        with mibyan.Runtime(home=home, safe_mode=True) as first:
            first.plugins.load()
            found = [record.id for record in first.plugins.all_records()]
        with mibyan.Runtime(home=home, config=config, safe_mode=True, no_plugins=found) as made:
            yield made
