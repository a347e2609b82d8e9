"""Recalling: what a plugin was learned to register is registered again, in the same order, without its code (plugins.M4).

It goes through the plugin's own registry and context, so that the namespace policy, the operator's opt-in and the rights of
other owners decide about each act now, as they would about an import's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.errors import MibyanError
from mibyan.plugins.context import is_observer
from mibyan.plugins.frozen import offer_manifest
from mibyan.plugins.ledger import Recalled
from mibyan.report import Decision
from mibyan.schema.definition import normalise_schema
from mibyan.tools.registration import build_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.context import PluginContext
    from mibyan.plugins.learned import Learned
    from mibyan.plugins.ledger import Ledger
    from mibyan.plugins.offers import OfferTable
    from mibyan.plugins.services import LoaderServices
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner

#: What a tool does that no longer has the part that was learned of it.
_WITHOUT: dict[str, Any] = {"check_fn": True, "dynamic_schema_overrides": {}, "reads": (), "writes": ()}


class DamagedError(Exception):
    """What was kept of a plugin isn't what Mibyan writes."""


class CodePart:
    """A function of a tool that only the plugin's code has: the call imports it.

    Args:
        part: Which one: an attribute of `ToolEntry`.
        load: Imports the plugin and gives the function; `None`: it isn't there any more.
    """

    def __init__(self, part: str, load: Callable[[], Callable[..., Any] | None]) -> None:
        self._part = part
        self._load = load

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        function = self._load()
        return _WITHOUT.get(self._part) if function is None else function(*args, **kwargs)


class Recall:
    """One plugin's registrations from what was learned.

    Args:
        learned: What was learned.
        candidate: The plugin.
        owner: What its registrations belong to.
        activate: Imports the plugin.
        services: The runtime's parts.

    Raises:
        DamagedError: What was kept isn't what Mibyan writes; nothing was registered.
    """

    def __init__(
        self,
        learned: Learned,
        candidate: Candidate,
        owner: Owner,
        activate: Callable[[], None],
        services: LoaderServices,
    ) -> None:
        self._learned = learned
        self._candidate = candidate
        self._owner = owner
        self._activate = activate
        self._services = services
        self._parts: dict[tuple[str, int], CodePart] = {}
        try:
            self._entries = {index: self._entry(act) for index, act in enumerate(learned.acts) if act["kind"] == "tool"}
            self._told = [Decision(**one) for one in learned.told]
        except (MibyanError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise DamagedError(f"{type(error).__name__}: {error}") from error

    def announce(self, ctx: PluginContext, ledger: Ledger, *, rank: int) -> None:
        """Register everything.

        Raises:
            MibyanError: Something can't be registered (any more).
            DamagedError: What was kept isn't what Mibyan writes; something may be registered.
        """
        offer_manifest(self._candidate, ctx, ledger)
        try:
            for index, act in enumerate(self._learned.acts):
                self._perform(index, act, ctx)
        except (KeyError, TypeError) as error:
            raise DamagedError(f"{type(error).__name__}: {error}") from error
        if self._learned.hooks:
            self._services.hooks.announce(
                self._owner, self._learned.hooks, self._activate, rank=rank, observer=is_observer(ctx.manifest)
            )
        for decision in self._told:
            self._services.log.add(decision)
        ledger.require_no_refusal()

    def tools(self) -> dict[str, Recalled]:
        """The tools by name; those that were registered several times aren't in it."""
        found: dict[str, Recalled] = {}
        several: set[str] = set()
        for index, entry in self._entries.items():
            act = self._learned.acts[index]
            if entry.name in found:
                several.add(entry.name)
            found[entry.name] = Recalled(entry, act["override"] is True, act["made_of"])
        return {name: one for name, one in found.items() if name not in several}

    def _perform(self, index: int, act: Mapping[str, Any], ctx: PluginContext) -> None:
        name = act["name"]
        match act["kind"]:
            case "tool":
                ctx.registry._register_entry(self._entries[index], override=act["override"] is True)
            case "alias":
                ctx.registry.register_toolset_alias(name, act["toolset"])
            case "toolset":
                ctx.register_toolset(name, act["tools"], act["includes"], act["description"])
            case "command":
                ctx._offer("command", name, None, act["description"], act["args_hint"])
            case "service":
                ctx._offer("service", name, None)
            case "skill":
                ctx.register_skill(name)

    def _entry(self, act: Mapping[str, Any]) -> ToolEntry:
        code: dict[str, Any] = {part: self._part(act["name"], part, number) for part, number in act["code"].items()}
        check = code.pop("check_fn", None)
        return build_entry(
            self._owner, act["name"], act["toolset"], _schema(act["name"], act["schema"]), None, check, act["requires_env"], act["is_async"],
            act["description"], act["emoji"], activate=self._activate, origin=act["origin"], **act["flags"], **code,
        )  # fmt: skip

    def _part(self, name: str, part: str, number: int) -> CodePart:
        """The part of a tool; tools that share a function share the part, so that a check they share is probed once."""
        key = part, number
        if key not in self._parts:
            self._parts[key] = CodePart(part, lambda: self._loaded(name, part))
        return self._parts[key]

    def _loaded(self, name: str, part: str) -> Callable[..., Any] | None:
        """The part of a tool once its plugin is imported."""
        self._activate()
        holding = self._services.store.candidates(name)
        claims = [*holding.stack, *(act.entry for act, _ in holding.losers if act.entry is not None)]
        own = [entry for entry in claims if entry.owner is self._owner and entry.name == name]
        function = getattr(own[-1], part) if own else None
        return function if callable(function) and not isinstance(function, CodePart) else None


def _schema(name: str, learned: Any) -> Callable[[], Mapping[str, Any]]:
    """A schema that was taken from a registered tool: made read-only again when somebody asks for it.

    Raises:
        TypeError: It isn't a schema.
    """
    if type(learned) is not dict or type(learned.get("parameters")) is not dict:
        raise TypeError("a schema must be a dict with parameters")
    made: list[Mapping[str, Any]] = []

    def schema() -> Mapping[str, Any]:
        if not made:
            made.append(normalise_schema(name, learned))
        return made[0]

    return schema


def withdraw(learned: Learned, ledger: Ledger, table: OfferTable, services: LoaderServices) -> None:
    """Take back what was recalled of a plugin and its code, imported now, hasn't registered.

    Toolsets and their aliases stay until the plugin is unloaded: no call is run by them.
    """
    came = {(act.kind, act.name) for act in ledger.acts or ()}
    for act in learned.acts:
        kind, name = act["kind"], act["name"]
        if (kind, name) in came:
            continue
        if kind == "tool":
            services.store.withdraw(name, ledger.owner)
        elif kind in {"command", "service"}:
            table.remove(kind, name, ledger.owner)
    ledger.recalled = {}
    services.hooks.withdraw(ledger.owner)
