"""`HookTable`: which plugin implements which hook, in which order.

pluggy marks and checks the implementations; the order and the guarding are the table's and the pipeline's, because
an implementation that raises, hangs or answers nonsense must be dealt with alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

from mibyan.errors import PluginError, ToolOwnershipError
from mibyan.forks import renewed
from mibyan.hooks.names import HOOK_ARGUMENTS
from mibyan.records import field, record, replace
from mibyan.report import Decision, DecisionLog
from mibyan.text import suggest

if TYPE_CHECKING:
    from collections.abc import Collection
    from inspect import Parameter

    from pluggy import HookImpl, PluginManager

#: Whoever holds implementations: the table only compares owners and reads `id` and `source`.
HookOwner: TypeAlias = Any

#: Where the sources stand in the order; the host's own implementations come last, so its modifications win.
_TIERS = {"builtin": 0, "pip": 1, "user": 2, "project": 3, "tools": 4}
_HOST_TIER = 9


@record(eq=False)
class Implementation:
    """One plugin's implementation of one hook."""

    hook: str
    owner: HookOwner
    function: Callable[..., Any]
    #: The arguments it takes, those with defaults too.
    names: tuple[str, ...]
    #: `""`, or pluggy's `wrapper` (a generator) or `hookwrapper` (its older form).
    wraps: str = ""
    #: Its failures don't block a call (`on_error: allow` in the manifest).
    observer: bool = False
    order: tuple[int, int, int] = (0, 0, 0)

    @property
    def label(self) -> str:
        """How people find it: `pre_tool_call of plugin 'x'`."""
        who = "the host" if self.owner.kind == "host" else f"plugin {self.owner.id!r}"
        return f"{self.hook} of {who}"


@record
class HookChain:
    """The implementations of one hook, in the order in which they run."""

    wrappers: tuple[Implementation, ...] = ()
    plain: tuple[Implementation, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.wrappers or self.plain)

    def without(self, plugin_ids: Collection[str]) -> HookChain:
        """The chain without some plugins' implementations."""
        if not plugin_ids:
            return self
        wrappers, plain = (
            tuple(one for one in part if one.owner.kind != "plugin" or one.owner.id not in plugin_ids)
            for part in (self.wrappers, self.plain)
        )
        return HookChain(wrappers, plain)


_EMPTY = HookChain()


@record(eq=False)
class _Announcement:
    """Hooks that a plugin's manifest names and its code, not imported yet, implements."""

    owner: HookOwner
    names: frozenset[str]
    activate: Callable[[], None] = field(compare=False)


