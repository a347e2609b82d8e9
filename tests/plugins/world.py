"""A home, a project and a site folder with plugins, and loaders over them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

from mibyan.config.load import load_config
from mibyan.hooks.table import HookTable
from mibyan.plugins.loader import LoaderServices, PluginLoader
from mibyan.plugins.sources.digest import digest_folder
from mibyan.plugins.sources.trust import TrustStore
from mibyan.report import Decision, DecisionLog
from mibyan.testing.distributions import write_distribution
from mibyan.tools.entry import ToolEntry
from mibyan.tools.store import RegistryStore

#: A tool that answers with its plugin's word.
TOOL = """
def register(ctx):
    ctx.register_tool({name!r}, {toolset!r}, {{"description": "says {name}"}}, lambda args: {answer!r})
"""


def tool(name: str, toolset: str = "words", answer: str = "") -> str:
    """The source of a plugin with one tool."""
    return TOOL.format(name=name, toolset=toolset, answer=answer or name)


def frozen_tool(name: str, **more: Any) -> dict[str, Any]:
    """A definition of a manifest."""
    return {"name": name, "toolset": "words", "schema": {"description": f"says {name}"}, **more}


class World:
    """What there is to find, and the loaders that find it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.site = root / "site"
        for folder in (self.home, self.project / ".mibyan", self.site):
            folder.mkdir(parents=True)
        self.loaders: list[PluginLoader] = []

    # What there is ---------------------------------------------------------------------------------------------

    def folder(
        self,
        name: str,
        source: str = "",
        manifest: dict[str, Any] | None = None,
        *,
        project: bool = False,
        **files: str,
    ) -> Path:
        """A folder plugin; `files` are further Python files, by their paths without `.py`."""
        base = (self.project / ".mibyan" if project else self.home) / "plugins" / name
        write(base / "plugin.yaml", json.dumps(manifest or {}))
        write(base / "__init__.py", source)
        for file, text in files.items():
            write(base / f"{file}.py", text)
        return base

    def tool_file(self, name: str, source: str, *, project: bool = False) -> Path:
        """A file of a tools directory."""
        return write((self.project / ".mibyan" if project else self.home) / "tools" / f"{name}.py", source)

    def wheel(
        self, module: str, source: str, manifest: dict[str, Any] | None = None, *, entry: str = "", version: str = "1.0",
        **files: str,
    ) -> str:  # fmt: skip
        """An installed distribution whose plugin is the package `module`; its id."""
        more = {f"{module}/{file}.py": text for file, text in files.items()}
        points = {module: entry or module}
        write_distribution(self.site, module, version, points, manifest, source=source, files=more)
        return module.replace("_", "-")

    def config(self, text: str, *, project: bool = False) -> None:
        """What the operator says."""
        write((self.project / ".mibyan" if project else self.home) / "config.yaml", text)

    def trust(self, plugin_id: str, root: Path) -> None:
        """Trust project code as it is now."""
        TrustStore(self.home).trust(plugin_id, digest_folder(root), self.project)

    # Who finds it -----------------------------------------------------------------------------------------------

    def loader(self, **services: Any) -> PluginLoader:
        """A loader that hasn't loaded."""
        log = DecisionLog()
        config = load_config(self.home, self.project)
        store = RegistryStore(last_wins=config.settings.namespace.collisions == "last_wins", log=log)
        given = {
            "store": store, "hooks": HookTable(log), "config": config, "home": self.home, "project": self.project,
            "log": log, "run_async": run_async, "dispatch_tool": call_of(store), **services,
        }  # fmt: skip
        made = PluginLoader(LoaderServices(**given))
        self.loaders.append(made)
        return made

    def load(self, **services: Any) -> PluginLoader:
        """A loader that has loaded."""
        made = self.loader(**services)
        made.load()
        return made

    def close(self) -> None:
        """Close the loaders, and take what was imported from the site out of the process."""
        for loader in self.loaders:
            loader.close()
        for name, module in sys.modules.copy().items():
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.startswith(str(self.site)):
                del sys.modules[name]


def write(path: Path, text: str) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def run_async(awaitable: Any) -> Any:
    """Run an awaitable to its end."""

    async def whole() -> Any:
        return await awaitable

    return asyncio.run(whole())


def call_of(store: RegistryStore) -> Any:
    """A pipeline of two lines."""

    def call(name: str, args: Any, owner: Any) -> str:
        entry = store.find(name)
        if entry is not None and entry.activate is not None:
            entry.activate()
            entry = store.find(name)
        return entry.handler(args) if entry is not None and entry.handler is not None else f"no {name}"

    return call


def tools(loader: PluginLoader) -> dict[str, ToolEntry]:
    """The tools in a loader's registry."""
    return dict(loader._services.store.snapshot.entries)


def answer(loader: PluginLoader, name: str, args: Any = None) -> Any:
    """What a tool answers; a lazy one is imported first."""
    return call_of(loader._services.store)(name, args or {}, None)


def decisions(loader: PluginLoader, plugin_id: str) -> list[Decision]:
    """What the report says about a plugin."""
    return [decision for decision in loader._services.log if decision.subject == f"plugin:{plugin_id}"]
