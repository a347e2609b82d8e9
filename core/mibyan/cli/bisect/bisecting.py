"""`mibyan plugins bisect`: which plugin makes something go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mibyan.cli import exits
from mibyan.cli.bisect.halving import minimal
from mibyan.cli.bisect.rounds import Rounds
from mibyan.cli.output import say
from mibyan.plugins.sources import ids
from mibyan.plugins.state import DISABLED, INCOMPATIBLE, SHADOWED, UNTRUSTED
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.invocation import Invocation
    from mibyan.plugins.state import PluginRecord

#: Seconds for one round, if nothing else is said.
TIMEOUT: Final = 300.0
#: Plugins in these states do nothing, so they can't be it.
_OFF: Final = frozenset({DISABLED, UNTRUSTED, INCOMPATIBLE, SHADOWED})
#: The rule by which a plugin is in quarantine.
_QUARANTINE: Final = "plugins.L4"


@record
class Finding:
    """What the rounds have come to."""

    #: `found`; `good`: with everything on nothing goes wrong; `outside`: it does with everything off; `unclear`.
    verdict: str
    message: str
    plugins: tuple[PluginRecord, ...] = ()

    @property
    def commands(self) -> list[str]:
        """What takes those plugins away."""
        said = [f"mibyan plugins disable {one.id}" for one in self.plugins]
        return said + [f"mibyan plugins uninstall {one.id}" for one in self.plugins if one.source == "pip"]


def run(invocation: Invocation, records: Sequence[PluginRecord], *, command: str | None, timeout: float | None) -> int:
    """Find the plugins that make something go wrong; the exit code.

    Args:
        invocation: The run of the command line.
        records: The plugins that were found; none is loaded here.
        command: What tells good from bad by its exit code; `None`: a person is asked.
        timeout: Seconds for one round; `None`: `TIMEOUT`.

    Raises:
        UsageError: There is neither a command nor a person.
        KeyboardInterrupt: The person has had enough.
    """
    kept_out = [one.id for one in records if one.rule == _QUARANTINE]
    on = [one for one in records if one.state not in _OFF and one.id not in kept_out]
    if kept_out:
        say(f"Off in each round, as they are in quarantine: {', '.join(kept_out)}")
    rounds = Rounds(invocation, command, TIMEOUT if timeout is None else timeout, _needs(on), kept_out)
    finding = find(rounds, on)
    if invocation.options.as_json:
        invocation.out.document(
            {
                "verdict": finding.verdict,
                "message": finding.message,
                "plugins": [_told(one) for one in finding.plugins],
                "commands": finding.commands,
                "rounds": [one.to_dict() for one in rounds.done],
            }
        )
    else:
        invocation.out.line(finding.message)
        for line in finding.commands:
            invocation.out.line(f"    {line}")
    return exits.OK if finding.verdict == "found" else exits.FAILED


def find(rounds: Rounds, records: Sequence[PluginRecord]) -> Finding:
    """Which of the plugins it is; the built-in ones are suspected last.

    Args:
        rounds: Runs the rounds.
        records: The plugins that are on.
    """
    builtin = [one.id for one in records if one.source == "builtin"]
    others = [one.id for one in records if one.source != "builtin"]
    first = rounds.verdict(others, others)
    if first == "good":
        return Finding("good", f"With all {len(records)} plugins on nothing goes wrong: there is nothing to find.")
    if first == "skip":
        return Finding("unclear", "With all plugins on it can't be told whether it goes wrong.")
    without = rounds.verdict([], others)
    suspects, off = (builtin, others) if without == "bad" else (others, [])
    if without == "bad" and rounds.verdict([], builtin, others) == "bad":
        return Finding(
            "outside", "With every plugin off it goes wrong all the same: it is Mibyan itself, or what is done besides."
        )
    found = minimal(suspects, lambda some: rounds.verdict(some, suspects, off) == "bad")
    return _found([one for one in records if one.id in found], [one.verdict for one in rounds.done])


def _found(culprits: Sequence[PluginRecord], verdicts: Sequence[str]) -> Finding:
    named = [f"{one.id} ({' '.join(filter(None, (one.source, one_line(one.version, 60))))})" for one in culprits]
    if len(named) == 1:
        return Finding("found", f"It is {named[0]}.", tuple(culprits))
    doubt = "; rounds that couldn't be told were taken for good, so it may be fewer" if "skip" in verdicts else ""
    message = f"It takes these together: {', '.join(named)}{doubt}. Without one of them nothing goes wrong."
    return Finding("found", message, tuple(culprits))


def _needs(records: Sequence[PluginRecord]) -> dict[str, list[str]]:
    """The ids of the plugins that each plugin requires."""
    known = [one.id for one in records]
    found: dict[str, list[str]] = {}
    for one in records:
        for text in one.candidate.manifest.requires_plugins if one.candidate.manifest is not None else ():
            needed = ids.resolve(ids.split_requirement(text)[0], known)
            if needed is not None:
                found.setdefault(one.id, []).append(needed)
    return found


def _told(one: PluginRecord) -> dict[str, Any]:
    return {"id": one.id, "source": one.source, "version": one.version, "origin": one.origin}
