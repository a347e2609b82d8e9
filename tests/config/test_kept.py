"""An unchanged config.yaml costs neither yaml nor pydantic (architecture, "What is heavy is lazy")."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from mibyan.config.load import LoadedConfig, load_config
from mibyan.errors import ConfigError
from mibyan.filecache import stamp

if TYPE_CHECKING:
    from pathlib import Path

#: Every kind of value that the settings have.
TEXT = """\
plugins:
  disabled: [a, b]
  modules: [tomllib]
  entries:
    "1": {allow_tool_override: [x], config: {deep: [1, 2.5, null, {"k": yes}]}}
    p: {allow_tool_override: on}
namespace: {collisions: last_wins}
toolsets: {enabled: null, custom: {mine: {tools: [x], includes: [y], description: z}}}
platform_toolsets: {cli: [mine]}
mcp_servers:
  s: {command: run, args: [1, x], env: {A: "1"}, tools: {include: [a], exclude: [b]}, sampling: off}
dispatch: {timeout: 5, validate: off}
hooks:
  pre_tool_call:
    - {command: check, matcher: "a|b", timeout: 2.5}
terminal: {cwd: /x, docker: {mounts: ["a:b"]}}
"""


def written(path: Path, text: str) -> Path:
    """The file with this text, old enough for a stamp."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    while stamp(path) is None:
        time.sleep(0.001)
    return path


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are parsed from now on."""
    from mibyan.config import layers

    real, found = layers.read_document, []
    monkeypatch.setattr(layers, "read_document", lambda path, label: found.append(label) or real(path, label))
    return found


def test_what_is_kept_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, places and what is written: the same from the cache as from the file, also with overrides."""
    written(tmp_path / "config.yaml", TEXT)
    parsed = reads(monkeypatch)
    first = load_config(tmp_path)
    again = load_config(tmp_path)
    assert parsed == ["config.yaml"]
    assert again == first
    assert again.settings.to_data() == first.settings.to_data()
    assert again.where("mcp_servers.s.command") == "config.yaml:11"
    over = load_config(tmp_path, overrides={"dispatch": {"timeout": 7}})
    assert (over.settings.dispatch.timeout, over.settings.dispatch.validate) == (7, False)
    assert parsed == ["config.yaml"]
    assert first.settings.dispatch.timeout == 5


def test_an_unchanged_file_costs_neither_yaml_nor_pydantic(tmp_path: Path) -> None:
    """In another process, with a project too."""
    home, project = tmp_path / "home", tmp_path / "p"
    written(home / "config.yaml", TEXT)
    written(project / ".mibyan" / "config.yaml", "plugins: {disabled: [c]}\nhooks: {post_tool_call: [{command: x}]}\n")
    code = (
        "import sys; from pathlib import Path; from mibyan.config.load import load_config\n"
        "loaded = load_config(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(sorted({'yaml', 'pydantic', 'pydantic_core'} & set(sys.modules)), loaded.settings.plugins.disabled)\n"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code, home, project], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs == ["['pydantic', 'pydantic_core', 'yaml'] ('a', 'b', 'c')\n", "[] ('a', 'b', 'c')\n"]


def test_an_edit_counts_whatever_its_size_and_time(tmp_path: Path) -> None:
    """The same number of bytes and the time of change set back: what stands there counts."""
    path = written(tmp_path / "config.yaml", "dispatch: {timeout: 5}\n")
    assert load_config(tmp_path).settings.dispatch.timeout == 5
    status = path.stat()
    path.write_text("dispatch: {timeout: 6}\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert load_config(tmp_path).settings.dispatch.timeout == 6


def test_presence_is_never_cached(tmp_path: Path) -> None:
    path = written(tmp_path / "config.yaml", "dispatch: {timeout: 5}\n")
    load_config(tmp_path)
    path.unlink()
    loaded = load_config(tmp_path)
    assert loaded.settings.dispatch.timeout == 300
    assert not loaded.is_written("dispatch.timeout")


def test_problems_are_told_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that can't be used isn't kept: neither as sound nor as broken."""
    written(tmp_path / "config.yaml", "dispatch: {timeuot: 5}\n")
    parsed = reads(monkeypatch)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"did you mean 'dispatch\.timeout'"):
            load_config(tmp_path)
    assert parsed == ["config.yaml"] * 2
    written(tmp_path / "config.yaml", "plugins: {entries: {p: {sandbox: bwrap}}}\n")
    for _ in range(2):  # each key is right by itself
        with pytest.raises(ConfigError, match=r"config\.yaml:1: .*a sandbox needs"):
            load_config(tmp_path)


def test_a_damaged_cache_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "config.yaml", TEXT)
    parsed = reads(monkeypatch)
    first, kept = load_config(tmp_path), tmp_path / "cache" / "config.bin"
    kept.write_bytes(kept.read_bytes()[:-5])
    assert load_config(tmp_path) == first
    assert load_config(tmp_path) == first
    assert parsed == ["config.yaml"] * 2


def test_a_file_of_another_profile_or_project_decides_nothing(tmp_path: Path) -> None:
    """What is kept is known by its file's path: two files that look alike aren't taken for each other."""
    one, two = tmp_path / "one", tmp_path / "two"
    for home, seconds in ((one, 5), (two, 6)):
        written(home / "config.yaml", f"dispatch: {{timeout: {seconds}}}\n")
        os.utime(home / "config.yaml", (1, 1))
    loaded: list[LoadedConfig] = [load_config(home) for home in (one, two, one, two)]
    assert [config.settings.dispatch.timeout for config in loaded] == [5, 6, 5, 6]
    project = tmp_path / "p"
    written(project / ".mibyan" / "config.yaml", "plugins: {disabled: [x]}\n")
    kept = (one / "cache" / "config.bin").read_bytes()
    (project / ".mibyan" / "cache").mkdir()
    (project / ".mibyan" / "cache" / "config.bin").write_bytes(kept)
    assert load_config(one, project).settings.plugins.disabled == ("x",)
