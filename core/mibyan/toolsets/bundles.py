"""The bundles that Mibyan itself brings: data, without a tool's name in it, and immutable (registry.T1, T3, T6).

A built-in toolset holds whatever is registered under its name; everything above it is made of toolsets.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.tools.entry import ToolEntry


class Rule(Enum):
    """What a bundle keeps of the tools it is made of."""

    #: Tools that say of themselves that they only read.
    READ_ONLY = "read-only tools only"
    #: Tools that never wait for a person.
    NOT_INTERACTIVE = "no interactive tools"

    def keeps(self, entry: ToolEntry | None) -> bool:
        """Whether the bundle keeps this tool; `None` is one that isn't registered."""
        if self is Rule.READ_ONLY:
            return entry is not None and entry.read_only and not entry.destructive
        return entry is None or not entry.interactive


@record
class Bundle:
    """One bundle of Mibyan's own."""

    name: str
    description: str
    #: `builtin`: the tools registered under its name. `composite`: what it includes. `preset` and `posture`: likewise,
    #: but denying them takes only what they add beyond `core` (registry.T4).
    kind: Literal["builtin", "composite", "posture", "preset"]
    includes: tuple[str, ...] = ()
    #: Whether every toolset that isn't built in belongs to it too: plugins', MCP servers', the host's.
    plugins: bool = False
    rule: Rule | None = None


#: The name that stands for every registered tool; `*` is the same.
EVERYTHING = "all"
#: The bundle that presets and postures are measured against.
CORE = "core"
#: What the name of a platform's preset begins with.
PRESET_PREFIX = "mibyan-"
#: The same in seed 001.
SEED_001_PREFIX = "vibeos-"
#: What the name of an MCP server's toolset begins with.
MCP_PREFIX = "mcp-"

_CORE_TOOLSETS = (
    "terminal", "files", "code", "web", "browser", "planning", "memory", "sessions", "delegation", "skills",
    "clarify", "vision", "image",
)  # fmt: skip

#: Where nobody is there to answer a tool's question, or an editor asks its own.
_WITHOUT_QUESTIONS = tuple(name for name in _CORE_TOOLSETS if name != "clarify")

_BUILTIN = (
    Bundle("terminal", "Commands and background processes.", "builtin"),
    Bundle("files", "Reading, writing, patching and searching files of the workspace.", "builtin"),
    Bundle("code", "Running code that may call the other tools.", "builtin"),
    Bundle("web", "Searching the web and reading pages.", "builtin"),
    Bundle("browser", "A browser the agent drives.", "builtin"),
    Bundle("planning", "The conversation's task list.", "builtin"),
    Bundle("memory", "Notes that outlive the conversation.", "builtin"),
    Bundle("sessions", "Searching past conversations.", "builtin"),
    Bundle("delegation", "Handing tasks to child agents.", "builtin"),
    Bundle("skills", "Written procedures, read when they are needed.", "builtin"),
    Bundle("clarify", "Asking the person a question.", "builtin"),
    Bundle("vision", "Looking at images.", "builtin"),
    Bundle("image", "Making images.", "builtin"),
    Bundle("cronjob", "Scheduled tasks; empty until a plugin fills it.", "builtin"),
    Bundle("tts", "Speech; empty until a plugin fills it.", "builtin"),
)

_COMPOSITE = (
    Bundle(CORE, "Every built-in toolset but cronjob and tts.", "composite", _CORE_TOOLSETS),
    Bundle("debugging", "Commands, files and the web.", "composite", ("terminal", "files", "web")),
    Bundle("safe", "Nothing that touches this machine.", "composite", ("web", "vision", "image")),
)

_POSTURE = (Bundle("coding", "Working on a code base.", "posture", tuple(n for n in _CORE_TOOLSETS if n != "image")),)

#: The platforms whose preset is the core set and every enabled plugin's toolsets.
_PLATFORMS = ("cli", "telegram", "discord", "slack", "whatsapp", "signal", "email", "matrix")

_PRESETS = (
    *(Bundle(f"{PRESET_PREFIX}{platform}", f"What a session on the platform {platform} starts from: "
             "the core set and every enabled plugin's toolsets.", "preset", (CORE,), plugins=True)
      for platform in _PLATFORMS),
    Bundle("mibyan-cron", "What a scheduled task gets: the core set.", "preset", (CORE,)),
    Bundle("mibyan-acp", "Curated for editors: no interactive question, no speech.", "preset", _WITHOUT_QUESTIONS,
           rule=Rule.NOT_INTERACTIVE),
    Bundle("mibyan-api-server", "What an HTTP API serves: no interactive tools.", "preset", _WITHOUT_QUESTIONS,
           plugins=True, rule=Rule.NOT_INTERACTIVE),
    Bundle("mibyan-webhook", "Read-only web tools: untrusted input never reaches the terminal or files.", "preset",
           ("web",), rule=Rule.READ_ONLY),
)  # fmt: skip

#: The bundles by name. Nothing outside this module adds to them or takes from them.
BUNDLES: Mapping[str, Bundle] = MappingProxyType({
    bundle.name: bundle for bundle in (*_BUILTIN, *_COMPOSITE, *_POSTURE, *_PRESETS)
})  # fmt: skip

#: The toolset names of old, and today's (seeds 000 and 001); they are read wherever a toolset's name is.
LEGACY_TOOLSET_MAP: Mapping[str, str] = MappingProxyType({
    "web_tools": "web",
    "terminal_tools": "terminal",
    "vision_tools": "vision",
    "image_tools": "image",
    "skills_tools": "skills",
    "browser_tools": "browser",
    "cronjob_tools": "cronjob",
    "file_tools": "files",
    "tts_tools": "tts",
})  # fmt: skip

#: Every other name that Mibyan's own bundles answer to, and the bundle: the legacy names, seed 001's presets, `*`.
ALIASES: Mapping[str, str] = MappingProxyType({
    "*": EVERYTHING,
    **LEGACY_TOOLSET_MAP,
    **{SEED_001_PREFIX + bundle.name.removeprefix(PRESET_PREFIX): bundle.name for bundle in _PRESETS},
})  # fmt: skip


def is_taken(name: str) -> bool:
    """Whether `name` is one of Mibyan's own, which nobody else can define (registry.T6)."""
    return name == EVERYTHING or name in BUNDLES or name in ALIASES


def home_of(toolset: str) -> str:
    """The toolset that a tool registered under `toolset` belongs to: a legacy name means today's."""
    return LEGACY_TOOLSET_MAP.get(toolset, toolset)
