"""Whether every provider has words for the schemas of a plugin's tools (registry.D4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import ToolSchemaError
from mibyan.records import record
from mibyan.schema.definition import normalise_schema
from mibyan.schema.formats import FORMATS, expressed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mibyan.cli.checking.checks import Checklist


@record
class Unsayable:
    """A tool that a provider can't be told as it is."""

    tool: str
    #: The formats that it concerns, none: all.
    formats: tuple[str, ...]
    why: str
    #: Whether it is left out there; else it is told with less.
    left_out: bool

    def tell(self, found: Checklist, where: str | None) -> None:
        """Put it on a list."""
        names = ", ".join(self.formats) or "any provider"
        what = (
            f"the tool {self.tool!r} can't be told to {names}"
            if self.left_out
            else f"the tool {self.tool!r} isn't strict for {names}"
        )
        mend = "docs/reference/formats.md says what each provider takes"
        (found.fail if self.left_out else found.warn)("schemas", f"{what}: {self.why}", mend, where)


def unsayable(tools: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Unsayable]:
    """What of some tools can't be said, each reason once.

    Args:
        tools: Their names and schemas.
    """
    found: list[Unsayable] = []
    for name, schema in tools:
        try:
            normal = normalise_schema(name, schema)
        except ToolSchemaError as error:
            found.append(Unsayable(name, (), error.message, left_out=True))
            continue
        reasons: dict[tuple[str, bool], list[str]] = {}
        for format_ in FORMATS:
            notes: list[str] = []
            _, why = expressed(normal, format_, note=notes.append)
            if why is not None:
                reasons.setdefault((why, True), []).append(format_)
            for note in notes:
                reasons.setdefault((note, False), []).append(format_)
        found += [Unsayable(name, tuple(formats), why, left) for (why, left), formats in reasons.items()]
    return found
