"""Reads `entry_points.txt`: only the part of the format that says which plugin a distribution has.

The format is that of the packaging guide's entry-points specification: `[group]` lines, `name = module:attribute
[extras]` lines, comments that begin with `#`. A thousand distributions are looked at on each start, and `configparser`
would take half of it: hence a reader of its own, which does what `importlib.metadata` does with such a file.
"""

from __future__ import annotations

import re

from mibyan.records import record

#: The entry point group of Mibyan's plugins.
GROUP = "mibyan.plugins"

_VALUE = re.compile(
    r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*)"
    r"\s*(?::\s*(?P<attribute>[^\W\d]\w*(?:\.[^\W\d]\w*)*))?"
    r"\s*(?:\[[^\]]*\])?\s*"
)
#: Groups of which somebody meant ours, or the neighbouring agent's; letters only.
_MEANT = {"mibyan", "mibyanplugin", "mibyanplugins", "mibyantool", "mibyantools", "hermesplugin", "hermesplugins"}


@record
class EntryPoint:
    """One line of an entry point group."""

    name: str
    #: `module` or `module:attribute`, without extras; what is written if it has another form.
    value: str
    #: Whether it has that form.
    well_formed: bool = True

    @property
    def module(self) -> str:
        """The module's dotted name."""
        return self.value.partition(":")[0]


def may_concern(data: bytes) -> bool:
    """Whether an `entry_points.txt` with these bytes can have a group of ours, or one that was meant to be."""
    lower = data.lower()
    return b"mibyan" in lower or b"hermes" in lower


def groups(text: str) -> dict[str, list[tuple[str, str]]]:
    """The groups of an `entry_points.txt`: names and values as they are written."""
    found: dict[str, list[tuple[str, str]]] = {}
    group: list[tuple[str, str]] | None = None
    for line in map(str.strip, text.removeprefix("\ufeff").splitlines()):
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = found.setdefault(line[1:-1].strip(), [])
        elif group is not None:
            name, _, value = line.partition("=")
            group.append((name.strip(), value.strip()))
    return found


def entry_point(name: str, value: str) -> EntryPoint:
    """The entry point of one line."""
    match = _VALUE.fullmatch(value)
    if match is None:
        return EntryPoint(name, value, well_formed=False)
    return EntryPoint(name, f"{match['module']}:{match['attribute']}" if match["attribute"] else match["module"])


def near_misses(names: list[str]) -> list[str]:
    """Those groups that somebody wrote for `mibyan.plugins` and that nobody reads."""
    return [name for name in names if name != GROUP and re.sub(r"[\W_]+", "", name).lower() in _MEANT]
