"""Distributions that were meant to be plugins: groups and names that are nearly right and that looking for plugins passes over."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.plugins.sources.entrypoints import GROUP, groups, near_misses
from mibyan.plugins.sources.ids import PREFIX, canonical
from mibyan.plugins.sources.imported import header
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import Distribution

#: Beginnings of names of which somebody meant `mibyan-plugin-`.
_NAMED = re.compile(r"mibyan-?plugins?(?:-|$)")
#: How alike two names are that differ in a letter or two; `mypy.plugins` is less.
_ALIKE = 0.84


def problems() -> Iterator[Finding]:
    """A finding for each; those that looking for plugins tells already aren't told again."""
    from importlib.metadata import distributions

    seen: set[str] = set()
    for found in distributions():
        place = str(getattr(found, "_path", None) or found.locate_file(""))
        if place not in seen:
            seen.add(place)
            yield from _nearly(found, place)


def _nearly(found: Distribution, place: str) -> Iterator[Finding]:
    written = list(groups(found.read_text("entry_points.txt") or ""))
    name = header(found, "Name")
    if GROUP in written:
        return
    shown = one_line(name, 60)
    meant = [group for group in written if _is_meant(group)]
    for group in meant:
        yield Finding("warning", f"distribution {shown!r} has entry points in the group {group!r}, which nobody reads", place,
                      f"its author writes [project.entry-points.{GROUP!r}] in pyproject.toml")  # fmt: skip
    if not meant and not near_misses(written) and _is_named(name):
        yield Finding("warning", f"distribution {shown!r} is called like a plugin and has no entry point in {GROUP!r}", place,
                      f"its author calls it {PREFIX}NAME and writes [project.entry-points.{GROUP!r}]")  # fmt: skip


def _is_meant(group: str) -> bool:
    """Whether somebody wrote a group for ours, so that looking for plugins doesn't notice it."""
    if near_misses([group]):
        return False
    letters, ours = (re.sub(r"[\W_]+", "", one).lower() for one in (group, GROUP))
    return group.lower().startswith("mibyan.") or SequenceMatcher(None, letters, ours).ratio() >= _ALIKE


def _is_named(name: str) -> bool:
    plain = canonical(name)
    return _NAMED.match(plain) is not None and not plain.startswith(PREFIX)
