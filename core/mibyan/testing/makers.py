"""The types of the fixtures that make things, for annotations: `def test(make_plugin: MakePlugin) -> None`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mibyan.runtime import Runtime
    from mibyan.testing.distributions import FabricatedDistribution
    from mibyan.testing.loaded import LoadedPlugin


class MakeRuntime(Protocol):
    """Makes runtimes over the temporary home; they see nothing of the developer's machine."""

    def __call__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        plugins: Sequence[str] = (),
        plugin_config: Mapping[str, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> Runtime:
        """A runtime, which is closed when the test ends.

        Args:
            config: Keys of config.yaml, as nested dicts.
            plugins: Installed plugins that it sees, by id, distribution or module.
            plugin_config: Settings of plugins by id: what config.yaml has in `plugins.entries.<id>.config`.
            **options: Further arguments of `Runtime`: `home`, `project`, `safe_mode`, `no_plugins`.

        Raises:
            MibyanError: The configuration can't be used, or a plugin isn't installed.
        """


class MakePlugin(Protocol):
    """Writes folder plugins into the temporary home, and loads them."""

    def __call__(
        self,
        source: str | bytes | None = None,
        id: str | None = None,  # noqa: A002 - a plugin's own word
        *,
        manifest: Mapping[str, Any] | str | bytes | None = None,
        files: Mapping[str, str | bytes] | None = None,
        runtime: Runtime | None = None,
        check: bool = True,
    ) -> LoadedPlugin:
        """A folder plugin, loaded into a runtime.

        Args:
            source: Its `__init__.py`; it is dedented. `None`: it has none, and its `files` or `manifest` say what it is.
            id: Its id; one is made up.
            manifest: Its `plugin.yaml`, as a mapping or as text; `None`: one that says nothing but the id.
            files: Further files, by their paths below its folder.
            runtime: The runtime; `mibyan_runtime` if left out.
            check: Whether it must be usable: `False` gives back what became of it, whatever that is.

        Raises:
            MibyanError: `check`, and it isn't usable; the message has the reason.
            ValueError: There is a plugin with that id, or a file lies outside of its folder.
        """


class WritePlugin(Protocol):
    """Writes folder plugins into the temporary home, for runtimes that load plugins afterwards."""

    def __call__(
        self,
        source: str | bytes | None = None,
        id: str | None = None,  # noqa: A002 - a plugin's own word
        *,
        manifest: Mapping[str, Any] | str | bytes | None = None,
        files: Mapping[str, str | bytes] | None = None,
    ) -> Path:
        """The plugin's folder; see `make_plugin` for the arguments."""


class LoadPlugin(Protocol):
    """Loads plugins that are really installed."""

    def __call__(self, name: str, *, runtime: Runtime | None = None, check: bool = True) -> LoadedPlugin:
        """An installed plugin, loaded into a runtime.

        Args:
            name: Its id, its distribution or its module: `weather`, `mibyan-plugin-weather`, `mibyan_plugin_weather`;
                or a distribution that `make_dist` made.
            runtime: The runtime; `mibyan_runtime` if left out.
            check: Whether it must be usable.

        Raises:
            MibyanError: It isn't installed, or `check` and it isn't usable; the message has the reason.
        """


class MakeDist(Protocol):
    """Fabricates installed distributions."""

    def __call__(
        self,
        name: str,
        version: str = "1.0",
        entry_points: Mapping[str, Mapping[str, str] | str] | None = None,
        manifest: Mapping[str, Any] | str | bytes | None = None,
        *,
        source: str | bytes | None = None,
        files: Mapping[str, str | bytes] | None = None,
        editable: bool = False,
        requires: tuple[str, ...] = (),
        manifest_file: str = "mibyan.json",
        metadata: str | bytes | None = None,
        place: str = "site",
    ) -> FabricatedDistribution:
        """A distribution in a site folder that is on `sys.path` until the test ends; nothing is loaded.

        Args:
            name: The distribution's name, such as `mibyan-plugin-weather`.
            version: Its version.
            entry_points: By group (`{"mibyan.plugins": {"weather": "mibyan_plugin_weather"}}`), or those of
                `mibyan.plugins` only (`{"weather": "mibyan_plugin_weather"}`); left out, a `source` is a plugin.
            manifest: Its manifest, as a mapping or as text.
            source: The source of its module, which is the name with underscores; it is dedented.
            files: Further files, by their paths below the folder of its code.
            editable: Whether its code lies elsewhere, as after `pip install -e`.
            requires: What it depends on, in the words of `Requires-Dist`.
            manifest_file: `mibyan.json`, in the dist-info, or `plugin.yaml`, as package data.
            metadata: The text of METADATA; empty: there is none, as an interrupted uninstall leaves it.
            place: Which site folder, where there are several: those that are named first are searched first.

        Raises:
            ValueError: Its module was imported from elsewhere already, or a file lies outside.
        """
