"""What a plugin's failures say holds no secret, wherever it is told: log, report, listing, answer (dispatch.C9)."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from mibyan import Ask
from mibyan.errors import PluginError

from .world import SCHEMA, World

KEY = "Zk93hsQ0pLw7TtVbn2Xe"
CONFIG = f"plugins: {{entries: {{leaky: {{config: {{apiKey: {KEY}}}}}}}}}"

#: A plugin that says its key wherever it fails.
LEAKY = """
import mibyan

def leak(ctx):
    raise __KIND__(f"401 for {ctx.config['apiKey']}")

def register(ctx):
    if __WHEN__ == "load":
        leak(ctx)
    ctx.register_tool("x", "t", {"description": "d"}, lambda args: "x", dynamic_schema_overrides=lambda: leak(ctx))
    ctx.register_hook("mibyan_patch_definitions", lambda definitions: leak(ctx))
    ctx.register_hook("post_tool_call", lambda: leak(ctx))
    ctx.register_hook("on_session_start", lambda: leak(ctx))
    ctx.register_command("say", lambda text: leak(ctx))
    ctx.on_unload(lambda: leak(ctx))
"""


@pytest.mark.parametrize("kind", ["ValueError", "SystemExit", "mibyan.MibyanError", "mibyan.ToolError"])
@pytest.mark.parametrize("when", ["load", "later"])
def test_dispatch_C9_not_in_what_a_plugin_s_failure_says(
    world: World, caplog: pytest.LogCaptureFixture, when: str, kind: str
) -> None:
    """dispatch.C9: at its load, in its overrides, patches, hooks, on its way out; in the log with its details too."""
    world.config(CONFIG)
    world.folder("leaky", LEAKY.replace("__WHEN__", repr(when)).replace("__KIND__", kind))
    told: list[Any] = []
    with caplog.at_level(logging.DEBUG):
        rt = world.runtime()
        told += [rt.definitions(), rt.call("x", {}), rt.plugins.get("leaky").reason, rt.plugins.get("leaky").hint]
        if when == "later":
            rt.plugins.unload("leaky")
        else:
            with pytest.raises(PluginError) as refusal:
                rt.plugins.activate("leaky")
            told.append(str(refusal.value))
        told.append(rt.report().to_dict())
    text = json.dumps(told) + caplog.text + (world.home / "cache" / "plugins.json").read_text()
    assert KEY not in text
    assert "401 for [redacted]" in text


def test_dispatch_C9_not_in_what_a_channel_s_failure_says(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """dispatch.C9: the host's channel for approvals may fail with what it knows."""
    world.config(CONFIG)
    rt = world.runtime()
    rt.registry.register("x", "t", SCHEMA, lambda args: "x", approval=lambda args, context: Ask("sure?"))

    def channel(request: Any) -> None:
        raise RuntimeError(f"401 for {KEY}")

    rt.approvals.notify(channel)
    assert json.loads(asyncio.run(rt.acall("x", {})))["error_type"] == "denied"
    assert "401 for [redacted]" in caplog.text
    assert KEY not in caplog.text + json.dumps(rt.report().to_dict())
