"""What is asked before a plugin's code is touched: may it load, does it fit, has it what it needs (plugins.L1, M3, S1)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mibyan.config.keys import join_key
from mibyan.config.sources import PluginEntry
from mibyan.errors import PluginError
from mibyan.plugins import journal
from mibyan.plugins.sources.ids import PROJECT_TOOLS, covers, resolve, split_requirement, trust_word
from mibyan.plugins.state import DISABLED, FAILED, INCOMPATIBLE, NEEDS, SHADOWED, UNTRUSTED, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.quarantine import Quarantine
    from mibyan.plugins.sources.trust import TrustVerdict
    from mibyan.plugins.state import State
    from mibyan.tools.lockguard import LockGuard


class Refusal(NamedTuple):
    """Why a plugin isn't loaded: its state, the reason in a sentence, and what to do."""

    state: State
    reason: str
    hint: str | None = None
    #: The rule that decided; empty: the one that the state is about.
    rule: str = ""
    #: The configuration line that decided, with its key.
    decided_by: str | None = None


class Asker(Protocol):
    """What is asked of a runtime's parts here."""

    @property
    def config(self) -> LoadedConfig:
        """The configuration."""

    @property
    def home(self) -> Path:
        """`$MIBYAN_HOME`."""

    @property
    def project(self) -> Path | None:
        """The folder that has `.mibyan`, if there is a project."""

    @property
    def guard(self) -> LockGuard | None:
        """Under `--locked`: what says which plugins were accepted."""


class Gates:
    """The questions that are asked about each candidate of one discovery; nothing is imported.

    Args:
        services: The runtime's parts, or what stands for them.
    """

    def __init__(self, services: Asker) -> None:
        self._services = services
        self._trust: dict[tuple[str, str], TrustVerdict] = {}
        #: `None`: nobody has asked yet; false: nothing is kept out.
        self._quarantine: Quarantine | bool | None = None

    def is_unable(self, candidate: Candidate) -> bool:
        """Whether a candidate can't take another's place although nothing is wrong with it (plugins.L1)."""
        kept_out = self._untrusted(candidate) or self._locked_out(candidate)
        return kept_out is not None or _incompatible(candidate) is not None

    def first(self, candidate: Candidate) -> Refusal | None:
        """Why a candidate isn't loaded, as far as it concerns itself alone."""
        questions = (
            self._found_out, self._untrusted, self._locked_out, _incompatible, self._isolated, self._misconfigured,
            self._quarantined,
        )  # fmt: skip
        return next((refusal for ask in questions if (refusal := ask(candidate)) is not None), None)

    def sources(self, candidate: Candidate) -> Mapping[str, bytes] | None:
        """For project code the bytes that were hashed, by path below the candidate's root; `None` for other code.

        Raises:
            PluginError: It isn't trusted.
        """
        if not is_project_code(candidate):
            return None
        verdict = self._verdict(candidate)
        if not verdict.trusted or verdict.digest is None:
            raise PluginError(f"plugin {candidate.id!r} isn't trusted: {verdict.reason}", plugin_id=candidate.id,
                              origin=candidate.origin, hint=verdict.hint)  # fmt: skip
        return verdict.digest.sources

    def is_trusted(self, candidate: Candidate) -> bool:
        """Whether nobody's trust is lacking: it is no project's code, or the operator has allowed it."""
        return self._untrusted(candidate) is None

    def _found_out(self, candidate: Candidate) -> Refusal | None:
        """What finding it has told already; deny wins over everything (plugins.L6)."""
        if candidate.disabled is not None:
            line = _denial(self._services.config, candidate)
            own = self._services.config.project_path
            # What a project denies, no command on the home's file allows.
            hint = (
                f"take {candidate.id!r} from {line}" if line and own and line.startswith(f"{own}:") else candidate.hint
            )
            return Refusal(DISABLED, candidate.disabled, hint, "", line)
        if candidate.shadowed_by is not None:
            reason = f"{candidate.shadowed_by} has the same id and comes first"
            hint = f"take {candidate.shadowed_by} away, or rename one of the two (disabling the id is for both)"
            return Refusal(SHADOWED, reason, hint)
        if candidate.problem is not None:
            return Refusal(FAILED, candidate.problem, candidate.hint, "plugins.M1" if candidate.root else "plugins.F3")
        return None

    def _untrusted(self, candidate: Candidate) -> Refusal | None:
        if not is_project_code(candidate):
            return None
        verdict = self._verdict(candidate)
        return None if verdict.trusted else Refusal(UNTRUSTED, verdict.reason, verdict.hint)

    def _locked_out(self, candidate: Candidate) -> Refusal | None:
        """plugins.S3: under `--locked` only what was accepted; a project's code is by trust, which is about every byte."""
        guard = self._services.guard
        why = None if guard is None or is_project_code(candidate) else guard.objection(candidate.id, candidate.source)
        if guard is None or why is None:
            return None
        line = guard.place("plugins", candidate.id)
        return Refusal(UNTRUSTED, why, f"mibyan plugins lock --only {candidate.id}", "plugins.S3", line)

    def _verdict(self, candidate: Candidate) -> TrustVerdict:
        from mibyan.plugins.sources.trust import TrustStore, TrustVerdict

        root, project = candidate.root, self._services.project
        if root is None or project is None:
            return TrustVerdict(trusted=False, reason="there is no project that it could belong to")
        key = (trust_word(candidate.id), str(root))
        if key not in self._trust:
            self._trust[key] = TrustStore(self._services.home).check(candidate.id, root, project)
        return self._trust[key]

    def _quarantined(self, candidate: Candidate) -> Refusal | None:
        """plugins.L4: whether a process died when it imported exactly this."""
        if self._quarantine is None:
            paths = [] if os.environ.get(journal.VARIABLE) == "off" else journal.leftovers(str(self._services.home))
            self._quarantine = bool(paths) and _quarantine(self._services.home, paths)
        if isinstance(self._quarantine, bool):
            return None
        death = self._quarantine.of(candidate)
        return None if death is None else Refusal(FAILED, death.reason, death.hint, "plugins.L4")

    def sweep(self) -> None:
        """Delete what the journal tells of plugins that have changed, now that all were asked about."""
        if not isinstance(self._quarantine, bool) and self._quarantine is not None:
            self._quarantine.sweep()

    def _isolated(self, candidate: Candidate) -> Refusal | None:
        name, entry = operator_entry(self._services.config, candidate)
        if entry.isolation == "none":
            return None
        key = join_key(("plugins", "entries", name, "isolation"))
        reason = (
            f"{self._services.config.where(key)}: `isolation: {entry.isolation}` isn't possible yet, so it isn't loaded"
        )
        return Refusal(FAILED, reason, f"{key}: none", "plugins.S2", self._services.config.line_of(key))

    def _misconfigured(self, candidate: Candidate) -> Refusal | None:
        schema = candidate.manifest.config_schema if candidate.manifest is not None else None
        if schema is None:
            return None
        name, entry = operator_entry(self._services.config, candidate)
        if not entry.config and not schema.keys() & {
            "required",
            "minProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "$ref",
        }:
            return None
        return _config_problem(self._services.config, name, dict(entry.config), schema)


