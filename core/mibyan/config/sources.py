"""The sections `plugins`, `mcp_servers` and `hooks`: where tools and policy come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.config.section import Section, free, key, mapping, named, optional, section

if TYPE_CHECKING:
    # `mibyan.config.validation` resolves the annotations, when it is needed.
    from collections.abc import Mapping
    from typing import Annotated, Any, Literal

    from mibyan.config.kinds import Count, ExactFlag, Flag, LooseText, OffIsNothing, Seconds, Text


class BridgeSettings(Section):
    """Other people's plugin systems."""

    hermes: Flag = key(default=False, description="Load plugins of the entry point group hermes_agent.plugins.")
    llm: Flag = key(default=False, description="Load plugins of the entry point group llm.")


class PluginEntry(Section):
    """What the operator says about one plugin."""

    allow_tool_override: ExactFlag | tuple[Text, ...] = key(
        default=False,
        description="Whether it may override tools of others: true, false, or the names of those tools (registry.R5).",
    )
    source: Literal["builtin", "pip", "user", "project", "tools"] | None = key(
        None, "The source that the entry is for; a project plugin's permissions need source: project."
    )
    isolation: Literal["none", "process"] = key("none", "process: it runs in a process of its own.")
    sandbox: Literal["none", "bwrap", "landlock"] = key("none", "Sandbox of that process; needs isolation: process.")
    config: Mapping[str, Any] = free("The plugin's own settings, checked by its schema.")


class PluginSettings(Section):
    """Which plugins there are."""

    disabled: tuple[Text, ...] = key((), "Ids of plugins that are off, whatever else says they are on.")
    autoload: Flag = key(default=True, description="false: only the built-in ones and those in enabled are loaded.")
    enabled: tuple[Text, ...] = key((), "Ids of plugins that are loaded without autoload.")
    modules: tuple[Text, ...] = key((), "Importable modules that are plugins.")
    bridges: BridgeSettings = section(BridgeSettings, "Other people's plugin systems.")
    entries: Mapping[str, PluginEntry] = named(PluginEntry, "What is said about single plugins, by id.")


class ServerTools(Section):
    """Which tools of an MCP server are taken."""

    include: tuple[Text, ...] | None = key(None, "Globs of the tools to take; null: all, an empty list: none.")
    exclude: tuple[Text, ...] = key((), "Globs of the tools to leave out.")


class SamplingLimits(Section):
    """What an MCP server may ask of the model."""

    max_requests: Count = key(10, "Requests a session.")
    max_tokens: Count = key(4096, "Tokens an answer.")
    model: Text | None = key(None, "Model that answers; null: agent.model.")


class McpServer(Section):
    """One MCP server: a program (`command`) or an address (`url`). `${VAR}` stands for an environment variable."""

    command: Text | None = key(None, "Program to start; it speaks MCP on stdio.")
    args: tuple[LooseText, ...] = key((), "Its arguments.")
    env: Mapping[str, LooseText] = mapping({}, "Environment variables for it.")
    cwd: Text | None = key(None, "Directory it starts in; relative to the folder of config.yaml.")
    url: Text | None = key(None, "Address of a server that speaks MCP over HTTP.")
    headers: Mapping[str, LooseText] = mapping({}, "HTTP headers of every request.")
    transport: Literal["stdio", "http", "sse"] | None = key(
        None, "null: stdio for a command, http (streamable) for a url."
    )
    timeout: Seconds | None = key(None, "Seconds that a call may take; null: dispatch.timeout.")
    connect_timeout: Seconds = key(60, "Seconds that connecting may take.")
    enabled: Flag = key(default=True, description="off: it isn't started.")
    parallel: Flag = key(default=False, description="Whether its tools may run side by side.")
    tools: ServerTools = section(ServerTools, "Which of its tools are taken.")
    trust: Literal["full", "untrusted"] = key("untrusted", "full: its tools' annotations count for planning.")
    sampling: Annotated[SamplingLimits | None, OffIsNothing()] = optional(
        SamplingLimits, "Limits of what it may ask of the model; null or off: nothing."
    )


class ShellHook(Section):
    """A program that is run at an event, with the call as JSON on its standard input."""

    command: Text = key("", "Command line for the shell; needed.")
    matcher: Text | None = key(None, "Regular expression for the whole name of the tools it is for; null: all.")
    timeout: Seconds | None = key(None, "Seconds it may take; null: dispatch.hook_timeout.")
    fail_closed: Flag = key(default=True, description="pre_tool_call: whether the call is blocked when the hook fails.")
