"""Settings: every key of config.yaml with its default, immutable, light, and makeable from plain data."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import pytest

from mibyan.config.section import Section, all_keys, section_at
from mibyan.config.settings import Settings, settings_from_data

#: The block of the public surface's "Files", as data.
DEFAULTS = {
    "plugins": {
        "disabled": [], "autoload": True, "enabled": [], "modules": [],
        "bridges": {"hermes": False, "llm": False}, "entries": {},
    },
    "namespace": {"collisions": "reject"},
    "toolsets": {"enabled": None, "disabled": [], "custom": {}},
    "platform_toolsets": {"cli": ["mibyan-cli"], "telegram": ["mibyan-telegram"]},
    "tools": {"search": {"enabled": "auto", "threshold_pct": 10}},
    "mcp_servers": {},
    "dispatch": {
        "timeout": 300, "max_workers": 8, "max_result_chars": 100000, "hook_timeout": 30, "validate": True,
    },
    "availability": {"ttl": 0, "grace": 0},
    "approvals": {
        "mode": "manual", "timeout": 300, "deny": [],
        "smart_model": None, "smart_base_url": None, "smart_api_key_env": None, "smart_timeout": 20, "rules": [],
    },
    "command_allowlist": [],
    "redaction": {"live": True},
    "hooks": {},
    "files": {"roots": []},
    "web": {"provider": "auto", "allow_private": False, "searxng_url": None},
    "terminal": {
        "backend": "local", "cwd": None, "timeout": 180, "env_passthrough": [], "sandbox": "none", "sandbox_network": False,
        "docker": {
            "image": None, "host": None, "mounts": [], "network": "none", "memory": None, "cpus": None, "user": None,
        },
        "ssh": {"host": None, "port": 22, "user": None, "identity_file": None, "options": {}},
        "singularity": {"image": None, "binds": [], "network": "none"},
        "modal": {"server_url": None, "image": None, "app": None},
        "daytona": {"api_url": None, "api_key_env": "DAYTONA_API_KEY", "image": None, "target": None},
        "vercel_sandbox": {
            "base_url": None, "token_env": "VERCEL_TOKEN", "team_id": None, "project_id": None, "runtime": None,
        },
    },
    "processes": {"max_results": 200, "max_result_age_days": 14},
    "agent": {
        "base_url": None, "model": None, "api_key_env": "OPENAI_API_KEY", "max_turns": 50, "context_tokens": 128000,
        "delegation": {"max_depth": 2, "max_children": 3}, "memory": {"max_chars": 2200},
    },
}  # fmt: skip

#: Something below every key that has names of its own.
FULL = {
    "plugins": {"entries": {"a.b": {"allow_tool_override": ["x"], "config": {"deep": [1, {"a": None}]}}}},
    "toolsets": {"custom": {"mine": {"tools": ["t"], "includes": [], "description": "d"}}},
    "platform_toolsets": {"cli": ["a", "b"]},
    "mcp_servers": {
        "s": {"command": "c", "args": ["1"], "env": {"A": "b"}, "sampling": {"max_tokens": 5}, "tools": {"include": []}}
    },
    "hooks": {"pre_tool_call": [{"command": "c", "matcher": "a|b", "timeout": 1.5, "fail_closed": False}]},
}


def test_defaults_are_the_published_ones():
    """api, Files: every key has its default."""
    assert Settings().to_data() == DEFAULTS


def test_data_makes_the_same_settings():
    """`settings_from_data` and `to_data` are each other's inverse, through JSON too."""
    settings = settings_from_data(FULL)
    assert settings_from_data(json.loads(json.dumps(settings.to_data()))) == settings
    assert settings != Settings()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda settings: pickle.loads(pickle.dumps(settings))])
def test_copies(copied):
    """Settings can be copied and pickled."""
    settings = settings_from_data(FULL)
    assert copied(settings) == settings