def _quarantine(home: Path, paths: list[str]) -> Quarantine:
    from mibyan.plugins.quarantine import Quarantine

    return Quarantine(home, paths)


def _denial(config: LoadedConfig, candidate: Candidate) -> str | None:
    """The configuration line that keeps a plugin off, if it is one."""
    plugins = config.settings.plugins
    for index, word in enumerate(plugins.disabled):
        if covers(word, candidate.id):
            return config.line_of(("plugins", "disabled", index)) or config.line_of(("plugins", "disabled"))
    return None if plugins.autoload else config.line_of(("plugins", "autoload"))


def needs(candidate: Candidate, state_of: Callable[[str], tuple[Candidate, Refusal | None] | None]) -> Refusal | None:
    """Which plugin it requires and can't have.

    Args:
        candidate: The plugin.
        state_of: The plugin with an id (in any spelling), and why it isn't loaded; `None`: there is none.
    """
    for text in candidate.manifest.requires_plugins if candidate.manifest is not None else ():
        refusal = _needs_plugin(text, state_of)
        if refusal is not None:
            return refusal
    return None


def missing(candidate: Candidate) -> Refusal | None:
    """Which variable, program or module its manifest requires for all of it and isn't there (registry.V1)."""
    if candidate.manifest is None or not candidate.manifest.requires:
        return None
    from mibyan.tools.mending import mending
    from mibyan.tools.requirements import missing_requirements

    requires = candidate.manifest.requires
    lacking = missing_requirements(requires)
    return None if lacking is None else Refusal(NEEDS, lacking, mending(requires), "registry.V1")


