"""The settings of a runtime: every key of config.yaml, named as there, with its default and what it means.

Light to import. `mibyan.config.load` reads them from files; a path in them that is relative is relative to the folder
of the config.yaml it is written in, unless the key says otherwise, and `~` is the user's home.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.config.backends import TerminalSettings
from mibyan.config.section import Section, key, listed, mapping, named, named_lists, section
from mibyan.config.sources import McpServer, PluginSettings, ShellHook

if TYPE_CHECKING:
    # `mibyan.config.validation` resolves the annotations, when it is needed.
    from collections.abc import Mapping
    from typing import Any, Literal

    from mibyan.config.kinds import (
        ApprovalMode,
        Count,
        CountOrNone,
        EnvName,
        Flag,
        HookEvent,
        NotNegative,
        Percent,
        Seconds,
        SecondsOrNone,
        Text,
        Workers,
    )


class NamespaceSettings(Section):
    """Who gets a name that two want."""

    collisions: Literal["reject", "last_wins"] = key(
        "reject", "reject: the first owner keeps a name; last_wins: the newest registration has it, with a warning."
    )


class CustomToolset(Section):
    """A toolset of the operator's own."""

    tools: tuple[Text, ...] = key((), "Names of its tools.")
    includes: tuple[Text, ...] = key((), "Names of the toolsets it contains.")
    description: str = key("", "One sentence for people.")


class ToolsetSettings(Section):
    """Which toolsets the model sees."""

    enabled: tuple[Text, ...] | None = key(None, "Names of the toolsets that are on; null: all.")
    disabled: tuple[Text, ...] = key((), "Names of the toolsets that are off, whatever else says they are on.")
    custom: Mapping[str, CustomToolset] = named(CustomToolset, "Toolsets of your own, by name.")


class ToolSearchSettings(Section):
    """Very large catalogues: schemas are found by searching instead of being sent with every request."""

    enabled: Literal["auto"] | Flag = key("auto", "auto: above the threshold; on; off.")
    threshold_pct: Percent = key(
        10, "Percent of agent.context_tokens that deferrable schemas may take before they are deferred."
    )


class ToolsSettings(Section):
    """How tools are shown."""

    search: ToolSearchSettings = section(ToolSearchSettings, "Very large catalogues.")


class DispatchSettings(Section):
    """How calls run."""

    timeout: Seconds = key(300, "Seconds that a call may take when neither it nor its tool says.")
    max_workers: Workers = key(8, "Calls that run side by side.")
    max_result_chars: Count = key(100_000, "Characters of a result that the model gets; the rest is kept in a file.")
    hook_timeout: Seconds = key(30, "Seconds that a hook may take in a guarded call, and a tool's check.")
    validate: Flag = key(
        default=True, description="off: arguments are neither repaired nor checked by the tool's schema."
    )


class AvailabilitySettings(Section):
    """How long the answer of a tool's check holds."""

    ttl: SecondsOrNone = key(0, "Seconds that a verdict outlives a pass; 0: it doesn't.")
    grace: SecondsOrNone = key(0, "Seconds after a yes during which a no is taken for a hiccup.")


class CommandRule(Section):
    """A rule of the operator's own about shell commands."""

    id: Text = key("", "Its name, by which it is granted: small letters, digits, `_`, `.` and `-`; needed.")
    pattern: Text = key("", "Regular expression, searched for in each simple command, decoded; needed.")
    description: Text = key("", "What it finds, in a few words for people; needed.")
    level: Literal["dangerous", "hardline"] = key("dangerous", "dangerous: a person is asked; hardline: it is refused.")
    matches: tuple[Text, ...] = key((), "Commands that it must find; checked before the first command is judged.")
    misses: tuple[Text, ...] = key((), "Commands that it mustn't find; checked likewise.")


class ApprovalSettings(Section):
    """Who says yes to what is dangerous."""

    mode: ApprovalMode = key(
        "manual", "manual: a person is asked; smart: a model may answer for low risks; off: nobody is asked."
    )
    timeout: Seconds = key(300, "Seconds to wait for an answer; silence isn't consent.")
    deny: tuple[Text, ...] = key((), "Globs of commands that are refused in every mode.")
    rules: tuple[CommandRule, ...] = listed(CommandRule, "Rules of your own about shell commands.")
    smart_model: Text | None = key(None, "Model that answers in mode smart.")
    smart_base_url: Text | None = key(None, "Its OpenAI-compatible address.")
    smart_api_key_env: EnvName | None = key(None, "Environment variable that holds its key.")
    smart_timeout: Seconds = key(20, "Seconds that it may take; then a person is asked.")


