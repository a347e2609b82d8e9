"""The neighbouring agent: a raw tool, called as its own loop calls it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import model_tools
from hermes_cli.plugins import get_plugin_manager
from tools.registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable


def make(variant: str, arguments: dict[str, Any], schema: dict[str, Any]) -> Callable[[], object]:
    """`handle_function_call`, with hooks if the variant says so."""
    logging.disable(logging.CRITICAL)
    registry.register(name="list_folder", toolset="bench", schema={"name": "list_folder", **schema}, handler=_handle)
    if "hooks" in variant:
        hooks = get_plugin_manager()._hooks
        hooks.setdefault("pre_tool_call", []).append(_look)
        hooks.setdefault("post_tool_call", []).append(_look)
    call = model_tools.handle_function_call
    return lambda: call("list_folder", dict(arguments), task_id="task")


def _handle(args: dict[str, Any], **_context: Any) -> str:
    return json.dumps({"result": args["path"]}, ensure_ascii=False)


def _look(**_told: Any) -> None:
    """A hook that looks and has nothing to say."""