def own_settings(config: LoadedConfig, candidate: Candidate) -> Mapping[str, Any]:
    """What a plugin gets as its settings, read-only: what the operator wrote, and below it its `config_schema`'s defaults."""
    from mibyan.plugins.defaults import with_defaults
    from mibyan.schema.frozen import freeze

    given = operator_entry(config, candidate)[1].config
    schema = None if candidate.manifest is None else candidate.manifest.config_schema
    settings: Mapping[str, Any] = freeze(with_defaults(schema, given) if schema else given)
    return settings


def operator_entry(config: LoadedConfig, candidate: Candidate) -> tuple[str, PluginEntry]:
    """What the operator says about a plugin, and the key under `plugins.entries` where that stands (or would).

    What is said with a `source` is for the plugin of that source: another one with the same id gets none of it.
    """
    entries = config.settings.plugins.entries
    name = resolve(candidate.id, entries)
    entry = entries[name] if name is not None else None
    if name is None or entry is None or entry.source not in {None, candidate.source}:
        return candidate.id, PluginEntry()
    return name, entry


def may_override(candidate: Candidate, entry: PluginEntry) -> bool | tuple[str, ...]:
    """Which tools the operator lets a plugin override (registry.R5): all, none, or those named.

    For a project's plugin the entry must say `source: project`: a cloned repository must not inherit what was allowed
    to a plugin of the same id.
    """
    return False if candidate.source == "project" and entry.source is None else entry.allow_tool_override


def is_project_code(candidate: Candidate) -> bool:
    """Whether a plugin came with the project: it needs trust."""
    return candidate.source == "project" or candidate.id.startswith(PROJECT_TOOLS)


def _incompatible(candidate: Candidate) -> Refusal | None:
    """plugins.M3: the version of Mibyan."""
    from mibyan._version import __version__

    wanted = candidate.manifest.requires_mibyan if candidate.manifest is not None else ""
    if not wanted or _fits(__version__, wanted):
        return None
    hint = f"pip install 'mibyan{wanted}', or install a version of {candidate.id} that works with {__version__}"
    return Refusal(INCOMPATIBLE, f"it works with Mibyan {wanted}, this is {__version__}", hint)


def _needs_plugin(text: str, state_of: Callable[[str], tuple[Candidate, Refusal | None] | None]) -> Refusal | None:
    name, wanted = split_requirement(text)
    found = state_of(name)
    if found is None:
        hint = f"mibyan plugins install {_quoted(name + wanted)}"
        return Refusal(NEEDS, f"it needs the plugin {name!r}, which isn't installed", hint)
    other, refusal = found
    if refusal is not None:
        reason = f"it needs the plugin {other.id!r}, which {standing(refusal.state, refusal.reason)}"
        return Refusal(NEEDS, reason, refusal.hint)
    if wanted and not _fits(other.version, wanted):
        version = other.version or "one that doesn't say its version"
        fitting = f"mibyan plugins install --upgrade {_quoted(name + wanted)}"
        hint = fitting if other.source == "pip" else "install versions of the two that fit"
        return Refusal(INCOMPATIBLE, f"it works with the plugin {other.id!r} {wanted}, this is {version}", hint)
    return None


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _fits(version: str, wanted: str) -> bool:
    """Whether a version is in a PEP 440 range; one that isn't a version is in none."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(wanted).contains(Version(version), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def _config_problem(
    config: LoadedConfig, name: str, value: dict[str, Any], schema: Mapping[str, Any]
) -> Refusal | None:
    from mibyan.schema.validate import compile_validator

    violations = compile_validator(dict(schema)).violations(value)
    if not violations:
        return None
    key = join_key(("plugins", "entries", name, "config"))
    told = "; ".join(_told(config, key, violation.path, violation.message) for violation in violations[:5])
    return Refusal(FAILED, told, f"mend {key} in {config.path.name}", "plugins.M2", config.line_of(key))


def _told(config: LoadedConfig, key: str, path: str, message: str) -> str:
    """`config.yaml:12: key 'plugins.entries.x.config.unit': message`."""
    whole = key if not path else f"{key}{path}" if path.startswith("[") else f"{key}.{path}"
    return f"{_where(config, whole, key)}: key {whole!r}: {message}"


def _where(config: LoadedConfig, whole: str, key: str) -> str:
    from mibyan.errors import ConfigError

    try:
        return config.where(whole)
    except ConfigError:
        return config.where(key)
