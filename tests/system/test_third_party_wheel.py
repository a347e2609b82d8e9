"""A wheel that somebody else made, from `pip install` to `pip uninstall` (issue: main job)."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.system

WEATHER = '''
    """Weather, as a third party would write it."""
    import mibyan

    @mibyan.tool(toolset="weather", read_only=True)
    def forecast(city: str, days: int = 3) -> dict:
        """Weather forecast for a city.

        Args:
            city: Name of the city.
            days: Days to look ahead, 1 to 14.
        """
        return {"city": city, "days": days, "sky": "clear"}
'''

OVERRIDING = '''
    import mibyan

    @mibyan.tool(toolset="mine", name="read_file", override=True)
    def read(path: str) -> str:
        """Read a file my way."""
        return "mine: " + path
'''

BROKEN = '''
    import mibyan

    @mibyan.tool(toolset="weather")
    def forecast(city: str) -> str:
        """Weather."""
        return city

    raise SystemExit("I can't be imported")
'''

OPT_IN = "plugins:\n  entries:\n    weather:\n      allow_tool_override: true  # the operator's own words\n"


def test_a_wheel_from_install_to_uninstall(installation, author):
    """Installed it is listed, shown to the model and called; disabled, broken or uninstalled it is gone, and said so."""
    installation.pip("install", "--no-deps", author.wheel("mibyan-plugin-weather", "mibyan_weather", WEATHER))

    assert "forecast" in installation.tool_names()
    shown = installation.plugin("weather")
    assert (shown["source"], shown["version"]) == ("pip", "1.0")
    schema = json.loads(installation.mibyan("tools", "schema", "--enable", "weather", check=True).stdout)
    assert [tool["function"]["name"] for tool in schema] == ["forecast"]
    assert schema[0]["function"]["parameters"]["properties"]["days"]["description"] == "Days to look ahead, 1 to 14."
    called = installation.mibyan("call", "forecast", '{"city": "Sanaa", "days": "2"}')
    assert (called.returncode, json.loads(called.stdout)) == (0, {"city": "Sanaa", "days": 2, "sky": "clear"})

    assert installation.mibyan("plugins", "disable", "weather").returncode == 0
    assert "forecast" not in installation.tool_names()
    assert installation.plugin("weather")["state"] == "disabled"
    assert installation.mibyan("call", "forecast", "city=Sanaa").returncode == 1
    assert installation.mibyan("plugins", "enable", "weather").returncode == 0
    assert "forecast" in installation.tool_names()

    installation.pip("install", "--no-deps", author.wheel("mibyan-plugin-weather", "mibyan_weather", BROKEN, "2.0"))
    listed = installation.mibyan("tools", "list", "--json")
    assert listed.returncode == 0
    assert "Traceback" not in listed.stderr
    names = [tool["name"] for tool in json.loads(listed.stdout)["tools"]]
    assert "forecast" not in names
    assert "read_file" in names
    record = next(p for p in installation.json("plugins", "list", "--load")["plugins"] if p["id"] == "weather")
    assert record["state"] == "failed"
    assert "I can't be imported" in record["reason"]

    installation.pip("uninstall", "-y", "mibyan-plugin-weather")
    assert installation.plugin("weather") is None


def test_an_override_needs_the_operators_word(installation, author):
    """registry.R5: without the opt-in the built-in stays and the sentence quotes the YAML; with it the plugin's answers."""
    installation.pip("install", "--no-deps", author.wheel("mibyan-plugin-weather", "mibyan_weather", OVERRIDING))

    (installation.work / "a.txt").write_text("builtin")
    refused = installation.mibyan("call", "read_file", "path=a.txt")
    assert "mine" not in refused.stdout
    assert "builtin" in refused.stdout
    record = next(p for p in installation.json("plugins", "list", "--load")["plugins"] if p["id"] == "weather")
    assert record["state"] == "failed"
    assert "allow_tool_override: true" in json.dumps(record) + refused.stderr

    installation.home.mkdir(exist_ok=True)
    (installation.home / "config.yaml").write_text(OPT_IN)
    allowed = installation.mibyan("call", "read_file", "path=a.txt")
    assert (allowed.returncode, allowed.stdout.strip()) == (0, "mine: a.txt")
    installation.mibyan("plugins", "disable", "weather", check=True)
    assert "builtin" in installation.mibyan("call", "read_file", "path=a.txt").stdout
    assert "# the operator's own words" in (installation.home / "config.yaml").read_text()


def test_definitions_are_the_same_bytes_in_every_process(installation, tmp_path):
    """registry.D3: two processes, other hash seeds, plugin folders made in another order: the same bytes."""
    source = "import mibyan\n\n@mibyan.tool(toolset='{0}')\ndef {0}_tool(x: int = 1, y: str = 'a') -> int:\n    '''Tool {0}.'''\n    return x\n"

    def fill(home, names):
        for name in names:
            folder = home / "plugins" / name
            folder.mkdir(parents=True)
            (folder / "__init__.py").write_text(source.format(name))
            (folder / "plugin.yaml").write_text(f"manifest_version: 1\nid: {name}\nversion: '1'\n")

    names = ["alpha", "beta", "gamma", "delta"]
    fill(tmp_path / "one", names)
    fill(tmp_path / "two", reversed(names))
    texts = {
        installation.mibyan(
            "tools", "schema", "--format", "openai", check=True, MIBYAN_HOME=str(home), PYTHONHASHSEED=seed
        ).stdout
        for home, seed in [
            (tmp_path / "one", "1"),
            (tmp_path / "one", "2"),
            (tmp_path / "two", "3"),
            (tmp_path / "two", "0"),
        ]
    }
    assert len(texts) == 1
    assert {"alpha_tool", "delta_tool"} <= {tool["function"]["name"] for tool in json.loads(texts.pop())}
