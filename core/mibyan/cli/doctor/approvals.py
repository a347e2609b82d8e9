"""Approvals: whether commands can be judged, and whether what the configuration says about them does what one may think."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.cli.doctor.finding import Patient
    from mibyan.config.load import LoadedConfig


def approvals(patient: Patient) -> Iterator[Finding]:
    """The shell parser, the mode, and entries of `command_allowlist` that allow nothing."""
    yield from _parser()
    if patient.config is not None and patient.broken is None:
        yield from _mode(patient.config)
        yield from _rules(patient.config)
        yield from _allowlist(patient.config)


def _parser() -> Iterator[Finding]:
    from mibyan.approvals.shell.parser import Parser, UnparsableError, parser_path

    try:
        Parser().parse("true")
    except UnparsableError as error:
        found = parser_path()
        yield Finding("error", f"shell commands can't be judged, so each of them asks: {error.message}",
                      found and os.fspath(found), "python -m pip install --force-reinstall shfmt-py")  # fmt: skip


def _mode(config: LoadedConfig) -> Iterator[Finding]:
    settings = config.settings.approvals
    where = config.line_of("approvals.mode")
    if settings.mode == "off":
        yield Finding("warning", "dangerous commands run without a question: approvals.mode is off", where,
                      "mibyan config set approvals.mode manual")  # fmt: skip
    elif settings.mode == "smart" and not (settings.smart_model and settings.smart_base_url):
        yield Finding("warning", "approvals.mode is smart, but there is no model to ask, so a person is asked", where,
                      "mibyan config set approvals.smart_model NAME; mibyan config set approvals.smart_base_url URL")  # fmt: skip


def _rules(config: LoadedConfig) -> Iterator[Finding]:
    """The operator's own rules, held against their examples."""
    if not config.settings.approvals.rules:
        return
    from mibyan.approvals.operator_rules import configured_rules
    from mibyan.errors import ConfigError

    try:
        configured_rules(config)
    except ConfigError as error:
        yield Finding("error", f"no command can be judged: {error.message}", config.line_of("approvals.rules"),
                      error.hint or "mend the rule or its examples; mibyan config validate checks the file")  # fmt: skip


def _allowlist(config: LoadedConfig) -> Iterator[Finding]:
    from mibyan.approvals.allowlist import Allowlist
    from mibyan.cli.approving.allowances import allowances

    for one in allowances(Allowlist(config.path).entries(), config.settings.approvals):
        if one.problem is not None:
            yield Finding("info" if one.is_needless else "warning", f"command_allowlist has {one.entry.text!r}: {one.problem}", one.entry.place,
                          f"mibyan approvals revoke {_quoted(one.entry.text)}")  # fmt: skip


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
