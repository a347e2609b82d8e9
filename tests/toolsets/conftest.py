"""A registry, a resolver and a builder, put together as a runtime does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from mibyan.config.settings import CustomToolset, Settings, ToolsetSettings
from mibyan.config.sources import McpServer
from mibyan.report import Decision, DecisionLog
from mibyan.schema.definition import normalise_schema
from mibyan.tools.availability import Availability
from mibyan.tools.entry import ToolEntry
from mibyan.tools.owner import Owner
from mibyan.tools.store import RegistryStore, Toolset
from mibyan.toolsets.definitions import DefinitionBuilder
from mibyan.toolsets.resolver import ToolsetResolver

#: The toolsets of `core`, one tool each, as the built-in plugins would fill them.
BUILTIN_TOOLS = {
    "terminal": ("terminal", "process"), "files": ("read_file", "write_file"), "code": ("execute_code",),
    "web": ("web_search", "web_extract"), "browser": ("browser_navigate",), "planning": ("todo_list",),
    "memory": ("memory",), "sessions": ("session_search",), "delegation": ("delegate_task",),
    "skills": ("skills_list",), "clarify": ("clarify",), "vision": ("vision_analyze",), "image": ("image_generate",),
}  # fmt: skip
READ_ONLY = {"web_search", "web_extract", "read_file", "skills_list"}


class World:
    """One registry with everything that reads it."""

    def __init__(self, **config: Any) -> None:
        self.log = DecisionLog()
        self.store = RegistryStore(log=self.log)
        self.settings = settings(**config)
        self.availability = Availability(log=self.log)
        self.builtin = Owner("builtin", source="builtin")
        self.host = Owner("host", kind="host")
        self.resolver = ToolsetResolver(self.snapshot, self.settings, lambda: self.store.declared_toolsets, self.log)
        self.builder = self.make_builder()

    def snapshot(self) -> Any:
        return self.store.snapshot

    def make_builder(self, **options: Any) -> DefinitionBuilder:
        return DefinitionBuilder(self.resolver, self.snapshot, self.availability, self.log, **options)

    def add(self, name: str, toolset: str = "bench", *, owner: Owner | None = None, **options: Any) -> ToolEntry:
        schema = options.pop("schema", {"description": f"Does {name}."})
        entry = ToolEntry(name, toolset, normalise_schema(name, schema), lambda args: "", owner or self.host, **options)
        verdict, _ = self.store.register(entry, override=False)
        assert verdict.accepted
        return entry

    def add_builtins(self) -> World:
        for toolset, names in BUILTIN_TOOLS.items():
            for name in names:
                self.add(name, toolset, owner=self.builtin, read_only=name in READ_ONLY, interactive=name == "clarify")
        return self

    def plugin(self, name: str) -> Owner:
        return Owner(name, source="pip")

    def declare(self, name: str, owner: Owner, tools: Iterable[str] = (), includes: Iterable[str] = ()) -> None:
        assert self.store.declare_toolset(Toolset(name, tuple(tools), tuple(includes), owner=owner)) is None

    def about(self, subject: str) -> list[Decision]:
        return [decision for decision in self.log if decision.subject == subject]

    def names(self, *args: Any, **options: Any) -> list[str]:
        return [definition["function"]["name"] for definition in self.builder.build(*args, **options)]


def settings(
    enabled: tuple[str, ...] | None = None,
    disabled: tuple[str, ...] = (),
    custom: dict[str, dict[str, Any]] | None = None,
    platforms: dict[str, tuple[str, ...]] | None = None,
    mcp: Iterable[str] = (),
) -> Settings:
    toolsets = ToolsetSettings(
        enabled=enabled,
        disabled=disabled,
        custom={name: CustomToolset(**spec) for name, spec in (custom or {}).items()},
    )
    servers = {name: McpServer() for name in mcp}
    return Settings(
        toolsets=toolsets, mcp_servers=servers, **({} if platforms is None else {"platform_toolsets": platforms})
    )


@pytest.fixture
def world() -> World:
    """An empty registry."""
    return World()


@pytest.fixture
def full() -> World:
    """A registry with the built-in tools."""
    return World().add_builtins()


@pytest.fixture(scope="session")
def make_world() -> Callable[..., World]:
    """Makes an empty registry under a configuration: `enabled, disabled, custom, platforms, mcp`."""
    return World
