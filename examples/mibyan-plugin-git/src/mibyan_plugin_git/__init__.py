"""Git for a model: it reads the history with a typed tool, and a policy says what it may push.

`history` has the tool, `pushes` the policy; both go by what config.yaml says for this plugin.
"""

from __future__ import annotations

from typing import Any

from mibyan_plugin_git.history import git_log
from mibyan_plugin_git.pushes import PushPolicy

__all__ = ["git_log", "register"]


def register(ctx: Any) -> None:
    """Put the policy into force, as this runtime's configuration wants it."""
    ctx.register_hook("pre_tool_call", PushPolicy(ctx.config).pre_tool_call)