class HookTable:
    """The hook implementations of one runtime; reading a chain takes no lock."""

    def __init__(self, log: DecisionLog | None = None) -> None:
        self._lock = threading.RLock()
        self._implementations: list[Implementation] = []
        self._announced: list[_Announcement] = []
        self._retired: WeakSet[HookOwner] = WeakSet()
        self._chains: dict[str, HookChain] = {}
        self._log = DecisionLog() if log is None else log
        self._serial = 0
        #: Grows with each change; compiled plans compare it.
        self.generation = 0

    def register(
        self,
        owner: HookOwner,
        implementations: object,
        *,
        rank: int = 0,
        observer: bool = False,
        only: Collection[str] | None = None,
    ) -> tuple[str, ...]:
        """Add a plugin's implementations; all of them, or none.

        Args:
            owner: Who they belong to.
            implementations: A module or object with functions marked by `@mibyan.hookimpl`, or a mapping of hook
                names to functions (marked or not).
            rank: The plugin's place among the plugins of its tier.
            observer: Whether its failures leave calls alone.
            only: Names to take; `None`: all.

        Returns:
            The hooks it implements, sorted. Unknown hook names are put into the report with a suggestion.

        Raises:
            PluginError: A signature doesn't fit the hook's; both are shown.
            ToolOwnershipError: `owner` was removed.
        """
        found = _read(owner, implementations, rank, observer=observer)
        unknown = sorted({name for name, _ in found if name not in HOOK_ARGUMENTS})
        made = [make for name, make in found if make is not None and (only is None or name in only)]
        with self._lock:
            if owner in self._retired:
                told = f"plugin {owner.id!r} can't register hooks: it isn't loaded (any more)."
                raise ToolOwnershipError(told, plugin_id=owner.id)
            for implementation in made:
                self._serial += 1
                self._implementations.append(_numbered(implementation, self._serial))
            self._changed()
        for name in unknown:
            self._tell_unknown(owner, name)
        return tuple(sorted({implementation.hook for implementation in made}))

    def announce(
        self,
        owner: HookOwner,
        names: Collection[str],
        activate: Callable[[], None],
        *,
        rank: int = 0,
        observer: bool = False,
    ) -> None:
        """Say which hooks a plugin has whose code isn't imported: `activate` is called when one is first needed."""
        del rank, observer  # The code itself comes through `register`, with both.
        with self._lock:
            self._announced.append(_Announcement(owner, frozenset(names), activate))
            self._changed()

    def withdraw(self, owner: HookOwner) -> None:
        """The code of `owner` is imported: what it announced and hasn't registered it has not."""
        with self._lock:
            self._announced = [a for a in self._announced if a.owner is not owner]
            self._changed()

    def remove_owner(self, owner: HookOwner) -> None:
        """Take everything of `owner` away; it can't register anything any more."""
        with self._lock:
            self._retired.add(owner)
            self._implementations = [i for i in self._implementations if i.owner is not owner]
            self._announced = [a for a in self._announced if a.owner is not owner]
            self._changed()

    def ready(self, hook: str) -> HookChain | None:
        """The implementations of `hook`, in order; `None` when plugins must be imported first, which `chain` does."""
        chain = self._chains.get(hook)
        if chain is not None:
            return chain
        return None if self._due(hook) else self.chain(hook)

    def chain(self, hook: str) -> HookChain:
        """The implementations of `hook`, in order; plugins that announced it are imported first."""
        chain = self._chains.get(hook)
        return self._compile(hook) if chain is None else chain

    def fork_locks(self) -> tuple[Any, ...]:
        """See `mibyan.forks`: a plugin's hooks come and go together."""
        return (self._lock,)

    def after_fork(self) -> None:
        """In a child process: nobody else changes anything."""
        self._lock = renewed(self._lock)

    def of_owner(self, owner: HookOwner, hook: str) -> tuple[Implementation, ...]:
        """The implementations of `hook` that belong to `owner`."""
        with self._lock:
            return tuple(i for i in self._implementations if i.owner is owner and i.hook == hook)

    def names_of(self, owner: HookOwner) -> tuple[str, ...]:
        """The hooks that `owner` implements or announces, sorted."""
        with self._lock:
            names = {i.hook for i in self._implementations if i.owner is owner}
            names |= {name for a in self._announced if a.owner is owner for name in a.names}
        return tuple(sorted(names))

    def _compile(self, hook: str) -> HookChain:
        self._activate(hook)
        with self._lock:
            generation = self.generation
            mine = sorted((i for i in self._implementations if i.hook == hook), key=lambda i: i.order)
            chain = HookChain(
                tuple(i for i in mine if i.wraps), tuple(i for i in mine if not i.wraps)
            ) if mine else _EMPTY  # fmt: skip
            # While a plugin's code is being imported, the chain isn't complete: whoever comes next asks again.
            if generation == self.generation and not any(hook in a.names for a in self._announced):
                self._chains = {**self._chains, hook: chain}
        return chain

    def _due(self, hook: str) -> list[_Announcement]:
        with self._lock:
            return [a for a in self._announced if hook in a.names]

    def _activate(self, hook: str) -> None:
        """Import the plugins that announced `hook`; another thread that needs it meanwhile waits for the same import."""
        for announcement in self._due(hook):
            try:
                announcement.activate()
            except PluginError:
                # The loader has put it into the report; the plugin is off like any that can't be imported. If it is only
                # being imported just now, by the code that asks here, it stays announced.
                continue
            with self._lock:
                self._announced = [a for a in self._announced if a is not announcement]

    def _changed(self) -> None:
        self._chains = {}
        self.generation += 1

    def _tell_unknown(self, owner: HookOwner, name: str) -> None:
        meant = suggest(name, HOOK_ARGUMENTS)
        reason = f"plugin {owner.id!r} implements the hook {name!r}, which doesn't exist"
        reason += f"; did you mean {meant!r}?" if meant else "."
        fix = f"Rename it to {meant}." if meant else f"Remove it; there are: {', '.join(HOOK_ARGUMENTS)}."
        self._log.add(Decision("unknown", f"hook:{name}", reason, owner.id, None, fix, problem=True, rule="plugins.L3"))


def _numbered(implementation: Implementation, serial: int) -> Implementation:
    tier, place, _ = implementation.order
    return replace(implementation, order=(tier, place, serial))


def _read(owner: HookOwner, source: object, rank: int, *, observer: bool) -> list[tuple[str, Implementation | None]]:
    """The implementations in `source` by hook name; `None` for hooks that don't exist."""
    import pluggy

    manager = _manager()
    plugin = _Namespace(source) if isinstance(source, Mapping) else source
    try:
        manager.register(plugin, name=owner.id)
    except pluggy.PluginValidationError as error:
        raise _misfit(owner, source, error) from None
    found: list[tuple[str, Implementation | None]] = []
    for caller in manager.get_hookcallers(plugin) or []:
        for impl in caller.get_hookimpls():
            if caller.name in HOOK_ARGUMENTS:
                found.append((caller.name, _implementation(owner, caller.name, impl, rank, observer=observer)))
            elif not impl.optionalhook:
                found.append((caller.name, None))
    return found


