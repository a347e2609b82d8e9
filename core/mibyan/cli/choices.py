"""What a shell may complete a word of a command to: names of tools, toolsets and plugins, keys, formats.

Nothing of a plugin is run: names come from manifests and from what was kept of earlier loads (plugins.L8, L9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mibyan.cli.invocation import Invocation
    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.manifest import FrozenTool
    from mibyan.plugins.state import PluginRecord


@record
class Choice:
    """What a word may become."""

    value: str
    #: For people.
    help: str = ""
    #: `plain`, or `file` or `dir`: the shell's own completion of paths.
    kind: str = "plain"


@record
class Asked:
    """A word that is being typed."""

    invocation: Invocation
    #: The words in front of it that are arguments of the command, by their names.
    values: Mapping[str, Any]
    typed: str


#: The states of a plugin whose tools may be called.
_OPEN = frozenset({"found", "ready", "active"})


def tools(asked: Asked) -> list[Choice]:
    """Names of tools that can be there."""
    return _items(_tool_names(_records(asked), only_open=True), asked.typed)


def any_tools(asked: Asked) -> list[Choice]:
    """Names of tools, those of plugins that aren't loaded too: somebody wants to know why."""
    return _items(_tool_names(_records(asked), only_open=False), asked.typed)


def toolsets(asked: Asked) -> list[Choice]:
    """Names of toolsets."""
    return _items(_toolset_names(asked), asked.typed)


def toolset_list(asked: Asked) -> list[Choice]:
    """Names of toolsets with commas between them: the last one is completed."""
    before, comma, last = asked.typed.rpartition(",")
    taken = set(before.split(","))
    names = {name: told for name, told in _toolset_names(asked).items() if name not in taken}
    return [Choice(f"{before}{comma}{name}", told) for name, told in sorted(names.items()) if name.startswith(last)]


def plugins(asked: Asked) -> list[Choice]:
    """Ids of plugins."""
    return _items({one.id: f"{one.state}, {one.source}" for one in _records(asked)}, asked.typed)


def disabled_plugins(asked: Asked) -> list[Choice]:
    """Ids of plugins that are off, or in quarantine (plugins.L4)."""
    found = {one.id: one.source for one in _records(asked) if one.state == "disabled" or one.rule == "plugins.L4"}
    return _items(found, asked.typed)


def enabled_plugins(asked: Asked) -> list[Choice]:
    """Ids of plugins that aren't off."""
    return _items({one.id: one.source for one in _records(asked) if one.state != "disabled"}, asked.typed)


def trusted_words(asked: Asked) -> list[Choice]:
    """What of a project may be trusted: its plugins, and the whole of its tools directory."""
    from mibyan.plugins.sources.ids import PROJECT_TOOLS, trust_word

    own = [one for one in _records(asked) if one.source == "project" or one.id.startswith(PROJECT_TOOLS)]
    return _items({trust_word(one.id): one.state for one in own}, asked.typed)


def formats(asked: Asked) -> list[Choice]:
    """The providers' formats."""
    from mibyan.schema.formats import FORMATS

    return _items(dict.fromkeys(FORMATS, ""), asked.typed)


def sort_keys(asked: Asked) -> list[Choice]:
    """What `plugins list` sorts by."""
    from mibyan.cli.pluginview import SORT_KEYS

    return _items(dict.fromkeys(SORT_KEYS, ""), asked.typed)


def platforms(asked: Asked) -> list[Choice]:
    """The platforms that have a preset, and those that the configuration names."""
    from mibyan.toolsets.bundles import BUNDLES, PRESET_PREFIX

    names = [name.removeprefix(PRESET_PREFIX) for name in BUNDLES if name.startswith(PRESET_PREFIX)]
    return _items(dict.fromkeys([*names, *_config(asked).settings.platform_toolsets], ""), asked.typed)


def keys(asked: Asked) -> list[Choice]:
    """Keys of the configuration: those that have a fixed place, those of plugins, and those that are written."""
    from mibyan.config.keys import join_key
    from mibyan.config.section import all_keys
    from mibyan.config.settings import Settings

    found = dict.fromkeys(map(join_key, all_keys(Settings)), "")
    found |= dict.fromkeys((key for key in _config(asked).written if "[" not in key), "written")
    if asked.typed.startswith("plugins.e"):
        parts = ("allow_tool_override", "config", "isolation")
        found |= {join_key(("plugins", "entries", one.id, part)): "" for one in _records(asked) for part in parts}
    return _items(found, asked.typed)


