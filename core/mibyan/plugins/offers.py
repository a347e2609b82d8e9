"""`OfferTable`: what plugins offer beside tools and hooks: commands, services, skills, terminal backends."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mibyan.errors import PluginError
from mibyan.plugins.making import Making
from mibyan.records import record
from mibyan.text import did_you_mean, one_line, suggest
from mibyan.tools.current import Current, acting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.tools.owner import Owner
    from mibyan.tools.store import RegistryStore

#: `service`: what `ctx.provide` gave; `rule`: a rule about commands; `cli`: a command of the command line; `environment`: a terminal backend.
OfferKind: TypeAlias = Literal["command", "service", "skill", "environment", "cli", "rule"]


@record(eq=False)
class Offer:
    """One thing that a plugin offers under a name."""

    kind: OfferKind
    name: str
    owner: Owner
    #: A command's handler, a service's factory, a skill's path, a backend's `module:Class`;
    #: `None`: announced in the manifest, and known once the plugin is imported.
    value: Any = None
    #: For people.
    description: str = ""
    #: What a command's arguments look like, for people.
    args_hint: str = ""


class OfferTable:
    """The offers of a runtime's plugins; the first owner of a name keeps it, as with tools (registry.R4)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offers: dict[tuple[str, str], Offer] = {}
        self._services = Making()

    def add(self, offer: Offer) -> Offer | None:
        """Keep `offer`, in the place of its owner's former one.

        Returns:
            `None`, or the other owner's offer that has the name: then nothing has changed.
        """
        with self._lock:
            held = self._offers.get((offer.kind, offer.name))
            if held is not None and held.owner is not offer.owner:
                return held
            self._offers[offer.kind, offer.name] = offer
        return None

    def remove(self, kind: OfferKind, name: str, owner: Owner) -> None:
        """Take away one thing that `owner` offers."""
        with self._lock:
            held = self._offers.get((kind, name))
            if held is not None and held.owner is owner:
                del self._offers[kind, name]

    def of_kind(self, kind: OfferKind) -> Mapping[str, Offer]:
        """The offers of one kind by name, sorted by name."""
        with self._lock:
            return {name: offer for (held, name), offer in sorted(self._offers.items()) if held == kind}

    def of_owner(self, owner: Owner) -> tuple[Offer, ...]:
        """What `owner` offers."""
        with self._lock:
            return tuple(offer for offer in self._offers.values() if offer.owner is owner)

    def made(self, offer: Offer, make: Callable[[], Any]) -> Any:
        """The service of an offer, made on first use.

        Raises:
            PluginError: The plugin was unloaded meanwhile, or making it needs the service itself.
            BaseException: Whatever the factory raises; the next one who asks tries again.
        """
        return self._services.made(offer, make, lambda: self._offers.get((offer.kind, offer.name)) is offer)

    def after_fork(self) -> None:
        """In a child process: services that were made are the parent's, with its connections; they are made anew."""
        self._lock = threading.Lock()
        self._services = Making()

    def remove_owner(self, owner: Owner) -> list[Any]:
        """Take away what `owner` offers; the services that were made of it, the last one first."""
        with self._lock:
            self._offers = {key: offer for key, offer in self._offers.items() if offer.owner is not owner}
        return self._services.taken(owner)


class OfferedThings:
    """The offers of a runtime's plugins, to read; a plugin is imported when its command is asked for.

    Args:
        table: The offers.
        activate: Imports the plugin with an id.
        load: Loads the plugins, if that hasn't happened.
    """

    def __init__(self, table: OfferTable, activate: Callable[[str], None], load: Callable[[], None]) -> None:
        self._table = table
        self._activate = activate
        self._load = load

    @property
    def commands(self) -> Mapping[str, Offer]:
        """Commands by name; an announced one has no `value` until its plugin is imported."""
        return self._of_kind("command")

    @property
    def cli(self) -> Mapping[str, Offer]:
        """The names that manifests add to the command line, each with its plugin."""
        return self._of_kind("cli")

    @property
    def environments(self) -> Mapping[str, Offer]:
        """Terminal backends that manifests name; `loader.resolve(offer.owner.id, offer.value)` gives the class."""
        return self._of_kind("environment")

    @property
    def skills(self) -> Mapping[str, Offer]:
        """Skills by name; `value` is the absolute path of the folder with a `SKILL.md`, or of the `.md` file."""
        return self._of_kind("skill")

    @property
    def services(self) -> Mapping[str, Offer]:
        """Services by name, as far as they are known; `Runtime.provided(name)` gives one."""
        return self._of_kind("service")

    @property
    def rules(self) -> Mapping[str, Offer]:
        """Rules about commands by id; `value` is the `OperatorRule`."""
        return self._of_kind("rule")

    def _of_kind(self, kind: OfferKind) -> Mapping[str, Offer]:
        self._load()
        return self._table.of_kind(kind)

    def command(self, name: str) -> Offer:
        """A command with its handler; its plugin is imported if need be.

        Raises:
            PluginError: There is no such command, or its plugin can't be used.
        """
        offer = self.commands.get(name)
        if offer is None:
            meant = did_you_mean(suggest(name, self.commands))
            raise PluginError(f"no plugin has a command {one_line(name, 60)!r}{meant}")
        if offer.value is None:
            self._activate(offer.owner.id)
            offer = self.commands.get(name, offer)
        if offer.value is None:
            reason = f"plugin {offer.owner.id!r} announces the command {name!r}, but doesn't register it"
            raise PluginError(reason, plugin_id=offer.owner.id)
        return offer


class Provided(Mapping[str, "Callable[..., Any]"]):
    """The services that plugins provide, by name.

    Args:
        table: The offers.
        activate: Imports the plugin with an id: what it provides is known before.
        import_provider: Imports the plugin whose id is the name, if there is one that isn't imported: manifests don't
            say what a plugin provides.
        store: The registry that the factories' owners act in.
    """

    def __init__(
        self, table: OfferTable, activate: Callable[[str], None], import_provider: Callable[[str], None],
        store: RegistryStore,
    ) -> None:  # fmt: skip
        self._table = table
        self._activate = activate
        self._import_provider = import_provider
        self._store = store

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._factory(self._offer(name))

    def service(self, name: str) -> Any:
        """The service itself: made on first use, kept until its plugin goes.

        Raises:
            KeyError: No plugin provides it.
            PluginError: Its plugin is unloaded just now.
            BaseException: Whatever its factory raises.
        """
        offer = self._offer(name)
        return self._table.made(offer, self._factory(offer))

    def _offer(self, name: str) -> Offer:
        known = self._table.of_kind("service").get(name)
        if known is None:
            self._import_provider(name)
        elif known.value is None:
            self._activate(known.owner.id)
        return self._table.of_kind("service")[name]

    def _factory(self, offer: Offer) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            with acting(Current(self._store, offer.owner)):
                return offer.value(*args, **kwargs)

        return make

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.of_kind("service"))

    def __len__(self) -> int:
        return len(self._table.of_kind("service"))