def _manager() -> PluginManager:
    import pluggy

    from mibyan.hooks.specs import Specs

    class Marks(pluggy.PluginManager):
        """Takes functions of a mapping as they are, marked or not."""

        def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
            if isinstance(plugin, _Namespace):
                marked = getattr(getattr(plugin, name, None), "mibyan_impl", None)
                return marked or ({} if name in plugin.functions else None)
            return super().parse_hookimpl_opts(plugin, name)

    manager = Marks("mibyan")
    manager.add_hookspecs(Specs)
    return manager


class _Namespace:
    """A mapping of hook names to functions, as an object."""

    def __init__(self, functions: Mapping[Any, Any]) -> None:
        self.functions = dict(functions)
        for name, function in self.functions.items():
            setattr(self, name, _bindable(function))

    def __dir__(self) -> list[str]:
        return sorted(self.functions)


def _bindable(function: Any) -> Any:
    """What pluggy can bind: a function or a method; of another callable (`functools.partial`, a built-in) one that calls it."""
    import functools
    import inspect

    if inspect.isfunction(function) or inspect.ismethod(function) or not callable(function):
        return function
    if inspect.ismethod(function.__call__):
        return function.__call__

    def call(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    async def await_it(*args: Any, **named: Any) -> Any:
        return await function(*args, **named)

    bound = functools.update_wrapper(await_it if inspect.iscoroutinefunction(function) else call, function)
    bound.__dict__["__signature__"] = inspect.signature(function)
    return bound


def _implementation(owner: HookOwner, hook: str, impl: HookImpl, rank: int, *, observer: bool) -> Implementation:
    import inspect

    function = impl.function
    wraps = "wrapper" if impl.wrapper else "hookwrapper" if impl.hookwrapper else ""
    if wraps and (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        msg = f"the hook wrapper {hook} of plugin {owner.id!r} is async: a wrapper is a plain generator."
        raise PluginError(msg, plugin_id=owner.id)
    place = -1 if impl.tryfirst else 1 if impl.trylast else 0
    tier = _HOST_TIER if owner.kind == "host" else _TIERS.get(owner.source, len(_TIERS))
    known = HOOK_ARGUMENTS[hook]
    parameters = inspect.signature(function).parameters.values()
    _check_callable(owner, hook, parameters)
    # pluggy leaves out parameters with defaults; here they are given too (dispatch.H4).
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = (
        known if takes_all else tuple(p.name for p in parameters if p.name in known and p.kind is not p.VAR_POSITIONAL)
    )
    return Implementation(hook, owner, function, names, wraps, observer, (tier, place * 1_000_000 + rank, 0))


def _check_callable(owner: HookOwner, hook: str, parameters: Collection[Parameter]) -> None:
    """What pluggy doesn't look at: hooks are called by keyword, with nothing but the hook's arguments.

    Raises:
        PluginError: The implementation can't be called so.
    """
    for parameter in parameters:
        if parameter.kind is parameter.POSITIONAL_ONLY:
            why = f"takes {parameter.name!r} by position only, and hooks are called by keyword"
        elif (
            parameter.kind is parameter.KEYWORD_ONLY
            and parameter.default is parameter.empty
            and parameter.name not in HOOK_ARGUMENTS[hook]
        ):
            why = f"needs {parameter.name!r}, which isn't among the hook's arguments: {', '.join(HOOK_ARGUMENTS[hook])}"
        else:
            continue
        raise PluginError(f"plugin {owner.id!r}: its implementation of {hook} {why}.", plugin_id=owner.id)


def _misfit(owner: HookOwner, source: object, error: Exception) -> PluginError:
    """Both signatures, one below the other."""
    import inspect

    text = str(error)
    lines = ["an implementation doesn't fit its hook:"]
    for hook, arguments in HOOK_ARGUMENTS.items():
        function = source.get(hook) if isinstance(source, Mapping) else getattr(source, hook, None)
        if function is not None and (f"'{hook}'" in text or f" {hook}" in text or hook in text):
            lines.append(f"the hook:           {hook}({', '.join(arguments)})")
            try:
                lines.append(f"the implementation: {hook}{inspect.signature(function)}")
            except (TypeError, ValueError):
                lines.append(f"the implementation: {text}")
            break
    else:
        lines.append(text)
    return PluginError(
        "\n".join(lines), plugin_id=owner.id, hint="An implementation may take any subset of the hook's arguments."
    )