def arguments(asked: Asked) -> list[Choice]:
    """`key=` or `key:=` for each parameter of the tool that is called, as far as its manifest tells them."""
    name = asked.values.get("name")
    given = {word.partition("=")[0].rstrip(":") for word in asked.values.get("arguments") or ()}
    for tool in _frozen_tools(_records(asked)):
        if name == tool.name or name in tool.flags.get("aliases", ()):
            properties = tool.schema.get("parameters", {}).get("properties", {})
            found = {
                f"{key}{_sign(spec)}": _text(spec.get("description"))
                for key, spec in properties.items()
                if key not in given
            }
            return _items(found, asked.typed)
    return []


def allowed(asked: Asked) -> list[Choice]:
    """Entries of `command_allowlist`, with what each means."""
    from mibyan.cli.approving.allowances import known_rules, meaning
    from mibyan.cli.approving.allowing import allowlist

    rules = known_rules(_config(asked).settings.approvals)
    return _items({one.text: meaning(one, rules) for one in allowlist(asked.invocation).entries()}, asked.typed)


def plugin_commands(asked: Asked) -> list[Choice]:
    """Names of the commands that plugins offer; what comes behind one is its own."""
    if asked.values.get("words"):
        return []
    return _foreseen(asked, "commands")


def added_commands(asked: Asked) -> list[Choice]:
    """Names of the commands that plugins add to the command line."""
    return _foreseen(asked, "cli")


def shells(asked: Asked) -> list[Choice]:
    """The shells that there is a script for."""
    from mibyan.cli.completion_scripts import SCRIPTS

    return _items(dict.fromkeys(SCRIPTS, ""), asked.typed)


def directories(asked: Asked) -> list[Choice]:
    """A folder: the shell's own completion."""
    return [Choice(asked.typed, kind="dir")]


def files(asked: Asked) -> list[Choice]:
    """A file: the shell's own completion."""
    return [Choice(asked.typed, kind="file")]


def _foreseen(asked: Asked, which: str) -> list[Choice]:
    """Commands of plugins that are known without an import; none where the configuration can't be used."""
    from mibyan.errors import MibyanError

    try:
        found = getattr(asked.invocation.foreseen, which)
    except MibyanError:
        return []
    return _items({one.name: _text(one.description) or one.plugin.id for one in found.values()}, asked.typed)


# What there is -------------------------------------------------------------------------------------------------------


def _config(asked: Asked) -> LoadedConfig:
    """The configuration; the defaults where it can't be used: completing is no place to complain."""
    from mibyan.config.load import default_config
    from mibyan.errors import MibyanError

    invocation = asked.invocation
    try:
        return invocation.config
    except MibyanError:
        return default_config(invocation.home)


def _records(asked: Asked) -> tuple[PluginRecord, ...]:
    return asked.invocation.glance(_config(asked))


def _tool_names(records: Iterable[PluginRecord], *, only_open: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in records:
        if only_open and one.state not in _OPEN:
            continue
        told = {tool.name: _text(tool.schema.get("description")) for tool in _frozen_tools([one])}
        for name in (*one.tools, *told):
            found.setdefault(name, told.get(name) or one.id)
    return found


def _toolset_names(asked: Asked) -> dict[str, str]:
    from mibyan.toolsets.bundles import ALIASES, BUNDLES, EVERYTHING, MCP_PREFIX, home_of

    settings, records = _config(asked).settings, _records(asked)
    found = {EVERYTHING: "every tool", **{name: bundle.description for name, bundle in BUNDLES.items()}}
    found |= {name: spec.description for name, spec in settings.toolsets.custom.items()}
    found |= {f"{MCP_PREFIX}{server}": "an MCP server" for server in settings.mcp_servers}
    for one in records:
        manifest = one.candidate.manifest
        if one.state in _OPEN and manifest is not None:
            found |= {name: spec.description for name, spec in manifest.toolsets.items() if name not in found}
            found |= {home_of(tool.toolset): one.id for tool in manifest.tools if home_of(tool.toolset) not in found}
    return {**{name: f"another name of {target}" for name, target in ALIASES.items() if name != "*"}, **found}


def _frozen_tools(records: Iterable[PluginRecord]) -> Iterator[FrozenTool]:
    for one in records:
        yield from one.candidate.manifest.tools if one.candidate.manifest is not None else ()


def _sign(spec: Any) -> str:
    """`=` gives text, `:=` a JSON value."""
    return "=" if isinstance(spec, dict) and spec.get("type") == "string" else ":="


def _text(value: Any) -> str:
    return value.strip().partition("\n")[0] if isinstance(value, str) else ""


def _items(names: Mapping[str, str], typed: str) -> list[Choice]:
    return [Choice(name, names[name]) for name in sorted(names) if name.startswith(typed)]
