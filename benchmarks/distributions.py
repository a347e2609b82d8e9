"""A thousand installed distributions, a hundred of them plugins, as pip leaves them in a site-packages folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

#: How a plugin brings its manifest: half freeze it in the dist-info, some as package data, some have none.
KINDS = ("dist-info", "dist-info", "package data", "none")

_METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: 1.{number}.0
Summary: A distribution of the benchmark
Requires-Python: >=3.11
License-Expression: MIT
Classifier: Programming Language :: Python :: 3

# {name}

Does what it says.
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: benchmark 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_CONSOLE = "[console_scripts]\n{package} = {package}.main:main\n"
_ENTRY_POINT = "[mibyan.plugins]\n{plugin} = {package}\n"

_PLUGIN = '''\
"""Weather stations of region {number}."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict

from mibyan import tool

from .client import Client

log = logging.getLogger(__name__)


@tool(toolset="{plugin}", read_only=True)
def {plugin}_forecast(city: str, days: int = 3) -> dict:
    """Weather forecast for a city of region {number}.

    Args:
        city: Name of the city.
        days: Days to look ahead, 1 to 14.
    """
    return {{"city": city, "days": [asdict(day) for day in Client({number}).forecast(city, days)]}}


@tool(toolset="{plugin}", read_only=True)
def {plugin}_stations(limit: int = 20) -> str:
    """The weather stations of region {number}.

    Args:
        limit: Largest number of stations to return.
    """
    return json.dumps([f"station {{number}}" for number in range(limit)])
'''
_CLIENT = '''\
"""The client of the weather service."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass


@dataclass
class Day:
    """One day's weather."""

    number: int
    degrees: float


class Client:
    """Asks the service for a region."""

    def __init__(self, region: int) -> None:
        self.base = "https://weather.invalid/" + urllib.parse.quote(str(region))

    def forecast(self, city: str, days: int) -> list[Day]:
        """The next days."""
        return [Day(number, 10.0 + len(city) + number) for number in range(days)]
'''


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Args:
        plugins: Ids of the plugins, in order.
        tool: A tool of the first one, whose manifest is frozen.
        arguments: Arguments for it, as the command line takes them.
    """

    plugins: tuple[str, ...]
    tool: str
    arguments: tuple[str, ...]


def write(site: Path, distributions: int, plugins: int) -> Written:
    """Write distributions into a site-packages folder, every tenth a plugin (if there are ten times as many).

    Args:
        site: The folder.
        distributions: How many there are in all.
        plugins: How many of them are plugins.
    """
    step = max(1, distributions // max(1, plugins))
    ids: list[str] = []
    for number in range(distributions):
        if number % step == 0 and len(ids) < plugins:
            _plugin(site, number, f"weather{number:04d}", KINDS[len(ids) % len(KINDS)])
            ids.append(f"weather{number:04d}")
        else:
            _library(site, number)
    return Written(tuple(ids), f"{ids[0]}_forecast", ("city=Oslo", "days:=2"))


def _library(site: Path, number: int) -> None:
    """A distribution that doesn't concern us; a third of them have a program."""
    package = f"library_{number:04d}"
    entry_points = _CONSOLE.format(package=package) if number % 3 == 0 else None
    main = "from __future__ import annotations\n\n\ndef main() -> None:\n    print(__name__)\n"
    _distribution(site, f"library-{number:04d}", number, package, entry_points, {"__init__.py": "", "main.py": main})


def _plugin(site: Path, number: int, plugin: str, kind: str) -> None:
    package = f"mibyan_plugin_{plugin}"
    modules = {"__init__.py": _PLUGIN.format(plugin=plugin, number=number), "client.py": _CLIENT}
    entry_points = _ENTRY_POINT.format(plugin=plugin, package=package)
    info = _distribution(site, f"mibyan-plugin-{plugin}", number, package, entry_points, modules)
    if kind == "dist-info":
        extra = info / "extra_metadata"
        extra.mkdir()
        (extra / "mibyan.json").write_text(json.dumps(_manifest(plugin, number, package), indent=1), encoding="utf-8")
    elif kind == "package data":
        # JSON is YAML.
        text = json.dumps(_manifest(plugin, number, package), indent=1)
        (site / package / "plugin.yaml").write_text(text, encoding="utf-8")


def _distribution(
    site: Path, name: str, number: int, package: str, entry_points: str | None, modules: dict[str, str]
) -> Path:
    (site / package).mkdir()
    for file, text in modules.items():
        (site / package / file).write_text(text, encoding="utf-8")
    info = site / f"{name.replace('-', '_')}-1.{number}.0.dist-info"
    info.mkdir()
    files = {"METADATA": _METADATA.format(name=name, number=number), "WHEEL": _WHEEL, "INSTALLER": "pip\n"}
    if entry_points:
        files["entry_points.txt"] = entry_points
    files["RECORD"] = "".join(f"{package}/{file},,\n" for file in modules)
    for file, text in files.items():
        (info / file).write_text(text, encoding="utf-8")
    return info


def _manifest(plugin: str, number: int, package: str) -> dict[str, Any]:
    """What `_PLUGIN` registers, written down."""
    city = {"type": "string", "description": "Name of the city."}
    days = {"type": "integer", "default": 3, "description": "Days to look ahead, 1 to 14."}
    limit = {"type": "integer", "default": 20, "description": "Largest number of stations to return."}
    return {
        "manifest_version": 1,
        "id": plugin,
        "version": f"1.{number}.0",
        "description": f"Weather stations of region {number}.",
        "tools": [
            _tool(plugin, package, "forecast", f"Weather forecast for a city of region {number}.",
                  {"city": city, "days": days}, ["city"]),
            _tool(plugin, package, "stations", f"The weather stations of region {number}.", {"limit": limit}, []),
        ],
    }  # fmt: skip


def _tool(
    plugin: str, package: str, name: str, description: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    parameters["additionalProperties"] = False
    return {
        "name": f"{plugin}_{name}",
        "toolset": plugin,
        "schema": {"description": description, "parameters": parameters},
        "target": f"{package}:{plugin}_{name}",
        "flags": {"read_only": True},
    }
