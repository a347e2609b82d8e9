"""What can be said of plugins without loading any: for `plugins list`, `doctor` and the like (plugins.L8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mibyan.plugins import gates
from mibyan.plugins.sources import ids
from mibyan.plugins.state import FOUND, PluginRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.contents import Contents
    from mibyan.plugins.gates import Gates, Refusal
    from mibyan.plugins.outcomes import Outcomes


def survey(
    candidates: Sequence[Candidate], doors: Gates, outcomes: Outcomes, contents: Contents
) -> tuple[PluginRecord, ...]:
    """A record for each candidate: why it won't be loaded, else what its last load came to, else `found`.

    What was never loaded as it is now has what its manifest defines.

    Args:
        candidates: In order.
        doors: What is asked about each of them.
        outcomes: What was kept of earlier loads.
        contents: The digests of this look at the plugins.
    """
    refusals = [doors.first(candidate) for candidate in candidates]

    def standing(name: str) -> tuple[Candidate, Refusal | None] | None:
        found = ids.resolve(name, [candidate.id for candidate in candidates])
        known = [(one, refusal) for one, refusal in zip(candidates, refusals, strict=True) if one.id == found]
        return next(iter([*(pair for pair in known if pair[1] is None), *known]), None)

    records = [
        _record(candidate, refusal or gates.needs(candidate, standing) or gates.missing(candidate))
        for candidate, refusal in zip(candidates, refusals, strict=True)
    ]
    return outcomes.recalled(records, contents)


def _record(candidate: Candidate, refusal: Refusal | None) -> PluginRecord:
    manifest = candidate.manifest
    state, reason, hint, rule, decided_by = refusal or gates.Refusal(FOUND, "")
    if manifest is None:
        return PluginRecord(candidate, state, reason, hint, rule=rule, decided_by=decided_by)
    tools = tuple(sorted(tool.name for tool in manifest.tools))
    return PluginRecord(
        candidate, state, reason, hint, None, tools, tuple(sorted(manifest.hooks)), tuple(sorted(manifest.overrides)),
        rule=rule, decided_by=decided_by,
    )  # fmt: skip
