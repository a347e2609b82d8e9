"""A wheel without frozen definitions, installed by pip: imported by the first command, then by what uses it (plugins.M4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Author, Installation

pytestmark = pytest.mark.system

SOURCE = '''
    import os
    import mibyan

    with open(os.environ["MARKS"], "a") as marks:
        marks.write("{name} ")

    @mibyan.tool(toolset="marks", name="{name}")
    def mark(text: str = "{answer}") -> str:
        """Answer."""
        return text
'''


def test_a_wheel_is_imported_when_it_changes_or_is_used(
    installation: Installation, author: Author, tmp_path: Path
) -> None:
    """Installed, upgraded, edited in place, uninstalled: each is seen, and the others aren't imported for it."""
    marks = tmp_path / "marks"

    def imported(*words: str, **env: str) -> list[str]:
        marks.write_text("")
        installation.mibyan(*words, check=True, MARKS=str(marks), **env)
        return marks.read_text().split()

    def install(name: str, version: str = "1.0", answer: str = "a") -> None:
        source = SOURCE.format(name=name, answer=answer)
        wheel = author.wheel(f"mibyan-plugin-{name}", f"module_{name}", source, version)
        installation.pip("install", "--no-deps", "--force-reinstall", wheel)

    install("one")
    install("two")
    installation.home.mkdir()
    assert sorted(imported("tools", "list")) == ["one", "two"]
    assert imported("tools", "list") == imported("tools", "schema") == imported("plugins", "list") == []
    assert imported("call", "one", "--yes") == ["one"]
    assert imported("tools", "list") == []
    install("two", "2.0", "b")
    assert imported("tools", "list") == ["two"]
    assert installation.mibyan("call", "two", "--yes", MARKS=str(marks)).stdout.strip() == "b"
    code = next(installation.folder.glob("lib/*/site-packages/module_one.py"))
    code.write_text(code.read_text() + "# edited\n")
    assert imported("tools", "list") == ["one"]
    # A variable that the sources name, and one that they don't.
    marks = tmp_path / "elsewhere"
    assert sorted(imported("tools", "list")) == ["one", "two"]
    assert imported("tools", "list", OTHER="1") == []
    installation.pip("uninstall", "--yes", "mibyan-plugin-one")
    assert imported("tools", "list") == []
    assert "two" in installation.mibyan("tools", "list", MARKS=str(marks)).stdout
