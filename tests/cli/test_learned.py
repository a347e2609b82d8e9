"""Commands over plugins that were learned: each in a process of its own, with what is imported written down (plugins.M4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from mibyan.plugins.sources.digest import digest_folder
from mibyan.plugins.sources.trust import TrustStore

#: What every plugin here begins with.
MARK = "import os\nwith open(os.environ['MARKS'], 'a') as marks:\n    marks.write({0!r} + '\\n')\n"
TYPED = '''
import mibyan
@mibyan.tool(toolset="tools_{0}", name="word_{0}")
def word(size: int = 1) -> str:
    """Says a word.

    Args:
        size: How often.
    """
    return "word" * size
'''
RAW = """
import mibyan
mibyan.registry.register("word_{0}", "tools_{0}", {{"description": "Says a word."}}, lambda args: "word")
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")


def make_plugin(root: Path, number: int) -> None:
    """One of four kinds: a wheel, a user's folder, a project's folder, a file of a tools directory."""
    name, source = f"p{number}", MARK.format(f"p{number}") + (TYPED if number % 2 else RAW).format(number)
    kind = number % 4
    if kind == 0:
        info = root / "site" / f"{name}-1.0.dist-info"
        write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        write(info / "entry_points.txt", f"[mibyan.plugins]\n{name} = {name}\n")
        write(info / "RECORD", f"{name}/__init__.py,,\n")
        write(root / "site" / name / "__init__.py", source)
    elif kind == 3:
        write(root / "home" / "tools" / f"{name}.py", MARK.format(name) + RAW.format(number))
    else:
        above = root / "home" if kind == 1 else root / "project" / ".mibyan"
        write(above / "plugins" / name / "plugin.yaml", f"id: {name}\n")
        write(above / "plugins" / name / "__init__.py", source)


@pytest.fixture
def mibyan(tmp_path: Path) -> Callable[..., tuple[str, list[str]]]:
    """Run a command in the project; what it printed, and the plugins that it imported."""
    for folder in ("home", "project/.mibyan", "site"):
        (tmp_path / folder).mkdir(parents=True)
    marks = tmp_path / "marks"

    def run(*words: str, status: int = 0, **env: str) -> tuple[str, list[str]]:
        marks.write_text("")
        path = [str(tmp_path / "site"), *(entry for entry in sys.path if entry)]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("MIBYAN_", "PYTHON"))}
        done = subprocess.run(
            [sys.executable, "-m", "mibyan", *words], cwd=tmp_path / "project", capture_output=True, text=True, timeout=120,
            env={**clean, "MIBYAN_HOME": str(tmp_path / "home"), "MARKS": str(marks), "PYTHONPATH": os.pathsep.join(path), **env},
            check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout, marks.read_text().split()

    return run


def trust_all(root: Path) -> None:
    for folder in (root / "project" / ".mibyan" / "plugins").iterdir():
        TrustStore(root / "home").trust(folder.name, digest_folder(folder), root / "project")


@pytest.mark.thorough
def test_a_hundred_plugins_and_no_import(tmp_path: Path, mibyan: Callable[..., tuple[str, list[str]]]) -> None:
    """After a first run the commands that only look import none of a hundred mixed plugins; a call imports its own."""
    for number in range(100):
        make_plugin(tmp_path, number)
    trust_all(tmp_path)
    first, imported = mibyan("tools", "list", "--json")
    assert len(imported) == 100
    for words in (
        ["tools", "list", "--json"], ["tools", "schema"], ["tools", "list"], ["toolsets", "list"],
        ["toolsets", "show", "tools_7"], ["plugins", "list"], ["plugins", "show", "p4"], ["tools", "show", "word_5"],
        ["tools", "why", "word_6"],
    ):  # fmt: skip
        printed, imported = mibyan(*words)
        assert imported == [], words
        if words == ["tools", "list", "--json"]:
            assert printed == first
    printed, imported = mibyan("call", "word_42", "--yes")
    assert (printed.strip(), imported) == ("word", ["p42"])
    printed, imported = mibyan("call", "word_41", "size=2", "--yes")
    assert (printed.strip(), imported) == ("wordword", ["p41"])
    make_plugin(tmp_path, 100)
    assert mibyan("tools", "list")[1] == ["p100"]
    write(tmp_path / "home" / "tools" / "p3.py", MARK.format("p3") + RAW.format("3b"))
    assert mibyan("tools", "list")[1] == ["p3"]
    assert mibyan("tools", "list")[1] == []
    loaded, imported = mibyan("plugins", "list", "--load", "--json")
    assert len(imported) == 101
    assert {one["state"] for one in json.loads(loaded)["plugins"] if one["source"] != "builtin"} == {"active"}


def test_the_definitions_are_byte_for_byte_the_same(
    tmp_path: Path, mibyan: Callable[..., tuple[str, list[str]]]
) -> None:
    """D3: a model sees the same, whether the plugins were imported or recalled."""
    for number in range(8):
        make_plugin(tmp_path, number)
    trust_all(tmp_path)
    for style in ("openai", "anthropic", "mcp"):
        eager, imported = mibyan("tools", "schema", "--format", style)
        assert len(imported) == (8 if style == "openai" else 0)
        assert mibyan("tools", "schema", "--format", style) == (eager, [])
    (tmp_path / "home" / "cache" / "learned.bin").unlink()
    assert mibyan("tools", "schema", "--format", "mcp")[0] == eager


def test_why_a_plugin_isn_t_learned_is_told(tmp_path: Path, mibyan: Callable[..., tuple[str, list[str]]]) -> None:
    """`plugins list` and `show` say it; `doctor` says that nothing can be kept."""
    make_plugin(tmp_path, 1)
    source = tmp_path / "home" / "plugins" / "p1" / "__init__.py"
    source.write_text(source.read_text() + "import mibyan\nmibyan.registry.get_entry('x')\n")
    assert [mibyan("tools", "list")[1] for _ in range(2)] == [["p1"], ["p1"]]
    assert "it isn't learned: it looked at the registry" in mibyan("plugins", "show", "p1")[0].replace("\n", " ")
    for path in (tmp_path / "home" / "cache").iterdir():
        path.unlink()
    (tmp_path / "home" / "cache").rmdir()
    write(tmp_path / "home" / "cache", "a file")
    told = json.loads(mibyan("doctor", "--json", status=2)[0])
    assert any("imported at each start" in one["what"] for one in told["findings"])


def test_a_parameter_without_a_default_is_no_drift(
    tmp_path: Path, mibyan: Callable[..., tuple[str, list[str]]]
) -> None:
    """M4: what a typed function's schema is made of is the same in every process, so its import comes to what was learned."""
    make_plugin(tmp_path, 1)
    source = tmp_path / "home" / "plugins" / "p1" / "__init__.py"
    source.write_text(source.read_text().replace("size: int = 1", "text: str, size: int = 1"))
    mibyan("tools", "list")
    for _ in range(2):
        loaded, imported = mibyan("plugins", "list", "--load", "--json")
        (one,) = [one for one in json.loads(loaded)["plugins"] if one["id"] == "p1"]
        assert (imported, one["reason"].split(" ")[:2]) == (["p1"], ["imported", "in"])
        assert "learned" not in loaded
    assert mibyan("tools", "list")[1] == []
