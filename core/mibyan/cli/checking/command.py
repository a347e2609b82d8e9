"""`mibyan plugins check`: examine a plugin and show what came of it."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from mibyan.cli import exits
from mibyan.cli.checking.checks import Checklist
from mibyan.cli.checking.examination import Wishes, examined, recognise
from mibyan.cli.output import is_terminal, say
from mibyan.cli.settings_file import read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mibyan.cli.checking.checks import Check
    from mibyan.cli.invocation import Invocation

#: Seconds for a step, if nothing else is said: building a wheel may fetch what builds it.
TIMEOUT: Final = 120.0


def run(
    invocation: Invocation,
    path: str,
    *,
    static: bool,
    offline: bool,
    skip: Sequence[str],
    config: str | None,
    timeout: float | None,
) -> int:
    """Do what the options say; the exit code.

    Raises:
        UsageError: A word isn't one.
        NotAPluginError: There is no plugin at the path.
    """
    found, place = Checklist(skip), Path(path)
    recognise(place)
    wishes = Wishes(
        static, offline, TIMEOUT if timeout is None else timeout, read_settings(config),
        lambda what: say(f"{path}: {what} …") if is_terminal(sys.stderr) else None,
    )  # fmt: skip
    with TemporaryDirectory(prefix="mibyan-check-", ignore_cleanup_errors=True) as folder:
        plugin_id = examined(place, Path(folder), found, wishes)
    if invocation.options.as_json:
        invocation.out.document({"path": path, "plugin": plugin_id, "checks": found.to_list(), "ok": found.is_ok})
    else:
        _show(invocation, path, found)
    return exits.OK if found.is_ok else exits.FAILED


def _show(invocation: Invocation, path: str, found: Checklist) -> None:
    """A line for each check, behind it what mends it, then what was skipped; the verdict on standard error."""
    checks = found.checks
    width = max(len(check.id) for check in checks)
    for check in checks:
        if check.status == "skipped":
            continue
        invocation.out.line(f"{check.status:<5} {check.id:<{width}}  {check.text}{_rule(check)}")
        for what, said in (("at", check.origin), ("mend", check.fix)):
            if said and check.status in {"warn", "fail"}:
                invocation.out.line(f"{'':<{width + 6}}  {what}: {said}")
    skipped: dict[str, list[str]] = {}
    for check in checks:
        if check.status == "skipped":
            skipped.setdefault(check.text, []).append(check.id)
    for why, ids in skipped.items():
        invocation.out.line(f"skipped {', '.join(ids)}: {why}")
    counts = {status: sum(check.status == status for check in checks) for status in ("fail", "warn", "skipped")}
    told = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    say(f"{path}: {'fine' if found.is_ok else 'not fit to be published'}{f' ({told})' if told else ''}")


def _rule(check: Check) -> str:
    return f" [{check.rule}]" if check.status in {"warn", "fail"} else ""
