"""What the tool answers, and whether the manifest is what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mibyan.testing import ToolCaller

PROJECT = Path(__file__).parents[1]
TOOL = "{{ cookiecutter.__tool }}"

# The runtime of these tests has a temporary home, and sees this plugin as it is installed here.
pytestmark = pytest.mark.mibyan(plugins=["{{ cookiecutter.__id }}"])


@pytest.mark.parametrize(
    ("arguments", "greeting"),
    [
        ({"name": "Ada"}, "Hello, Ada!"),
        ({"name": "Ada", "style": "formal"}, "Good day, Ada."),
    ],
)
def test_it_greets(call_tool: ToolCaller, arguments: dict[str, str], greeting: str) -> None:
    """A greeting in each style."""
    assert call_tool(TOOL, arguments).data == {"greeting": greeting}


@pytest.mark.parametrize(
    ("arguments", "error_type"),
    [
        ({"name": " "}, "tool_exception"),
        ({"name": "Ada", "style": "rude"}, "invalid_arguments"),
        ({}, "invalid_arguments"),
    ],
)
def test_what_it_refuses(call_tool: ToolCaller, arguments: dict[str, str], error_type: str) -> None:
    """Wrong arguments are answered, never raised."""
    assert call_tool.failing(TOOL, arguments).error_type == error_type


def test_the_manifest_is_what_the_code_says() -> None:
    """If this fails: `mibyan plugins manifest . --write`."""
    command = [sys.executable, "-m", "mibyan", "plugins", "manifest", str(PROJECT), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
