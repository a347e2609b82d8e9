"""What plugins cost at each start: imports that take long, and plugins that are imported because they can't be learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mibyan.cli.doctor.finding import Finding
from mibyan.plugins.state import unlearned
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mibyan.plugins.state import PluginRecord

#: Milliseconds that an import and its registration may take before somebody should know: half of a second is felt.
SLOW_MS: Final = 500.0


def slow(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """Plugins whose import took long when they were last loaded."""
    for one in records:
        if one.import_ms is not None and one.import_ms > SLOW_MS:
            what = f"the import of plugin {one.id!r} took {one.import_ms:,.0f} ms when it was last loaded"
            fix = (
                f"python -X importtime -m mibyan plugins list --load shows on what; or mibyan plugins disable {one.id}"
            )
            yield Finding("warning", what, one.origin, fix)


def imported_each_time(records: Iterable[PluginRecord]) -> Iterator[Finding]:
    """Plugins that aren't frozen and aren't learned, and why."""
    for one in records:
        why = unlearned(one.reason)
        if why:
            what = f"plugin {one.id!r} is imported at each start, as it isn't learned: {why}"
            fix = "its author can freeze its definitions: mibyan plugins manifest PATH --write"
            yield Finding("info", one_line(what, 500), one.origin, fix)