def containers(value: object, path: str = "settings"):
    """Every container in `value`, with its place."""
    yield path, value
    if isinstance(value, Section):
        for name in value.KEYS:
            yield from containers(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from containers(part, f"{path}[{name}]")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from containers(part, f"{path}[{number}]")


@pytest.mark.parametrize("settings", [Settings(), settings_from_data(FULL)], ids=["defaults", "full"])
def test_nothing_can_be_changed(settings):
    """Sections, mappings and lists are read-only at every depth."""
    for place, value in containers(settings):
        if isinstance(value, Section):
            with pytest.raises(AttributeError, match="can't be changed"):
                setattr(value, next(iter(value.KEYS)), None)
            with pytest.raises(AttributeError):
                del value.x
        elif isinstance(value, dict):
            with pytest.raises(TypeError):
                value["x"] = 1
        elif isinstance(value, list):
            with pytest.raises(TypeError):
                value.append(1)
        assert not isinstance(value, set), place


def test_data_is_the_callers():
    """Changing what `to_data` gave, or what `settings_from_data` took, changes no settings."""
    taken = copy.deepcopy(FULL)
    settings = settings_from_data(taken)
    taken["plugins"]["entries"]["a.b"]["config"]["deep"].append(2)
    settings.to_data()["plugins"]["disabled"].append("x")
    assert settings == settings_from_data(FULL)


def test_replacing():
    """A copy with other values leaves the original as it was."""
    changed = Settings().replacing(command_allowlist=("ls",))
    assert changed.command_allowlist == ("ls",)
    assert Settings().command_allowlist == ()


def test_unknown_keys_of_unchecked_data():
    """Data that wasn't checked is refused."""
    with pytest.raises(TypeError, match="nope"):
        settings_from_data({"nope": 1})


def test_secrets_are_not_shown():
    """What may hold secrets isn't in a repr."""
    shown = repr(settings_from_data({"mcp_servers": {"s": {"url": "u", "headers": {"A": "Bearer hunter2"}}}}))
    assert "headers" in shown
    assert "hunter2" not in shown


def test_every_key_has_a_sentence():
    """The documentation is made of the keys' sentences: each has one, ending in a full stop."""
    for path in all_keys(Settings):
        part = section_at(Settings, path[:-1]).KEYS[path[-1]]
        assert part.description.endswith("."), path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), "Settings"),
        (("dispatch",), "DispatchSettings"),
        (("plugins", "entries", "a.b"), "PluginEntry"),
        (("hooks", "pre_tool_call", 0), "ShellHook"),
        (("mcp_servers", "s", "tools"), "ServerTools"),
        (("plugins", "entries"), None),
        (("hooks", "pre_tool_call"), None),
        (("plugins", "entries", "x", "config", "y"), None),
        (("dispatch", "timeout"), None),
        (("nope", "nope"), None),
    ],
)
def test_section_at(path, name):
    """A key's parts lead to the section they are in."""
    found = section_at(Settings, path)
    assert (found and found.__name__) == name


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import mibyan.config.settings, mibyan.config, mibyan.paths", "pydantic yaml filelock difflib"),
        ("from mibyan.config import *", "pydantic yaml filelock"),
        (
            "from mibyan.config import load_config; from pathlib import Path; load_config(Path('/nope'))",
            "pydantic yaml",
        ),
        ("import mibyan.config.edit, mibyan.config.validation, mibyan.config.schema", "pydantic yaml filelock"),
    ],
)
def test_heavy_is_lazy(code, absent):
    """Importing the room, and a home without config.yaml, cost neither yaml nor pydantic."""
    check = f"{code}\nimport sys; found = set({absent.split()}) & set(sys.modules); assert not found, found"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_lazy_names():
    """The room's public names are there, and others are an AttributeError."""
    import mibyan.config

    assert all(getattr(mibyan.config, name) is not None for name in mibyan.config.__all__)
    with pytest.raises(AttributeError, match="nope"):
        _ = mibyan.config.nope
