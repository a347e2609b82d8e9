"""Plugin ids: one for each plugin, any spelling accepted, unknown ones answered with a suggestion (plugins.F2)."""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from mibyan.text import did_you_mean, one_line, suggest

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What a wheel's name may begin with; it isn't part of the id.
PREFIX = "mibyan-plugin-"
#: What the ids of files in tools directories begin with; the stem behind it counts letter by letter.
TOOLS: Literal["tools."] = "tools."
PROJECT_TOOLS: Literal["project-tools."] = "project-tools."
#: Ids that stand for something else on the command line and in trust.json (plugins.S1).
RESERVED = frozenset({"project-tools", "project-hooks"})

_SEPARATORS = re.compile(r"[-_.]+")
_ID = re.compile(r"[^\W_](?:[\w.-]{0,98}[^\W_])?")
_REQUIREMENT = re.compile(r"\s*([^\s<>=!~,;()\[\]@]+)\s*(.*)", re.DOTALL)


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The canonical form of a name (PEP 503): lower case, each run of `-`, `_` and `.` one `-`.

    Letters beyond ASCII stay as they are: the Kelvin sign in lower case is a plain `k`, and so another plugin's name.
    """
    plain = _SEPARATORS.sub("-", name.strip())
    return plain.lower() if plain.isascii() else "".join(c.lower() if c.isascii() else c for c in plain)


def distribution_id(name: str) -> str:
    """The id of the plugin in the distribution `name`: canonical, without `mibyan-plugin-`."""
    whole = canonical(name)
    return whole.removeprefix(PREFIX) or whole


def key(plugin_id: str) -> str:
    """What is compared when two spellings may mean one plugin: `my_plugin`, `mibyan-plugin-my.plugin`."""
    for prefix in (TOOLS, PROJECT_TOOLS):
        if plugin_id.startswith(prefix):
            return plugin_id
    return distribution_id(plugin_id)


def same(one: str, other: str) -> bool:
    """Whether two spellings mean the same plugin; those of a tool file's stem count as one here."""
    return key(one) == key(other) or _loose(one) == _loose(other)


def covers(word: str, plugin_id: str) -> bool:
    """Whether what the operator wrote means this plugin; `project-tools` means every file there (plugins.S1)."""
    everything = canonical(word) == PROJECT_TOOLS.rstrip(".") and plugin_id.startswith(PROJECT_TOOLS)
    return everything or same(word, plugin_id)


def resolve(name: str, ids: Iterable[str]) -> str | None:
    """The one of `ids` that `name` spells; an exact match wins; `None` if there is none."""
    known = list(ids)
    if name in known:
        return name
    return next((plugin_id for plugin_id in known if same(name, plugin_id)), None)


def unknown(name: str, ids: Iterable[str]) -> str:
    """The sentence for an id that nobody has, with a suggestion where one is alike."""
    spellings = {key(plugin_id): plugin_id for plugin_id in ids}
    meant = suggest(key(name), spellings)
    return f"there is no plugin {one_line(name, 60)!r}{did_you_mean(meant and spellings[meant])}"


def trust_word(plugin_id: str) -> str:
    """What the operator names: `project-tools` for each file of a project's tools directory, else the plugin."""
    return PROJECT_TOOLS.rstrip(".") if plugin_id.startswith(PROJECT_TOOLS) else plugin_id


def _loose(plugin_id: str) -> str:
    """`key`, with a tool file's stem in its canonical form."""
    for prefix in (TOOLS, PROJECT_TOOLS):
        if plugin_id.startswith(prefix):
            return prefix + canonical(plugin_id.removeprefix(prefix))
    return key(plugin_id)


def name_problem(name: str) -> str | None:
    """Why `name` can't be a plugin's id, in one sentence; `None` if it can.

    An id is typed on command lines, written in YAML, and a module name is made of it: letters, digits, `-`, `_` and
    `.` in the middle, at most 100 characters.
    """
    if _ID.fullmatch(name) is None:
        return f"{one_line(name, 60)!r} can't be a plugin's id: use letters, digits, '-' and '_'"
    if canonical(name) in RESERVED or name.startswith((TOOLS, PROJECT_TOOLS)):
        return f"the id {name!r} is reserved for the tools directories and hooks"
    return None


def module_name(plugin_id: str) -> str:
    """The identifier that stands for the plugin in module names.

    Ids that differ only in spelling share it, which is why discovery refuses two such folders (plugins.L5).
    """
    name = key(plugin_id)
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if _SEPARATORS.sub("_", name) != plain or name.startswith((TOOLS, PROJECT_TOOLS)):
        plain = f"{plain}_{zlib.crc32(name.encode('utf-8', 'surrogatepass')):08x}"
    return plain if plain.isidentifier() else f"p_{plain}"


def differing(said: str, plugin_id: str, what: str) -> str | None:
    """The problem when `what` (a manifest, an entry point) says another id than the plugin has; else `None`."""
    if not said or said == plugin_id or same(said, plugin_id):
        return None
    return f"the {what} says {one_line(said, 60)!r}, but the plugin's id is {plugin_id!r}"


def split_requirement(text: str) -> tuple[str, str]:
    """A plugin and its range: `weather >=1.2` gives `("weather", ">=1.2")`; without a range the second is empty."""
    found = _REQUIREMENT.fullmatch(text)
    return (found[1], found[2].strip()) if found else (text.strip(), "")
