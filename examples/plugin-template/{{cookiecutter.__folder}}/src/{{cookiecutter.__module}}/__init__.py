"""The plugin {{ cookiecutter.__id }}.

A function under `mibyan.tool` is a tool that a model can call.
"""

from __future__ import annotations

from typing import Literal

import mibyan

_GREETINGS = {"plain": "Hello, {}!", "formal": "Good day, {}."}


@mibyan.tool(
    toolset="{{ cookiecutter.__id }}",
    read_only=True,
    idempotent=True,
    open_world=False,
)
def {{ cookiecutter.__tool }}(
    name: str,
    style: Literal["plain", "formal"] = "plain",
) -> dict[str, str]:
    """Greet somebody by name.

    Args:
        name: Whom to greet.
        style: How to do it.
    """
    if not name.strip():
        raise mibyan.ToolError("There is nobody to greet.", hint="Give a name.")
    return {"greeting": _GREETINGS[style].format(name)}
