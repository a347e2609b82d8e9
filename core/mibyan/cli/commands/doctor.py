"""`mibyan doctor`: whether everything is as it should be, and what mends it where it isn't."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mibyan.cli import exits
from mibyan.cli.declaring import command
from mibyan.cli.output import say
from mibyan.text import counted, one_line

if TYPE_CHECKING:
    from mibyan.cli.doctor.examination import Examination
    from mibyan.cli.invocation import Invocation


@command("doctor")
def doctor(invocation: Invocation) -> int:
    """Look whether everything is as it should be.

    The configuration, the rights of folders and files, caches, the interpreter, what Mibyan needs and its extras, the
    programs on PATH, whether commands can be judged and what was allowed for good, what was passed over while looking for plugins, and the plugins themselves: hooks that can't be bound,
    dependencies that conflict, variables and programs that are missing, circles, top-level modules that others have too,
    slow imports, plugins that aren't learned, folders of no plugin; each finding with what mends it. Works with a
    configuration that can't be used, and imports no plugin. Ends with 2 if there is an error, with --strict with 3 if a
    plugin isn't ready. With --json: {"healthy", "version", "python", "executable", "platform", "home", "project",
    "dependencies", "checks": {name: ok|warning|error}, "findings": [{check severity what where fix}]}.
    """
    from mibyan.cli.doctor.examination import examine
    from mibyan.cli.strictness import unready

    found = examine(invocation)
    told = found.to_dicts()
    if invocation.options.as_json:
        invocation.out.document(
            {**_about(found), "checks": {name: found.worst(name) for name in found.findings}, "findings": told}
        )
    else:
        _print(invocation, found, told)
    objections = unready(found.records, loaded=False) if invocation.options.strict else []
    for objection in objections:
        say(f"mibyan: strict: {objection}")
    if found.count("error"):
        return exits.USAGE
    return exits.REFUSED if objections else exits.OK


def _about(found: Examination) -> dict[str, Any]:
    """What is examined, in a few facts."""
    import platform

    from mibyan._version import __version__
    from mibyan.cli.doctor.installation import versions

    patient = found.patient
    return {
        "healthy": not found.count("error"), "version": __version__, "python": platform.python_version(),
        "executable": sys.executable, "platform": platform.platform(),
        "home": None if patient.home is None else str(patient.home),
        "project": None if patient.project is None else str(patient.project), "dependencies": versions(),
    }  # fmt: skip


def _print(invocation: Invocation, found: Examination, told: list[dict[str, Any]]) -> None:
    from mibyan.cli.tables import Column, show_fields, show_table

    about = _about(found)
    dependencies = ", ".join(f"{name} {version or 'missing'}" for name, version in about.pop("dependencies").items())
    shown = {key: str(about[key]) for key in about if key != "healthy" and about[key] is not None}
    show_fields(invocation.out, {**shown, "dependencies": dependencies})
    invocation.out.line("")
    styles = {"ok": "green", "warning": "yellow", "error": "red"}
    columns = (Column("CHECK"), Column("STATUS", styles=styles), Column("FINDINGS", right=True))
    rows = [[name, found.worst(name), str(len(several) or "")] for name, several in found.findings.items()]
    show_table(invocation.out, columns, rows)
    for one in told:
        where = f"{one['where']}: " if one["where"] else ""
        lines = [f"{one['severity']}: {one['check']}: {one_line(where + one['what'], 1000)}"]
        if one["fix"]:
            lines.append(f"    {one_line(one['fix'], 500)}")
        invocation.out.line("\n" + "\n".join(lines))
    counts = [counted(found.count(severity), severity) for severity in ("error", "warning")]
    invocation.out.line(f"\n{', '.join(counts)}.")
