"""`Workbench`: a place for tests: a home of its own, runtimes that see nothing else, and plugins made for them."""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.testing.files import write_folder_plugin
from mibyan.testing.imports import ImportPlaces
from mibyan.testing.loaded import LoadedPlugin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from mibyan.plugins.candidate import Candidate, Discovery
    from mibyan.plugins.process_state import ProcessState
    from mibyan.runtime import Runtime
    from mibyan.testing.distributions import FabricatedDistribution

__tracebackhide__ = True  # a failing test shows its own lines


class Workbench:
    """Runtimes and plugins for one test; a context manager that takes everything back.

    The runtimes have a home below `root`, no project, and of installed plugins only those that were made or asked for;
    the built-in plugins are there, as they are in production. Meanwhile no `MIBYAN_*` variable counts, and what
    `mibyan.get_runtime()`, `mibyan.registry` and the other names of the facade mean is the first runtime.

    Args:
        root: A folder of the test's own.
        keep_environment: Whether somebody else takes care of the `MIBYAN_*` variables.

    Examples:
        >>> import pathlib, tempfile
        >>> from mibyan.testing import ToolCaller, Workbench
        >>> source = '''
        ...     import mibyan
        ...
        ...     @mibyan.tool(toolset="words")
        ...     def shout(text: str) -> str:
        ...         "Shout."
        ...         return text.upper()
        ... '''
        >>> with tempfile.TemporaryDirectory() as folder, Workbench(pathlib.Path(folder)) as bench:
        ...     runtime = bench.runtime()
        ...     plugin = bench.load(runtime, bench.write_plugin(source, "words").name)
        ...     print(plugin)
        ...     print(ToolCaller(runtime)("shout", text="aden").text)
        <LoadedPlugin words active: tools shout>
        ADEN
    """

    def __init__(self, root: Path, *, keep_environment: bool = False) -> None:
        self._root = root
        #: `$MIBYAN_HOME` of the runtimes.
        self.home = root / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self._keep_environment = keep_environment
        self._environment: dict[str, str] = {}
        self._places = ImportPlaces(root)
        self._sites: list[str] = []
        self._installed: list[Candidate] = []
        self._runtimes: list[Runtime] = []
        self._default: Runtime | None = None
        #: What takes back what plugins have changed of the process, in the order of their loads.
        self._undoers: list[Callable[[], None]] = []
        self._names = itertools.count(1)

    # Runtimes ----------------------------------------------------------------------------------------------------

    def runtime(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        plugins: Sequence[str] = (),
        plugin_config: Mapping[str, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> Runtime:
        """A runtime over the workbench's home; it is closed with the workbench.

        Args:
            config: Keys of config.yaml, as nested dicts.
            plugins: Installed plugins that it sees, by id, distribution or module.
            plugin_config: Settings of plugins by id: what config.yaml has in `plugins.entries.<id>.config`.
            **options: Further arguments of `Runtime`: `home`, `project`, `safe_mode`, `no_plugins`.

        Raises:
            ConfigError: The configuration can't be used.
            PluginError: A plugin isn't installed.
        """
        from mibyan.facade import _DEFAULT
        from mibyan.runtime import Runtime

        for name in plugins:
            self.show_installed(name)
        made = Runtime(home=options.pop("home", self.home), config=_configured(config, plugin_config), **options)
        made._parts.search_path = self._sites
        made._parts.further = (self._shown,)
        if not self._runtimes:
            _DEFAULT._runtime = made
        self._runtimes.append(made)
        return made

    def show_installed(self, name: str) -> str:
        """Let runtimes see an installed plugin, from their next look at plugins on; its id.

        Raises:
            PluginError: It isn't installed.
        """
        from mibyan.testing.installed import find_installed_plugin

        known = next((one for one in self._installed if name in {one.id, one.distribution}), None)
        if known is None:
            known = find_installed_plugin(name, self.home)
            fabricated = any(known.origin.startswith(f"{site}{os.sep}") for site in self._sites)
            if not fabricated and all(one.id != known.id for one in self._installed):
                self._installed.append(known)
        return known.id

    def _shown(self) -> Discovery:
        from mibyan.plugins.candidate import Discovery

        return Discovery(tuple(self._installed))

    # Plugins -----------------------------------------------------------------------------------------------------

    def write_plugin(
        self,
        source: str | bytes | None,
        plugin_id: str | None = None,
        *,
        manifest: Mapping[str, Any] | str | bytes | None = None,
        files: Mapping[str, str | bytes] | None = None,
    ) -> Path:
        """Write a folder plugin into the home, for runtimes that load plugins afterwards; its folder.

        Raises:
            ValueError: There is one with that id.
        """
        named = plugin_id or f"plugin{next(self._names)}"
        folder = self.home / "plugins" / named
        if folder.exists():
            raise ValueError(f"there is a plugin {named!r} already: `plugin.reload(source)` changes one")
        return write_folder_plugin(folder, source, manifest, files)

    def write_distribution(
        self,
        name: str,
        version: str = "1.0",
        entry_points: Mapping[str, Mapping[str, str] | str] | None = None,
        manifest: Mapping[str, Any] | str | bytes | None = None,
        *,
        place: str = "site",
        editable: bool = False,
        **what: Any,
    ) -> FabricatedDistribution:
        """Write a distribution into a site folder that is on `sys.path` as long as the workbench is.

        Args:
            name: The distribution's name.
            version: Its version.
            entry_points: By group, or those of `mibyan.plugins` only.
            manifest: Its manifest, as a mapping or as text.
            place: Which site folder: those that are named first are searched first.
            editable: Whether its code lies elsewhere, as after `pip install -e`.
            **what: Further arguments of `mibyan.testing.distributions.write_distribution`.

        Raises:
            ValueError: Its module was imported from elsewhere already.
        """
        from mibyan.testing.distributions import module_of, write_distribution

        site = self._root / "sites" / place
        code = self._root / "editable" / f"{place}-{name}-{version}" / "src" if editable else None
        if what.get("source") is not None:
            self._places.require_new(module_of(name))
        made = write_distribution(site, name, version, entry_points, manifest, editable=code, **what)
        for module in made.modules:
            self._places.require_new(module)
        self._places.add(site)
        if str(site) not in self._sites:
            self._sites.append(str(site))
        if code is not None:
            code.mkdir(parents=True, exist_ok=True)
            self._places.add(code)
        return made

    def load(self, runtime: Runtime, plugin_id: str, *, check: bool = True) -> LoadedPlugin:
        """A plugin, loaded into a runtime that may have loaded its plugins already.

        Args:
            runtime: A runtime of this workbench.
            plugin_id: The plugin's id.
            check: Whether it must be usable.

        Raises:
            PluginError: The runtime is closed or doesn't find it, or `check` and it isn't usable: the message has the reason.
        """
        from mibyan.plugins.arriving import load_arrived

        if not any(runtime is one for one in self._runtimes):
            raise PluginError("the runtime wasn't made by this workbench: it doesn't see its plugins")
        if runtime.closed:
            raise PluginError("plugins can't be loaded: the runtime is closed", hint="Make a new Runtime.")
        load_arrived(runtime.plugins)
        found = runtime.plugins.get(plugin_id)
        written = found.source == "user" and found.candidate.root is not None
        loaded = LoadedPlugin(runtime, found.id, found.candidate.root if written else None)
        return loaded.require() if check else loaded

    # Beginning and end -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the default runtime and the `MIBYAN_*` variables away, and let `MIBYAN_HOME` be the workbench's home."""
        from mibyan.facade import _DEFAULT
        from mibyan.plugins.transaction import LISTENERS

        LISTENERS.append(self._listen)
        self._default, _DEFAULT._runtime = _DEFAULT._runtime, None
        if not self._keep_environment:
            self._environment = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("MIBYAN_")}
            os.environ["MIBYAN_HOME"] = str(self.home)

    def close(self) -> None:
        """Close the runtimes, the last one first, and take back what was put on `sys.path`, imported and set."""
        with ExitStack() as ends:  # each of them, whatever the others raise
            ends.callback(self._restore_environment)
            ends.callback(self._restore_process)
            ends.callback(_remove_finder)
            ends.callback(self._places.close)
            ends.callback(self._restore_default)
            for runtime in self._runtimes:
                ends.callback(runtime.close)
            self._runtimes.clear()
            self._sites.clear()

    def _restore_default(self) -> None:
        from mibyan.facade import _DEFAULT

        made, _DEFAULT._runtime = _DEFAULT._runtime, self._default
        if made is not None:
            made.close()

    def _listen(self, plugin_id: str, before: ProcessState) -> None:
        # What is really installed stays imported: a later test finds what its import has done, as it finds its modules.
        if all(one.id != plugin_id for one in self._installed):
            self._undoers += before.undoers()

    def _restore_process(self) -> None:
        """Take back what plugins have changed of the process while they were loaded: the next test isn't to see it."""
        from mibyan.plugins.transaction import LISTENERS

        if self._listen in LISTENERS:
            LISTENERS.remove(self._listen)
        for undo in reversed(self._undoers):
            with suppress(Exception):
                undo()
        self._undoers.clear()

    def _restore_environment(self) -> None:
        if not self._keep_environment:
            for name in [name for name in os.environ if name.startswith("MIBYAN_")]:
                del os.environ[name]
            os.environ.update(self._environment)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _configured(
    config: Mapping[str, Any] | None, plugin_config: Mapping[str, Mapping[str, Any]] | None
) -> dict[str, Any]:
    """The configuration with the settings of plugins at their place."""
    settings = {"plugins": {"entries": {key: {"config": dict(value)} for key, value in (plugin_config or {}).items()}}}
    return merged(config or {}, settings if plugin_config else {})


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dicts, where the second one counts; lists replace lists."""
    found = dict(below)
    for key, value in above.items():
        known = found.get(key)
        found[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return found


def _remove_finder() -> None:
    """Take the finder of private packages off `sys.meta_path`, if it serves nobody any more."""
    private = sys.modules.get("mibyan.plugins.private")
    if private is not None and not private.FINDER._packages and private.FINDER in sys.meta_path:
        sys.meta_path.remove(private.FINDER)
