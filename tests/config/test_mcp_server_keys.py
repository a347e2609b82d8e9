"""`mcp_servers.<name>`: every key of it is read, with the kind of value it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mibyan.config import load_config
from mibyan.config.sources import McpServer, SamplingLimits
from mibyan.errors import ConfigError

#: Every key with a value that isn't its default.
WHOLE: dict[str, Any] = {
    "mcp_servers": {
        "git": {
            "command": "git-mcp", "args": ["--verbose"], "env": {"LEVEL": "3"}, "cwd": "servers", "url": None,
            "headers": {"X-Key": "${KEY}"}, "transport": "stdio", "timeout": 20, "connect_timeout": 5, "enabled": False,
            "parallel": True, "tools": {"include": ["log"], "exclude": ["push"]}, "trust": "full",
            "sampling": {"max_requests": 2, "max_tokens": 100, "model": "small"},
        }
    }
}  # fmt: skip


def test_every_key_is_read(tmp_path: Path) -> None:
    """What stands in the file is what the settings have."""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(WHOLE))
    found = load_config(tmp_path).settings.mcp_servers["git"]
    assert found.to_data() == WHOLE["mcp_servers"]["git"]
    assert sorted(WHOLE["mcp_servers"]["git"]) == sorted(McpServer.KEYS)
    assert sorted(WHOLE["mcp_servers"]["git"]["sampling"]) == sorted(SamplingLimits.KEYS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("timeout", -1), ("connect_timeout", "soon"), ("cwd", 3), ("trust", "half"), ("parallel", "perhaps"),
        ("transport", "pigeon"), ("sampling", {"max_requests": -1}), ("sampling", {"model": 3}), ("tools", {"only": []}),
    ],
)  # fmt: skip
def test_a_wrong_value_is_an_error_with_its_key(tmp_path: Path, key: str, value: object) -> None:
    """The message names the key and the line."""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"mcp_servers": {"git": {"command": "x", key: value}}}))
    with pytest.raises(ConfigError, match=rf"config\.yaml:\d+: key '?mcp_servers\.git\.{key}"):
        load_config(tmp_path)
