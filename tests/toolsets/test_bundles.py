"""The bundles that Mibyan brings."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from mibyan.toolsets import bundles
from mibyan.toolsets.bundles import ALIASES, BUNDLES, CORE, LEGACY_TOOLSET_MAP, is_taken

PRESETS = (
    "mibyan-cli", "mibyan-telegram", "mibyan-discord", "mibyan-slack", "mibyan-whatsapp", "mibyan-signal",
    "mibyan-email", "mibyan-matrix", "mibyan-cron", "mibyan-acp", "mibyan-api-server", "mibyan-webhook",
)  # fmt: skip


def test_core_is_what_the_api_lists() -> None:
    """api.md: the built-in toolsets, all of them and nothing else."""
    names = "terminal files code web browser planning memory sessions delegation skills clarify vision image"
    assert BUNDLES[CORE].includes == tuple(names.split())
    assert all(BUNDLES[name].kind == "builtin" for name in names.split())


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str) -> None:
    """registry.T3: each preset is there, and seed 001's name is its alias."""
    assert BUNDLES[name].kind == "preset"
    assert ALIASES[name.replace("mibyan-", "vibeos-")] == name


def test_the_nine_legacy_names() -> None:
    """registry.T2: nine names of old, each today's toolset."""
    assert dict(LEGACY_TOOLSET_MAP) == {
        "web_tools": "web", "terminal_tools": "terminal", "vision_tools": "vision", "image_tools": "image",
        "skills_tools": "skills", "browser_tools": "browser", "cronjob_tools": "cronjob", "file_tools": "files",
        "tts_tools": "tts",
    }  # fmt: skip
    assert set(LEGACY_TOOLSET_MAP.values()) <= BUNDLES.keys()


@pytest.mark.parametrize("table", [BUNDLES, ALIASES, LEGACY_TOOLSET_MAP])
def test_tables_are_immutable(table: dict) -> None:
    """registry.T6: nobody adds to the bundles or takes from them."""
    with pytest.raises(TypeError):
        table["mine"] = "web"
    with pytest.raises(TypeError):
        del table[next(iter(table))]


def test_a_bundle_is_immutable() -> None:
    """registry.T6: nor changes one."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        BUNDLES[CORE].includes = ()


def test_everything_a_bundle_includes_is_a_bundle() -> None:
    """The data is whole: no bundle includes an unknown name, and none includes itself."""
    for bundle in BUNDLES.values():
        assert set(bundle.includes) <= BUNDLES.keys() - {bundle.name}


def test_aliases_lead_to_bundles() -> None:
    """The data is whole: an alias is no bundle and means one."""
    assert not ALIASES.keys() & BUNDLES.keys()
    assert set(ALIASES.values()) <= {*BUNDLES, "all"}


@pytest.mark.parametrize("name", ["all", "*", "web", "core", "mibyan-cli", "vibeos-cli", "file_tools"])
def test_own_names_are_taken(name: str) -> None:
    """registry.T6: bundles and their aliases are nobody else's."""
    assert is_taken(name)
    assert not is_taken(f"{name}-mine")


def test_no_tool_is_named() -> None:
    """architecture: the core knows no tool; `web_search`, `read_file` and the like occur nowhere in the room."""
    tools = re.compile(
        r"\b(web_search|web_extract|read_file|write_file|search_files|execute_code|browser_\w+|todo_list|session_search"
        r"|delegate_task|skills_list|skill_view|vision_analyze|image_generate)\b"
    )
    for path in Path(bundles.__file__).parent.glob("*.py"):
        found = set(tools.findall(path.read_text(encoding="utf-8"))) - {"browser_tools"}
        assert found == set(), path.name
