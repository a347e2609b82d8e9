"""The parts of a runtime, made in the order in which they need one another."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.approvals.broker import Approvals
from mibyan.config.load import LoadedConfig, load_config
from mibyan.errors import MibyanError
from mibyan.forks import renewed, survive
from mibyan.hooks.names import APPROVAL_HOOKS
from mibyan.hooks.table import HookTable
from mibyan.once import once
from mibyan.paths import as_path, is_set, mibyan_home
from mibyan.report import DecisionLog
from mibyan.tools.availability import Availability
from mibyan.tools.current import CURRENT, acting_as
from mibyan.tools.owner import Owner
from mibyan.tools.store import RegistryStore
from mibyan.views import ApprovalsView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mibyan.calling import Calling
    from mibyan.dispatch.dispatcher import Dispatcher
    from mibyan.dispatch.keywords import KeywordCalls
    from mibyan.dispatch.quick.lane import ExpressLane
    from mibyan.dispatch.redaction import Redactor
    from mibyan.dispatch.session import Session
    from mibyan.dispatch.sessions import Sessions
    from mibyan.hooks.table import HookChain
    from mibyan.plugins.candidate import Discovery
    from mibyan.plugins.loader import PluginLoader
    from mibyan.tools.store import RegistrySnapshot
    from mibyan.toolsets.definitions import DefinitionBuilder
    from mibyan.toolsets.resolver import ToolsetResolver


class Parts:
    """Everything a `Runtime` owns; the arguments are the runtime's."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None,
        project: str | os.PathLike[str] | None,
        config: Mapping[str, Any] | LoadedConfig | None,
        *,
        safe_mode: bool,
        plugins: Sequence[str],
        no_plugins: Sequence[str],
        locked: bool | None = None,
    ) -> None:
        self.home = mibyan_home(home)
        self.project = _project(project)
        known = config if isinstance(config, LoadedConfig) else load_config(self.home, self.project, overrides=config)
        self.config = known
        self.safe_mode = safe_mode or is_set("MIBYAN_SAFE_MODE")
        self._named = (tuple(plugins), tuple(no_plugins))
        self.log = DecisionLog()
        self.host = Owner("host", "host")
        #: Code that can't be attributed: it may take free names, and remove what it took that way.
        self.nobody = Owner("unattributed", "unattributed")
        settings = self.config.settings
        self._secrets_kept: tuple[RegistrySnapshot, frozenset[str]] | None = None
        self.store = self._make_store(locked=is_set("MIBYAN_LOCKED") if locked is None else locked)
        self.hooks = HookTable(self.log)
        self.approvals = Approvals(
            settings.approvals.timeout, config=self.config, log=self.log, run_async=self._start_async, clean=self.clean,
            observe=lambda hook, session, values: self.calling.observe(hook, session=session, values=values),
            patience=lambda: self.calling.patience_for(*APPROVAL_HOOKS),
        )  # fmt: skip
        self.availability = Availability(
            settings.availability.ttl, settings.availability.grace, log=self.log,
            run_async=self._run_async, acting_as=lambda owner: acting_as(self.store, owner), clean=self.clean,
            apart=self._run_apart, limit=settings.dispatch.hook_timeout,
        )  # fmt: skip
        self._lock = threading.RLock()
        self._plugins: PluginLoader | None = None
        self._toolsets: ToolsetResolver | None = None
        self._definitions: DefinitionBuilder | None = None
        self._plugin_configs: dict[str, Mapping[str, Any]] = {}
        self._loaded = False
        self._closed = False
        #: Whether calls are answered with an error from now on.
        self._refusing = False
        #: Whether nothing runs any more.
        self._ended = False
        self._calling_lock = threading.Lock()
        #: Taken once, by whoever closes it.
        self._closing = threading.Lock()
        #: Where installed plugins are looked for instead of on `sys.path`, and further sources of plugins: whoever makes
        #: the runtime may set them before plugins are loaded.
        self.search_path: Sequence[str] | None = None
        self.further: tuple[Callable[[], Discovery], ...] = ()
        #: The runtime these are the parts of.
        self.runtime: Any = None
        self._connect()
        survive(self)

    def _make_store(self, *, locked: bool) -> RegistryStore:
        """The registry; held to `mibyan.lock`, if that is asked for.

        Raises:
            ConfigError: There is no lock, or it can't be used.
        """
        last_wins = self.config.settings.namespace.collisions == "last_wins"
        if locked:
            from mibyan.plugins.locking import locked_store

            return locked_store(self.home, last_wins=last_wins, log=self.log, clean=self.clean)
        return RegistryStore(last_wins=last_wins, log=self.log)

    # Running calls -----------------------------------------------------------------------------------------------

    @once
    def calling(self) -> Calling:
        """What runs calls; made when it is first needed, which most commands never do."""
        from mibyan.calling import Calling

        with self._calling_lock:
            made: Calling | None = vars(self).get("calling")
            if made is None:
                made = vars(self)["calling"] = Calling(self)
                self.store.dispatcher = made.calls.text
                if self._refusing:  # what plugins do at their end may still be awaited
                    made.dispatcher.refuse()
                    made.sessions.close()
                if self._ended:
                    made.close()
            return made

    @once
    def dispatcher(self) -> Dispatcher:
        """Runs the calls."""
        return self.calling.dispatcher

    @once
    def sessions(self) -> Sessions:
        """The conversations."""
        return self.calling.sessions

    @once
    def lane(self) -> ExpressLane:
        """The quick way of calls."""
        return self.calling.lane

    @once
    def calls(self) -> KeywordCalls:
        """Calls by keywords."""
        return self.calling.calls

    @once
    def redactor(self) -> Redactor:
        """Takes secrets out of texts."""
        from mibyan.dispatch.redaction import Redactor

        return Redactor(self._secret_names, lambda: self._credentials[1])

    def clean(self, text: str) -> str:
        """A text without secrets."""
        return self.redactor.redact(text)

    def _connect(self) -> None:
        """Hand the registry what stands above it."""
        self.store.parts = self
        self.store.line_of = self.config.line_of
        self.store.dispatcher = lambda name, args, context: self.calls.text(name, args, context)  # noqa: PLW0108 - likewise
        self.store.definer = lambda names, quiet: self.definitions.build_named(names, quiet=quiet)
        self.store.prober = self.availability.verdicts
        self.store.members = lambda toolset: self.toolsets.resolve(toolset)  # noqa: PLW0108 - made on first use

    # Loading -----------------------------------------------------------------------------------------------------

    @property
    def is_loaded(self) -> bool:
        """Whether there is nothing to load any more."""
        return self._loaded or self._closed

    def load(self) -> None:
        """Find and load the plugins, once."""
        if self._loaded or self._closed:
            return
        current = CURRENT.get()
        if current is not None and current.store is self.store:
            return  # A plugin asks while it is being loaded.
        # The loader has a lock of its own, and lets go of who waits too long: a plugin that loads may wait for a thread
        # that asks here.
        self.plugins.load()
        self._loaded = self.plugins.is_loaded
        if self.store.guard is not None and self._loaded:
            from mibyan.plugins.locking import tell_differences

            tell_differences(self.store, self.plugins.all_records(), partly=self.safe_mode)

    @property
    def plugins(self) -> PluginLoader:
        """The plugins, not loaded yet."""
        if self._plugins is None:
            with self._lock:
                if self._plugins is None:
                    self._plugins = self._make_loader()
        return self._plugins

    def _make_loader(self) -> PluginLoader:
        from mibyan.plugins.loader import LoaderServices, PluginLoader

        also = [*self._named[0], *os.environ.get("MIBYAN_PLUGINS", "").replace(",", " ").split()]
        return PluginLoader(LoaderServices(
            store=self.store, hooks=self.hooks, config=self.config, home=self.home, project=self.project, log=self.log,
            run_async=self._run_async, dispatch_tool=self._dispatch_for, approvals=ApprovalsView(self.approvals, "a plugin"),
            make_rule=self.approvals.make_rule,
            safe_mode=self.safe_mode, clean=self.clean, also=tuple(also), no=self._named[1],
            search_path=self.search_path, further=self.further,
        ))  # fmt: skip

    @property
    def toolsets(self) -> ToolsetResolver:
        """The toolsets."""
        if self._toolsets is None:
            from mibyan.toolsets.resolver import ToolsetResolver

            self._toolsets = ToolsetResolver(
                lambda: self.store.snapshot,
                self.config.settings,
                lambda: self.store.declared_toolsets,
                self.log,
                self.config.line_of,
            )
        return self._toolsets

    @property
    def definitions(self) -> DefinitionBuilder:
        """The definitions."""
        if self._definitions is None:
            from mibyan.toolsets.definitions import DefinitionBuilder

            self._definitions = DefinitionBuilder(
                self.toolsets, lambda: self.store.snapshot, self.availability, self.log,
                patch=self._patch, is_patched=lambda: bool(self._patchers()),
                patch_token=lambda: self.hooks.generation,
                acting_as=lambda owner: acting_as(self.store, owner), clean=self.clean,
            )  # fmt: skip
        return self._definitions

    def provided(self, name: str) -> Any:
        """What a plugin offers under `name`, made on first use.

        Raises:
            MibyanError: No plugin provides it.
        """
        if name not in self.plugins.provided:
            msg = f"No plugin provides {name!r}."
            raise MibyanError(msg, hint=f"Enable the plugin that does: `mibyan plugins enable {name}`.")
        return self.plugins.provided.service(name)

    # Sessions ----------------------------------------------------------------------------------------------------

    def scope(self, session: Session) -> frozenset[str]:
        """The names of the tools that a session may see; the same until the registry changes."""
        generation = self.store.generation
        kept = session._kept_scope
        if kept is not None and kept[0] == generation:
            return kept[1]
        selection = self.toolsets.select(
            session.enabled_toolsets, session.disabled_toolsets, platform=session.platform
        )  # fmt: skip
        if selection.unknown:
            self.toolsets.warn(selection, session.warned)
        session._kept_scope = (generation, selection.names)
        return selection.names

    # What the parts ask of one another ---------------------------------------------------------------------------

    def _patch(
        self, definitions: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
    ) -> Mapping[str, Mapping[str, Any]]:
        """What the plugins' `mibyan_patch_definitions` say, the later plugin last."""
        chain = self._patchers()
        return self.calling.patches(chain, definitions, names) if chain else {}

    def _patchers(self) -> HookChain:
        """Who has a say in definitions: under `--locked` only code that was accepted."""
        chain = self.hooks.chain("mibyan_patch_definitions")
        guard = self.store.guard
        return chain if guard is None else chain.without({*guard.changed})

    def _dispatch_for(self, name: str, args: Any, owner: Owner) -> str:
        return self.calls.of_plugin(name, args, owner)

    def _run_async(self, awaitable: Any) -> Any:
        return self.dispatcher.run_async(awaitable)

    def _run_apart(self, job: Callable[[], None], moment: Callable[[], float], take_over: Callable[[], bool]) -> bool:
        """Run a pass's checks on the runtime's threads: one that hangs is given up."""
        loading = sys.modules.get("mibyan.plugins.transaction")
        if loading is not None and loading._TURN.is_mine:
            job()  # Its plugin may have to be loaded, and only this thread has the turn for that.
            return True
        from mibyan.dispatch.apart import run_apart

        return run_apart(self.dispatcher.runners, "a check", job, moment, take_over)

    def _start_async(self, awaitable: Any) -> None:
        self.dispatcher.start_async(awaitable)

    def plugin_config(self, plugin_id: str | None) -> Mapping[str, Any]:
        """A plugin's settings: the same as its `ctx.config`, whatever the spelling of its id."""
        if plugin_id is None:
            return {}
        if plugin_id not in self._plugin_configs:
            self._plugin_configs[plugin_id] = self.plugins.config_of(plugin_id)
        return self._plugin_configs[plugin_id]

    @once
    def _credentials(self) -> tuple[frozenset[str], frozenset[str]]:
        """What the configuration says is secret: names of variables, and texts in the configuration itself."""
        from mibyan.dispatch.redaction import may_hold_credentials, variables_named

        data = self.config.settings.to_data()
        names = frozenset(variables_named(data))
        if not may_hold_credentials(data):
            return names, frozenset()
        from mibyan.dispatch.credentials import configured

        found = configured(data)
        return names | found.names, found.values

    def _secret_names(self) -> frozenset[str]:
        """The variables whose values are secret: those that tools need, and those that the configuration names."""
        snapshot = self.store.snapshot
        kept = self._secrets_kept
        if kept is None or kept[0] is not snapshot:
            names = {env for entry in snapshot.entries.values() for env in (*entry.requires_env, *entry.requires.env)}
            kept = self._secrets_kept = (snapshot, self._credentials[0] | names)
        return kept[1]

    # The end -----------------------------------------------------------------------------------------------------

    def fork_locks(self) -> tuple[Any, ...]:
        """See `mibyan.forks`: nobody imports a plugin, changes the registry or starts a loop while the process forks."""
        loading = sys.modules.get("mibyan.plugins.transaction")
        calling = self._made_calling()
        loops = () if calling is None else calling.dispatcher.runners.fork_locks()
        changes = (*self.store.fork_locks(), *self.hooks.fork_locks())
        return (*((loading._TURN.lock,) if loading else ()), self._calling_lock, *loops, *changes)

    def after_fork(self) -> None:
        """In a child process: fresh locks, threads and loops; what was running runs in the parent."""
        self._lock = renewed(self._lock)
        self._calling_lock = threading.Lock()
        calling = self._made_calling()
        for name in ("mibyan.dispatch.call", "mibyan.dispatch.quick.frame"):
            if name in sys.modules:
                sys.modules[name].after_fork()
        made = () if calling is None else calling.kept
        parts = (self.store, self.hooks, self.approvals, self.availability, *made, self._toolsets, self._plugins)
        for part in parts:
            if part is not None:
                part.after_fork()

    def close(self) -> None:
        """End everything that runs; from the first moment on, calls are answered with an error."""
        with self._calling_lock:
            self._refusing = True
        calling = self._made_calling()
        if calling is not None:
            calling.dispatcher.refuse()
        if not self._closing.acquire(blocking=False):
            return
        if calling is not None:
            calling.sessions.close()
        self._closed = True
        self.approvals.close()
        if self._plugins is not None:
            self._plugins.close()
        with self._calling_lock:
            self._ended = True
        calling = self._made_calling()
        if calling is not None:
            calling.close()

    def _made_calling(self) -> Calling | None:
        """What runs calls, if anything had to be run so far."""
        made: Calling | None = vars(self).get("calling")
        return made


def _project(project: str | os.PathLike[str] | None) -> Path | None:
    if project is None:
        return None
    folder = Path(os.path.abspath(as_path(project, "project")))  # noqa: PTH100 - links stay as they are written
    if not folder.is_dir():
        msg = f"The project {folder} isn't a directory."
        raise MibyanError(msg, hint="Give the folder that holds `.mibyan`.")
    return folder
