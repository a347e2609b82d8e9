"""`Making`: the services of plugins are made once each, on first use, whoever asks meanwhile (`ctx.provide`)."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.records import field, record

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.plugins.offers import Offer
    from mibyan.tools.owner import Owner

#: Seconds for which somebody waits while another thread makes a service.
PATIENCE = 120.0

#: The services that this context is making, the outermost first.
_CHAIN: ContextVar[tuple[Offer, ...]] = ContextVar("mibyan_making", default=())


@record(frozen=False, eq=False)
class _Work:
    """A service that is being made."""

    done: threading.Event = field(default_factory=threading.Event)
    #: The service, of another thread's, that its maker waits for.
    waits_for: Offer | None = None


class Making:
    """The services of one runtime that were made or are being made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Oldest first.
        self._made: dict[Offer, Any] = {}
        self._work: dict[Offer, _Work] = {}

    def made(self, offer: Offer, make: Callable[[], Any], is_offered: Callable[[], bool]) -> Any:
        """The service of an offer: what was made of it, else what `make` gives.

        Args:
            offer: The offer.
            make: Its factory.
            is_offered: Whether its plugin still offers it, once it is made.

        Raises:
            PluginError: It needs itself, it isn't offered any more, or another thread doesn't come to an end with it.
            BaseException: Whatever `make` raises; the next one who asks tries again.
        """
        while True:
            with self._lock:
                if offer in self._made:
                    return self._made[offer]
                self._require_no_circle(offer)
                other = self._work.get(offer)
                if other is None:
                    mine = self._work[offer] = _Work()
                    break
                waiting = self._innermost()
                if waiting is not None:
                    waiting.waits_for = offer
            self._wait(offer, other, waiting)
        return self._make(offer, mine, make, is_offered)

    def taken(self, owner: Owner) -> list[Any]:
        """Forget the services of a plugin; those that were made, the last one first."""
        with self._lock:
            gone = [service for offer, service in self._made.items() if offer.owner is owner]
            self._made = {offer: service for offer, service in self._made.items() if offer.owner is not owner}
        return gone[::-1]

    def _make(self, offer: Offer, work: _Work, make: Callable[[], Any], is_offered: Callable[[], bool]) -> Any:
        token = _CHAIN.set((*_CHAIN.get(), offer))
        try:
            service = make()
            with self._lock:
                kept = is_offered()
                if kept:
                    self._made[offer] = service
        finally:
            _CHAIN.reset(token)
            with self._lock:
                del self._work[offer]
            work.done.set()
        if not kept:
            close = close_of(service)
            if callable(close):
                close()
            raise PluginError(f"plugin {offer.owner.id!r} provides {offer.name!r} no longer", plugin_id=offer.owner.id)
        return service

    def _wait(self, offer: Offer, other: _Work, waiting: _Work | None) -> None:
        try:
            ended = other.done.wait(PATIENCE)
        finally:
            if waiting is not None:
                waiting.waits_for = None
        if not ended:
            raise PluginError(
                f"plugin {offer.owner.id!r} has been making {offer.name!r} for {PATIENCE:g} s",
                plugin_id=offer.owner.id, hint=f"If it doesn't come to an end: mibyan plugins disable {offer.owner.id}",
            )  # fmt: skip

    def _innermost(self) -> _Work | None:
        chain = self._chain()
        return self._work[chain[-1]] if chain else None

    def _chain(self) -> tuple[Offer, ...]:
        """What this context is making of this runtime's services; a task may outlive the making that it began in."""
        return tuple(one for one in _CHAIN.get() if one in self._work)

    def _require_no_circle(self, offer: Offer) -> None:
        """Raise if who asks would wait for itself, directly or by way of what other threads wait for."""
        chain, at, seen = self._chain(), offer, [offer]
        while at not in chain:
            work = self._work.get(at)
            if work is None or work.waits_for is None or work.waits_for in seen:
                return
            at = work.waits_for
            seen.append(at)
        steps = [*chain[chain.index(at) :], *seen]
        told = " needs ".join(f"{one.name!r} (plugin {one.owner.id!r})" for one in steps)
        raise PluginError(
            f"a service can't be made of itself: {told}", plugin_id=offer.owner.id,
            hint="Let one of the factories ask for the other service when it is used, not when it is made.",
        )  # fmt: skip


def close_of(service: Any) -> Any:
    """A service's `close`, `None` if it has none; a service whose attributes raise has none either, nor has a class."""
    try:
        return None if isinstance(service, type) else getattr(service, "close", None)
    except Exception:
        return None