class RedactionSettings(Section):
    """Secrets in what is shown."""

    live: Flag = key(
        default=True, description="Whether secrets are masked in results too; receipts and logs always are."
    )


class FilesSettings(Section):
    """The workspace of the file tools."""

    roots: tuple[Text, ...] = key((), "Folders beside the session's directory that file tools may use.")


class WebSettings(Section):
    """The web tools."""

    provider: Text = key("auto", "Search provider; auto: the first that is available.")
    allow_private: Flag = key(default=False, description="Whether private and loopback addresses may be fetched.")
    searxng_url: Text | None = key(None, "Address of a SearXNG instance.")


class ProcessSettings(Section):
    """What is kept of finished background processes."""

    max_results: CountOrNone = key(200, "Receipts that are kept.")
    max_result_age_days: NotNegative = key(14, "Days that a receipt is kept.")


class DelegationSettings(Section):
    """Child sessions of delegate_task."""

    max_depth: CountOrNone = key(2, "Sessions below one another.")
    max_children: CountOrNone = key(3, "Child sessions of one session at a time.")


class MemorySettings(Section):
    """The memory tool."""

    max_chars: Count = key(2200, "Characters of each memory file.")


class AgentSettings(Section):
    """The reference agent loop."""

    base_url: Text | None = key(None, "OpenAI-compatible address; null: the client's default.")
    model: Text | None = key(None, "Model.")
    api_key_env: EnvName = key("OPENAI_API_KEY", "Environment variable that holds the key.")
    max_turns: Count = key(50, "Requests to the model for one prompt.")
    context_tokens: Count = key(128_000, "Tokens of the model's context.")
    delegation: DelegationSettings = section(DelegationSettings, "Child sessions.")
    memory: MemorySettings = section(MemorySettings, "The memory tool.")


class Settings(Section):
    """Everything that config.yaml can say."""

    plugins: PluginSettings = section(PluginSettings, "Which plugins there are.")
    namespace: NamespaceSettings = section(NamespaceSettings, "Who gets a name that two want.")
    toolsets: ToolsetSettings = section(ToolsetSettings, "Which toolsets the model sees.")
    platform_toolsets: Mapping[str, tuple[Text, ...]] = mapping(
        {"cli": ("mibyan-cli",), "telegram": ("mibyan-telegram",)},
        "Toolsets that a session of a platform starts with, by platform.",
    )
    tools: ToolsSettings = section(ToolsSettings, "How tools are shown.")
    mcp_servers: Mapping[str, McpServer] = named(McpServer, "MCP servers, by name.")
    dispatch: DispatchSettings = section(DispatchSettings, "How calls run.")
    availability: AvailabilitySettings = section(AvailabilitySettings, "How long the answer of a tool's check holds.")
    approvals: ApprovalSettings = section(ApprovalSettings, "Who says yes to what is dangerous.")
    command_allowlist: tuple[Text, ...] = key((), "Rule ids and globs of commands that were allowed for good.")
    redaction: RedactionSettings = section(RedactionSettings, "Secrets in what is shown.")
    hooks: Mapping[HookEvent, tuple[ShellHook, ...]] = named_lists(ShellHook, "Programs that are run at events.")
    files: FilesSettings = section(FilesSettings, "The workspace of the file tools.")
    web: WebSettings = section(WebSettings, "The web tools.")
    terminal: TerminalSettings = section(TerminalSettings, "Where commands run.")
    processes: ProcessSettings = section(ProcessSettings, "What is kept of finished background processes.")
    agent: AgentSettings = section(AgentSettings, "The reference agent loop.")


def settings_from_data(data: Mapping[str, Any]) -> Settings:
    """The settings in data that has been checked before (`Settings.to_data`, or what `validation.check` gave).

    Args:
        data: JSON types; missing keys have their defaults.

    Raises:
        TypeError: A key that there isn't: the data wasn't checked.
    """
    return Settings.from_data(data)
