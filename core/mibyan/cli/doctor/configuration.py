"""config.yaml and the project's: what can't be used, and names in them that nobody knows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding
from mibyan.errors import ConfigError
from mibyan.text import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.cli.doctor.finding import Patient
    from mibyan.config.load import LoadedConfig

#: The variables that mean something to Mibyan.
_VARIABLES = frozenset({"MIBYAN_HOME", "MIBYAN_PLUGINS", "MIBYAN_QUARANTINE", "MIBYAN_SAFE_MODE"})


def problems(patient: Patient) -> Iterator[Finding]:
    """What is wrong with the files, with their lines."""
    if patient.broken is None:
        return
    if isinstance(patient.broken, ConfigError):
        yield from _problems(patient.broken, patient)
        yield Finding("warning", "plugins are off until the configuration is mended", None, "mibyan config validate")
    else:
        yield Finding("error", patient.broken.message, patient.broken.origin, patient.broken.hint)


def _problems(error: ConfigError, patient: Patient) -> Iterator[Finding]:
    from mibyan.config.problems import InvalidConfigError

    if not isinstance(error, InvalidConfigError):
        yield Finding("error", error.message, error.origin, error.hint)
        return
    for problem in error.problems:
        file = _path(problem.file, patient)
        where = f"{file}:{problem.line}" if problem.line else file
        key = f"key '{problem.key}': " if problem.key else ""
        meant = f"did you mean {problem.suggestion!r}?" if problem.suggestion else error.hint
        yield Finding("error", f"{key}{problem.message}", where, meant)


def _path(label: str, patient: Patient) -> str:
    """The whole path of a file that is called `config.yaml` or `.mibyan/config.yaml` in messages."""
    from mibyan.config.load import FILE_NAME
    from mibyan.config.project import LABEL

    if label == FILE_NAME and patient.home is not None:
        return str(patient.home / FILE_NAME)
    return str(patient.project / LABEL) if label == LABEL and patient.project is not None else label


def toolset_names(patient: Patient, known: set[str], *, all_known: bool) -> Iterator[Finding]:
    """Toolsets that the configuration names and nobody brings (registry.T5).

    Args:
        patient: What is examined.
        known: The names that are known without loading a plugin.
        all_known: Whether there are no others.
    """
    config = patient.config
    if config is None or patient.broken is not None:
        return
    known = known | set(config.settings.toolsets.custom)
    for key, name in _named(config):
        if name not in known:
            meant = suggest(name, known)
            more = "" if all_known else "; a plugin that registers its tools in code may bring it once it is loaded"
            fix = f"write {meant!r}, or remove it" if meant else "remove it: mibyan toolsets list shows what there is"
            yield Finding(
                "warning" if all_known else "info", f"no toolset {name!r} is known{more}", config.line_of(key), fix
            )


def _named(config: LoadedConfig) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The places of toolsets' names in the configuration."""
    toolsets = config.settings.toolsets
    lists: dict[tuple[str | int, ...], tuple[str, ...]] = {
        ("toolsets", "enabled"): tuple(toolsets.enabled or ()),
        ("toolsets", "disabled"): tuple(toolsets.disabled),
        **{("platform_toolsets", name): tuple(names) for name, names in config.settings.platform_toolsets.items()},
        **{("toolsets", "custom", name, "includes"): tuple(spec.includes) for name, spec in toolsets.custom.items()},
    }
    for key, names in lists.items():
        yield from (((*key, index), name) for index, name in enumerate(names))


def environment(patient: Patient) -> Iterator[Finding]:
    """Variables that don't do what somebody may think."""
    del patient
    for name in sorted(os.environ):
        if name.startswith("MIBYAN_") and name not in _VARIABLES:
            meant = suggest(name, _VARIABLES)
            fix = f"write {meant}" if meant else f"unset {name}"
            yield Finding("warning", f"the variable {name} means nothing to Mibyan", name, fix)
    if os.environ.get("MIBYAN_SAFE_MODE", "") not in {"", "0"}:
        yield Finding(
            "info", "safe mode is on: only built-in plugins are loaded", "MIBYAN_SAFE_MODE", "unset MIBYAN_SAFE_MODE"
        )
