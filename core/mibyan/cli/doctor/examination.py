"""`examine`: all checks, each on its own: what goes wrong in one of them is its finding and nothing else."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mibyan.cli.doctor import approvals, configuration, discovery, folders, installation, interpreter
from mibyan.cli.doctor.finding import SEVERITIES, Finding, Patient
from mibyan.errors import MibyanError
from mibyan.records import field, record
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from mibyan.cli.invocation import Invocation
    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.candidate import Note
    from mibyan.plugins.state import PluginRecord


@record(frozen=False)
class Examination:
    """What was looked at and found."""

    patient: Patient
    #: The findings of each check, in the order of the checks; an empty list: nothing.
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    records: tuple[PluginRecord, ...] = ()

    def worst(self, check: str) -> str:
        """`ok`, or how bad the worst finding of a check is; what is only good to know is ok."""
        found = {one.severity for one in self.findings[check]} - {"info"}
        return next((severity for severity in SEVERITIES if severity in found), "ok")

    def count(self, severity: str) -> int:
        """How many findings there are of a severity."""
        return sum(one.severity == severity for several in self.findings.values() for one in several)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The findings as JSON objects, the worst first."""
        told = [one.to_dict(check) for check, several in self.findings.items() for one in several]
        return sorted(told, key=lambda one: SEVERITIES.index(one["severity"]))


#: The checks that need nothing but the patient, in order.
_CHECKS: Final[dict[str, Callable[[Patient], Iterable[Finding]]]] = {
    "configuration": configuration.problems,
    "environment": configuration.environment,
    "folders": folders.rights,
    "caches": folders.caches,
    "python": interpreter.python,
    "dependencies": installation.dependencies,
    "programs": installation.programs,
    "approvals": approvals.approvals,
}


def examine(invocation: Invocation) -> Examination:
    """Look at everything; nothing is imported of a plugin, and nothing is changed but caches.

    Args:
        invocation: What the command line says.
    """
    found = Examination(_patient(invocation))
    for name, check in _CHECKS.items():
        found.findings[name] = list(_guarded(lambda check=check: check(found.patient)))  # type: ignore[misc]
    notes: list[Note] = []
    found.findings["discovery"] = list(_guarded(lambda: _discovered(found, notes)))
    found.findings["plugins"] = [one for check in _plugin_checks(found) for one in _guarded(check)]
    found.findings["toolsets"] = list(_guarded(lambda: _toolsets(found)))
    return found


def _patient(invocation: Invocation) -> Patient:
    """What is examined, as far as it can be told where it is."""
    options = invocation.options
    home, project, config, broken = None, None, None, None
    try:
        home = invocation.home
        project = invocation.project
    except MibyanError as error:
        broken = error
    if home is not None:
        config, fault = _configured(invocation, home)
        broken = broken or fault
    also = (*options.plugins, *os.environ.get("MIBYAN_PLUGINS", "").replace(",", " ").split())
    return Patient(home, project, config, broken, options.safe_mode, also, tuple(options.no_plugins))


def _configured(invocation: Invocation, home: Path) -> tuple[LoadedConfig, MibyanError | None]:
    from mibyan.config.load import default_config

    try:
        return invocation.config, None
    except MibyanError as error:
        return default_config(home), error


def _guarded(check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """The findings of a check; that it fails is one."""
    try:
        yield from check()
    except KeyboardInterrupt:
        raise
    except Exception as error:
        told = one_line(describe_exception(error), 500)
        yield Finding("error", f"the check itself failed: {told}", None, "please report it, with what `--debug` shows")


def _discovered(found: Examination, notes: list[Note]) -> Iterator[Finding]:
    from mibyan.plugins.glance import glance

    patient = found.patient
    if patient.home is None or patient.config is None:
        return
    found.records, passed = glance(patient.config, patient.home, patient.project, safe_mode=patient.safe_mode,
                                   also=patient.also, no=patient.no)  # fmt: skip
    notes += passed
    yield from discovery.passed_over(notes, patient)
    yield from discovery.states(found.records)


def _plugin_checks(found: Examination) -> list[Callable[[], Iterable[Finding]]]:
    """What is looked at in the plugins that are or would be loaded; whose trust is lacking isn't looked into."""
    from mibyan.cli.doctor.plugins import circles, costs, hooks, nearly, packages, requirements, strays
    from mibyan.plugins.state import ACTIVE, FAILED, FOUND, NEEDS, READY

    if found.patient.home is None or found.patient.config is None:
        return []
    states = {FOUND, READY, ACTIVE, NEEDS, FAILED}
    looked_at = [one for one in found.records if one.source != "builtin" and one.state in states]
    of_each = (
        hooks.problems, requirements.conflicts, requirements.missing, packages.generic, packages.shared, circles.required,
        costs.slow, costs.imported_each_time,
    )  # fmt: skip
    checks: list[Callable[[], Iterable[Finding]]] = [partial(check, looked_at) for check in of_each]
    return [nearly.problems, *checks, partial(strays.problems, found.patient, found.records)]


def _toolsets(found: Examination) -> Iterator[Finding]:
    from mibyan.toolsets.bundles import ALIASES, BUNDLES, EVERYTHING, MCP_PREFIX, PRESET_PREFIX, home_of

    config = found.patient.config
    if config is None:
        return
    manifests = [one.candidate.manifest for one in found.records]
    known = {EVERYTHING, *BUNDLES, *ALIASES}
    known |= {name for server in config.settings.mcp_servers for name in (server, f"{MCP_PREFIX}{server}")}
    known |= {name for one in manifests if one is not None for name in one.toolsets}
    known |= {home_of(tool.toolset) for one in manifests if one is not None for tool in one.tools}
    known |= {f"{PRESET_PREFIX}{name}" for name in known}
    all_known = all(one is not None and one.frozen for one in manifests)
    yield from configuration.toolset_names(found.patient, known, all_known=all_known)
