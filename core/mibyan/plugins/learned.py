"""`Learned`: what a plugin without frozen definitions has registered once, and what that depends on (plugins.M4).

The vocabulary: a plugin is *learned* when its code was imported and it is kept what it registered; what it registered is
*recalled* at the next start, instead of an import, as long as its *conditions* hold; it has *drifted* when its import
comes to something else than was recalled.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from mibyan.records import as_dict, record, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mibyan.plugins.literals import Named

#: What the data below looks like, for the file it is kept in.
SHAPE = "learned 2"

#: How often a plugin may come to something else under the same conditions before it is imported at each start again.
DRIFTS = 2

#: Bytes of a key of digests.
_SALT = 16


@record
class Conditions:
    """What a plugin's registration may depend on, without any value in clear.

    Values are kept as keyed digests, since they may be secret: whoever reads the file learns whether a guess is right,
    and nothing else.
    """

    #: The content digest of its files (`Contents.digest`).
    content: str
    #: The key of the digests below.
    salt: bytes
    #: The digest of its section of the configuration; empty for an empty one.
    config: bytes
    #: Names that its sources mention and that could be environment variables, sorted; and beginnings of such names.
    variables: tuple[str, ...]
    prefixes: tuple[str, ...]
    #: The digest of those of them that were set; empty if none was.
    values: bytes
    #: Other people's modules that its sources import, each with where it was found and its state; empty: nowhere.
    modules: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls, content: str, config: Mapping[str, Any], named: Named, environ: Mapping[str, str], modules: Iterable[str]
    ) -> Conditions:
        """The conditions as they are now.

        Args:
            content: The content digest.
            config: The plugin's section of the configuration.
            named: What its sources name.
            environ: The environment as it was before the plugin was imported.
            modules: Those of the modules it imports that aren't its own.
        """
        salt = os.urandom(_SALT)
        variables, prefixes = tuple(sorted(named.variables)), tuple(sorted(named.prefixes))
        return cls(
            content, salt, _config_digest(salt, config), variables, prefixes,
            _values_digest(salt, variables, prefixes, environ),
            tuple((name, module_state(name)) for name in sorted(modules)),
        )  # fmt: skip

    def hold(self, content: str, config: Mapping[str, Any], environ: Mapping[str, str], states: ModuleStates) -> bool:
        """Whether all is as it was; no file is read."""
        return (
            self.content == content
            and self.same_case(config, environ)
            and all(states[name] == state for name, state in self.modules)
        )

    def are_as(self, now: Conditions, config: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Whether these, which may have been taken earlier, are the same as those of now."""
        return (self.content, self.modules) == (now.content, now.modules) and self.same_case(config, environ)

    def same_case(self, config: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Whether the configuration and the environment are the same, whatever the files are."""
        values = _values_digest(self.salt, self.variables, self.prefixes, environ)
        return self.config == _config_digest(self.salt, config) and self.values == values


class ModuleStates(dict[str, str]):
    """Where modules are found, each looked for once."""

    def __missing__(self, name: str) -> str:
        state = self[name] = module_state(name)
        return state


def module_state(name: str) -> str:
    """Where a top-level module is found, and the time of change and size of its file; empty if nowhere."""
    place = module_place(name)
    try:
        status = os.stat(place) if place else None  # noqa: PTH116 - text
    except (OSError, ValueError):
        status = None
    return place if status is None else f"{place} {status.st_mtime_ns} {status.st_size}"


def module_place(name: str) -> str:
    """Where the file of a top-level module lies; empty if it is found nowhere."""
    from mibyan.plugins.sources.modules import find_spec

    try:
        spec = getattr(sys.modules.get(name), "__spec__", None) or find_spec(name)
        return "" if spec is None else str(spec.origin or next(iter(spec.submodule_search_locations or ()), ""))
    except Exception:  # whatever somebody has put into `sys.modules`
        return ""


def _config_digest(salt: bytes, config: Mapping[str, Any]) -> bytes:
    if not config:
        return b""
    import json

    return _digest(salt, [json.dumps(config, sort_keys=True, default=repr)])


def _values_digest(
    salt: bytes, variables: Iterable[str], prefixes: tuple[str, ...], environ: Mapping[str, str]
) -> bytes:
    names = environ.keys() & variables
    if prefixes:
        names |= {name for name in environ if name.startswith(prefixes)}
    return _digest(salt, [f"{name}={environ[name]}" for name in sorted(names)]) if names else b""


def _digest(salt: bytes, texts: Iterable[str]) -> bytes:
    try:
        # `hashlib` costs an import of OpenSSL, on each start.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    whole = blake2b(key=salt, digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        whole.update(b"%d:%b" % (len(data), data))
    return bytes(whole.digest())


@record
class Learned:
    """What a plugin registered under certain conditions, as plain data."""

    conditions: Conditions
    #: What it registered, in order, see `learning.act_data`.
    acts: tuple[dict[str, Any], ...]
    #: Names of the hooks that it implements, sorted.
    hooks: tuple[str, ...]
    #: What the report said of it beside its state: fields of `Decision`.
    told: tuple[dict[str, Any], ...]
    #: When it was learned, in seconds since the epoch.
    time: float
    #: How often it had drifted under these conditions.
    drifts: int = 0

    def to_data(self) -> dict[str, Any]:
        """Plain data, for a file."""
        return {**as_dict(self), "conditions": as_dict(self.conditions)}

    @classmethod
    def from_data(cls, data: Any) -> Learned | None:
        """What `to_data` gave; `None` for anything else."""
        try:
            conditions = Conditions(**data["conditions"])
            found = cls(**{**data, "conditions": conditions})
        except (TypeError, KeyError):
            return None
        return found if _is_sound(found) else None

    @property
    def is_steady(self) -> bool:
        """Whether it may be recalled: what comes to something else each time isn't."""
        return self.drifts < DRIFTS

    def says_the_same(self, other: Learned) -> bool:
        """Whether both registered the same, wherever in the code."""
        return self.hooks == other.hooks and self.registered() == other.registered()

    def registered(self) -> list[dict[str, Any]]:
        """What was registered, without where."""
        return [{key: value for key, value in act.items() if key != "origin"} for act in self.acts]

    def tells_all_of(self, other: Learned) -> bool:
        """Whether nothing in `other` is news."""
        return (self.acts, self.hooks, self.told) == (other.acts, other.hooks, other.told)

    def after(self, earlier: Learned) -> Learned:
        """The same, with the drifts of what was learned under the same conditions before, and one more if it differs."""
        return replace(self, drifts=earlier.drifts + (not self.says_the_same(earlier)))


def _is_sound(found: Learned) -> bool:
    conditions = found.conditions
    texts = (conditions.content, *_tuple(conditions.variables), *_tuple(conditions.prefixes), *_tuple(found.hooks))
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(one, bytes) for one in (conditions.salt, conditions.config, conditions.values))
        and len(conditions.salt) == _SALT
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in _tuple(conditions.modules))
        and all(isinstance(one, dict) for one in (*_tuple(found.acts), *_tuple(found.told)))
        and type(found.drifts) is int
        and isinstance(found.time, float)
    )


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (None,)
