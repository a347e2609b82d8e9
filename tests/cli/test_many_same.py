"""The order and the bytes of what is told are the same however the plugins were installed and whatever is listed first (plugins.F1)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .many import Many

#: Every command in one process, each beginning with a line of its own.
DRIVER = """
import sys
from mibyan.cli.main import main
for words in sys.argv[1:]:
    print("==", words, flush=True)
    main(words.split())
    sys.stdout.flush()
"""
COMMANDS = [
    "plugins list --json",
    *(f"tools schema --format {form}" for form in ("openai", "openai-responses", "anthropic", "gemini", "mcp")),
    "toolsets list --json", "toolsets show words_1 --json", "plugins list --json",
]  # fmt: skip
#: What a load comes to that differs from one to the next.
_MOMENTARY = ("loaded_at", "import_ms", "reason")

#: The order in which the plugins are written, that in which folders are listed, the hash seed.
VARIANTS = [(1, "reversed", "1"), (2, "1", "random")]


def installed(root: Path, seed: int) -> Many:
    """A set of plugins in which the order matters: `after`, tools that two want, tiers, two folders on `sys.path`."""
    many = Many(root)
    for number in range(4):
        many.add(f"wheel{number}", "wheel", frozen=number % 2 == 0, after="wheel3" if number == 0 else None)
        many.add(f"folder{number}", "folder", frozen=number % 2 == 0, after="folder2" if number == 1 else None)
        many.add(f"inner{number}", "category", frozen=number % 2 == 1)
    for plugin_id in ("wheel2", "folder2", "inner1"):  # all want one name: the first in order has it
        _rename(many, plugin_id, "word_everybodys")
    many.plugins["file"] = {
        f"home/tools/t{number}.py": "import mibyan\n\n@mibyan.tool(toolset='files_of_mine')\ndef t{0}(a: str) -> str:\n    return a\n".replace("{0}", str(number))
        for number in range(3)
    }  # fmt: skip
    many.write(seed)
    return many


def _rename(many: Many, plugin_id: str, name: str) -> None:
    many.plugins[plugin_id] = {
        path: text.replace(f"word_{plugin_id}", name) for path, text in many.plugins[plugin_id].items()
    }


def told(root: Path, seed: int, listing: str | None, hash_seed: str) -> list[str]:
    """What each command prints, in an installation that is made anew at the same place."""
    shutil.rmtree(root, ignore_errors=True)
    run = installed(root, seed).runner()
    extra = {} if listing is None else {"MANY_SEED": listing}
    printed, _ = run("-c", DRIVER, *COMMANDS, PYTHONHASHSEED=hash_seed, **extra)
    parts = printed.split("== ")[1:]
    assert [part.partition("\n")[0] for part in parts] == COMMANDS
    bodies = [part.partition("\n")[2] for part in parts]
    return [*bodies[:-1], _lasting(bodies[-1])]


def _lasting(document: str) -> str:
    """`plugins list --json` after a load, without what is different each time."""
    found = json.loads(document)
    return json.dumps([{key: one[key] for key in one if key not in _MOMENTARY} for one in found["plugins"]])


@pytest.mark.thorough
def test_plugins_F1_the_same_bytes(tmp_path: Path) -> None:
    """F1: definitions in every format, toolsets and plugins are byte for byte the same, whatever came first."""
    expected = told(tmp_path / "world", 0, None, "0")
    for variant in VARIANTS:
        for command, now, before in zip(COMMANDS, told(tmp_path / "world", *variant), expected, strict=True):
            assert now == before, (variant, command)
    openai = {one["function"]["name"]: one["function"]["description"] for one in json.loads(expected[1])}
    assert openai["word_everybodys"] == "Say a word for wheel2."
    assert {"t0", "t1", "t2", "word_folder3"} <= set(openai)
    assert list(openai) == sorted(openai)
    ids = [one["id"] for one in json.loads(expected[0])["plugins"]]
    assert (
        ids.index("wheel3") < ids.index("wheel0") < ids.index("folder2") < ids.index("folder1") < ids.index("tools.t0")
    )
