"""`explain`: what becomes of a shell command here, why, and what would change it; nothing of it is run.

It stands on config.yaml alone: rules that plugins bring aren't known, no plugin is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mibyan.approvals.allowlist import AllowEntry
    from mibyan.approvals.verdict import CommandContext, Finding, Verdict
    from mibyan.config.load import LoadedConfig

#: What becomes of it: it runs, a person (or in mode smart a model) is asked, or it is refused whatever anybody says.
Outcome: TypeAlias = Literal["runs", "asks", "refused"]

_MODE: Final = "approvals.mode"


@record
class Explanation:
    """A verdict, with what the operator's configuration makes of it."""

    command: str
    verdict: Verdict
    outcome: Outcome
    #: In one sentence, why.
    why: str
    #: By a finding's id the entry of `command_allowlist` that allows it.
    allowed: Mapping[str, AllowEntry] = field(default_factory=dict)
    #: The glob of `approvals.deny` that refuses it, and where that is written.
    denied: tuple[str, str] | None = None
    #: What would let it run: `once`, `session`, `always`, `mode` or `deny`, and how.
    ways: tuple[tuple[str, str], ...] = ()
    #: What `always` would write into `command_allowlist`.
    entries: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            "command": self.command, "level": self.verdict.level, "outcome": self.outcome, "why": self.why,
            "findings": [self._finding(one) for one in self.verdict.findings],
            "denied_by": None if self.denied is None else {"glob": self.denied[0], "place": self.denied[1]},
            "ways": [{"how": how, "text": text} for how, text in self.ways], "always_writes": list(self.entries),
        }  # fmt: skip

    def _finding(self, finding: Finding) -> dict[str, Any]:
        start, end = finding.span
        entry = self.allowed.get(finding.id)
        allowed = None if entry is None else {"entry": entry.text, "place": entry.place}
        return {**finding.to_dict(), "text": self.command[start:end], "allowed_by": allowed}


def explain(command: str, config: LoadedConfig, context: CommandContext) -> Explanation:
    """Judge a command and say what this configuration makes of it.

    Args:
        command: What bash would get.
        config: The operator's.
        context: Where it would run.
    """
    from mibyan.approvals.allowlist import Allowlist
    from mibyan.approvals.evaluate import evaluate_command

    verdict = evaluate_command(command, context)
    denied = _denying(command, config)
    allowed = Allowlist(config.path).reasons(verdict.findings, command)
    mode = config.settings.approvals.mode
    open_findings = [one for one in verdict.findings if one.id not in allowed]
    if verdict.level == "hardline":
        worst = next(one for one in verdict.findings if one.level == "hardline")
        why = f"{worst.description} can't be undone: it is refused in every mode, whoever grants it"
        return Explanation(command, verdict, "refused", why, allowed, denied)
    if denied is not None:
        glob, place = denied
        ways = (("deny", f"remove {glob!r} from approvals.deny in {place}"),)
        return Explanation(
            command, verdict, "refused", f"approvals.deny refuses it: {glob!r}, in {place}", allowed, denied, ways
        )
    if not verdict.findings:
        return Explanation(command, verdict, "runs", "nothing was found about it")
    if not open_findings:
        return Explanation(command, verdict, "runs", "command_allowlist allows all that was found", allowed)
    if mode == "off":
        why = f"nobody is asked: {_MODE} is off in {config.where(_MODE)}"
        return Explanation(command, verdict, "runs", why, allowed)
    return _asking(command, verdict, allowed, open_findings, config)


def _asking(
    command: str, verdict: Verdict, allowed: Mapping[str, AllowEntry], findings: Sequence[Finding], config: LoadedConfig
) -> Explanation:  # fmt: skip
    from mibyan.approvals.grants import lasting_entries

    entries = lasting_entries(findings, command)
    mode = config.settings.approvals.mode
    who = "a model may approve it, else a person is asked" if mode == "smart" else "a person is asked"
    left = ", ".join(dict.fromkeys(one.description for one in findings))
    return Explanation(
        command, verdict, "asks", f"{who}: {left}", allowed, ways=tuple(_ways(entries, config)), entries=entries
    )


def _ways(entries: Sequence[str], config: LoadedConfig) -> Iterator[tuple[str, str]]:
    yield "once", "answer `once`, or give --yes to the call"
    yield "session", "answer `session`: what is like it runs until the session ends"
    if entries:
        yield "always", f"answer `always`: that adds to command_allowlist in {config.path} what is written below"
    mode = config.settings.approvals.mode
    yield "mode", f"mibyan config set {_MODE} off: nobody is asked about anything any more (it is {mode} now)"


def _denying(command: str, config: LoadedConfig) -> tuple[str, str] | None:
    """The first glob of `approvals.deny` that finds the command, and its place."""
    globs = config.settings.approvals.deny
    if not globs:
        return None
    from mibyan.approvals.globs import denies
    from mibyan.approvals.simple_commands import simple_commands

    simple = simple_commands(command).texts
    found = next((at for at, glob in enumerate(globs) if denies(glob, command, simple)), None)
    return None if found is None else (globs[found], place_of(config, ("approvals", "deny", found)))


def place_of(config: LoadedConfig, key: Sequence[str | int]) -> str:
    """`/home/me/.mibyan/config.yaml:12` for a key that is written."""
    line = config.line_of(key)
    return line.rpartition(": ")[0] if line is not None else config.where(key)
