"""`Claims`: names that several owners may want: the first one has it, the next one gets it when that one goes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.tools.owner import Owner

T = TypeVar("T")


class Claims(Generic[T]):
    """What each owner wants a name to mean. Writers hold the registry's lock; `held` may be read without it."""

    def __init__(self) -> None:
        self._claims: dict[str, list[tuple[Owner | None, T]]] = {}
        #: What each name means now; a new mapping with each change.
        self.held: Mapping[str, T] = MappingProxyType({})

    def claim(
        self, name: str, owner: Owner | None, value: T, returns_as: Callable[[Owner | None, Owner | None], bool]
    ) -> T:
        """Note what `owner` wants `name` to mean, in the place of what it wanted before; what it means now.

        The host comes first.

        Args:
            name: The name.
            owner: Who wants it.
            value: What it shall mean.
            returns_as: Whether the second owner has the place of the first one, whose plugin is loaded anew.
        """
        claims = self._claims.setdefault(name, [])
        places = [index for index, (who, _) in enumerate(claims) if who is owner or returns_as(who, owner)]
        if places:
            claims[places[0]] = (owner, value)
        elif owner is not None and owner.is_host:
            claims.insert(0, (owner, value))
        else:
            claims.append((owner, value))
        self._settle()
        return claims[0][1]

    def remove_owner(self, owner: Owner) -> bool:
        """Forget what `owner` wanted; whether there was anything."""
        return self._keep(lambda who, _: who is not owner)

    def remove_meaning(self, value: T) -> bool:
        """Forget everybody who wanted a name to mean `value`; whether there was anybody."""
        return self._keep(lambda _, wanted: wanted != value)

    def _keep(self, keeps: Callable[[Owner | None, T], bool]) -> bool:
        kept = {name: [claim for claim in claims if keeps(*claim)] for name, claims in self._claims.items()}
        gone = any(len(kept[name]) != len(claims) for name, claims in self._claims.items())
        if gone:
            self._claims = {name: claims for name, claims in kept.items() if claims}
            self._settle()
        return gone

    def _settle(self) -> None:
        self.held = MappingProxyType({name: claims[0][1] for name, claims in self._claims.items()})
